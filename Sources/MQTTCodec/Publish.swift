package import NIOCore

/// An application message as a value that can be kept.
///
/// The hot path makes none of these: it sends the bytes of a template and receives ``PublishView``s.
///
/// Spec: MQTT 5.0 §3.3, MQTT 3.1.1 §3.3.
public struct Publish: Hashable, Sendable {
    package var topic: String
    package var payload: ByteBuffer
    package var qos: QoS
    package var retain: Bool
    package var dup: Bool
    /// Not on the wire at QoS 0; a missing one at QoS 1 or 2 goes out as the 0 that is forbidden.
    package var packetID: PacketID?
    package var properties: Properties

    package init(
        topic: String,
        payload: ByteBuffer = ByteBuffer(),
        qos: QoS = .atMostOnce,
        retain: Bool = false,
        dup: Bool = false,
        packetID: PacketID? = nil,
        properties: Properties = Properties()
    ) {
        self.topic = topic
        self.payload = payload
        self.qos = qos
        self.retain = retain
        self.dup = dup
        self.packetID = packetID
        self.properties = properties
    }
}

extension Publish {
    package func encode(as version: ProtocolVersion, into buffer: inout ByteBuffer) {
        let flags = self.qos.rawValue << 1 | (self.dup ? 0b1000 : 0) | (self.retain ? 1 : 0)
        buffer.writePacket(.publish, flags: flags, bodyHint: self.payload.readableBytes) { body in
            body.writeText(self.topic)
            if self.qos != .atMostOnce { body.writeInteger(self.packetID?.rawValue ?? 0) }
            if version == .v5 { self.properties.encode(into: &body) }
            body.writeImmutableBuffer(self.payload)
        }
    }

    /// Copies a message out of the receive buffer.
    package init(_ view: PublishView) throws(DecodeError) {
        self.init(
            topic: String(decoding: view.topic, as: UTF8.self),
            payload: ByteBuffer(bytes: view.payload),
            qos: view.qos,
            retain: view.retain,
            dup: view.dup,
            packetID: PacketID(rawValue: view.packetID),
            properties: try view.properties()
        )
    }
}
