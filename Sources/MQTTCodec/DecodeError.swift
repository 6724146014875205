/// Why bytes from the peer are not an MQTT packet, or not one that this side may get.
///
/// One case per broken rule. Missing bytes are not an error: the decoder waits for them.
/// Clauses are those of MQTT 5.0 where 3.1.1 is not named.
public enum DecodeError: Error, Hashable, Sendable {
    /// Packet type 0 (§2.1.2).
    case packetTypeZero
    /// AUTH in 3.1 or 3.1.1 (3.1.1 §2.2.1: type 15 is reserved).
    case authBeforeVersion5
    /// A packet that only the other side may send (§2.1.2).
    case wrongDirection(PacketType)
    /// Something else than CONNECT came first [MQTT-3.1.0-1].
    case connectExpected(PacketType)
    /// A second CONNECT on one connection [MQTT-3.1.0-2].
    case secondConnect
    /// Bits 3...0 of the first byte are not those of the packet type (§2.1.3).
    case reservedFlags(PacketType, UInt8)
    /// A PUBLISH with both QoS bits set [MQTT-3.3.1-4].
    case publishQoS3
    /// DUP at QoS 0 [MQTT-3.3.1-2].
    case dupAtQoS0
    /// The remaining length runs past four bytes (§2.1.4).
    case remainingLengthTooLong
    /// The remaining length takes more bytes than it needs [MQTT-1.5.5-1]; 3.x has no such rule.
    case remainingLengthNotMinimal
    /// Larger than the maximum packet size of this side (§3.1.2.11.4).
    case packetTooLarge(size: Int)
    /// The packet ends inside a field.
    case truncated
    /// Extra bytes after the last field.
    case trailingBytes(Int)
    /// A packet identifier of 0 [MQTT-2.2.1-3].
    case packetIDZero
    /// A reason or return code that this packet does not have in this direction (§2.4).
    case unknownReason(PacketType, UInt8)

    /// A string that is not UTF-8: broken, overlong, a surrogate, or above U+10FFFF [MQTT-1.5.4-1].
    case notUTF8
    /// A string with U+0000 in it [MQTT-1.5.4-2].
    case nullCharacter
    /// A control character or non-character, which the decoder is configured to refuse (§1.5.4).
    case controlCharacter

    /// No topic name, and no topic alias to replace it (§3.3.2.1).
    case topicEmpty
    /// `+` or `#` in a topic name [MQTT-3.3.2-2].
    case topicHasWildcard
    /// A topic filter that breaks §4.7.1 or §4.8.2.
    case filterInvalid(TopicError)

    /// Neither `MQTT` nor `MQIsdp` [MQTT-3.1.2-1].
    case protocolName
    /// A level that does not exist, or not under this name [MQTT-3.1.2-2].
    case protocolLevel(UInt8)
    /// Bit 0 of the connect flags [MQTT-3.1.2-3].
    case connectFlagReserved
    /// Will QoS or will retain without a will [MQTT-3.1.2-11] [MQTT-3.1.2-13].
    case willFlagsWithoutWill
    /// Will QoS 3 [MQTT-3.1.2-12].
    case willQoS3
    /// Will topic of no characters (§4.7.3).
    case willTopicEmpty
    /// A password without a user name, which 5.0 alone allows [3.1.1: MQTT-3.1.2-22].
    case passwordWithoutUserName

    /// Bits 7...1 of the CONNACK's flags [MQTT-3.2.2-1].
    case connAckFlags(UInt8)
    /// Session present on a refused connection [MQTT-3.2.2-6].
    case sessionPresentOnError

    /// SUBSCRIBE or UNSUBSCRIBE without a filter [MQTT-3.8.3-2] [MQTT-3.10.3-2].
    case noFilters
    /// SUBACK or UNSUBACK without a code (§3.9.3, §3.11.3).
    case noReasonCodes
    /// Reserved bits of the subscription options [MQTT-3.8.3-5].
    case subscriptionOptions(UInt8)
    /// A subscription at QoS 3 (§3.8.3.1).
    case subscriptionQoS3
    /// Retain handling 3 (§3.8.3.1).
    case retainHandling3
    /// No Local on a shared subscription [MQTT-3.8.3-4].
    case noLocalOnShared

    /// A variable byte integer inside a packet runs past four bytes (§1.5.5).
    case variableIntegerTooLong
    /// A variable byte integer inside a packet takes more bytes than it needs [MQTT-1.5.5-1].
    case variableIntegerNotMinimal
    /// The property length runs past the packet (§2.2.2.1).
    case propertyLength
    /// A property runs past the property length (§2.2.2.1).
    case propertyTruncated
    /// An identifier that the standard does not have (§2.2.2.2).
    case unknownProperty(UInt8)
    /// A property that this packet type does not have (§2.2.2.2).
    case propertyNotAllowed(PropertyID)
    /// A property that this packet type has in the other direction only [MQTT-3.3.4-6] [MQTT-3.14.2-2] (§3.14.2.2.5).
    case propertyOfOtherSide(PropertyID)
    /// A property that may occur once occurs twice.
    case duplicateProperty(PropertyID)
    /// A value that the property does not have: a switch that is neither 0 nor 1, a 0 where 1 is the least.
    case propertyValue(PropertyID)
    /// Topic alias 0 [MQTT-3.3.2-8].
    case topicAliasZero
    /// Authentication data without a method (§3.1.2.11.10).
    case authDataWithoutMethod
    /// AUTH without a method (§3.15.2.2.2).
    case authMethodMissing
}

extension DecodeError {
    /// The reason code for the DISCONNECT, or for the CONNACK before it, that answers this (§4.13.1).
    package var reason: ReasonCode {
        switch self {
        case .packetTooLarge: .packetTooLarge
        case .protocolName, .protocolLevel: .unsupportedProtocolVersion
        case .topicAliasZero: .topicAliasInvalid
        case .wrongDirection, .connectExpected, .secondConnect, .authBeforeVersion5, .packetIDZero, .unknownReason,
            .topicEmpty, .sessionPresentOnError, .noFilters, .noReasonCodes, .retainHandling3, .noLocalOnShared,
            .propertyOfOtherSide, .duplicateProperty, .propertyValue, .authDataWithoutMethod, .authMethodMissing:
            .protocolError
        default: .malformedPacket
        }
    }

    /// The return code a 3.x CONNACK has for it, if it has one; else the connection is closed without a word.
    package var returnCode: ConnectReturnCode? {
        if case .protocolLevel = self { .unacceptableProtocolVersion } else { nil }
    }
}
