extension DecodeError: CustomStringConvertible {
    /// For people: what was wrong, and its clause.
    public var description: String { "\(self.words) (\(self.clause))" }

    private var words: String {
        switch self {
        case .packetTypeZero: "a packet of type 0, which is reserved"
        case .authBeforeVersion5: "an AUTH packet, which MQTT 3 does not have"
        case .wrongDirection(let type): "a packet of type \(type.name), which only the other side sends"
        case .connectExpected(let type): "a packet of type \(type.name) before CONNECT"
        case .secondConnect: "a second CONNECT packet"
        case .reservedFlags(.pubAck, 0x8): "the byte 0x48 where a packet begins, as in an answer of HTTP"
        case .reservedFlags(let type, let flags):
            "flag bits 0x\(String(flags, radix: 16)) in the first byte of a \(type.name) packet"
        case .publishQoS3: "a PUBLISH packet with QoS 3"
        case .dupAtQoS0: "a PUBLISH packet with DUP at QoS 0"
        case .remainingLengthTooLong: "a remaining length of more than four bytes"
        case .remainingLengthNotMinimal: "a remaining length that is not in its shortest form"
        case .packetTooLarge(let size): "a packet of \(size) bytes, above the maximum packet size"
        case .truncated: "a packet that ends inside a field"
        case .trailingBytes(let count): "\(count) byte\(count == 1 ? "" : "s") after the last field of a packet"
        case .packetIDZero: "a packet identifier of 0"
        case .unknownReason(let type, let code): "the code \(Self.hex(code)), which \(type.name) does not have"
        case .notUTF8: "a string that is not UTF-8"
        case .nullCharacter: "a string with the character U+0000"
        case .controlCharacter: "a string with a control character or a non-character"
        case .topicEmpty: "an empty topic without a topic alias"
        case .topicHasWildcard: "a wildcard, + or #, in a topic name"
        case .filterInvalid(let error): "a wrong topic filter: \(error.words)"
        default: self.wordsInPacket
        }
    }

    /// For the rules of one packet type, and of properties.
    private var wordsInPacket: String {
        switch self {
        case .protocolName: "a protocol name other than MQTT and MQIsdp"
        case .protocolLevel(let level): "an unsupported protocol level, \(level)"
        case .connectFlagReserved: "a CONNECT packet with its reserved flag"
        case .willFlagsWithoutWill: "will QoS or will retain without a will"
        case .willQoS3: "a will with QoS 3"
        case .willTopicEmpty: "an empty will topic"
        case .passwordWithoutUserName: "a password without a user name"
        case .connAckFlags(let flags): "reserved flags in a CONNACK packet, \(Self.hex(flags))"
        case .sessionPresentOnError: "session present in a CONNACK packet that refuses"
        case .noFilters: "a packet without a topic filter, which needs one"
        case .noReasonCodes: "a packet without a reason code, which needs one"
        case .subscriptionOptions(let options): "reserved bits in subscription options, \(Self.hex(options))"
        case .subscriptionQoS3: "a subscription with QoS 3"
        case .retainHandling3: "a subscription with retain handling 3"
        case .noLocalOnShared: "a shared subscription with No Local"
        case .variableIntegerTooLong: "a variable byte integer of more than four bytes"
        case .variableIntegerNotMinimal: "a variable byte integer that is not in its shortest form"
        case .propertyLength: "a property length beyond the end of the packet"
        case .propertyTruncated: "a property beyond the property length"
        case .unknownProperty(let id): "an unknown property, \(Self.hex(id))"
        case .propertyNotAllowed(let id): "the property \(id.name), which this packet does not have"
        case .propertyOfOtherSide(let id): "the property \(id.name), which only the other side sends in this packet"
        case .duplicateProperty(let id): "the property \(id.name) twice"
        case .propertyValue(let id): "a value that the property \(id.name) does not have"
        case .topicAliasZero: "a topic alias of 0"
        case .authDataWithoutMethod: "authentication data without an authentication method"
        default: "an AUTH packet without an authentication method"
        }
    }

    private static func hex(_ byte: UInt8) -> String { "0x" + (byte < 16 ? "0" : "") + String(byte, radix: 16) }
}

extension DecodeError {
    /// The clause of the standard that has the rule; of 5.0 unless noted.
    package var clause: String {
        switch self {
        case .packetTypeZero, .wrongDirection: "§2.1.2"
        case .authBeforeVersion5: "3.1.1 §2.2.1"
        case .connectExpected: "MQTT-3.1.0-1"
        case .secondConnect: "MQTT-3.1.0-2"
        case .reservedFlags: "§2.1.3"
        case .publishQoS3: "MQTT-3.3.1-4"
        case .dupAtQoS0: "MQTT-3.3.1-2"
        case .remainingLengthTooLong: "§2.1.4"
        case .remainingLengthNotMinimal, .variableIntegerNotMinimal: "MQTT-1.5.5-1"
        case .packetTooLarge: "§3.1.2.11.4"
        case .truncated, .trailingBytes: "§2.1.4"
        case .packetIDZero: "MQTT-2.2.1-3"
        case .unknownReason: "§2.4"
        case .notUTF8: "MQTT-1.5.4-1"
        case .nullCharacter: "MQTT-1.5.4-2"
        case .controlCharacter: "§1.5.4"
        case .topicEmpty: "§3.3.2.1"
        case .topicHasWildcard: "MQTT-3.3.2-2"
        case .filterInvalid: "§4.7.1, §4.8.2"
        default: self.clauseInPacket
        }
    }

    /// The rules of one packet type, and of properties.
    private var clauseInPacket: String {
        switch self {
        case .protocolName: "MQTT-3.1.2-1"
        case .protocolLevel: "MQTT-3.1.2-2"
        case .connectFlagReserved: "MQTT-3.1.2-3"
        case .willFlagsWithoutWill: "MQTT-3.1.2-11, MQTT-3.1.2-13"
        case .willQoS3: "MQTT-3.1.2-12"
        case .willTopicEmpty: "§4.7.3"
        case .passwordWithoutUserName: "3.1.1 MQTT-3.1.2-22"
        case .connAckFlags: "MQTT-3.2.2-1"
        case .sessionPresentOnError: "MQTT-3.2.2-6"
        case .noFilters: "MQTT-3.8.3-2, MQTT-3.10.3-2"
        case .noReasonCodes: "§3.9.3, §3.11.3"
        case .subscriptionOptions: "MQTT-3.8.3-5"
        case .subscriptionQoS3, .retainHandling3: "§3.8.3.1"
        case .noLocalOnShared: "MQTT-3.8.3-4"
        case .variableIntegerTooLong: "§1.5.5"
        case .propertyLength, .propertyTruncated: "§2.2.2.1"
        case .propertyOfOtherSide(.subscriptionIdentifier): "MQTT-3.3.4-6"
        case .propertyOfOtherSide(.sessionExpiryInterval): "MQTT-3.14.2-2"
        case .propertyOfOtherSide: "§3.14.2.2.5"
        case .topicAliasZero: "MQTT-3.3.2-8"
        case .authDataWithoutMethod: "§3.1.2.11.10"
        case .authMethodMissing: "§3.15.2.2.2"
        default: "§2.2.2.2"
        }
    }
}
