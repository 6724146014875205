extension DecodeError: CustomStringConvertible {
    /// The words for people: what was wrong, and its clause.
    public var description: String { "\(self.rule.words) (\(self.rule.clause))" }

    /// The fault, and the clause that forbids it; of 5.0 unless noted.
    private var rule: (words: String, clause: String) {
        switch self {
        case .packetTypeZero: ("a packet of type 0, which is reserved", "§2.1.2")
        case .authBeforeVersion5: ("an AUTH packet, which MQTT 3 does not have", "3.1.1 §2.2.1")
        case .wrongDirection(let type): ("a packet of type \(type.name), which only the other side sends", "§2.1.2")
        case .connectExpected(let type): ("a packet of type \(type.name) before CONNECT", "MQTT-3.1.0-1")
        case .secondConnect: ("a second CONNECT packet", "MQTT-3.1.0-2")
        case .reservedFlags(.pubAck, 0x8): ("the byte 0x48 where a packet begins, as in an answer of HTTP", "§2.1.3")
        case .reservedFlags(let type, let flags):
            ("flag bits 0x\(String(flags, radix: 16)) in the first byte of a \(type.name) packet", "§2.1.3")
        case .publishQoS3: ("a PUBLISH packet with QoS 3", "MQTT-3.3.1-4")
        case .dupAtQoS0: ("a PUBLISH packet with DUP at QoS 0", "MQTT-3.3.1-2")
        case .remainingLengthTooLong: ("a remaining length of more than four bytes", "§2.1.4")
        case .remainingLengthNotMinimal: ("a remaining length that is not in its shortest form", "MQTT-1.5.5-1")
        case .packetTooLarge(let size): ("a packet of \(size) bytes, above the maximum packet size", "§3.1.2.11.4")
        case .truncated: ("a packet that ends inside a field", "§2.1.4")
        case .trailingBytes(let count):
            ("\(count) byte\(count == 1 ? "" : "s") after the last field of a packet", "§2.1.4")
        case .packetIDZero: ("a packet identifier of 0", "MQTT-2.2.1-3")
        case .unknownReason(let type, let code):
            ("the code \(Self.hex(code)), which \(type.name) does not have", "§2.4")
        case .notUTF8: ("a string that is not UTF-8", "MQTT-1.5.4-1")
        case .nullCharacter: ("a string with the character U+0000", "MQTT-1.5.4-2")
        case .controlCharacter: ("a string with a control character or a non-character", "§1.5.4")
        case .topicEmpty: ("an empty topic without a topic alias", "§3.3.2.1")
        case .topicHasWildcard: ("a wildcard, + or #, in a topic name", "MQTT-3.3.2-2")
        case .filterInvalid(let error): ("a wrong topic filter: \(error.words)", "§4.7.1, §4.8.2")
        default: self.ruleInPacket
        }
    }

    /// The rules of one packet type, and of properties.
    private var ruleInPacket: (words: String, clause: String) {
        switch self {
        case .protocolName: ("a protocol name other than MQTT and MQIsdp", "MQTT-3.1.2-1")
        case .protocolLevel(let level): ("an unsupported protocol level, \(level)", "MQTT-3.1.2-2")
        case .connectFlagReserved: ("a CONNECT packet with its reserved flag", "MQTT-3.1.2-3")
        case .willFlagsWithoutWill: ("will QoS or will retain without a will", "MQTT-3.1.2-11, MQTT-3.1.2-13")
        case .willQoS3: ("a will with QoS 3", "MQTT-3.1.2-12")
        case .willTopicEmpty: ("an empty will topic", "§4.7.3")
        case .passwordWithoutUserName: ("a password without a user name", "3.1.1 MQTT-3.1.2-22")
        case .connAckFlags(let flags): ("reserved flags in a CONNACK packet, \(Self.hex(flags))", "MQTT-3.2.2-1")
        case .sessionPresentOnError: ("session present in a CONNACK packet that refuses", "MQTT-3.2.2-6")
        case .noFilters: ("a packet without a topic filter, which needs one", "MQTT-3.8.3-2, MQTT-3.10.3-2")
        case .noReasonCodes: ("a packet without a reason code, which needs one", "§3.9.3, §3.11.3")
        case .subscriptionOptions(let options):
            ("reserved bits in subscription options, \(Self.hex(options))", "MQTT-3.8.3-5")
        case .subscriptionQoS3: ("a subscription with QoS 3", "§3.8.3.1")
        case .retainHandling3: ("a subscription with retain handling 3", "§3.8.3.1")
        case .noLocalOnShared: ("a shared subscription with No Local", "MQTT-3.8.3-4")
        case .variableIntegerTooLong: ("a variable byte integer of more than four bytes", "§1.5.5")
        case .variableIntegerNotMinimal: ("a variable byte integer that is not in its shortest form", "MQTT-1.5.5-1")
        case .propertyLength: ("a property length beyond the end of the packet", "§2.2.2.1")
        case .propertyTruncated: ("a property beyond the property length", "§2.2.2.1")
        case .unknownProperty(let id): ("an unknown property, \(Self.hex(id))", "§2.2.2.2")
        case .propertyNotAllowed(let id): ("the property \(id.name), which this packet does not have", "§2.2.2.2")
        case .propertyOfOtherSide(let id):
            ("the property \(id.name), which only the other side sends in this packet", Self.clause(otherSideHas: id))
        case .duplicateProperty(let id): ("the property \(id.name) twice", "§2.2.2.2")
        case .propertyValue(let id): ("a value that the property \(id.name) does not have", "§2.2.2.2")
        case .topicAliasZero: ("a topic alias of 0", "MQTT-3.3.2-8")
        case .authDataWithoutMethod: ("authentication data without an authentication method", "§3.1.2.11.10")
        default: ("an AUTH packet without an authentication method", "§3.15.2.2.2")
        }
    }

    /// The clause that leaves a property to the other side of a packet.
    private static func clause(otherSideHas id: PropertyID) -> String {
        switch id {
        case .subscriptionIdentifier: "MQTT-3.3.4-6"
        case .sessionExpiryInterval: "MQTT-3.14.2-2"
        default: "§3.14.2.2.5"
        }
    }

    private static func hex(_ byte: UInt8) -> String { "0x" + (byte < 16 ? "0" : "") + String(byte, radix: 16) }
}
