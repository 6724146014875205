package import NIOCore

/// One filter of a SUBSCRIBE and its options.
///
/// Spec: MQTT 5.0 §3.8.3.1. 3.x has the QoS only.
public struct Subscription: Hashable, Sendable {
    /// When the server sends the retained messages.
    public enum RetainHandling: UInt8, Hashable, Sendable, CaseIterable {
        /// The server sends them with each SUBSCRIBE.
        case send = 0
        /// The server sends them with a SUBSCRIBE that makes the subscription, not with one that replaces it.
        case sendIfNew
        /// Never.
        case doNotSend
    }

    /// Which topics; see ``TopicFilter``.
    public var filter: String
    /// The most that messages are delivered with.
    public var qos: QoS
    /// Messages of this client itself are left out.
    public var noLocal: Bool
    /// Messages keep the RETAIN flag they were published with.
    public var retainAsPublished: Bool
    /// When the retained messages come.
    public var retainHandling: RetainHandling

    /// - Parameters:
    ///   - filter: which topics.
    ///   - qos: the most that messages are delivered with.
    ///   - noLocal: whether messages of this client itself are left out; not with a shared subscription [MQTT-3.8.3-4].
    ///   - retainAsPublished: whether messages keep their RETAIN flag.
    ///   - retainHandling: when the retained messages come.
    public init(
        filter: String,
        qos: QoS = .atMostOnce,
        noLocal: Bool = false,
        retainAsPublished: Bool = false,
        retainHandling: RetainHandling = .send
    ) {
        self.filter = filter
        self.qos = qos
        self.noLocal = noLocal
        self.retainAsPublished = retainAsPublished
        self.retainHandling = retainHandling
    }
}

/// Requests subscriptions.
///
/// Spec: MQTT 5.0 §3.8, MQTT 3.1.1 §3.8.
public struct Subscribe: Hashable, Sendable {
    package var packetID: PacketID
    package var subscriptions: [Subscription]
    package var properties: Properties

    package init(_ packetID: PacketID, _ subscriptions: [Subscription], properties: Properties = Properties()) {
        self.packetID = packetID
        self.subscriptions = subscriptions
        self.properties = properties
    }
}

/// Answers a SUBSCRIBE, one code per filter in its order.
///
/// Spec: MQTT 5.0 §3.9, MQTT 3.1.1 §3.9.
public struct SubAck: Hashable, Sendable {
    package var packetID: PacketID
    /// As on the wire: 0, 1, 2 or 0x80 in 3.1.1, a ``ReasonCode`` in 5.0.
    package var codes: [UInt8]
    package var properties: Properties

    package init(_ packetID: PacketID, codes: [UInt8], properties: Properties = Properties()) {
        self.packetID = packetID
        self.codes = codes
        self.properties = properties
    }
}

extension Subscribe {
    package func encode(as version: ProtocolVersion, into buffer: inout ByteBuffer) {
        buffer.writePacket(.subscribe) { body in
            body.writeInteger(self.packetID.rawValue)
            if version == .v5 { self.properties.encode(into: &body) }
            for subscription in self.subscriptions {
                body.writeText(subscription.filter)
                body.writeInteger(version == .v5 ? subscription.options : subscription.qos.rawValue)
            }
        }
    }

    init(_ reader: inout ByteReader, version: ProtocolVersion) throws(DecodeError) {
        self.init(try reader.packetID(), [])
        if version == .v5 { self.properties = try reader.properties(.subscribe) }
        repeat {
            if reader.isAtEnd { throw .noFilters }
            self.subscriptions.append(try Subscription(&reader, version: version))
        } while !reader.isAtEnd
    }
}

extension Subscription {
    fileprivate var options: UInt8 {
        self.qos.rawValue | (self.noLocal ? 0x04 : 0) | (self.retainAsPublished ? 0x08 : 0)
            | self.retainHandling.rawValue << 4
    }

    fileprivate init(_ reader: inout ByteReader, version: ProtocolVersion) throws(DecodeError) {
        let filter = try reader.filter(version: version)
        let options = try reader.byte()
        guard options & (version == .v5 ? 0xC0 : 0xFC) == 0 else { throw .subscriptionOptions(options) }
        guard let qos = QoS(rawValue: options & 3) else { throw .subscriptionQoS3 }
        guard let retainHandling = RetainHandling(rawValue: options >> 4) else { throw .retainHandling3 }
        self.init(
            filter: String(decoding: filter, as: UTF8.self),
            qos: qos,
            noLocal: options & 0x04 != 0,
            retainAsPublished: options & 0x08 != 0,
            retainHandling: retainHandling
        )
        if self.noLocal, TopicFilter.isShared(filter) { throw .noLocalOnShared }
    }
}

extension ByteReader {
    /// A checked topic filter; `$share/` is special from 5.0 on (§4.8.2).
    mutating func filter(version: ProtocolVersion) throws(DecodeError) -> UnsafeRawBufferPointer {
        let filter = try self.text()
        if let problem = TopicFilter.problem(filter, shared: version == .v5) { throw .filterInvalid(problem) }
        return filter
    }

    /// The reason codes at the end of a SUBACK or UNSUBACK, at least one.
    mutating func reasonCodes(_ type: PacketType, version: ProtocolVersion) throws(DecodeError) -> [UInt8] {
        if self.isAtEnd { throw .noReasonCodes }
        let codes = Array(try self.bytes(self.rest.count))
        for code in codes {
            switch version {
            case .v5: try ReasonCode.check(code, in: type, toServer: false)
            case .v311: if code > 2, code != 0x80 { throw .unknownReason(type, code) }
            case .v31: if code > 2 { throw .unknownReason(type, code) }
            }
        }
        return codes
    }
}

extension SubAck {
    package func encode(as version: ProtocolVersion, into buffer: inout ByteBuffer) {
        buffer.writePacket(.subAck) { body in
            body.writeInteger(self.packetID.rawValue)
            if version == .v5 { self.properties.encode(into: &body) }
            body.writeBytes(self.codes)
        }
    }

    init(_ reader: inout ByteReader, version: ProtocolVersion) throws(DecodeError) {
        self.init(try reader.packetID(), codes: [])
        if version == .v5 { self.properties = try reader.properties(.subAck) }
        self.codes = try reader.reasonCodes(.subAck, version: version)
    }
}
