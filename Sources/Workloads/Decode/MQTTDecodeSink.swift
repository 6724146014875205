import MQTTCodec

extension DecodeSink where Self: PacketSink, Failure == DecodeError {
    @inline(__always)
    mutating func take(
        _ bytes: UnsafeRawBufferPointer,
        _ decoder: UnsafeMutablePointer<PacketDecoder>
    ) throws(DecodeError) {
        try decoder.pointee.decode(bytes, into: &self)
    }
}

/// Reads every topic as a client does, and keeps none.
struct CountingSink<Use: PayloadUse>: PacketSink, DecodeSink {
    typealias Failure = DecodeError

    var checksum = DecodeChecksum()
    private var use = Use()

    init() {}

    mutating func publish(_ view: PublishView) -> Bool {
        self.use.take(view.payload)
        self.checksum.packets &+= 1
        self.checksum.nameBytes &+= UInt64(truncatingIfNeeded: view.topic.count)
        if let last = view.topic.last { self.checksum.nameEnds &+= UInt64(last) }
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

struct EmptySink: PacketSink, DecodeSink {
    typealias Failure = DecodeError

    var checksum: DecodeChecksum { DecodeChecksum() }
    mutating func publish(_ view: PublishView) -> Bool { true }

    mutating func acknowledgement(
        _ type: PacketType,
        id: UInt16,
        reason: UInt8,
        rawProperties: UnsafeRawBufferPointer
    ) -> Bool { true }

    mutating func control(_ packet: Packet) -> Bool { true }
}
