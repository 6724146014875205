import MQTTCodec

/// Adds up what a decoder delivers.
protocol DecodeSink: PacketSink {
    init()
    var checksum: DecodeChecksum { get }
}

/// Looks at every range that it is given, as a client does, and keeps none.
struct CountingSink: DecodeSink {
    var checksum = DecodeChecksum()

    mutating func publish(_ view: PublishView) -> Bool {
        self.checksum.packets &+= 1
        self.checksum.topicBytes &+= UInt64(truncatingIfNeeded: view.topic.count)
        self.checksum.payloadBytes &+= UInt64(truncatingIfNeeded: view.payload.count)
        self.checksum.identifiers &+= UInt64(view.packetID)
        return true
    }

    mutating func acknowledgement(
        _ type: PacketType,
        id: UInt16,
        reason: UInt8,
        rawProperties: UnsafeRawBufferPointer
    ) -> Bool {
        self.checksum.packets &+= 1
        self.checksum.identifiers &+= UInt64(id)
        return true
    }

    mutating func control(_ packet: Packet) -> Bool {
        self.checksum.packets &+= 1
        if case .subAck(let answer) = packet { self.checksum.identifiers &+= UInt64(answer.packetID.rawValue) }
        return true
    }
}

/// Copies each payload, as an application does that keeps its messages: an allocation each.
struct CopyingSink: DecodeSink {
    private var counting = CountingSink()
    /// The last one: it is there to be seen by the allocator.
    private var kept: [UInt8] = []

    init() {}

    var checksum: DecodeChecksum { self.counting.checksum }

    mutating func publish(_ view: PublishView) -> Bool {
        self.kept = Array(view.payload)
        return self.counting.publish(view)
    }

    mutating func acknowledgement(
        _ type: PacketType,
        id: UInt16,
        reason: UInt8,
        rawProperties: UnsafeRawBufferPointer
    ) -> Bool {
        self.counting.acknowledgement(type, id: id, reason: reason, rawProperties: rawProperties)
    }

    mutating func control(_ packet: Packet) -> Bool { self.counting.control(packet) }
}
