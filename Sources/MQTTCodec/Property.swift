/// The identifier in front of a property.
///
/// Spec: MQTT 5.0 §2.2.2.2, table 2-4.
public enum PropertyID: UInt8, Hashable, Sendable, CaseIterable {
    /// 1: the payload is UTF-8; 0: unspecified bytes (§3.3.2.3.2).
    case payloadFormatIndicator = 0x01
    /// Seconds that the message is worth delivering (§3.3.2.3.3).
    case messageExpiryInterval = 0x02
    /// The kind of payload, as defined by the application (§3.3.2.3.9).
    case contentType = 0x03
    /// The topic for the response (§3.3.2.3.5).
    case responseTopic = 0x08
    /// Matches a response to its request (§3.3.2.3.6).
    case correlationData = 0x09
    /// The number of a subscription, 1 to 268,435,455 (§3.8.2.1.2).
    case subscriptionIdentifier = 0x0B
    /// Seconds that the session outlives the connection; 0xFFFFFFFF: it never expires (§3.1.2.11.2).
    case sessionExpiryInterval = 0x11
    /// The identifier that the server gave to a client without one (§3.2.2.3.7).
    case assignedClientIdentifier = 0x12
    /// The keep-alive in seconds that the server requires instead of the client's (§3.2.2.3.14).
    case serverKeepAlive = 0x13
    /// The name of the authentication method (§3.1.2.11.9).
    case authenticationMethod = 0x15
    /// A message of the authentication method (§3.1.2.11.10).
    case authenticationData = 0x16
    /// Whether the server may explain failures anywhere (§3.1.2.11.7).
    case requestProblemInformation = 0x17
    /// Seconds between the loss of the connection and the will (§3.1.3.2.2).
    case willDelayInterval = 0x18
    /// Whether the client requests response information (§3.1.2.11.6).
    case requestResponseInformation = 0x19
    /// The basis on which a client may build its response topics (§3.2.2.3.15).
    case responseInformation = 0x1A
    /// Another server to use (§4.11).
    case serverReference = 0x1C
    /// Why, in words for people (§3.2.2.3.9).
    case reasonString = 0x1F
    /// Publishes at QoS 1 and 2 that the sender of this takes at once, from 1 on (§3.1.2.11.3).
    case receiveMaximum = 0x21
    /// The largest topic alias that the sender of this takes (§3.1.2.11.5).
    case topicAliasMaximum = 0x22
    /// A number in place of a topic, from 1 on (§3.3.2.3.4).
    case topicAlias = 0x23
    /// 0 or 1: the most that the server takes (§3.2.2.3.4).
    case maximumQoS = 0x24
    /// Whether the server keeps messages (§3.2.2.3.5).
    case retainAvailable = 0x25
    /// Any name with any value (§3.3.2.3.7).
    case userProperty = 0x26
    /// Bytes of a packet that the sender of this takes, from 1 on (§3.1.2.11.4).
    case maximumPacketSize = 0x27
    /// Whether the server takes filters with wildcards (§3.2.2.3.11).
    case wildcardSubscriptionAvailable = 0x28
    /// Whether the server takes subscription identifiers (§3.2.2.3.12).
    case subscriptionIdentifierAvailable = 0x29
    /// Whether the server takes shared subscriptions (§3.2.2.3.13).
    case sharedSubscriptionAvailable = 0x2A

    /// The words of the standard, which are those of the case.
    package var name: String {
        guard self != .maximumQoS else { return "Maximum QoS" }
        let words = "\(self)".map { $0.isUppercase ? " \($0)" : "\($0)" }.joined()
        return words.prefix(1).uppercased() + words.dropFirst()
    }

    /// The place of this property in a set of properties; the largest identifier is 0x2A.
    var bit: UInt64 { 1 << UInt64(self.rawValue) }
}

/// One property of a packet.
public struct Property: Hashable, Sendable {
    /// A value as the wire has it (§2.2.2.2).
    public enum Value: Hashable, Sendable {
        /// One byte; a switch is 0 or 1.
        case byte(UInt8)
        /// A two byte integer.
        case twoBytes(UInt16)
        /// A four byte integer.
        case fourBytes(UInt32)
        /// A variable byte integer, up to 268,435,455.
        case variable(UInt32)
        /// A UTF-8 string.
        case text(String)
        /// Bytes, at most 65,535.
        case binary([UInt8])
        /// A name and its value.
        case pair(String, String)
    }

    /// Which property.
    public var id: PropertyID
    /// The value.
    public var value: Value

    /// Any identifier with any value: also the pairs that the standard does not have, for wrong packets.
    public init(_ id: PropertyID, _ value: Value) {
        self.id = id
        self.value = value
    }
}

extension Property {
    /// 1: the payload is UTF-8; 0: unspecified bytes (§3.3.2.3.2).
    public static func payloadFormatIndicator(_ value: UInt8) -> Property {
        Property(.payloadFormatIndicator, .byte(value))
    }
    /// Seconds that the message is worth delivering (§3.3.2.3.3).
    public static func messageExpiryInterval(_ value: UInt32) -> Property {
        Property(.messageExpiryInterval, .fourBytes(value))
    }
    /// The kind of payload, as defined by the application (§3.3.2.3.9).
    public static func contentType(_ value: String) -> Property { Property(.contentType, .text(value)) }
    /// The topic for the response (§3.3.2.3.5).
    public static func responseTopic(_ value: String) -> Property { Property(.responseTopic, .text(value)) }
    /// Matches a response to its request (§3.3.2.3.6).
    public static func correlationData(_ value: [UInt8]) -> Property { Property(.correlationData, .binary(value)) }
    /// The number of a subscription, 1 to 268,435,455 (§3.8.2.1.2).
    public static func subscriptionIdentifier(_ value: UInt32) -> Property {
        Property(.subscriptionIdentifier, .variable(value))
    }
    /// Seconds that the session outlives the connection; 0xFFFFFFFF: it never expires (§3.1.2.11.2).
    public static func sessionExpiryInterval(_ value: UInt32) -> Property {
        Property(.sessionExpiryInterval, .fourBytes(value))
    }
    /// The identifier that the server gave to a client without one (§3.2.2.3.7).
    public static func assignedClientIdentifier(_ value: String) -> Property {
        Property(.assignedClientIdentifier, .text(value))
    }
    /// The keep-alive in seconds that the server requires instead of the client's (§3.2.2.3.14).
    public static func serverKeepAlive(_ value: UInt16) -> Property { Property(.serverKeepAlive, .twoBytes(value)) }
    /// The name of the authentication method (§3.1.2.11.9).
    public static func authenticationMethod(_ value: String) -> Property {
        Property(.authenticationMethod, .text(value))
    }
    /// A message of the authentication method (§3.1.2.11.10).
    public static func authenticationData(_ value: [UInt8]) -> Property {
        Property(.authenticationData, .binary(value))
    }
    /// Whether the server may explain failures anywhere (§3.1.2.11.7).
    public static func requestProblemInformation(_ value: Bool) -> Property {
        Property(.requestProblemInformation, .byte(value ? 1 : 0))
    }
    /// Seconds between the loss of the connection and the will (§3.1.3.2.2).
    public static func willDelayInterval(_ value: UInt32) -> Property {
        Property(.willDelayInterval, .fourBytes(value))
    }
    /// Whether the client requests response information (§3.1.2.11.6).
    public static func requestResponseInformation(_ value: Bool) -> Property {
        Property(.requestResponseInformation, .byte(value ? 1 : 0))
    }
    /// The basis on which a client may build its response topics (§3.2.2.3.15).
    public static func responseInformation(_ value: String) -> Property {
        Property(.responseInformation, .text(value))
    }
    /// Another server to use (§4.11).
    public static func serverReference(_ value: String) -> Property { Property(.serverReference, .text(value)) }
    /// Why, in words for people (§3.2.2.3.9).
    public static func reasonString(_ value: String) -> Property { Property(.reasonString, .text(value)) }
    /// Publishes at QoS 1 and 2 that the sender of this takes at once, from 1 on (§3.1.2.11.3).
    public static func receiveMaximum(_ value: UInt16) -> Property { Property(.receiveMaximum, .twoBytes(value)) }
    /// The largest topic alias that the sender of this takes (§3.1.2.11.5).
    public static func topicAliasMaximum(_ value: UInt16) -> Property {
        Property(.topicAliasMaximum, .twoBytes(value))
    }
    /// A number in place of a topic, from 1 on (§3.3.2.3.4).
    public static func topicAlias(_ value: UInt16) -> Property { Property(.topicAlias, .twoBytes(value)) }
    /// 0 or 1: the most that the server takes (§3.2.2.3.4).
    public static func maximumQoS(_ value: UInt8) -> Property { Property(.maximumQoS, .byte(value)) }
    /// Whether the server keeps messages (§3.2.2.3.5).
    public static func retainAvailable(_ value: Bool) -> Property { Property(.retainAvailable, .byte(value ? 1 : 0)) }
    /// Any name with any value (§3.3.2.3.7).
    public static func userProperty(_ name: String, _ value: String) -> Property {
        Property(.userProperty, .pair(name, value))
    }
    /// Bytes of a packet that the sender of this takes, from 1 on (§3.1.2.11.4).
    public static func maximumPacketSize(_ value: UInt32) -> Property {
        Property(.maximumPacketSize, .fourBytes(value))
    }
    /// Whether the server takes filters with wildcards (§3.2.2.3.11).
    public static func wildcardSubscriptionAvailable(_ value: Bool) -> Property {
        Property(.wildcardSubscriptionAvailable, .byte(value ? 1 : 0))
    }
    /// Whether the server takes subscription identifiers (§3.2.2.3.12).
    public static func subscriptionIdentifierAvailable(_ value: Bool) -> Property {
        Property(.subscriptionIdentifierAvailable, .byte(value ? 1 : 0))
    }
    /// Whether the server takes shared subscriptions (§3.2.2.3.13).
    public static func sharedSubscriptionAvailable(_ value: Bool) -> Property {
        Property(.sharedSubscriptionAvailable, .byte(value ? 1 : 0))
    }
}
