extension DecodeError {
    /// For people: the rule, its clause, and the answer.
    package var description: String {
        let rule = String(describing: self).replacing("MQTTCodec.", with: "")
        return "\(rule), \(self.clause), answered with \(self.reason.name)"
    }

    /// Where the standard has the rule; 5.0 unless it says so.
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
