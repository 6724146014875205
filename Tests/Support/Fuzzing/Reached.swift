package import MQTTCodec

/// The states that inputs have reached: a target that only ever sees refusals tests little.
package struct Reached: Codable, Equatable {
    package internal(set) var inputs = 0
    /// Inputs with at least one packet that was taken.
    package internal(set) var withPacket = 0
    /// Packets taken, by type.
    package internal(set) var packets = [Int](repeating: 0, count: 16)
    /// Inputs that ended with an error, by its kind.
    package internal(set) var errors = [Int](repeating: 0, count: ErrorKind.allCases.count)
    /// Other events: ends, steps of flows, faults.
    package internal(set) var events: [String: Int] = [:]

    mutating func note(_ event: String, _ count: Int = 1) {
        if count > 0 { self.events[event, default: 0] += count }
    }

    mutating func note(_ error: DecodeError) { self.errors[ErrorKind(error).rawValue] += 1 }

    package var packetTypesMissing: [PacketType] { PacketType.allCases.filter { self.packets[Int($0.rawValue)] == 0 } }

    package var errorsMissing: [ErrorKind] { ErrorKind.allCases.filter { self.errors[$0.rawValue] == 0 } }
}

extension Reached: CustomStringConvertible {
    package var description: String {
        let types = PacketType.allCases.map { "\($0) \(self.packets[Int($0.rawValue)])" }
        let kinds = ErrorKind.allCases.map { "\($0) \(self.errors[$0.rawValue])" }
        let share = self.inputs == 0 ? 0 : self.withPacket * 1_000 / self.inputs
        return """
            inputs: \(self.inputs), with a packet that was taken: \(self.withPacket) \
            (\(share / 10).\(share % 10) %), refused: \(self.errors.reduce(0, +))
            packets taken: \(types.joined(separator: ", "))
            refused: \(kinds.joined(separator: ", "))
            events: \(self.events.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: ", "))
            """
    }
}

/// A ``DecodeError`` without its values.
package enum ErrorKind: Int, CaseIterable, Sendable {
    case packetTypeZero
    case authBeforeVersion5
    case wrongDirection
    case connectExpected
    case secondConnect
    case reservedFlags
    case publishQoS3
    case dupAtQoS0
    case remainingLengthTooLong
    case remainingLengthNotMinimal
    case packetTooLarge
    case truncated
    case trailingBytes
    case packetIDZero
    case unknownReason
    case notUTF8
    case nullCharacter
    case controlCharacter
    case topicEmpty
    case topicHasWildcard
    case filterInvalid
    case protocolName
    case protocolLevel
    case connectFlagReserved
    case willFlagsWithoutWill
    case willQoS3
    case willTopicEmpty
    case passwordWithoutUserName
    case connAckFlags
    case sessionPresentOnError
    case noFilters
    case noReasonCodes
    case subscriptionOptions
    case subscriptionQoS3
    case retainHandling3
    case noLocalOnShared
    case variableIntegerTooLong
    case variableIntegerNotMinimal
    case propertyLength
    case propertyTruncated
    case unknownProperty
    case propertyNotAllowed
    case propertyOfOtherSide
    case duplicateProperty
    case propertyValue
    case topicAliasZero
    case authDataWithoutMethod
    case authMethodMissing

    init(_ error: DecodeError) {
        self =
            switch error {
            case .packetTypeZero: .packetTypeZero
            case .authBeforeVersion5: .authBeforeVersion5
            case .wrongDirection: .wrongDirection
            case .connectExpected: .connectExpected
            case .secondConnect: .secondConnect
            case .reservedFlags: .reservedFlags
            case .publishQoS3: .publishQoS3
            case .dupAtQoS0: .dupAtQoS0
            case .remainingLengthTooLong: .remainingLengthTooLong
            case .remainingLengthNotMinimal: .remainingLengthNotMinimal
            case .packetTooLarge: .packetTooLarge
            case .truncated: .truncated
            case .trailingBytes: .trailingBytes
            case .packetIDZero: .packetIDZero
            case .unknownReason: .unknownReason
            case .notUTF8: .notUTF8
            case .nullCharacter: .nullCharacter
            case .controlCharacter: .controlCharacter
            case .topicEmpty: .topicEmpty
            case .topicHasWildcard: .topicHasWildcard
            case .filterInvalid: .filterInvalid
            case .protocolName: .protocolName
            case .protocolLevel: .protocolLevel
            case .connectFlagReserved: .connectFlagReserved
            case .willFlagsWithoutWill: .willFlagsWithoutWill
            case .willQoS3: .willQoS3
            case .willTopicEmpty: .willTopicEmpty
            case .passwordWithoutUserName: .passwordWithoutUserName
            case .connAckFlags: .connAckFlags
            case .sessionPresentOnError: .sessionPresentOnError
            case .noFilters: .noFilters
            case .noReasonCodes: .noReasonCodes
            case .subscriptionOptions: .subscriptionOptions
            case .subscriptionQoS3: .subscriptionQoS3
            case .retainHandling3: .retainHandling3
            case .noLocalOnShared: .noLocalOnShared
            case .variableIntegerTooLong: .variableIntegerTooLong
            case .variableIntegerNotMinimal: .variableIntegerNotMinimal
            case .propertyLength: .propertyLength
            case .propertyTruncated: .propertyTruncated
            case .unknownProperty: .unknownProperty
            case .propertyNotAllowed: .propertyNotAllowed
            case .propertyOfOtherSide: .propertyOfOtherSide
            case .duplicateProperty: .duplicateProperty
            case .propertyValue: .propertyValue
            case .topicAliasZero: .topicAliasZero
            case .authDataWithoutMethod: .authDataWithoutMethod
            case .authMethodMissing: .authMethodMissing
            }
    }
}
