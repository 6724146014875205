package import NIOCore

/// The return codes of a CONNACK before 5.0; from 6 on they are reserved.
///
/// Spec: MQTT 3.1.1 §3.2.2.3.
public enum ConnectReturnCode: UInt8, Hashable, Sendable, CaseIterable {
    /// Connection Accepted.
    case accepted = 0
    /// The server does not speak this version.
    case unacceptableProtocolVersion
    /// The client identifier is not allowed.
    case identifierRejected
    /// The MQTT service is not available.
    case serverUnavailable
    /// Their data is malformed.
    case badUserNameOrPassword
    /// The client may not connect.
    case notAuthorized

    /// The words of the standard.
    public var name: String {
        switch self {
        case .accepted: "Connection Accepted"
        case .unacceptableProtocolVersion: "unacceptable protocol version"
        case .identifierRejected: "identifier rejected"
        case .serverUnavailable: "Server unavailable"
        case .badUserNameOrPassword: "bad user name or password"
        case .notAuthorized: "not authorized"
        }
    }
}

/// Answers a CONNECT.
///
/// Spec: MQTT 5.0 §3.2, MQTT 3.1.1 §3.2.
public struct ConnAck: Hashable, Sendable {
    package var sessionPresent: Bool
    /// As on the wire: a ``ConnectReturnCode`` in 3.x (reserved ones are let through), a ``ReasonCode`` in 5.0.
    package var code: UInt8
    /// Sent by a server of 3.1.1 that does not take a CONNECT of 5.0: ``code`` is a ``ConnectReturnCode``, and there are
    /// no properties [3.1.1: MQTT-3.1.2-2].
    package var isVersion3 = false
    package var properties: Properties

    package init(sessionPresent: Bool = false, code: UInt8 = 0, properties: Properties = Properties()) {
        self.sessionPresent = sessionPresent
        self.code = code
        self.properties = properties
    }
}

extension ConnAck {
    package func encode(as version: ProtocolVersion, into buffer: inout ByteBuffer) {
        buffer.writePacket(.connAck) { body in
            body.writeInteger(self.sessionPresent ? 1 : 0, as: UInt8.self)
            body.writeInteger(self.code)
            if version == .v5, !self.isVersion3 { self.properties.encode(into: &body) }
        }
    }

    init(_ reader: inout ByteReader, version: ProtocolVersion) throws(DecodeError) {
        let flags = try reader.byte()
        guard flags <= 1 else { throw .connAckFlags(flags) }
        self.init(sessionPresent: flags == 1, code: try reader.byte())
        if version == .v5, reader.isAtEnd, self.isVersion3Refusal {
            self.isVersion3 = true
        } else if version == .v5 {
            try ReasonCode.check(self.code, in: .connAck, toServer: false)
            if self.sessionPresent, self.code != 0 { throw .sessionPresentOnError }
            self.properties = try reader.properties(.connAck)
        } else if self.sessionPresent, self.code != 0 {
            throw .sessionPresentOnError
        }
        try reader.expectEnd()
    }

    /// Asked where the packet ends after the code: a CONNACK of 5.0 always has a property length there.
    private var isVersion3Refusal: Bool {
        !self.sessionPresent && self.code != 0 && ConnectReturnCode(rawValue: self.code) != nil
    }
}
