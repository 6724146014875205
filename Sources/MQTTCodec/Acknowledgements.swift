package import NIOCore

// The four acknowledgements of a PUBLISH have one shape: packet identifier, reason, properties.

/// Acknowledges a QoS 1 PUBLISH.
///
/// Spec: MQTT 5.0 §3.4, MQTT 3.1.1 §3.4.
public struct PubAck: Hashable, Sendable {
    package var packetID: PacketID
    package var reason: ReasonCode
    package var properties: Properties

    package init(_ packetID: PacketID, reason: ReasonCode = .success, properties: Properties = Properties()) {
        self.packetID = packetID
        self.reason = reason
        self.properties = properties
    }
}

/// Confirms the receipt of a QoS 2 PUBLISH: step two of four.
///
/// Spec: MQTT 5.0 §3.5, MQTT 3.1.1 §3.5.
public struct PubRec: Hashable, Sendable {
    package var packetID: PacketID
    package var reason: ReasonCode
    package var properties: Properties

    package init(_ packetID: PacketID, reason: ReasonCode = .success, properties: Properties = Properties()) {
        self.packetID = packetID
        self.reason = reason
        self.properties = properties
    }
}

/// Releases a QoS 2 PUBLISH: step three of four.
///
/// Spec: MQTT 5.0 §3.6, MQTT 3.1.1 §3.6.
public struct PubRel: Hashable, Sendable {
    package var packetID: PacketID
    package var reason: ReasonCode
    package var properties: Properties

    package init(_ packetID: PacketID, reason: ReasonCode = .success, properties: Properties = Properties()) {
        self.packetID = packetID
        self.reason = reason
        self.properties = properties
    }
}

/// Ends a QoS 2 PUBLISH: step four of four.
///
/// Spec: MQTT 5.0 §3.7, MQTT 3.1.1 §3.7.
public struct PubComp: Hashable, Sendable {
    package var packetID: PacketID
    package var reason: ReasonCode
    package var properties: Properties

    package init(_ packetID: PacketID, reason: ReasonCode = .success, properties: Properties = Properties()) {
        self.packetID = packetID
        self.reason = reason
        self.properties = properties
    }
}

extension PubAck {
    package func encode(as version: ProtocolVersion, into buffer: inout ByteBuffer) {
        buffer.writeReason(.pubAck, of: self.packetID, self.reason, self.properties, as: version)
    }
}

extension PubRec {
    package func encode(as version: ProtocolVersion, into buffer: inout ByteBuffer) {
        buffer.writeReason(.pubRec, of: self.packetID, self.reason, self.properties, as: version)
    }
}

extension PubRel {
    package func encode(as version: ProtocolVersion, into buffer: inout ByteBuffer) {
        buffer.writeReason(.pubRel, of: self.packetID, self.reason, self.properties, as: version)
    }
}

extension PubComp {
    package func encode(as version: ProtocolVersion, into buffer: inout ByteBuffer) {
        buffer.writeReason(.pubComp, of: self.packetID, self.reason, self.properties, as: version)
    }
}

extension Packet {
    /// The acknowledgement as an object, from what a ``PacketSink`` is given.
    ///
    /// `nil` if `type` is not PUBACK, PUBREC, PUBREL or PUBCOMP, and for values that no decoder returns.
    package init?(acknowledgement type: PacketType, id: UInt16, reason: UInt8, rawProperties: UnsafeRawBufferPointer) {
        guard let id = PacketID(rawValue: id), let reason = ReasonCode(rawValue: reason),
            let properties = try? Properties(validated: rawProperties)
        else { return nil }
        switch type {
        case .pubAck: self = .pubAck(PubAck(id, reason: reason, properties: properties))
        case .pubRec: self = .pubRec(PubRec(id, reason: reason, properties: properties))
        case .pubRel: self = .pubRel(PubRel(id, reason: reason, properties: properties))
        case .pubComp: self = .pubComp(PubComp(id, reason: reason, properties: properties))
        default: return nil
        }
    }
}
