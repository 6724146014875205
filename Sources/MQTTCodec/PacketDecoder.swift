/// Turns the bytes of one connection into packets, however they are cut.
///
/// Public, as are the sink and the types they name, because the compiler brings `@inlinable` bodies into another module
/// only for public declarations: a `package` decoder would run unspecialised there.
///
/// A cursor over the caller's bytes: no allocation, no copy and no dispatch per packet; only a packet that the end of
/// the bytes cuts is copied, into a carry. Rules are checked in the order of the bytes, so a broken packet is refused
/// with the same error in any fragmentation, and as soon as the bytes that break the rule are there (first byte and
/// size before anything else is kept, the body once it is whole). After an error, or a sink's `false`, it takes no
/// more bytes.
///
/// Memory per client: about 80 bytes, and the carry's 256 once a packet was cut.
public struct PacketDecoder: ~Copyable {
    package enum Role: Hashable, Sendable {
        /// Takes what a server sends.
        case client(ProtocolVersion)
        /// Takes what a client sends, a CONNECT first, which also tells the version.
        case server
    }

    /// 3.1.1 until the CONNECT has told a server.
    @usableFromInline
    package internal(set) var version: ProtocolVersion
    /// Whole packets, fixed header included; larger ones are refused when their length is known.
    @usableFromInline
    package var maximumPacketSize: Int
    /// Decoded so far.
    @usableFromInline
    package internal(set) var packets: UInt64 = 0
    /// Whether strings with control characters or non-characters are refused (§1.5.4 leaves it to the receiver).
    @usableFromInline
    package var refusesControlCharacters = false

    @usableFromInline
    let isServer: Bool
    @usableFromInline
    var awaitsConnect: Bool
    @usableFromInline
    var isStopped = false
    @usableFromInline
    var carry = Carry()

    package init(role: Role, maximumPacketSize: Int = 268_435_460) {
        self.maximumPacketSize = maximumPacketSize
        switch role {
        case .client(let version):
            self.version = version
            self.isServer = false
        case .server:
            self.version = .v311
            self.isServer = true
        }
        self.awaitsConnect = self.isServer
    }

    /// Whether all bytes so far were whole packets.
    package var isAtPacketBoundary: Bool { self.carry.count == 0 }

    /// Takes `bytes`, and gives every packet that they complete to `sink`.
    ///
    /// - Parameters:
    ///   - bytes: valid during the call, as is what the sink gets.
    ///   - sink: called for each packet, in order.
    /// - Throws: the first broken rule; packets in front of it have been delivered.
    @inlinable
    public mutating func decode<Sink: PacketSink & ~Copyable>(
        _ bytes: UnsafeRawBufferPointer,
        into sink: inout Sink
    ) throws(DecodeError) {
        guard !self.isStopped, let base = bytes.baseAddress else { return }
        // Every way out but the last one is the end.
        self.isStopped = true
        var offset = 0
        if self.carry.count > 0 {
            guard try self.resume(bytes, offset: &offset, into: &sink) else { return }
        }
        var lastTopic = CheckedTopic(base)
        while offset < bytes.count {
            let packet = base + offset
            let available = bytes.count - offset
            try self.checkFirstByte(packet.load(as: UInt8.self))
            let (header, size) = try self.header(packet, available: available)
            if header == 0 || size > available {
                self.carry.needed = size
                self.carry.append(packet, count: available)
                break
            }
            guard try self.deliver(packet, header: header, size: size, lastTopic: &lastTopic, into: &sink) else {
                return
            }
            offset += size
        }
        self.isStopped = false
    }

    /// Tops the carry up, and delivers its packet when it is whole.
    ///
    /// - Returns: `false` when the sink wants no more.
    @inlinable
    mutating func resume<Sink: PacketSink & ~Copyable>(
        _ bytes: UnsafeRawBufferPointer,
        offset: inout Int,
        into sink: inout Sink
    ) throws(DecodeError) -> Bool {
        guard let base = bytes.baseAddress else { return true }
        while self.carry.needed == 0 {
            if offset == bytes.count { return true }
            self.carry.append(base + offset, count: 1)
            offset += 1
            try self.completeHeader()
        }
        let added = min(self.carry.needed - self.carry.count, bytes.count - offset)
        self.carry.append(base + offset, count: added)
        offset += added
        guard self.carry.count == self.carry.needed, let packet = self.carry.bytes.baseAddress else { return true }
        let (header, size) = try self.header(packet, available: self.carry.count)
        var lastTopic = CheckedTopic(packet)
        let more = try self.deliver(packet, header: header, size: size, lastTopic: &lastTopic, into: &sink)
        self.carry.clear()
        return more
    }

    /// Reads the remaining length.
    ///
    /// - Returns: the bytes of the fixed header, 0 if some are missing, and of the whole packet.
    @inlinable
    @inline(always)
    mutating func header(
        _ packet: UnsafeRawPointer,
        available: Int
    ) throws(DecodeError) -> (header: Int, size: Int) {
        var header = 2
        var length = available < 2 ? 0x80 : Int((packet + 1).load(as: UInt8.self))
        if length >= 0x80 {
            let second = available < 3 ? 0 : (packet + 2).load(as: UInt8.self)
            if second == 0 || second >= 0x80 { return try self.longHeader(packet, available: available) }
            header = 3
            length = length & 0x7F | Int(second) << 7
        }
        if header + length > self.maximumPacketSize { throw .packetTooLarge(size: header + length) }
        return (header, header + length)
    }

    /// Delivers one whole packet, whose first byte and size are checked.
    @inlinable
    @inline(always)
    mutating func deliver<Sink: PacketSink & ~Copyable>(
        _ packet: UnsafeRawPointer,
        header: Int,
        size: Int,
        lastTopic: inout CheckedTopic,
        into sink: inout Sink
    ) throws(DecodeError) -> Bool {
        let first = packet.load(as: UInt8.self)
        let body = UnsafeRawBufferPointer(start: packet + header, count: size - header)
        let more: Bool
        switch first >> 4 {
        case 3:
            more = sink.publish(try self.publish(first, packet + header, size - header, lastTopic: &lastTopic))
        case 4...7:
            // A raw value initialiser is a call into another module.
            let type: PacketType =
                switch first >> 4 {
                case 4: .pubAck
                case 5: .pubRec
                case 6: .pubRel
                default: .pubComp
                }
            let (id, reason, properties) = try self.acknowledgement(type, body)
            more = sink.acknowledgement(type, id: id, reason: reason, rawProperties: properties)
        default:
            let isMinimal = header == 2 || (packet + header - 1).load(as: UInt8.self) != 0
            more = sink.control(try self.control(first, body, hasMinimalLength: isMinimal))
        }
        self.packets &+= 1
        return more
    }
}

/// A topic that passed; while the bytes lie still, an equal one needs no second look.
@usableFromInline
struct CheckedTopic {
    @usableFromInline
    var base: UnsafeRawPointer
    /// 0 while there is none.
    @usableFromInline
    var count = 0

    @inlinable
    init(_ base: UnsafeRawPointer) { self.base = base }
}

// These change nothing and are `mutating` all the same: for a borrowed non-copyable `self` the compiler copies the whole
// struct to the stack at each call, and stalls on the fields just stored: twice the time per packet.
extension PacketDecoder {
    @inlinable
    @inline(always)
    mutating func publish(
        _ first: UInt8,
        _ body: UnsafeRawPointer,
        _ count: Int,
        lastTopic: inout CheckedTopic
    ) throws(DecodeError) -> PublishView {
        guard count >= 2 else { throw .truncated }
        let topic = body + 2
        let topicCount = Int(UInt16(bigEndian: body.loadUnaligned(as: UInt16.self)))
        var offset = 2 + topicCount
        var id: UInt16 = 0
        if first & 0b0110 != 0 {
            guard offset + 2 <= count else { throw .truncated }
            id = UInt16(bigEndian: (body + offset).loadUnaligned(as: UInt16.self))
            guard id != 0 else { throw .packetIDZero }
            offset += 2
        }
        guard offset <= count else { throw .truncated }
        var properties = UnsafeRawBufferPointer.none
        var hasAlias = false
        if self.version == .v5 {
            guard offset < count else { throw .truncated }
            if (body + offset).load(as: UInt8.self) == 0 {
                offset += 1
            } else {
                let rest = UnsafeRawBufferPointer(start: body + offset, count: count - offset)
                (properties, offset, hasAlias) = try self.publishProperties(rest, offset: offset)
            }
        }
        let isKnown =
            topicCount == lastTopic.count && topicCount >= 8 && Text.equal(topic, lastTopic.base, count: topicCount)
        if !isKnown {
            if topicCount == 0 || self.refusesControlCharacters || !Text.isPlainTopic(topic, count: topicCount) {
                try self.checkTopic(UnsafeRawBufferPointer(start: topic, count: topicCount), hasAlias: hasAlias)
            }
            lastTopic.base = topic
            lastTopic.count = topicCount
        }
        return PublishView(
            topic: UnsafeRawBufferPointer(start: topic, count: topicCount),
            payload: UnsafeRawBufferPointer(start: body + offset, count: count - offset),
            rawProperties: properties,
            firstByte: first,
            packetID: id
        )
    }

    @inlinable
    @inline(always)
    mutating func acknowledgement(
        _ type: PacketType,
        _ body: UnsafeRawBufferPointer
    ) throws(DecodeError) -> (id: UInt16, reason: UInt8, properties: UnsafeRawBufferPointer) {
        guard body.count >= 2 else { throw .truncated }
        let id = UInt16(bigEndian: body.loadUnaligned(as: UInt16.self))
        guard id != 0 else { throw .packetIDZero }
        if body.count == 2 { return (id, 0, .none) }
        let (reason, properties) = try self.longAcknowledgement(type, body)
        return (id, reason, properties)
    }

    /// Refuses first bytes that this side does not get; the packets of the hot path in one or two comparisons.
    @inlinable
    @inline(always)
    mutating func checkFirstByte(_ first: UInt8) throws(DecodeError) {
        // One bit per legal combination of DUP, QoS and RETAIN.
        let legal: UInt16 = 0b0011_1100_0011_1111
        if first & 0xF0 == 0x30, legal >> UInt16(first & 0x0F) & 1 == 1, !self.awaitsConnect { return }
        if first == 0x40, !self.awaitsConnect { return }
        if let problem = self.firstByteProblem(first) { throw problem }
    }
}
