import MQTTCodec

extension DecodeError {
    /// Every case; ``testName`` does not compile with one more.
    static let everyCase: [DecodeError] = [
        .packetTypeZero, .authBeforeVersion5, .wrongDirection(.pubRel), .connectExpected(.pubRel), .secondConnect,
        .reservedFlags(.pubRel, 7), .publishQoS3, .dupAtQoS0, .remainingLengthTooLong, .remainingLengthNotMinimal,
        .packetTooLarge(size: 9), .truncated, .trailingBytes(2), .packetIDZero, .unknownReason(.pubRel, 7), .notUTF8,
        .nullCharacter, .controlCharacter, .topicEmpty, .topicHasWildcard, .filterInvalid(.shareName), .protocolName,
        .protocolLevel(7), .connectFlagReserved, .willFlagsWithoutWill, .willQoS3, .willTopicEmpty,
        .passwordWithoutUserName, .connAckFlags(7), .sessionPresentOnError, .noFilters, .noReasonCodes,
        .subscriptionOptions(7), .subscriptionQoS3, .retainHandling3, .noLocalOnShared, .variableIntegerTooLong,
        .variableIntegerNotMinimal, .propertyLength, .propertyTruncated, .unknownProperty(7),
        .propertyNotAllowed(.topicAlias), .propertyOfOtherSide(.topicAlias), .duplicateProperty(.topicAlias),
        .propertyValue(.topicAlias), .topicAliasZero, .authDataWithoutMethod, .authMethodMissing,
    ]

    /// The case and its values, as the vectors name them.
    var testName: String {
        switch self {
        case .packetTypeZero: "packetTypeZero"
        case .authBeforeVersion5: "authBeforeVersion5"
        case .wrongDirection(let value): "wrongDirection(\(value))"
        case .connectExpected(let value): "connectExpected(\(value))"
        case .secondConnect: "secondConnect"
        case .reservedFlags(let packet, let value): "reservedFlags(\(packet), \(value))"
        case .publishQoS3: "publishQoS3"
        case .dupAtQoS0: "dupAtQoS0"
        case .remainingLengthTooLong: "remainingLengthTooLong"
        case .remainingLengthNotMinimal: "remainingLengthNotMinimal"
        case .packetTooLarge(let size): "packetTooLarge(size: \(size))"
        case .truncated: "truncated"
        case .trailingBytes(let value): "trailingBytes(\(value))"
        case .packetIDZero: "packetIDZero"
        case .unknownReason(let packet, let value): "unknownReason(\(packet), \(value))"
        case .notUTF8: "notUTF8"
        case .nullCharacter: "nullCharacter"
        case .controlCharacter: "controlCharacter"
        case .topicEmpty: "topicEmpty"
        case .topicHasWildcard: "topicHasWildcard"
        case .filterInvalid(let error): "filterInvalid(\(error.testName))"
        case .protocolName: "protocolName"
        case .protocolLevel(let value): "protocolLevel(\(value))"
        case .connectFlagReserved: "connectFlagReserved"
        case .willFlagsWithoutWill: "willFlagsWithoutWill"
        case .willQoS3: "willQoS3"
        case .willTopicEmpty: "willTopicEmpty"
        case .passwordWithoutUserName: "passwordWithoutUserName"
        case .connAckFlags(let value): "connAckFlags(\(value))"
        case .sessionPresentOnError: "sessionPresentOnError"
        case .noFilters: "noFilters"
        case .noReasonCodes: "noReasonCodes"
        case .subscriptionOptions(let value): "subscriptionOptions(\(value))"
        case .subscriptionQoS3: "subscriptionQoS3"
        case .retainHandling3: "retainHandling3"
        case .noLocalOnShared: "noLocalOnShared"
        case .variableIntegerTooLong: "variableIntegerTooLong"
        case .variableIntegerNotMinimal: "variableIntegerNotMinimal"
        case .propertyLength: "propertyLength"
        case .propertyTruncated: "propertyTruncated"
        case .unknownProperty(let value): "unknownProperty(\(value))"
        case .propertyNotAllowed(let value): "propertyNotAllowed(\(value))"
        case .propertyOfOtherSide(let value): "propertyOfOtherSide(\(value))"
        case .duplicateProperty(let value): "duplicateProperty(\(value))"
        case .propertyValue(let value): "propertyValue(\(value))"
        case .topicAliasZero: "topicAliasZero"
        case .authDataWithoutMethod: "authDataWithoutMethod"
        case .authMethodMissing: "authMethodMissing"
        }
    }
}

extension TopicError {
    /// Every case; ``testName`` does not compile with one more.
    static let everyCase: [TopicError] = [
        .empty, .tooLong(70_000), .nullCharacter, .wildcardInName, .wildcardNotAlone, .multiLevelNotLast, .shareName,
        .shareWithoutFilter,
    ]

    /// The case, as the vectors name it.
    var testName: String {
        switch self {
        case .empty: "empty"
        case .tooLong(let count): "tooLong(\(count))"
        case .nullCharacter: "nullCharacter"
        case .wildcardInName: "wildcardInName"
        case .wildcardNotAlone: "wildcardNotAlone"
        case .multiLevelNotLast: "multiLevelNotLast"
        case .shareName: "shareName"
        case .shareWithoutFilter: "shareWithoutFilter"
        }
    }
}
