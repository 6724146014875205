import MQTTCodec

/// State that only few connections need, kept apart so that the others stay small.
final class ConnectionExtras {
    /// Answers AUTH (§4.12).
    var authenticator: MQTTAuthenticator?
    /// CONNECT was sent as raw bytes: packets are shown to the owner, and checked as little as possible.
    var isVerbatim = false
    /// The argument of ``MQTTConnection/finish(_:)`` when it was called in the middle of a read.
    var goodbye: Disconnect?
    /// The topics that the server's aliases stand for on this connection (§3.3.2.3.4).
    var aliases: [UInt16: [UInt8]] = [:]
    /// QoS 1 messages of this connection that their owner has not acknowledged yet.
    var unacknowledged: Set<UInt16> = []
    /// Identifiers of QoS 2 messages whose PUBLISH came on this connection and whose PUBREL has not.
    var unreleased: Set<UInt16> = []
    /// Used part of this side's receive maximum on this connection, counted as the server's send quota (§4.9).
    var quotaUsed = 0
    /// Acknowledgements that the current read caused and that are not flushed: the peer cannot have seen them.
    var unflushed = 0
    /// Bytes of answers since the kernel takes nothing.
    var heldAnswers = 0
}

extension ConnectionExtras {
    /// Counts a message at QoS 1 or 2; `false` if it exceeds the receive maximum.
    ///
    /// Only flushed acknowledgements count, because the server cannot know of others.
    func takesQuota(_ limit: Int, _ qos: QoS, id: UInt16, isOwners: Bool) -> Bool {
        let isRepetition = qos == .exactlyOnce ? self.unreleased.contains(id) : self.unacknowledged.contains(id)
        if isRepetition { return true }
        guard self.quotaUsed + self.unflushed < limit else { return false }
        if qos == .exactlyOnce { self.unreleased.insert(id) }
        // A QoS 1 message that is acknowledged at once counts as unflushed only.
        if qos == .exactlyOnce || isOwners { self.quotaUsed += 1 }
        return true
    }

    /// Returns quota after an acknowledgement that ends a flow.
    ///
    /// A flow of an earlier connection returns quota too, but never more than was used.
    func returnQuota(inRead: Bool) {
        guard self.quotaUsed > 0 else { return }
        self.quotaUsed -= 1
        if inRead { self.unflushed += 1 }
    }
}

extension MQTTConnection {
    /// The extras, created on first use.
    var needsExtras: ConnectionExtras {
        if let extras = self.extras { return extras }
        let extras = ConnectionExtras()
        self.extras = extras
        return extras
    }
}
