package import NIOCore
package import XMPPCodec

// Sending.
extension XMPPStream {
    /// Appends an element.
    ///
    /// An element that XML cannot represent is left out, and its waiting caller gets an error.
    mutating func append(_ element: XMPPElement, into out: inout ByteBuffer) {
        do throws(XMPPWriteError) {
            try self.send(element, into: &out)
        } catch {
            self.negotiation?.fault = .unsendable(error)
        }
    }

    /// Appends an element, and counts it if it is a stanza; of one that throws nothing is appended.
    package mutating func send(_ element: XMPPElement, into out: inout ByteBuffer) throws(XMPPWriteError) {
        var element = element
        // XEP-0114 §3: a component's stanzas say who they are from.
        if self.options.isComponent, self.state == .connected, element["from"] == nil {
            element["from"] = self.account.jid.description
        }
        let start = out.writerIndex
        do throws(XMPPWriteError) {
            // RFC 7395 §3.3.3: every WebSocket message is a complete document.
            try element.write(into: &out, parent: self.options.framing == .webSocket ? "" : XMPPNamespace.client)
        } catch {
            out.moveWriterIndex(to: start)
            throw error
        }
        if element.namespace == XMPPNamespace.client {
            if element.name == "presence", element["to"] == nil {
                switch element["type"] {
                case nil: self.isPresent = true
                case "unavailable": self.isPresent = false
                default: break
                }
            }
            self.counts(1, from: start, in: &out)
        } else if self.options.framing == .webSocket {
            self.boundaries.append(out.writerIndex)
        }
    }

    /// Where each element that was appended ends, once.
    mutating func takeBoundaries() -> [Int] {
        let boundaries = self.boundaries
        self.boundaries.removeAll(keepingCapacity: true)
        return boundaries
    }

    /// Counts `count` stanzas that the owner has appended from `start` on.
    package mutating func counts(_ count: Int, from start: Int, in out: inout ByteBuffer) {
        if self.options.framing == .webSocket { self.boundaries.append(out.writerIndex) }
        guard let management = self.management, self.facts.contains(.bound) else { return }
        let end = out.writerIndex
        let wasFull = management.counts.isFull
        if management.counts.sends(count, Self.copy(out, start, end)) { self.forgetResumption() }
        management.sinceRequest += count
        let every = self.options.acknowledgesEvery
        // A full stream waits for an acknowledgement, which few servers give unasked.
        let isDue = every > 0 && management.sinceRequest >= every
        if isDue || !wasFull && management.counts.isFull { self.requestAcknowledgement(into: &out) }
    }

    /// A copy, because the buffer written to belongs to the loop.
    private static func copy(_ out: borrowing ByteBuffer, _ start: Int, _ end: Int) -> ByteBuffer {
        out.withUnsafeReadableBytes { bytes in
            let first = start - out.readerIndex
            return ByteBuffer(bytes: bytes[first..<(first + end - start)])
        }
    }

    mutating func append(_ error: StreamError, into out: inout ByteBuffer) {
        guard self.state != .closing, self.state != .disconnected, self.state != .startTLS2, self.hasOpened else {
            return
        }
        guard self.options.framing == .stream else { return self.append(error.element, into: &out) }
        // Not every server accepts it without its usual prefix.
        out.writeStaticString("<stream:error>")
        for child in error.element.elements { self.append(child, into: &out) }
        out.writeStaticString("</stream:error>")
    }

    mutating func appendClosingTag(into out: inout ByteBuffer) {
        if self.options.framing == .webSocket {
            self.append(XMPPElement("close", namespace: XMPPNamespace.framing), into: &out)
        } else {
            out.writeStaticString("</stream:stream>")
        }
    }

    /// Whether stanzas may go out: not more of them than the server may leave unacknowledged.
    package var takesStanzas: Bool { self.state == .connected && !self.isFull }
    var isFull: Bool { self.management?.counts.isFull ?? false }

    // MARK: - How a stream ends (RFC 6120 §4.4, §4.9)

    /// Takes leave: an unavailable presence if one is owed, and the closing tag.
    ///
    /// The server's is awaited.
    ///
    /// - Returns: whether there is something to wait for.
    package mutating func finish(now: NIODeadline, into out: inout ByteBuffer) -> Bool {
        switch self.state {
        // §5.4.2.1: between `<starttls/>` and its answer the client may send nothing.
        case .disconnected, .startTLS1, .startTLS2, .closing: return false
        default: if !self.hasOpened { return false }
        }
        if self.state == .connected, self.isPresent {
            let presence = XMPPElement("presence", namespace: XMPPNamespace.client, attributes: ["type": "unavailable"])
            self.append(presence, into: &out)
        }
        if self.state == .connected { self.acknowledge(into: &out) }
        self.forgetResumption()
        self.appendClosingTag(into: &out)
        self.state = .closing
        self.negotiation = self.negotiation?.untold
        self.closingDeadline = now + self.options.closingTime
        return true
    }

    /// The connection is gone.
    ///
    /// A resumable session is kept with its pending requests: the server has them, or receives them again.
    package mutating func connectionLost(now: NIODeadline) {
        if self.isUntold { self.forgetResumption() }
        self.state = .disconnected
        self.negotiation = self.negotiation?.untold
        self.closingDeadline = .distantFuture
        guard let management = self.management, management.previousID != nil else {
            self.requests.clear()
            self.isPresent = false
            return
        }
        management.asksAt = .distantFuture
        // A failed attempt to resume does not extend the server's time limit.
        management.lostAt = management.lostAt ?? now
    }

    /// Ends the stream by its tag; nothing is waited for, since nothing that could come matters.
    mutating func end(_ end: XMPPConnectionEnd, into out: inout ByteBuffer) -> Action {
        if self.state != .closing, self.state != .disconnected, self.state != .startTLS2, self.hasOpened {
            self.appendClosingTag(into: &out)
        }
        self.state = .disconnected
        return .end(end)
    }

    /// Whether this side has sent a header: a recipient answers with one, and before that has nothing to close.
    var hasOpened: Bool { self.options.peerRole != .recipient || self.state != .opening }

    /// Sends the stream error for the rule that the server broke (§4.9), and ends the stream.
    mutating func violated(_ words: String, _ condition: StreamErrorCondition, into out: inout ByteBuffer) -> Action {
        self.append(StreamError(condition), into: &out)
        return self.end(.violation(condition, words), into: &out)
    }

    /// The same for bytes that are no XML, or none that XMPP allows.
    package mutating func malformed(_ error: XMPPReadError, into out: inout ByteBuffer) -> Action {
        self.append(StreamError(error.condition), into: &out)
        return self.end(.malformed(error), into: &out)
    }
}
