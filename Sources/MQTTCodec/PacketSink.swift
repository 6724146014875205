/// A PUBLISH as it lies in the receive buffer; the pointers are valid during the call only.
public struct PublishView {
    /// UTF-8, checked; empty only where 5.0 has a topic alias in its place.
    public let topic: UnsafeRawBufferPointer
    /// The application message.
    public let payload: UnsafeRawBufferPointer
    /// The properties after their length, checked; empty in 3.x.
    public let rawProperties: UnsafeRawBufferPointer
    /// Packet type and flags.
    public let firstByte: UInt8
    /// 0 at QoS 0.
    public let packetID: UInt16

    @inlinable
    init(
        topic: UnsafeRawBufferPointer,
        payload: UnsafeRawBufferPointer,
        rawProperties: UnsafeRawBufferPointer,
        firstByte: UInt8,
        packetID: UInt16
    ) {
        self.topic = topic
        self.payload = payload
        self.rawProperties = rawProperties
        self.firstByte = firstByte
        self.packetID = packetID
    }

    /// 3 is refused before a view is made.
    @inlinable
    public var qos: QoS {
        switch self.firstByte & 0b0110 {
        case 0b0000: .atMostOnce
        case 0b0010: .atLeastOnce
        default: .exactlyOnce
        }
    }

    /// The DUP flag: whether this may be a repetition.
    @inlinable
    public var dup: Bool { self.firstByte & 0b1000 != 0 }

    /// Whether it is, or is to be, retained.
    @inlinable
    public var retain: Bool { self.firstByte & 0b0001 != 0 }
}

/// The receiver of decoded packets.
///
/// Generic, so that every call is direct and the pointers need not outlive it. Each function returns `false` to stop
/// the decoder for good. The connection is then closed, and the remaining bytes are dropped.
public protocol PacketSink: ~Copyable {
    /// An application message.
    mutating func publish(_ view: PublishView) -> Bool

    /// PUBACK, PUBREC, PUBREL or PUBCOMP in any form.
    ///
    /// `id` is never 0. `reason` is 0 where it is left out, and before 5.0; always one that this packet has.
    /// `rawProperties` are the properties after their length, checked, to read with `Properties(validated:)`.
    mutating func acknowledgement(
        _ type: PacketType,
        id: UInt16,
        reason: UInt8,
        rawProperties: UnsafeRawBufferPointer
    ) -> Bool

    /// Everything else.
    mutating func control(_ packet: Packet) -> Bool
}

extension PublishView {
    /// The topic alias, read without making anything of the other properties (§3.3.2.3.4).
    package var topicAlias: UInt16? {
        var reader = PropertyReader(self.rawProperties, scope: nil)
        while let (id, value) = try? reader.next() {
            if id == .topicAlias, case .twoBytes(let alias) = value { return alias }
        }
        return nil
    }

    /// The response topic and the correlation data of a request (§4.10), read without decoding other properties; `nil`
    /// if the message requests no response.
    package var request: (responseTopic: UnsafeRawBufferPointer, correlation: UnsafeRawBufferPointer?)? {
        var reader = PropertyReader(self.rawProperties, scope: nil)
        var topic: UnsafeRawBufferPointer?
        var correlation: UnsafeRawBufferPointer?
        while let (id, value) = try? reader.next() {
            if id == .responseTopic, case .text(let text) = value { topic = text }
            if id == .correlationData, case .binary(let data) = value { correlation = data }
        }
        return topic.map { ($0, correlation) }
    }

    /// The correlation data (§3.3.2.3.6), read the same way.
    package var correlation: UnsafeRawBufferPointer? {
        var reader = PropertyReader(self.rawProperties, scope: nil)
        while let (id, value) = try? reader.next() {
            if id == .correlationData, case .binary(let data) = value { return data }
        }
        return nil
    }

    /// The value of the last user property of that name (§3.3.2.3.7), read the same way.
    package func lastUserProperty(_ name: String) -> UnsafeRawBufferPointer? {
        var reader = PropertyReader(self.rawProperties, scope: nil)
        var last: UnsafeRawBufferPointer?
        while let (_, value) = try? reader.next() {
            if case .pair(let key, let text) = value, key.elementsEqual(name.utf8) { last = text }
        }
        return last
    }

    /// The same message with the topic of its alias.
    package func withTopic(_ topic: UnsafeRawBufferPointer) -> PublishView {
        PublishView(
            topic: topic,
            payload: self.payload,
            rawProperties: self.rawProperties,
            firstByte: self.firstByte,
            packetID: self.packetID
        )
    }

    /// Reads the properties; they are checked, so a view from a decoder does not throw.
    package func properties() throws(DecodeError) -> Properties {
        if self.rawProperties.isEmpty { return Properties() }
        return try Properties(validated: self.rawProperties)
    }
}
