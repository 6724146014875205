import DataEncodings
import LoopContext
package import NIOCore
package import XMPPCodec

/// State that only few connections need, kept apart so that the others stay small.
final class XMPPConnectionExtras {
    /// The closures that wait for answers to requests.
    var requests: XMPPRequestHandlers?
    var receipts: XMPPReceiptsOfSending?
    var handlers: XMPPHandlers?
    /// Requests whose failure is being reported, one by one, the last first.
    var failing: [UInt64] = []
    /// The end of the channel, if it came while TLS was being added.
    var gone: XMPPConnectionEnd?
}

/// Hands the reader's elements to the connection; lives for one read.
struct XMPPStreamSink: XMPPReaderSink {
    let connection: XMPPConnection
    let now: NIODeadline
    private var count = 0

    init(connection: XMPPConnection, now: NIODeadline) {
        self.connection = connection
        self.now = now
    }

    /// RFC 7395 §3.3.3: no second element in one message.
    private mutating func admitElement() -> Bool {
        self.count += 1
        guard self.connection.isWebSocket, self.count > 1 else { return true }
        let action = self.connection.stream.pointee.violated(
            "a message of its WebSocket holds more than one element",
            .badFormat,
            into: &self.connection.out.pointee
        )
        self.connection.run(action, now: self.now)
        return false
    }

    mutating func opened(_ header: StreamHeader) -> ReadingGoesOn {
        let connection = self.connection
        guard self.admitElement() else { return .stop }
        let action = connection.stream.pointee.opened(header, now: self.now, into: &connection.out.pointee)
        connection.run(action, now: self.now)
        return connection.goesOn
    }

    mutating func element(_ element: borrowing ElementView) -> ReadingGoesOn {
        let connection = self.connection
        guard self.admitElement() else { return .stop }
        let action = connection.stream.pointee.received(element, now: self.now, into: &connection.out.pointee)
        switch action {
        case .stanza: connection.delivers(element, now: self.now)
        case .request: connection.delivers(request: element, now: self.now)
        case .answer(let token): connection.delivers(element, answering: token, now: self.now)
        default: connection.run(action, now: self.now)
        }
        return connection.goesOn
    }

    mutating func closed() -> ReadingGoesOn {
        let connection = self.connection
        guard self.admitElement() else { return .stop }
        let action = connection.stream.pointee.closed(now: self.now, into: &connection.out.pointee)
        connection.run(action, now: self.now)
        return connection.goesOn
    }
}

// Handling of received elements.
extension XMPPConnection {
    /// Tokens of requests with a closure; the owner's own are below.
    static let firstOwnToken: UInt64 = 1 << 63

    var goesOn: ReadingGoesOn { self.end != nil || self.wantsTLS || self.wantsRestart ? .stop : .goOn }

    func run(_ action: XMPPStream.Action, now: NIODeadline) {
        switch action {
        case .none, .stanza, .request, .answer: break
        case .startTLS: self.wantsTLS = true
        case .restart: self.wantsRestart = true
        case .ready(let readiness): self.becomesReady(readiness, now: now)
        case .registered(let phases, let answer):
            self.tell(phases, now: now)
            self.observer.registered(self.client, phases, answer: answer, now: now)
        case .acknowledged(let count):
            self.tellAcknowledged(count, now: now)
            self.tellRoom(now: now)
        case .end(let end):
            self.flush()
            self.close(end)
        }
    }

    private func becomesReady(_ readiness: XMPPReadiness, now: NIODeadline) {
        // The last answers of the negotiation go out before the owner's first stanzas join them.
        self.tell(readiness.phases, now: now)
        if readiness.acknowledged > 0, self.end == nil { self.tellAcknowledged(readiness.acknowledged, now: now) }
        // A stream that is new answers nothing of the one before.
        if !readiness.resumed { self.fail(self.stream.pointee.takeRequests(), .connectionLost, now: now) }
        guard self.end == nil, let jid = self.stream.pointee.jid else { return }
        self.extras?.handlers?.ready(XMPPSession(jid, readiness, peer: self.stream.pointee.account.peer))
        guard self.end == nil else { return }
        self.observer.ready(self.client, jid: jid, readiness, now: now)
    }

    private func tell(_ phases: XMPPPhases, now: NIODeadline) {
        for phase in XMPPPhase.allCases where self.end == nil {
            guard let time = phases[phase] else { continue }
            self.observer.phase(self.client, phase, took: time, now: now)
        }
    }

    private func tellAcknowledged(_ count: Int, now: NIODeadline) {
        self.extras?.handlers?.acknowledged(count)
        guard self.end == nil else { return }
        self.observer.acknowledged(self.client, count: count, now: now)
    }

    /// A stream that was full takes stanzas again.
    private func tellRoom(now: NIODeadline) {
        guard self.awaitsRoom, self.isWritable else { return }
        self.awaitsRoom = false
        self.observer.writable(self.client, now: now)
    }

    func delivers(_ element: borrowing ElementView, now: NIODeadline) {
        guard let handlers = self.extras?.handlers else {
            return self.observer.received(self.client, element, now: now)
        }
        self.deliver(element.element(), by: handlers, now: now)
    }

    func delivers(request: borrowing ElementView, now: NIODeadline) {
        guard let handlers = self.extras?.handlers else {
            if self.observer.requested(self.client, request, now: now) || self.end != nil { return }
            self.stream.pointee.refuse(request.element(), into: &self.out.pointee)
            return
        }
        self.deliver(request.element(), by: handlers, now: now)
    }

    private func deliver(_ stanza: XMPPElement, by handlers: XMPPHandlers, now: NIODeadline) {
        let isRequest = stanza.isRequest
        // A request that a filter drops has been dealt with as far as the filter is concerned, but it is owed an answer.
        guard let filtered = handlers.filterReceived(stanza) else {
            if isRequest, self.end == nil { self.stream.pointee.refuse(stanza, into: &self.out.pointee) }
            return
        }
        guard self.end == nil, !handlers.handle(filtered), self.end == nil else { return }
        if self.observer.received(self.client, filtered: filtered, now: now) { return }
        if isRequest, self.end == nil { self.stream.pointee.refuse(stanza, into: &self.out.pointee) }
    }

    /// Treats a stanza as if it had come, by the filters of the modules if there are any.
    ///
    /// - Returns: whether there is a stream that it could have come on.
    @discardableResult
    package func inject(_ stanza: XMPPElement) -> Bool {
        guard self.end == nil, self.stream.pointee.state == .connected else { return false }
        self.deliver(stanza, by: self.extras?.handlers ?? XMPPHandlers([], of: self), now: self.loop.refresh())
        self.flushUnlessReading()
        return true
    }

    func delivers(_ answer: borrowing ElementView, answering token: UInt64, now: NIODeadline) {
        guard token >= Self.firstOwnToken else { return self.observer.answered(self.client, token, answer, now: now) }
        guard let handler = self.extras?.requests?.handlers.removeValue(forKey: token) else { return }
        let element = answer.element()
        if element["type"] == "error" {
            handler(.failure(.refused(StanzaError(element) ?? StanzaError(.undefinedCondition))))
        } else {
            handler(.success(element))
        }
    }

    /// Fails the given requests, but none that a callback adds.
    ///
    /// If a callback closes the connection, the rest are reported before its end.
    func fail(_ tokens: [UInt64], _ error: XMPPRequestError, now: NIODeadline) {
        guard !tokens.isEmpty else { return }
        let extras = self.needsExtras
        extras.failing = tokens.reversed()
        while let token = extras.failing.popLast() { self.fail(token, error, now: now) }
    }

    func fail(_ token: UInt64, _ error: XMPPRequestError, now: NIODeadline) {
        guard token >= Self.firstOwnToken else {
            return self.observer.unanswered(self.client, token, error, now: now)
        }
        self.extras?.requests?.handlers.removeValue(forKey: token)?(.failure(error))
    }

    /// Returns the element after the filters of all modules.
    func filtered(_ element: XMPPElement) -> XMPPElement? {
        guard let handlers = self.extras?.handlers else { return element }
        return handlers.filterSent(element)
    }

    // MARK: Requests

    /// Sends an IQ of type get or set, sets its id, and passes its answer on.
    ///
    /// Only an answer of the addressee counts: of the IQ's `to`, or, without it, of the server.
    ///
    /// `timeout`: ``XMPPStreamOptions/requestTimeout`` unless one is given.
    package func request(
        _ iq: XMPPElement,
        timeout: TimeAmount? = nil,
        _ answer: @escaping (Result<XMPPElement, XMPPRequestError>) -> Void
    ) {
        guard self.takesStanzas else { return answer(.failure(.notSent)) }
        let to = iq["to"].flatMap { try? JID($0) }
        if to == nil, let text = iq["to"] {
            return answer(.failure(.invalid("its 'to' is no JID: \(OneLine.of(text))")))
        }
        let requests = self.needsExtras.requests ?? XMPPRequestHandlers()
        self.extras?.requests = requests
        let token = requests.nextToken
        requests.nextToken += 1
        var id = ByteBuffer()
        let deadline = self.loop.now + (timeout ?? self.stream.pointee.options.requestTimeout)
        self.stream.pointee.request(token, to: to, deadline: deadline, id: &id)
        var iq = iq
        iq["id"] = String(buffer: id)
        requests.handlers[token] = answer
        do throws(XMPPWriteError) {
            guard try self.offer(iq) == .dropped else {
                if self.end == nil { self.updateTimer() }
                return
            }
            self.stream.pointee.withdraw(token)
            self.fail(token, .dropped, now: self.loop.now)
        } catch {
            self.stream.pointee.withdraw(token)
            self.fail(token, .invalid(error.description), now: self.loop.now)
        }
        if self.end == nil { self.updateTimer() }
    }

    /// The same for frequent requests: the IQ is the bytes before the id, the id, and the bytes after it.
    ///
    /// The answer is reported by ``XMPPConnectionObserver/answered(_:_:_:now:)``.
    ///
    /// `token`: below 2⁶³.
    /// `to`: what the IQ has for its `to`.
    package func request(_ token: UInt64, to: JID?, timeout: TimeAmount, before: [UInt8], after: [UInt8]) -> Bool {
        let isTaken = self.appendRequest(token, to: to, timeout: timeout, before: before, after: after)
        if isTaken { self.flushRequests() }
        return isTaken
    }

    /// Writes what was appended by ``appendRequest(_:to:timeout:before:after:)``, and minds the time of the answers.
    package func flushRequests() {
        self.flushUnlessReading()
        guard self.end == nil else { return }
        self.updateTimer()
    }

    /// Appends one request of several that leave together by ``flushRequests()``.
    package func appendRequest(
        _ token: UInt64,
        to: JID?,
        timeout: TimeAmount,
        before: [UInt8],
        after: [UInt8]
    ) -> Bool {
        precondition(token < Self.firstOwnToken, "tokens are below 2⁶³")
        guard self.end == nil, self.stream.pointee.state == .connected else { return false }
        let start = self.out.pointee.writerIndex
        self.out.pointee.writeBytes(before)
        self.stream.pointee.request(token, to: to, deadline: self.loop.now + timeout, id: &self.out.pointee)
        self.out.pointee.writeBytes(after)
        self.stream.pointee.counts(1, from: start, in: &self.out.pointee)
        return true
    }

    var needsExtras: XMPPConnectionExtras {
        if let extras = self.extras { return extras }
        let extras = XMPPConnectionExtras()
        self.extras = extras
        return extras
    }
}

extension XMPPElement {
    /// Something that has to be answered.
    var isRequest: Bool {
        guard self.name == "iq", self.namespace == XMPPNamespace.client else { return false }
        return self["type"] == "get" || self["type"] == "set"
    }
}
