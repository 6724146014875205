package import NIOCore

/// The message that the server publishes when a client disconnects without a DISCONNECT.
///
/// Spec: MQTT 5.0 §3.1.2.5, MQTT 3.1.1 §3.1.2.5.
public struct Will: Hashable, Sendable {
    /// A topic name, without wildcards.
    public var topic: String
    /// The message, at most 65,535 bytes.
    public var payload: [UInt8]
    /// How hard the delivery is tried.
    public var qos: QoS
    /// Whether the server keeps it for later subscribers.
    public var retain: Bool
    /// The will's own properties, will delay among them; not those of the CONNECT.
    public var properties: Properties

    /// - Parameters:
    ///   - topic: a topic name, without wildcards.
    ///   - payload: at most 65,535 bytes.
    ///   - qos: how hard the delivery is tried.
    ///   - retain: whether the server keeps it for later subscribers.
    ///   - properties: MQTT 5 only; will delay, message expiry, content type and others (§3.1.3.2).
    public init(
        topic: String,
        payload: [UInt8],
        qos: QoS = .atMostOnce,
        retain: Bool = false,
        properties: Properties = Properties()
    ) {
        self.topic = topic
        self.payload = payload
        self.qos = qos
        self.retain = retain
        self.properties = properties
    }
}

/// Opens a session.
///
/// Spec: MQTT 5.0 §3.1, MQTT 3.1.1 §3.1.
public struct Connect: Hashable, Sendable {
    package var version: ProtocolVersion
    package var clientID: String
    /// Clean Session in 3.x, Clean Start in 5.0: the same bit with another meaning.
    package var cleanStart: Bool
    /// Seconds; 0 switches it off.
    package var keepAlive: UInt16
    package var username: String?
    package var password: [UInt8]?
    package var will: Will?
    package var properties: Properties

    package init(
        version: ProtocolVersion = .v311,
        clientID: String,
        cleanStart: Bool = true,
        keepAlive: UInt16 = 60,
        username: String? = nil,
        password: [UInt8]? = nil,
        will: Will? = nil,
        properties: Properties = Properties()
    ) {
        self.version = version
        self.clientID = clientID
        self.cleanStart = cleanStart
        self.keepAlive = keepAlive
        self.username = username
        self.password = password
        self.will = will
        self.properties = properties
    }
}

extension Connect {
    /// Appends the packet in its own ``version``; the parameter is ignored.
    package func encode(as _: ProtocolVersion, into buffer: inout ByteBuffer) {
        buffer.writePacket(.connect) { body in
            body.writeText(self.version.protocolName)
            body.writeInteger(self.version.rawValue)
            body.writeInteger(self.flags)
            body.writeInteger(self.keepAlive)
            if self.version == .v5 { self.properties.encode(into: &body) }
            body.writeText(self.clientID)
            if let will = self.will {
                if self.version == .v5 { will.properties.encode(into: &body) }
                body.writeText(will.topic)
                body.writeBinary(will.payload)
            }
            if let username = self.username { body.writeText(username) }
            if let password = self.password { body.writeBinary(password) }
        }
    }

    private var flags: UInt8 {
        var flags: UInt8 = self.cleanStart ? 0x02 : 0
        if let will = self.will { flags |= 0x04 | will.qos.rawValue << 3 | (will.retain ? 0x20 : 0) }
        if self.password != nil { flags |= 0x40 }
        if self.username != nil { flags |= 0x80 }
        return flags
    }

    /// Reads the body after its ``version(_:)``.
    init(_ reader: inout ByteReader, version: ProtocolVersion) throws(DecodeError) {
        let flags = try reader.byte()
        try Self.check(flags: flags, version: version)
        let keepAlive = try reader.twoBytes()
        let properties = version == .v5 ? try reader.properties(.connect) : Properties()
        let clientID = try reader.string()
        let will = flags & 0x04 != 0 ? try Will(&reader, connectFlags: flags, version: version) : nil
        let username = flags & 0x80 != 0 ? try reader.string() : nil
        let password = flags & 0x40 != 0 ? Array(try reader.binary()) : nil
        try reader.expectEnd()
        self.init(
            version: version,
            clientID: clientID,
            cleanStart: flags & 0x02 != 0,
            keepAlive: keepAlive,
            username: username,
            password: password,
            will: will,
            properties: properties
        )
    }

    /// Reads protocol name and level, the first two fields.
    static func version(_ reader: inout ByteReader) throws(DecodeError) -> ProtocolVersion {
        let name = try reader.binary()
        let isOld = name.elementsEqual(ProtocolVersion.v31.protocolName.utf8)
        guard isOld || name.elementsEqual(ProtocolVersion.v311.protocolName.utf8) else { throw .protocolName }
        let level = try reader.byte()
        guard let version = ProtocolVersion(rawValue: level), isOld == (version == .v31) else {
            throw .protocolLevel(level)
        }
        return version
    }

    private static func check(flags: UInt8, version: ProtocolVersion) throws(DecodeError) {
        // MQTT 3.1 §3.1 does not use the bit, and asks nothing of it.
        if version != .v31, flags & 0x01 != 0 { throw .connectFlagReserved }
        if flags & 0x04 == 0 {
            if flags & 0x38 != 0 { throw .willFlagsWithoutWill }
        } else if flags & 0x18 == 0x18 {
            throw .willQoS3
        }
        // 5.0 §3.1.2.9 allows it, with tokens in mind.
        if version != .v5, flags & 0xC0 == 0x40 { throw .passwordWithoutUserName }
    }
}

extension Will {
    fileprivate init(
        _ reader: inout ByteReader,
        connectFlags flags: UInt8,
        version: ProtocolVersion
    ) throws(DecodeError) {
        let properties = version == .v5 ? try reader.properties(.will) : Properties()
        let topic = try reader.text()
        switch TopicName.problem(topic) {
        case nil: break
        case .empty: throw .willTopicEmpty
        default: throw .topicHasWildcard
        }
        self.init(
            topic: String(decoding: topic, as: UTF8.self),
            payload: Array(try reader.binary()),
            qos: QoS(rawValue: flags >> 3 & 3) ?? .exactlyOnce,
            retain: flags & 0x20 != 0,
            properties: properties
        )
    }
}
