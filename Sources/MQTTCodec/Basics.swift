/// The protocol level a CONNECT names.
///
/// Spec: MQTT 5.0 §3.1.2.2, MQTT 3.1.1 §3.1.2.2.
public enum ProtocolVersion: UInt8, Hashable, Sendable, CaseIterable {
    /// MQTT 3.1, `MQIsdp`.
    case v31 = 3
    /// MQTT 3.1.1, ISO/IEC 20922.
    case v311 = 4
    /// MQTT 5.0.
    case v5 = 5

    /// The protocol name in front of the level: 3.1 has its own.
    package var protocolName: String { self == .v31 ? "MQIsdp" : "MQTT" }
}

/// How hard sender and receiver try.
///
/// Spec: MQTT 5.0 §4.3.
public enum QoS: UInt8, Comparable, Hashable, Sendable, CaseIterable {
    /// Sent once, acknowledged never: it may be lost.
    case atMostOnce = 0
    /// Acknowledged: it arrives, perhaps more than once.
    case atLeastOnce
    /// Acknowledged in two steps: it arrives once.
    case exactlyOnce

    /// Orders by how hard they try.
    @inlinable
    public static func < (left: QoS, right: QoS) -> Bool { left.rawValue < right.rawValue }
}

/// A packet identifier; never 0 (§2.2.1).
public struct PacketID: RawRepresentable, Hashable, Sendable, ExpressibleByIntegerLiteral, CustomStringConvertible {
    /// 1...65,535.
    public let rawValue: UInt16

    /// `nil` for 0.
    @inlinable
    public init?(rawValue: UInt16) {
        guard rawValue != 0 else { return nil }
        self.rawValue = rawValue
    }

    /// Makes a constant; 0 ends the program.
    public init(integerLiteral value: UInt16) {
        precondition(value != 0, "a packet identifier is never 0")
        self.rawValue = value
    }

    /// The number.
    public var description: String { String(self.rawValue) }
}

/// The upper four bits of a packet's first byte (§2.1.2).
public enum PacketType: UInt8, Hashable, Sendable, CaseIterable {
    /// Opens a session.
    case connect = 1
    /// Answers a CONNECT.
    case connAck
    /// An application message.
    case publish
    /// Acknowledges a QoS 1 PUBLISH.
    case pubAck
    /// Step two of four of a QoS 2 PUBLISH.
    case pubRec
    /// Step three of four.
    case pubRel
    /// Step four of four.
    case pubComp
    /// Requests subscriptions.
    case subscribe
    /// Answers a SUBSCRIBE.
    case subAck
    /// Ends subscriptions.
    case unsubscribe
    /// Answers an UNSUBSCRIBE.
    case unsubAck
    /// Checks that the other side responds.
    case pingReq
    /// The response to PINGREQ.
    case pingResp
    /// The last packet.
    case disconnect
    /// One step of enhanced authentication.
    case auth

    /// As the standard writes it.
    package var name: String {
        switch self {
        case .connect: "CONNECT"
        case .connAck: "CONNACK"
        case .publish: "PUBLISH"
        case .pubAck: "PUBACK"
        case .pubRec: "PUBREC"
        case .pubRel: "PUBREL"
        case .pubComp: "PUBCOMP"
        case .subscribe: "SUBSCRIBE"
        case .subAck: "SUBACK"
        case .unsubscribe: "UNSUBSCRIBE"
        case .unsubAck: "UNSUBACK"
        case .pingReq: "PINGREQ"
        case .pingResp: "PINGRESP"
        case .disconnect: "DISCONNECT"
        case .auth: "AUTH"
        }
    }

    /// The required bits 3...0 of the first byte (§2.1.3); those of a PUBLISH vary.
    package var reservedFlags: UInt8 {
        switch self {
        case .pubRel, .subscribe, .unsubscribe: 0b0010
        default: 0
        }
    }

    /// The first byte of a packet of this type.
    @inlinable
    public func firstByte(flags: UInt8) -> UInt8 { self.rawValue << 4 | flags & 0x0F }
}
