import MQTTCodec

/// What a connection keeps for those few that need it, so that the others stay small.
final class ConnectionExtras {
    /// Answers AUTH (§4.12).
    var authenticator: MQTTAuthenticator?
    /// CONNECT was sent as told: what comes back is shown, and judged as little as possible.
    var isVerbatim = false
    /// What ``MQTTConnection/finish(_:)`` was told in the middle of a read.
    var goodbye: Disconnect?
    /// The topics that the server's aliases stand for on this connection (§3.3.2.3.4).
    var aliases: [UInt16: [UInt8]] = [:]
    /// QoS 1 messages of this connection that their owner has not acknowledged yet.
    var unacknowledged: Set<UInt16> = []
    /// QoS 2 messages whose PUBLISH came on this connection, and their PUBREL not yet.
    var unreleased: Set<UInt16> = []
    /// What the server has used of this side's receive maximum on this connection, as its send quota has it (§4.9).
    var quotaUsed = 0
    /// Acknowledgements that the current read brought about: the peer cannot have seen them yet.
    var unflushed = 0
}

extension ConnectionExtras {
    /// Counts a message at QoS 1 or 2; `false` if the server had no right to send it, as far as it can know by what was
    /// flushed.
    func takesQuota(_ limit: Int, _ qos: QoS, id: UInt16, isOwners: Bool) -> Bool {
        let isRepetition = qos == .exactlyOnce ? self.unreleased.contains(id) : self.unacknowledged.contains(id)
        if isRepetition { return true }
        guard self.quotaUsed + self.unflushed < limit else { return false }
        if qos == .exactlyOnce { self.unreleased.insert(id) }
        // A QoS 1 message that is acknowledged at once counts as unflushed only.
        if qos == .exactlyOnce || isOwners { self.quotaUsed += 1 }
        return true
    }

    /// An acknowledgement that ends a flow: a flow of an earlier connection gives back too, but never more than was used.
    func returnsQuota(inRead: Bool) {
        guard self.quotaUsed > 0 else { return }
        self.quotaUsed -= 1
        if inRead { self.unflushed += 1 }
    }
}

extension MQTTConnection {
    /// The extras, made when there are none.
    var needsExtras: ConnectionExtras {
        if let extras = self.extras { return extras }
        let extras = ConnectionExtras()
        self.extras = extras
        return extras
    }
}
