import MQTTCodec
import NIOCore
import TestSupport

/// Keeps all packets as objects.
struct CollectingSink: PacketSink {
    var packets: [Packet] = []
    /// Says "enough" at this many packets.
    var limit = Int.max

    mutating func publish(_ view: PublishView) -> Bool {
        guard let publish = try? Publish(view) else { return false }
        return self.control(.publish(publish))
    }

    mutating func acknowledgement(
        _ type: PacketType,
        id: UInt16,
        reason: UInt8,
        rawProperties: UnsafeRawBufferPointer
    ) -> Bool {
        guard let packet = Packet(acknowledgement: type, id: id, reason: reason, rawProperties: rawProperties)
        else { return false }
        return self.control(packet)
    }

    mutating func control(_ packet: Packet) -> Bool {
        self.packets.append(packet)
        return self.packets.count < self.limit
    }
}

extension PacketDecoder {
    /// Decodes `pieces` one after the other, each from memory of its own that ends where the piece ends.
    mutating func decode(pieces: [[UInt8]], into sink: inout CollectingSink) throws(DecodeError) {
        for piece in pieces {
            let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: piece.count, alignment: 1)
            defer { memory.deallocate() }
            memory.copyBytes(from: piece)
            try self.decode(UnsafeRawBufferPointer(memory), into: &sink)
        }
    }

    mutating func decode(_ pieces: [UInt8]...) throws(DecodeError) -> [Packet] {
        var sink = CollectingSink()
        try self.decode(pieces: pieces, into: &sink)
        return sink.packets
    }
}

/// A server's decoder after a CONNECT, whose bytes are written by hand.
func connectedServer(_ version: ProtocolVersion) throws(DecodeError) -> PacketDecoder {
    var decoder = PacketDecoder(role: .server)
    let connect =
        switch version {
        case .v31: "100f 0006 4d5149736470 03 02 003c 0001 61"
        case .v311: "100c 0004 4d515454 04 02 003c 0000"
        case .v5: "100d 0004 4d515454 05 02 003c 00 0000"
        }
    _ = try decoder.decode(hex(connect))
    return decoder
}

/// The result of decoding `pieces`: the packets, and the error if there is one.
func outcome(_ decoder: consuming PacketDecoder, _ pieces: [[UInt8]]) -> (packets: [Packet], error: DecodeError?) {
    var sink = CollectingSink()
    do {
        try decoder.decode(pieces: pieces, into: &sink)
        return (sink.packets, nil)
    } catch {
        return (sink.packets, error)
    }
}

extension Packet {
    func bytes(as version: ProtocolVersion) -> [UInt8] {
        var buffer = ByteBuffer()
        self.encode(as: version, into: &buffer)
        return Array(buffer.readableBytesView)
    }
}
