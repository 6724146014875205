package import NIOCore
package import XMPPCodec

// How a stream ends (RFC 6120 §4.4, §4.9).
extension XMPPStream {
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
            let presence = XMPPElement(
                "presence",
                namespace: XMPPNamespace.client,
                attributes: ["type": "unavailable"]
            )
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
    mutating func violated(
        _ words: String,
        _ condition: StreamErrorCondition,
        into out: inout ByteBuffer
    ) -> Action {
        self.append(StreamError(condition), into: &out)
        return self.end(.violation(condition, words), into: &out)
    }

    /// The same for bytes that are no XML, or none that XMPP allows.
    package mutating func malformed(_ error: XMPPReadError, into out: inout ByteBuffer) -> Action {
        self.append(StreamError(error.condition), into: &out)
        return self.end(.malformed(error), into: &out)
    }
}
