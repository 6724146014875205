import MQTTCodec
import NIOCore

extension Broker {
    /// - Returns: false if the connection was ended.
    mutating func acknowledged(
        _ type: PacketType,
        id: UInt16,
        reason: UInt8,
        from connection: ConnectionID,
        now: NIODeadline
    ) -> Bool {
        let outcome: DeliveryQueue.Outcome
        switch type {
        case .pubAck:
            self.tally.acknowledgementsReceived.puback &+= 1
            outcome = self.connections[connection].deliveries.pubAck(id)
        case .pubRec:
            self.tally.acknowledgementsReceived.pubrec &+= 1
            outcome = self.connections[connection].deliveries.pubRec(id, failed: reason >= 0x80)
            if outcome == .unknown, self.isEarly(connection, now: now) { return false }
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
            if !isKnown, self.isEarly(connection, now: now) { return false }
            self.answer(.pubComp, id, isKnown: isKnown, isDue: true, connection)
            return true
        default:
            self.tally.acknowledgementsReceived.pubcomp &+= 1
            outcome = self.connections[connection].deliveries.pubComp(id)
        }
        switch outcome {
        case .done: self.refill(connection)
        case .release: break
        case .unknown: return !self.isEarly(connection, now: now)
        case .wrong:
            self.fail(connection, .protocolError, now: now)
            return false
        }
        return true
    }

    /// Whether there was no CONNACK yet, which ends the connection [MQTT-3.1.2-30].
    ///
    /// Called only for unknown packet identifiers, since every identifier is unknown before CONNACK.
    private mutating func isEarly(_ connection: ConnectionID, now: NIODeadline) -> Bool {
        guard self.connections[connection].state == .authenticating else { return false }
        self.fail(connection, .protocolError, now: now)
        return true
    }

    /// Sends the next packet of a QoS 2 flow.
    ///
    /// In MQTT 5 its reason is 0x92 if there is no such flow (§3.6.2.1, §3.7.2.1).
    private mutating func answer(
        _ type: PacketType,
        _ id: UInt16,
        isKnown: Bool,
        isDue: Bool,
        _ connection: ConnectionID
    ) {
        guard isDue else { return }
        self.acknowledge(type, id, isKnown ? .success : .packetIdentifierNotFound, to: connection)
    }

    /// Sends an acknowledgement; before MQTT 5 it has no reason.
    @inline(__always)
    mutating func acknowledge(_ type: PacketType, _ id: UInt16, _ reason: ReasonCode, to connection: ConnectionID) {
        if reason == .success {
            self.acknowledge(type, id, to: connection)
        } else {
            self.acknowledge(type, id, because: reason, to: connection)
        }
    }

    private mutating func acknowledge(
        _ type: PacketType,
        _ id: UInt16,
        because reason: ReasonCode,
        to connection: ConnectionID
    ) {
        let none = UnsafeRawBufferPointer(start: nil, count: 0)
        guard self.connections[connection].isVersion5,
            let packet = Packet(acknowledgement: type, id: id, reason: reason.rawValue, rawProperties: none)
        else { return self.acknowledge(type, id, to: connection) }
        self.send(packet, to: connection)
        self.tally.acknowledgementsSent.count(type)
    }

    /// Sends waiting messages while the window has room.
    mutating func refill(_ connection: ConnectionID) {
        guard self.connections[connection].deliveries.hasQueue else { return }
        self.prepareOutput(connection)
        let maximumSize = self.connections[connection].maximumPacketSize
        var out = ByteBuffer()
        swap(&out, &self.connections[connection].out)
        while let moved = self.connections[connection].deliveries.moveNext(
            to: &out,
            maximumSize: maximumSize,
            now: self.clock
        ) { self.book(moved, on: connection) }
        swap(&out, &self.connections[connection].out)
        self.markDirty(connection)
        if self.connections[connection].isCongested { self.easeCongestion(connection) }
    }

    private mutating func book(_ moved: DeliveryQueue.Moved, on connection: ConnectionID) {
        switch moved {
        case .sent(let tally):
            if tally.kind == .copy { self.tally.waiting[tally.qos] &-= 1 }
            // Waiting messages are at QoS 1 or 2.
            self.count(tally, on: connection, qos: 1)
        case .sentAgain(let tally): self.tally.resent[tally.qos] += 1
        case .released: self.tally.acknowledgementsSent.pubrel += 1
        case .expired(let tally):
            guard tally.kind == .copy else { return }
            self.tally.waiting[tally.qos] -= 1
            self.tally.expired[tally.qos] += 1
        case .tooLarge(let tally, let isDelivered):
            guard tally.kind == .copy, !isDelivered else { return }
            self.tally.waiting[tally.qos] -= 1
            self.tally.tooLarge[tally.qos] += 1
        }
    }
}
