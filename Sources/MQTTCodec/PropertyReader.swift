/// The place of properties: the allowed ones depend on packet and direction.
///
/// Spec: MQTT 5.0 §2.2.2.2, table 2-4.
package enum PropertyScope: Sendable, CaseIterable {
    case connect, will, connAck
    case publishToServer, publishToClient
    /// PUBACK, PUBREC, PUBREL and PUBCOMP.
    case acknowledgement
    case subscribe, subAck, unsubscribe, unsubAck
    case disconnectToServer, disconnectToClient
    case auth

    /// One bit per identifier.
    var allowed: UInt64 {
        switch self {
        case .connect: Self.inConnect
        case .will: Self.inWill
        case .connAck: Self.inConnAck
        case .publishToServer: Self.inPublish
        case .publishToClient: Self.inPublish | PropertyID.subscriptionIdentifier.bit
        case .acknowledgement, .subAck, .unsubAck: Self.inAnswer
        case .subscribe: Self.set(.subscriptionIdentifier, .userProperty)
        case .unsubscribe: Self.set(.userProperty)
        case .disconnectToServer: Self.inAnswer | PropertyID.sessionExpiryInterval.bit
        case .disconnectToClient: Self.inAnswer | PropertyID.serverReference.bit
        case .auth: Self.inAnswer | Self.set(.authenticationMethod, .authenticationData)
        }
    }

    /// The properties that the packet has in its other direction only, one bit per identifier.
    var ofOtherSide: UInt64 {
        switch self {
        case .publishToServer: PropertyID.subscriptionIdentifier.bit
        case .disconnectToServer: PropertyID.serverReference.bit
        case .disconnectToClient: PropertyID.sessionExpiryInterval.bit
        default: 0
        }
    }

    /// One bit per identifier that may be repeated.
    var repeatable: UInt64 {
        let user = PropertyID.userProperty.bit
        return self == .publishToClient ? user | PropertyID.subscriptionIdentifier.bit : user
    }

    private static func set(_ ids: PropertyID...) -> UInt64 { ids.reduce(0) { $0 | $1.bit } }

    private static let inAnswer = Self.set(.reasonString, .userProperty)
    private static let inConnect = Self.set(
        .sessionExpiryInterval,
        .receiveMaximum,
        .maximumPacketSize,
        .topicAliasMaximum,
        .requestResponseInformation,
        .requestProblemInformation,
        .userProperty,
        .authenticationMethod,
        .authenticationData
    )
    private static let inWill = Self.set(
        .willDelayInterval,
        .payloadFormatIndicator,
        .messageExpiryInterval,
        .contentType,
        .responseTopic,
        .correlationData,
        .userProperty
    )
    private static let inConnAck = Self.set(
        .sessionExpiryInterval,
        .receiveMaximum,
        .maximumQoS,
        .retainAvailable,
        .maximumPacketSize,
        .assignedClientIdentifier,
        .topicAliasMaximum,
        .reasonString,
        .userProperty,
        .wildcardSubscriptionAvailable,
        .subscriptionIdentifierAvailable,
        .sharedSubscriptionAvailable,
        .serverKeepAlive,
        .responseInformation,
        .serverReference,
        .authenticationMethod,
        .authenticationData
    )
    private static let inPublish = Self.set(
        .payloadFormatIndicator,
        .messageExpiryInterval,
        .topicAlias,
        .responseTopic,
        .correlationData,
        .userProperty,
        .contentType
    )
}

/// Iterates over properties and checks each: their rules are in this type only.
struct PropertyReader {
    /// One property, its text still in the packet.
    enum Value {
        case byte(UInt8)
        case twoBytes(UInt16)
        case fourBytes(UInt32)
        case variable(UInt32)
        case text(UnsafeRawBufferPointer)
        case binary(UnsafeRawBufferPointer)
        case pair(UnsafeRawBufferPointer, UnsafeRawBufferPointer)
    }

    private var reader: ByteReader
    private let scope: PropertyScope?
    private let allowed: UInt64
    private let repeatable: UInt64
    /// The identifiers met so far.
    private(set) var seen: UInt64 = 0

    /// Iterates over `bytes`, the properties after their length; a `scope` of `nil` means that they have been checked.
    init(_ bytes: UnsafeRawBufferPointer, scope: PropertyScope?, refusesControlCharacters: Bool = false) {
        self.reader = ByteReader(
            bytes,
            shortage: .propertyTruncated,
            refusesControlCharacters: refusesControlCharacters
        )
        self.scope = scope
        self.allowed = scope?.allowed ?? .max
        self.repeatable = scope?.repeatable ?? .max
    }

    mutating func next() throws(DecodeError) -> (id: PropertyID, value: Value)? {
        if self.reader.isAtEnd { return nil }
        let raw = try self.reader.byte()
        guard let id = PropertyID(rawValue: raw) else { throw .unknownProperty(raw) }
        guard self.allowed & id.bit != 0 else {
            let isOfOtherSide = (self.scope?.ofOtherSide ?? 0) & id.bit != 0
            throw isOfOtherSide ? .propertyOfOtherSide(id) : .propertyNotAllowed(id)
        }
        guard self.seen & ~self.repeatable & id.bit == 0 else { throw .duplicateProperty(id) }
        self.seen |= id.bit
        return (id, try self.value(of: id))
    }

    private mutating func value(of id: PropertyID) throws(DecodeError) -> Value {
        switch id {
        case .payloadFormatIndicator, .requestProblemInformation, .requestResponseInformation, .maximumQoS,
            .retainAvailable, .wildcardSubscriptionAvailable, .subscriptionIdentifierAvailable,
            .sharedSubscriptionAvailable:
            let value = try self.reader.byte()
            guard value <= 1 else { throw .propertyValue(id) }
            return .byte(value)
        case .serverKeepAlive, .receiveMaximum, .topicAliasMaximum, .topicAlias:
            let value = try self.reader.twoBytes()
            if value == 0, id == .topicAlias { throw .topicAliasZero }
            if value == 0, id == .receiveMaximum { throw .propertyValue(id) }
            return .twoBytes(value)
        case .messageExpiryInterval, .sessionExpiryInterval, .willDelayInterval, .maximumPacketSize:
            let value = try self.reader.fourBytes()
            if value == 0, id == .maximumPacketSize { throw .propertyValue(id) }
            return .fourBytes(value)
        case .subscriptionIdentifier:
            let value = try self.reader.variableInteger()
            if value == 0 { throw .propertyValue(id) }
            return .variable(value)
        case .correlationData, .authenticationData:
            return .binary(try self.reader.binary())
        case .userProperty:
            let name = try self.reader.text()
            return .pair(name, try self.reader.text())
        case .responseTopic:
            let topic = try self.reader.text()
            // [MQTT-3.3.2-14]: a topic name like any other.
            if TopicName.problem(topic) != nil { throw .propertyValue(id) }
            return .text(topic)
        case .contentType, .assignedClientIdentifier, .authenticationMethod, .responseInformation, .serverReference,
            .reasonString:
            return .text(try self.reader.text())
        }
    }

    func has(_ id: PropertyID) -> Bool { self.seen & id.bit != 0 }
}

extension Properties {
    /// Reads properties that a decoder has handed out as checked bytes.
    package init(validated bytes: UnsafeRawBufferPointer) throws(DecodeError) { try self.init(bytes, scope: nil) }

    /// Checks and reads `bytes`, the properties after their length.
    init(
        _ bytes: UnsafeRawBufferPointer,
        scope: PropertyScope?,
        refusesControlCharacters: Bool = false
    ) throws(DecodeError) {
        self.init()
        var reader = PropertyReader(bytes, scope: scope, refusesControlCharacters: refusesControlCharacters)
        while let (id, value) = try reader.next() { self.append(Property(id, Property.Value(value))) }
        if reader.has(.authenticationData), !reader.has(.authenticationMethod) { throw .authDataWithoutMethod }
    }
}

extension Property.Value {
    fileprivate init(_ value: PropertyReader.Value) {
        switch value {
        case .byte(let value): self = .byte(value)
        case .twoBytes(let value): self = .twoBytes(value)
        case .fourBytes(let value): self = .fourBytes(value)
        case .variable(let value): self = .variable(value)
        case .text(let text): self = .text(String(decoding: text, as: UTF8.self))
        case .binary(let bytes): self = .binary(Array(bytes))
        case .pair(let name, let value):
            self = .pair(String(decoding: name, as: UTF8.self), String(decoding: value, as: UTF8.self))
        }
    }
}

extension ByteReader {
    /// Takes the property length and that many bytes.
    mutating func propertyBytes() throws(DecodeError) -> UnsafeRawBufferPointer {
        let length = Int(try self.variableInteger())
        guard length <= self.rest.count else { throw .propertyLength }
        return try self.bytes(length)
    }

    /// Takes, checks and reads the properties.
    mutating func properties(_ scope: PropertyScope) throws(DecodeError) -> Properties {
        let bytes = try self.propertyBytes()
        if bytes.isEmpty { return Properties() }
        return try Properties(bytes, scope: scope, refusesControlCharacters: self.refusesControlCharacters)
    }

    /// Takes and checks the properties without decoding them.
    ///
    /// - Returns: the properties after their length, and the identifiers found, one bit each.
    mutating func validatedProperties(
        _ scope: PropertyScope
    ) throws(DecodeError) -> (bytes: UnsafeRawBufferPointer, seen: UInt64) {
        let bytes = try self.propertyBytes()
        var reader = PropertyReader(bytes, scope: scope, refusesControlCharacters: self.refusesControlCharacters)
        while try reader.next() != nil {}
        if reader.has(.authenticationData), !reader.has(.authenticationMethod) { throw .authDataWithoutMethod }
        return (bytes, reader.seen)
    }
}
