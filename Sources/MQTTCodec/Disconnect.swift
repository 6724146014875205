package import NIOCore

/// The last packet of a connection; before 5.0 only a client sends it, and it is empty.
///
/// Spec: MQTT 5.0 §3.14, MQTT 3.1.1 §3.14.
public struct Disconnect: Hashable, Sendable {
    package var reason: ReasonCode
    package var properties: Properties

    package init(reason: ReasonCode = .normalDisconnection, properties: Properties = Properties()) {
        self.reason = reason
        self.properties = properties
    }
}

/// One step of extended authentication.
///
/// Spec: MQTT 5.0 §3.15.
public struct Auth: Hashable, Sendable {
    package var reason: ReasonCode
    package var properties: Properties

    package init(reason: ReasonCode = .success, properties: Properties = Properties()) {
        self.reason = reason
        self.properties = properties
    }
}

extension ByteBuffer {
    /// §3.4.2.1, §3.14.2.1, §3.15.2.1: success with no properties is left out, and so it is before 5.0.
    mutating func writeReason(
        _ type: PacketType,
        of packetID: PacketID? = nil,
        _ reason: ReasonCode,
        _ properties: Properties,
        as version: ProtocolVersion
    ) {
        self.writePacket(type) { body in
            if let packetID { body.writeInteger(packetID.rawValue) }
            guard version == .v5, reason != .success || !properties.isEmpty else { return }
            body.writeInteger(reason.rawValue)
            properties.encode(into: &body)
        }
    }
}

extension Disconnect {
    package func encode(as version: ProtocolVersion, into buffer: inout ByteBuffer) {
        buffer.writeReason(.disconnect, self.reason, self.properties, as: version)
    }

    init(_ reader: inout ByteReader, version: ProtocolVersion, toServer: Bool) throws(DecodeError) {
        self.init()
        if version != .v5 { try reader.expectEnd() }
        if reader.isAtEnd { return }
        self.reason = try ReasonCode.check(try reader.byte(), in: .disconnect, toServer: toServer)
        // §3.14.2.2.1: no property length at all when the remaining length is below 2.
        if reader.isAtEnd { return }
        self.properties = try reader.properties(toServer ? .disconnectToServer : .disconnectToClient)
        try reader.expectEnd()
    }
}

extension Auth {
    package func encode(as version: ProtocolVersion, into buffer: inout ByteBuffer) {
        buffer.writeReason(.auth, self.reason, self.properties, as: version)
    }

    init(_ reader: inout ByteReader, toServer: Bool) throws(DecodeError) {
        self.init()
        // §3.15.2.1: the empty body means success, which only a server may send.
        let isEmpty = reader.isAtEnd
        self.reason = try ReasonCode.check(isEmpty ? 0 : try reader.byte(), in: .auth, toServer: toServer)
        if isEmpty { return }
        // §3.15.2.2.2: an AUTH with a reason code needs a method.
        if reader.isAtEnd { throw .authMethodMissing }
        self.properties = try reader.properties(.auth)
        try reader.expectEnd()
        if self.properties.authenticationMethod == nil { throw .authMethodMissing }
    }
}
