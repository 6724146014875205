import MQTTCodec
import NIOCore

/// Reads the properties of a PUBLISH without allocating objects; the decoder has checked the bytes.
enum RawProperties {
    static let payloadFormat: UInt8 = 0x01
    static let messageExpiry: UInt8 = 0x02
    static let topicAlias: UInt8 = 0x23

    /// The offset of the first value of property `wanted`, or nil.
    ///
    /// Spec: MQTT 5.0 §3.3.2.3.
    static func offset(of wanted: UInt8, in bytes: UnsafeRawBufferPointer) -> Int? {
        var offset = 0
        while offset < bytes.count {
            let id = bytes[offset]
            offset += 1
            if id == wanted { return offset }
            switch id {
            case 0x01: offset += 1
            case 0x02: offset += 4
            case 0x23: offset += 2
            case 0x03, 0x08, 0x09: offset = self.behindText(offset, in: bytes)
            case 0x26: offset = self.behindText(self.behindText(offset, in: bytes), in: bytes)
            case 0x0B:
                while offset < bytes.count, bytes[offset] & 0x80 != 0 { offset += 1 }
                offset += 1
            default: return nil
            }
        }
        return nil
    }

    static func messageExpirySeconds(in bytes: UnsafeRawBufferPointer) -> UInt32? {
        guard let offset = self.offset(of: self.messageExpiry, in: bytes), offset + 4 <= bytes.count else { return nil }
        return UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
    }

    private static func behindText(_ offset: Int, in bytes: UnsafeRawBufferPointer) -> Int {
        guard offset + 2 <= bytes.count else { return bytes.count }
        return offset + 2 + Int(UInt16(bigEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt16.self)))
    }

    /// A copy in which the Message Expiry Interval is `seconds`.
    static func setting(expiry seconds: UInt32, in properties: [UInt8]) -> [UInt8] {
        var properties = properties
        properties.withUnsafeMutableBytes { bytes in
            guard let offset = self.offset(of: self.messageExpiry, in: UnsafeRawBufferPointer(bytes)),
                offset + 4 <= bytes.count
            else { return }
            bytes.storeBytes(of: seconds.bigEndian, toByteOffset: offset, as: UInt32.self)
        }
        return properties
    }

    /// The properties of a PUBLISH as bytes, without their length.
    static func encoded(_ properties: Properties) -> [UInt8] {
        guard !properties.isEmpty else { return [] }
        var packet = ByteBuffer()
        Packet.publish(Publish(topic: "t", properties: properties)).encode(as: .v5, into: &packet)
        var sink = Collector()
        var decoder = PacketDecoder(role: .client(.v5))
        packet.withUnsafeReadableBytes { try? decoder.decode($0, into: &sink) }
        return sink.properties
    }

    private struct Collector: PacketSink {
        var properties: [UInt8] = []

        mutating func publish(_ view: PublishView) -> Bool {
            self.properties = Array(view.rawProperties)
            return true
        }

        mutating func acknowledgement(
            _: PacketType,
            id _: UInt16,
            reason _: UInt8,
            rawProperties _: UnsafeRawBufferPointer
        ) -> Bool { false }

        mutating func control(_: Packet) -> Bool { false }
    }
}
