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
        /// Decodes a client's packets; the first is a CONNECT, which also gives the version.
        case server
    }

    /// The version of the connection; a server has 3.1.1 until protocol name and level of a CONNECT have come.
    @usableFromInline
    package internal(set) var version: ProtocolVersion
    /// The largest packet, fixed header included; larger ones are refused when their length is known.
    @usableFromInline
    package var maximumPacketSize: Int
    /// The same once CONNECT or CONNACK has come; 0 if these have no limit of their own.
    var laterMaximum = 0
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

    /// The largest packet that connections take unless more is requested.
    package static let usualMaximum = 1 << 20
    /// The largest packet of a peer whose CONNECT or CONNACK has not come yet.
    ///
    /// A field has 65,535 bytes at most: five are CONNECT's payload (§3.1.3), six are properties of CONNACK (§3.2.2.3).
    package static let firstMaximum = 1 << 19

    package init(role: Role, maximumPacketSize: Int = PacketProblem.largestPacket) {
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

    /// The decoder of a connection: CONNECT or CONNACK has to come before larger packets are taken.
    package init(connection role: Role, maximumPacketSize: Int) {
        self.init(role: role, maximumPacketSize: min(maximumPacketSize, Self.firstMaximum))
        self.laterMaximum = maximumPacketSize
    }

    /// The connection's own limit holds from here on.
    package mutating func takesLarger() { self.maximumPacketSize = max(self.maximumPacketSize, self.laterMaximum) }

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
        // Most fragments end inside the packet that the one before them cut.
        if self.carry.needed - self.carry.count > bytes.count {
            self.carry.append(base, count: bytes.count)
            return
        }
        // Every way out but the last one is the end.
        self.isStopped = true
        var offset = 0
        if self.carry.count > 0 {
            guard try self.resume(base, bytes.count, offset: &offset, into: &sink) else { return }
        }
        if offset < bytes.count {
            guard try self.walk(base + offset, to: base + bytes.count, into: &sink) else { return }
        }
        self.isStopped = false
    }

    /// Tops the carry up, and delivers its packet when it is whole.
    ///
    /// - Returns: `false` when the sink stops.
    @inlinable
    @inline(never)
    mutating func resume<Sink: PacketSink & ~Copyable>(
        _ base: UnsafeRawPointer,
        _ count: Int,
        offset: inout Int,
        into sink: inout Sink
    ) throws(DecodeError) -> Bool {
        if self.carry.needed == 0 {
            offset = try self.carryHeader(base, count)
            if self.carry.needed == 0 { return true }
        }
        let missing = self.carry.needed - self.carry.count
        if count - offset < missing {
            self.carry.append(base + offset, count: count - offset)
            offset = count
            return true
        }
        self.carry.append(base + offset, count: missing)
        offset += missing
        guard let packet = self.carry.bytes.baseAddress else { return true }
        let taken = try self.step(packet, available: self.carry.count, into: &sink)
        self.carry.clear()
        return taken > 0
    }

    /// Takes packets from their first byte on.
    ///
    /// Packets like the previous one, and acknowledgements of four bytes, are delivered here.
    /// ``step(_:available:into:)`` handles everything else and checks every rule: it also refuses the packets that look
    /// wrong here.
    ///
    /// - Returns: `false` when the sink stops.
    @inlinable
    @inline(never)
    mutating func walk<Sink: PacketSink & ~Copyable>(
        _ start: UnsafeRawPointer,
        to end: UnsafeRawPointer,
        into sink: inout Sink
    ) throws(DecodeError) -> Bool {
        var packet = start
        var shape = PublishShape(start)
        var delivered: UInt64 = 0
        defer { self.packets &+= delivered }
        while packet < end {
            let available = end - packet
            let isLikeLast = available >= shape.reach && shape.begins(packet)
            if !isLikeLast, available >= 4, let (type, id) = self.shortAcknowledgement(packet) {
                delivered &+= 1
                guard sink.acknowledgement(type, id: id, reason: 0, rawProperties: .none) else { return false }
                packet += 4
                continue
            }
            let size: Int
            if !isLikeLast {
                size = self.learn(packet, available: available, shape: &shape)
            } else {
                size = shape.hasKnownTopic(packet) || self.learnTopic(packet, of: &shape) ? shape.size : 0
            }
            if size > 0, let id = shape.packetID(packet) {
                delivered &+= 1
                guard sink.publish(shape.view(packet, id: id)) else { return false }
                packet += size
                continue
            }
            let taken = try self.step(packet, available: available, into: &sink)
            if taken <= 0 { return taken == 0 }
            packet += taken
        }
        return true
    }

    /// Decodes one packet of any kind, or copies its available part into the carry.
    ///
    /// - Returns: the packet's size, 0 if it is incomplete, -1 when the sink stops.
    @inlinable
    @inline(never)
    mutating func step<Sink: PacketSink & ~Copyable>(
        _ packet: UnsafeRawPointer,
        available: Int,
        into sink: inout Sink
    ) throws(DecodeError) -> Int {
        try self.checkFirstByte(packet.load(as: UInt8.self))
        let (header, size) = try self.header(packet, available: available)
        if header == 0 || size > available {
            self.carry.needed = size
            self.carry.append(packet, count: available)
            return 0
        }
        return try self.deliver(packet, header: header, size: size, into: &sink) ? size : -1
    }

    /// Reads the remaining length.
    ///
    /// - Returns: the bytes of the fixed header, 0 if some are missing, and of the whole packet.
    @inlinable
    @inline(always)
    mutating func header(_ packet: UnsafeRawPointer, available: Int) throws(DecodeError) -> (header: Int, size: Int) {
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

    /// Delivers one complete packet, whose first byte and size have been checked.
    @inlinable
    @inline(always)
    mutating func deliver<Sink: PacketSink & ~Copyable>(
        _ packet: UnsafeRawPointer,
        header: Int,
        size: Int,
        into sink: inout Sink
    ) throws(DecodeError) -> Bool {
        let first = packet.load(as: UInt8.self)
        let body = UnsafeRawBufferPointer(start: packet + header, count: size - header)
        let more: Bool
        switch first >> 4 {
        case 3:
            more = sink.publish(try self.publish(first, packet + header, size - header))
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

// These change nothing and are `mutating` all the same: for a borrowed non-copyable `self` the compiler copies the whole
// struct to the stack at each call, and stalls on the fields just stored: twice the time per packet.
extension PacketDecoder {
    @inlinable
    @inline(always)
    mutating func publish(_ first: UInt8, _ body: UnsafeRawPointer, _ count: Int) throws(DecodeError) -> PublishView {
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
        if self.refusesControlCharacters || topicCount == 0 || !Text.isPlainTopic(topic, count: topicCount) {
            try self.checkTopic(UnsafeRawBufferPointer(start: topic, count: topicCount), hasAlias: hasAlias)
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

    /// Type and packet identifier of an acknowledgement of four bytes; `nil` for everything else, and for what breaks
    /// a rule.
    @inlinable
    @inline(always)
    mutating func shortAcknowledgement(_ packet: UnsafeRawPointer) -> (type: PacketType, id: UInt16)? {
        let word = UInt32(littleEndian: packet.loadUnaligned(as: UInt32.self))
        let type: PacketType
        switch word & 0xFFFF {
        case 0x0240: type = .pubAck
        case 0x0250: type = .pubRec
        case 0x0262: type = .pubRel
        case 0x0270: type = .pubComp
        default: return nil
        }
        let id = UInt16(truncatingIfNeeded: word >> 16).byteSwapped
        guard id != 0, !self.awaitsConnect, self.maximumPacketSize >= 4 else { return nil }
        return (type, id)
    }

    /// Refuses first bytes that this side does not get; the packets of the hot path in one or two comparisons.
    @inlinable
    @inline(always)
    mutating func checkFirstByte(_ first: UInt8) throws(DecodeError) {
        if first & 0xF0 == 0x30, Self.legalPublishFlags >> UInt16(first & 0x0F) & 1 == 1, !self.awaitsConnect { return }
        if first == 0x40, !self.awaitsConnect { return }
        if let problem = self.firstByteProblem(first) { throw problem }
    }
}
