package import NIOCore
package import XMPPCodec

/// Counts of unrequested input.
package struct XMPPStrays: Hashable, Sendable {
    /// Answers to requests that had timed out.
    package internal(set) var late: UInt32 = 0
    /// Answers from a sender other than the addressee of the request.
    package internal(set) var foreign: UInt32 = 0
    /// Requests that break the rules for IQs, and answers that do.
    package internal(set) var malformed: UInt32 = 0
    /// Elements that are neither stanzas nor known.
    package internal(set) var unknown: UInt32 = 0
}

// Stanzas on a stream that is ready (RFC 6120 §8).
extension XMPPStream {
    private enum IQType {
        case request, answer, wrong

        init(_ text: UnsafeRawBufferPointer) {
            if text.elementsEqual("get".utf8) || text.elementsEqual("set".utf8) {
                self = .request
            } else if text.elementsEqual("result".utf8) || text.elementsEqual("error".utf8) {
                self = .answer
            } else {
                self = .wrong
            }
        }
    }

    mutating func receivedStanza(
        _ element: borrowing ElementView,
        now: NIODeadline,
        into out: inout ByteBuffer
    ) -> Action {
        if let management = self.management, management.isOn { management.counts.handles() }
        if self.options.peerRole != nil, !self.isFromPeer(element) {
            self.strays.foreign += 1
            return .none
        }
        guard element.kind == .iq else { return .stanza }
        switch element.withAttribute("type", { IQType($0) }) ?? .wrong {
        case .answer: return self.receivedAnswer(element)
        case .request:
            let hasID = element.withAttribute("id") { !$0.isEmpty } ?? false
            // §8.2.3: the single child is the request.
            if hasID, element.hasOneChild { return .request }
        case .wrong: break
        }
        self.strays.malformed += 1
        self.refuse(element.element(), StanzaError(.badRequest), into: &out)
        return .none
    }

    /// Between two clients each speaks for itself alone (XEP-0174).
    private func isFromPeer(_ element: borrowing ElementView) -> Bool {
        guard let peer = self.account.peer else { return false }
        let isPeer = element.withAttribute("from") { from in
            (try? JID(received: String(decoding: from, as: UTF8.self)))?.bare == peer.bare
        }
        return isPeer ?? true
    }

    /// Counts input after the closing tag, which is no longer answered.
    mutating func receivedLate(_ element: borrowing ElementView) -> Action {
        guard element.kind == .iq else { return .stanza }
        guard case .answer? = element.withAttribute("type", { IQType($0) }) else { return .none }
        return self.receivedAnswer(element)
    }

    private mutating func receivedAnswer(_ element: borrowing ElementView) -> Action {
        guard element.hasAttribute("id") else {
            self.strays.malformed += 1
            return .none
        }
        guard let place = element.withAttribute("id", { self.requests.find($0) }) ?? nil else { return .stanza }
        guard self.mayAnswer(element, place.to) else {
            self.strays.foreign += 1
            return .none
        }
        if let token = self.requests.take(place) { return .answer(token: token) }
        self.strays.late += 1
        return .none
    }

    /// Whether an answer comes from the addressee: from `asked` itself, or, for the own account or the server, from any
    /// of the names that the server uses for it (§8.1.2.1, §10.3.3).
    private func mayAnswer(_ element: borrowing ElementView, _ asked: JID?) -> Bool {
        let verdict = element.withAttribute("from") { from -> Bool in
            if let asked, from.elementsEqual(asked.description.utf8) { return true }
            guard let sender = try? JID(received: String(decoding: from, as: UTF8.self)) else { return false }
            if let asked { return sender == asked }
            if let peer = self.account.peer { return sender.bare == peer.bare }
            return sender == self.jid || sender == self.jid?.bare || sender == self.domainJID
        }
        if let verdict { return verdict }
        // Only the server can omit `from`: it adds it to every stanza that it relays.
        guard let asked else { return true }
        // A peer need not say who it is.
        if let peer = self.account.peer { return asked.bare == peer.bare }
        return asked == self.domainJID || asked == self.jid?.bare || asked == self.jid
    }

    /// Refuses a request that no module handled; other stanzas are ignored (§8.2.3, §8.4).
    package mutating func refuse(_ request: XMPPElement, into out: inout ByteBuffer) {
        let reply = self.options.automaticReply
        self.refuse(request, StanzaError(reply.condition), withContents: reply.echoesContents, into: &out)
    }

    /// `withContents`: off by default (§8.3.1: MAY), because a request may be long, and is kept until acknowledged.
    package mutating func refuse(
        _ request: XMPPElement,
        _ error: StanzaError,
        withContents: Bool = false,
        into out: inout ByteBuffer
    ) {
        guard self.mayAnswer, var reply = error.reply(to: request, withContents: withContents) else { return }
        // §8.1.2.1: the server adds `from`, but not for a component, which speaks for all of its addresses.
        if !self.options.isComponent { reply["from"] = nil }
        self.append(reply, into: &out)
    }

    /// Answers a request with a result.
    package mutating func answer(_ request: XMPPElement, with payload: XMPPElement? = nil, into out: inout ByteBuffer) {
        guard self.mayAnswer else { return }
        let iq = XMPPElement(
            "iq",
            namespace: XMPPNamespace.client,
            attributes: [
                "type": "result", "id": request["id"], "to": request["from"],
                "from": self.options.isComponent ? request["to"] : nil,
            ],
            children: payload.map { [.element($0)] } ?? []
        )
        self.append(iq, into: &out)
    }

    /// Requests come before the stream is ready as well, once there is a resource to send them to.
    private var mayAnswer: Bool {
        self.facts.contains(.bound) && self.state != .closing && self.state != .disconnected
    }

    mutating func unknownElement(_ element: XMPPElement, into out: inout ByteBuffer) -> Action {
        if self.options.customNamespaces.contains(element.namespace) { return .stanza }
        if self.options.refusesUnknownElements {
            let words = "<\(element.name) xmlns='\(element.namespace)'> is no stanza"
            return self.violated(words, .unsupportedStanzaType, into: &out)
        }
        self.strays.unknown += 1
        return .none
    }

    // MARK: Requests

    /// Begins a request of `to`, or of the own account and its server, and writes the value of its id.
    ///
    /// `token`: returned with the answer or with the timeout.
    package mutating func request(_ token: UInt64, to: JID?, deadline: NIODeadline, id out: inout ByteBuffer) {
        let (random, count) = self.requests.next(self.options.random())
        StanzaID.write(random, count, into: &out)
        self.requests.add(XMPPRequests.Entry(random: random, count: count, token: token, to: to, deadline: deadline))
    }

    /// Gives up a request that could not be sent.
    mutating func withdraw(_ token: UInt64) { self.requests.withdraw(token) }

    /// Takes out the requests that were not answered in time.
    mutating func takeExpired(now: NIODeadline) -> [UInt64] { self.requests.expire(now: now) }

    /// Takes out all requests, as when the connection is gone.
    package mutating func takeRequests() -> [UInt64] { self.requests.isEmpty ? [] : self.requests.takeAll() }

    /// Keeps pending requests until the stream is resumed.
    mutating func keep(_ waiting: XMPPRequestHandlers?) { self.management?.waiting = waiting }

    /// Whether requests wait for answers while there is no connection.
    var hasWaiting: Bool { self.management?.waiting != nil }
    mutating func takeWaiting() -> XMPPRequestHandlers? { self.management?.waiting.take() }

    /// Removes the requests that timed out, or all, while there is no connection.
    ///
    /// ``deadline`` is the time of the next timeout. Requests by bytes stay until the next connection.
    mutating func takeOverdue(now: NIODeadline) -> [XMPPRequestHandlers.Handler] {
        guard let waiting = self.management?.waiting else { return [] }
        let tokens = self.requests.expire(now: now) { waiting.handlers[$0] != nil }
        return tokens.compactMap { waiting.handlers.removeValue(forKey: $0) }
    }

    /// Removes all waiting requests, for a client that will not reconnect.
    package mutating func takeAllWaiting() -> [(Result<XMPPElement, XMPPRequestError>) -> Void] {
        guard let waiting = self.management?.waiting.take() else { return [] }
        self.requests.clear()
        return waiting.handlers.sorted { $0.key < $1.key }.map(\.value)
    }

    package var pendingRequests: Int { self.requests.entries.count }

    /// An unguessable id that is unique on the stream.
    package mutating func makeID() -> String {
        let (random, count) = self.requests.next(self.options.random())
        var buffer = ByteBuffer()
        StanzaID.write(random, count, into: &buffer)
        return String(buffer: buffer)
    }

    // MARK: Time

    /// When ``timerFired(now:into:)`` or ``takeExpired(now:)`` has something to do.
    package var deadline: NIODeadline? {
        var deadline = min(self.requests.earliest, self.closingDeadline)
        if let negotiation = self.negotiation { deadline = min(deadline, negotiation.deadline) }
        if self.state == .connected {
            if let look = self.keepAlive.deadline { deadline = min(deadline, look) }
            if let management = self.management { deadline = min(deadline, management.asksAt) }
        }
        return deadline == .distantFuture ? nil : deadline
    }

    /// Does the work that is due, except for the requests that ``takeExpired(now:)`` returns.
    package mutating func timerFired(now: NIODeadline, into out: inout ByteBuffer) -> Action {
        if let negotiation = self.negotiation, now >= negotiation.deadline {
            return self.end(negotiation.fault ?? .timedOut(negotiation.phase ?? .stream), into: &out)
        }
        if now >= self.closingDeadline {
            self.closingDeadline = .distantFuture
            self.state = .disconnected
            return .end(.closingTimedOut)
        }
        if let management = self.management, now >= management.asksAt { self.requestAcknowledgement(into: &out) }
        if self.state == .connected, self.keepAlive.isDue(now: now) {
            out.writeString(self.options.keepAliveCharacter.rawValue)
            self.keepAlive.noteActivity(now: now)
        }
        return .none
    }

    /// Bytes have been read: of elements or of spaces.
    package mutating func noteReceived(_ bytes: Int, now: NIODeadline) {
        self.bytesReceived &+= UInt64(bytes)
        self.keepAlive.noteActivity(now: now)
    }

    /// - Returns: whether ``deadline`` may be earlier than it was.
    @discardableResult
    package mutating func noteSent(_ bytes: Int, now: NIODeadline) -> Bool {
        self.bytesSent &+= UInt64(bytes)
        self.keepAlive.noteActivity(now: now)
        guard let management = self.management, self.state == .connected, management.sinceRequest > 0,
            management.asksAt == .distantFuture, self.options.acknowledgesAfter > .zero
        else { return false }
        management.asksAt = now + self.options.acknowledgesAfter
        return true
    }

    /// How long each phase has taken, and ``negotiationPhase`` not yet.
    package var phases: XMPPPhases { self.negotiation?.phases ?? XMPPPhases() }
    package var negotiationPhase: XMPPPhase? { self.negotiation?.phase }
}

extension ElementView {
    fileprivate var hasOneChild: Bool {
        guard let first = self.firstChild() else { return false }
        if first.nextSibling() != nil { return false }
        return true
    }
}
