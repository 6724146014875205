/// The identifier in front of a property.
///
/// Spec: MQTT 5.0 §2.2.2.2, table 2-4.
public enum PropertyID: UInt8, Hashable, Sendable, CaseIterable {
    case payloadFormatIndicator = 0x01
    case messageExpiryInterval = 0x02
    case contentType = 0x03
    case responseTopic = 0x08
    case correlationData = 0x09
    case subscriptionIdentifier = 0x0B
    case sessionExpiryInterval = 0x11
    case assignedClientIdentifier = 0x12
    case serverKeepAlive = 0x13
    case authenticationMethod = 0x15
    case authenticationData = 0x16
    case requestProblemInformation = 0x17
    case willDelayInterval = 0x18
    case requestResponseInformation = 0x19
    case responseInformation = 0x1A
    case serverReference = 0x1C
    case reasonString = 0x1F
    case receiveMaximum = 0x21
    case topicAliasMaximum = 0x22
    case topicAlias = 0x23
    case maximumQoS = 0x24
    case retainAvailable = 0x25
    case userProperty = 0x26
    case maximumPacketSize = 0x27
    case wildcardSubscriptionAvailable = 0x28
    case subscriptionIdentifierAvailable = 0x29
    case sharedSubscriptionAvailable = 0x2A

    /// The place of this property in a set of properties; the largest identifier is 0x2A.
    var bit: UInt64 { 1 << UInt64(self.rawValue) }
}

/// One property as it stands in a packet.
public struct Property: Hashable, Sendable {
    package enum Value: Hashable, Sendable {
        case byte(UInt8)
        case twoBytes(UInt16)
        case fourBytes(UInt32)
        case variable(UInt32)
        case text(String)
        case binary([UInt8])
        case pair(String, String)
    }

    package var id: PropertyID
    package var value: Value

    /// Any identifier with any value: also the pairs that the standard does not have, for wrong packets.
    package init(_ id: PropertyID, _ value: Value) {
        self.id = id
        self.value = value
    }
}

extension Property {
    package static func payloadFormatIndicator(_ value: UInt8) -> Property {
        Property(.payloadFormatIndicator, .byte(value))
    }
    package static func messageExpiryInterval(_ value: UInt32) -> Property {
        Property(.messageExpiryInterval, .fourBytes(value))
    }
    package static func contentType(_ value: String) -> Property {
        Property(.contentType, .text(value))
    }
    package static func responseTopic(_ value: String) -> Property {
        Property(.responseTopic, .text(value))
    }
    package static func correlationData(_ value: [UInt8]) -> Property {
        Property(.correlationData, .binary(value))
    }
    package static func subscriptionIdentifier(_ value: UInt32) -> Property {
        Property(.subscriptionIdentifier, .variable(value))
    }
    package static func sessionExpiryInterval(_ value: UInt32) -> Property {
        Property(.sessionExpiryInterval, .fourBytes(value))
    }
    package static func assignedClientIdentifier(_ value: String) -> Property {
        Property(.assignedClientIdentifier, .text(value))
    }
    package static func serverKeepAlive(_ value: UInt16) -> Property {
        Property(.serverKeepAlive, .twoBytes(value))
    }
    package static func authenticationMethod(_ value: String) -> Property {
        Property(.authenticationMethod, .text(value))
    }
    package static func authenticationData(_ value: [UInt8]) -> Property {
        Property(.authenticationData, .binary(value))
    }
    package static func requestProblemInformation(_ value: Bool) -> Property {
        Property(.requestProblemInformation, .byte(value ? 1 : 0))
    }
    package static func willDelayInterval(_ value: UInt32) -> Property {
        Property(.willDelayInterval, .fourBytes(value))
    }
    package static func requestResponseInformation(_ value: Bool) -> Property {
        Property(.requestResponseInformation, .byte(value ? 1 : 0))
    }
    package static func responseInformation(_ value: String) -> Property {
        Property(.responseInformation, .text(value))
    }
    package static func serverReference(_ value: String) -> Property {
        Property(.serverReference, .text(value))
    }
    package static func reasonString(_ value: String) -> Property {
        Property(.reasonString, .text(value))
    }
    package static func receiveMaximum(_ value: UInt16) -> Property {
        Property(.receiveMaximum, .twoBytes(value))
    }
    package static func topicAliasMaximum(_ value: UInt16) -> Property {
        Property(.topicAliasMaximum, .twoBytes(value))
    }
    package static func topicAlias(_ value: UInt16) -> Property {
        Property(.topicAlias, .twoBytes(value))
    }
    package static func maximumQoS(_ value: UInt8) -> Property {
        Property(.maximumQoS, .byte(value))
    }
    package static func retainAvailable(_ value: Bool) -> Property {
        Property(.retainAvailable, .byte(value ? 1 : 0))
    }
    package static func userProperty(_ name: String, _ value: String) -> Property {
        Property(.userProperty, .pair(name, value))
    }
    package static func maximumPacketSize(_ value: UInt32) -> Property {
        Property(.maximumPacketSize, .fourBytes(value))
    }
    package static func wildcardSubscriptionAvailable(_ value: Bool) -> Property {
        Property(.wildcardSubscriptionAvailable, .byte(value ? 1 : 0))
    }
    package static func subscriptionIdentifierAvailable(_ value: Bool) -> Property {
        Property(.subscriptionIdentifierAvailable, .byte(value ? 1 : 0))
    }
    package static func sharedSubscriptionAvailable(_ value: Bool) -> Property {
        Property(.sharedSubscriptionAvailable, .byte(value ? 1 : 0))
    }
}
