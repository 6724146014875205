import NIOCore

/// A PUBLISH as bytes, made once and copied per message; the sender patches packet identifier and payload in place.
package struct PublishTemplate: Hashable, Sendable {
    package let bytes: [UInt8]
    /// Where the two bytes of the packet identifier lie, big-endian and 0 until patched; `nil` at QoS 0.
    package let packetIDOffset: Int?
    package let payloadOffset: Int
    /// Where the topic lies, so that its digits can be patched.
    package let topicRange: Range<Int>

    package var count: Int { self.bytes.count }

    package init(
        topic: String,
        payload: [UInt8],
        qos: QoS,
        retain: Bool = false,
        properties: Properties = Properties(),
        version: ProtocolVersion
    ) {
        var buffer = ByteBuffer()
        Publish(topic: topic, payload: ByteBuffer(bytes: payload), qos: qos, retain: retain, properties: properties)
            .encode(as: version, into: &buffer)
        self.bytes = Array(buffer.readableBytesView)
        self.payloadOffset = self.bytes.count - payload.count
        // The length follows the first byte; no other byte before the topic has a continuation bit.
        let lengthEnd = 1 + (self.bytes.dropFirst().firstIndex { $0 & 0x80 == 0 } ?? 1)
        let topicStart = lengthEnd + 2
        self.topicRange = topicStart..<topicStart + min(topic.utf8.count, Int(UInt16.max))
        self.packetIDOffset = qos == .atMostOnce ? nil : self.topicRange.upperBound
    }
}

/// The four-byte acknowledgement of success, which all versions have.
public enum AcknowledgementBytes {
    package static let count = 4

    /// Writes the four bytes of a PUBACK, PUBREC, PUBREL (with its flags 0010) or PUBCOMP.
    @inlinable
    public static func write(_ type: PacketType, id: UInt16, to memory: UnsafeMutableRawPointer) {
        let first = type.firstByte(flags: type == .pubRel ? 0b0010 : 0)
        let word = UInt32(first) << 24 | 2 << 16 | UInt32(id)
        memory.storeBytes(of: word.bigEndian, as: UInt32.self)
    }
}
