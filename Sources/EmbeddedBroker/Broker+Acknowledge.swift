import MQTTCodec
import NIOCore

extension Broker {
    /// - Returns: false when the connection has been ended.
    mutating func acknowledged(
        _ type: PacketType,
        id: UInt16,
        reason: UInt8,
        from connection: ConnectionID,
        now: NIODeadline
    ) -> Bool {
        let outcome: OutboundWindow.Outcome
        switch type {
        case .pubAck:
            self.tally.acknowledgementsReceived.puback &+= 1
            outcome = self.connections[connection].window.pubAck(id)
        case .pubRec:
            self.tally.acknowledgementsReceived.pubrec &+= 1
            outcome = self.connections[connection].window.pubRec(id, failed: reason >= 0x80)
            self.answer(
                .pubRel,
                id,
                isKnown: outcome != .unknown,
                isDue: outcome == .release || outcome == .unknown,
                connection
            )
        case .pubRel:
            self.tally.acknowledgementsReceived.pubrel &+= 1
            let isKnown = self.connections[connection].heldIDs.remove(id) != nil
            self.answer(.pubComp, id, isKnown: isKnown, isDue: true, connection)
            return true
        default:
            self.tally.acknowledgementsReceived.pubcomp &+= 1
            outcome = self.connections[connection].window.pubComp(id)
        }
        switch outcome {
        case .done: self.refill(connection)
        case .release, .unknown: break
        case .wrong:
            self.fail(connection, .protocolError, now: now)
            return false
        }
        return true
    }

    /// The next step of a QoS 2 flow; in MQTT 5 with 0x92 when there is no such flow (§3.6.2.1, §3.7.2.1).
    private mutating func answer(
        _ type: PacketType,
        _ id: UInt16,
        isKnown: Bool,
        isDue: Bool,
        _ connection: ConnectionID
    ) {
        guard isDue, let packetID = PacketID(rawValue: id) else { return }
        guard !isKnown, self.connections[connection].isVersion5 else {
            return self.acknowledge(type, id, to: connection)
        }
        let reason = ReasonCode.packetIdentifierNotFound
        if type == .pubRel {
            self.send(.pubRel(PubRel(packetID, reason: reason)), to: connection)
            self.tally.acknowledgementsSent.pubrel &+= 1
        } else {
            self.send(.pubComp(PubComp(packetID, reason: reason)), to: connection)
            self.tally.acknowledgementsSent.pubcomp &+= 1
        }
    }

    /// Lets waiting messages go as far as the window has room.
    private mutating func refill(_ connection: ConnectionID) {
        guard self.connections[connection].window.hasQueue else { return }
        self.prepareOutput(connection)
        var out = ByteBuffer()
        swap(&out, &self.connections[connection].out)
        while let tally = self.connections[connection].window.moveNext(to: &out) {
            if tally.kind == .copy { self.tally.waiting[tally.qos] &-= 1 }
            self.count(tally, on: connection)
        }
        swap(&out, &self.connections[connection].out)
        self.markDirty(connection)
        if self.connections[connection].isCongested { self.easeCongestion(connection) }
    }
}
