/// The positions of the parts of a PUBLISH, for writing into raw memory.
///
/// Sizes are computed first because the length precedes the body. ``write(dup:retain:topic:id:to:)`` uses the same
/// numbers, so the two cannot disagree.
///
/// Spec: MQTT 5.0 §3.3, MQTT 3.1.1 §3.3.
package struct PublishFrame: Hashable, Sendable {
    /// Bytes of the topic; at most 65,535.
    package let topic: Int
    /// Bytes of the payload.
    package let payload: Int
    package let qos: QoS
    package let version: ProtocolVersion
    /// Bytes of the encoded properties including their length; 0: no properties.
    package let properties: Int
    private let remaining: Int
    private let lengthBytes: Int

    package init(topic: Int, payload: Int, qos: QoS, version: ProtocolVersion, properties: Int = 0) {
        self.topic = topic
        self.payload = payload
        self.qos = qos
        self.version = version
        self.properties = version == .v5 ? properties : 0
        let propertyBytes = version == .v5 ? max(1, properties) : 0
        self.remaining = 2 + topic + (qos == .atMostOnce ? 0 : 2) + propertyBytes + payload
        self.lengthBytes =
            self.remaining < 128 ? 1 : self.remaining < 16_384 ? 2 : self.remaining < 2_097_152 ? 3 : 4
    }

    /// Bytes of the whole packet.
    package var count: Int { 1 + self.lengthBytes + self.remaining }
    package var payloadOffset: Int { self.count - self.payload }

    /// Where the encoded properties go, with their length in front.
    package var propertiesOffset: Int { self.payloadOffset - self.properties }

    /// Where the packet identifier lies; `nil` at QoS 0.
    package var idOffset: Int? { self.qos == .atMostOnce ? nil : 1 + self.lengthBytes + 2 + self.topic }

    /// Writes all but the properties, if there are any, and the payload.
    package func write(
        dup: Bool,
        retain: Bool,
        topic: UnsafeRawBufferPointer,
        id: UInt16,
        to memory: UnsafeMutableRawPointer
    ) {
        let flags = (dup ? 0b1000 : 0) | self.qos.rawValue << 1 | (retain ? 1 : 0)
        memory.storeBytes(of: PacketType.publish.firstByte(flags: flags), as: UInt8.self)
        var rest = self.remaining
        for index in 1...self.lengthBytes {
            let more: UInt8 = index < self.lengthBytes ? 0x80 : 0
            memory.storeBytes(of: UInt8(rest & 0x7F) | more, toByteOffset: index, as: UInt8.self)
            rest >>= 7
        }
        var offset = 1 + self.lengthBytes
        memory.storeBytes(of: UInt16(truncatingIfNeeded: self.topic).bigEndian, toByteOffset: offset, as: UInt16.self)
        offset += 2
        if let base = topic.baseAddress { (memory + offset).copyMemory(from: base, byteCount: self.topic) }
        offset += self.topic
        if self.qos != .atMostOnce {
            memory.storeBytes(of: id.bigEndian, toByteOffset: offset, as: UInt16.self)
            offset += 2
        }
        // §3.3.2.3.1: the property length is present even without properties.
        if self.version == .v5, self.properties == 0 { memory.storeBytes(of: 0, toByteOffset: offset, as: UInt8.self) }
    }
}
