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
        case .pubRel:
            self.tally.acknowledgementsReceived.pubrel &+= 1
            outcome = self.connections[connection].heldIDs.remove(id) == nil ? .unknown : .release
        default:
            self.tally.acknowledgementsReceived.pubcomp &+= 1
            outcome = self.connections[connection].deliveries.pubComp(id)
        }
        switch outcome {
        case .done: self.refill(connection)
        // Before CONNACK, which an acknowledgement must not precede, no identifier is known [MQTT-3.1.2-30].
        case .unknown where self.connections[connection].state == .authenticating, .wrong:
            self.fail(connection, .protocolError, now: now)
            return false
        case .release, .unknown:
            // The next packet of a QoS 2 flow; in MQTT 5 its reason says that there is none (§3.6.2.1, §3.7.2.1).
            let reason: ReasonCode = outcome == .release ? .success : .packetIdentifierNotFound
            if type == .pubRec { self.acknowledge(.pubRel, id, reason, to: connection) }
            if type == .pubRel { self.acknowledge(.pubComp, id, reason, to: connection) }
        }
        return true
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
