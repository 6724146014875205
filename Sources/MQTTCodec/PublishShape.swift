/// The layout of a PUBLISH, learned from one and valid for every other that begins with the same bytes.
///
/// Streams repeat themselves. One comparison of the bytes before the topic, as a word, confirms first byte, size and
/// lengths. It also gives the next packet's position before this packet's length has been loaded.
///
/// Lives for one call of the decoder, whose buffer does not move meanwhile.
@usableFromInline
struct PublishShape {
    /// The bytes in front of the topic, 4 or 5 of them, and which bits of a word they are.
    @usableFromInline
    var head: UInt64 = 0
    @usableFromInline
    var headMask: UInt64 = 0
    /// Bytes that must be there, for the words compared may reach past a small packet; as long as nothing is
    /// learned, more than there can be.
    @usableFromInline
    var reach = Int.max
    /// Bytes of the whole packet.
    @usableFromInline
    var size = 0
    @usableFromInline
    var topicOffset = 0
    /// Bytes of the topic, never 0 once learned.
    @usableFromInline
    var topicCount = 0
    /// Bytes between topic and payload: two for a packet identifier, one for an empty property length.
    @usableFromInline
    var between = 0
    /// The last valid topic of this length, with seven readable bytes after it; `nil` before the first.
    @usableFromInline
    var topic: UnsafeRawPointer

    /// Nothing learned; `place` is any address.
    @inlinable
    init(_ place: UnsafeRawPointer) { self.topic = place }

    /// Whether first byte, remaining length and topic length are those learned.
    @inlinable
    @inline(always)
    func begins(_ packet: UnsafeRawPointer) -> Bool {
        (UInt64(littleEndian: packet.loadUnaligned(as: UInt64.self)) ^ self.head) & self.headMask == 0
    }

    /// Whether the topic is the one that passed last.
    @inlinable
    @inline(always)
    func hasKnownTopic(_ packet: UnsafeRawPointer) -> Bool {
        let topic = packet + self.topicOffset
        if self.topicCount >= 8 { return Text.equal(topic, self.topic, count: self.topicCount) }
        let difference =
            UInt64(littleEndian: topic.loadUnaligned(as: UInt64.self) ^ self.topic.loadUnaligned(as: UInt64.self))
        return difference << UInt64(truncatingIfNeeded: 64 &- 8 &* self.topicCount) == 0
    }

    /// The packet identifier, 0 at QoS 0; `nil` if it is 0 at another, or if there are properties.
    @inlinable
    @inline(always)
    func packetID(_ packet: UnsafeRawPointer) -> UInt16? {
        if self.between == 0 { return 0 }
        var offset = self.topicOffset &+ self.topicCount
        var id: UInt16 = 0
        if self.between >= 2 {
            id = UInt16(bigEndian: (packet + offset).loadUnaligned(as: UInt16.self))
            if id == 0 { return nil }
            offset &+= 2
        }
        if self.between != 2, (packet + offset).load(as: UInt8.self) != 0 { return nil }
        return id
    }

    @inlinable
    @inline(always)
    func view(_ packet: UnsafeRawPointer, id: UInt16) -> PublishView {
        let payloadOffset = self.topicOffset &+ self.topicCount &+ self.between
        return PublishView(
            topic: UnsafeRawBufferPointer(start: packet + self.topicOffset, count: self.topicCount),
            payload: UnsafeRawBufferPointer(start: packet + payloadOffset, count: self.size &- payloadOffset),
            rawProperties: .none,
            firstByte: UInt8(truncatingIfNeeded: self.head),
            packetID: id
        )
    }
}

extension PacketDecoder {
    /// One bit per legal combination of DUP, QoS and RETAIN.
    @inlinable static var legalPublishFlags: UInt16 { 0b0011_1100_0011_1111 }

    /// Takes the shape of a whole PUBLISH with a remaining length of one or two bytes, and a topic that passes.
    ///
    /// Out of line, so that the loop around it keeps its registers.
    ///
    /// - Returns: the packet's size, 0 if it is anything else.
    @usableFromInline
    @inline(never)
    mutating func learn(_ packet: UnsafeRawPointer, available: Int, shape: inout PublishShape) -> Int {
        // The longest head and one word after it.
        guard available >= 13, !self.awaitsConnect else { return 0 }
        let word = UInt64(littleEndian: packet.loadUnaligned(as: UInt64.self))
        guard word & 0xF0 == 0x30, Self.legalPublishFlags >> UInt16(word & 0x0F) & 1 == 1 else { return 0 }
        var length = Int(word >> 8 & 0xFF)
        var topicOffset = 4
        if length >= 0x80 {
            let second = Int(word >> 16 & 0xFF)
            guard second > 0, second < 0x80 else { return 0 }
            length = length & 0x7F | second << 7
            topicOffset = 5
        }
        let size = topicOffset - 2 + length
        let reach = max(size, topicOffset + 8)
        let topicCount = Int(UInt16(truncatingIfNeeded: word >> UInt64(8 * topicOffset - 16)).byteSwapped)
        let between = (word & 0b0110 != 0 ? 2 : 0) + (self.version == .v5 ? 1 : 0)
        guard reach <= available, size <= self.maximumPacketSize, topicCount > 0,
            topicOffset + topicCount + between <= size
        else { return 0 }
        let hasTopic = shape.topicCount == topicCount
        shape.headMask = UInt64.max >> UInt64(64 - 8 * topicOffset)
        shape.head = word & shape.headMask
        shape.reach = reach
        shape.size = size
        shape.topicOffset = topicOffset
        shape.topicCount = topicCount
        shape.between = between
        if hasTopic && shape.hasKnownTopic(packet) || self.learnTopic(packet, of: &shape) { return size }
        shape = PublishShape(packet)
        return 0
    }

    /// Checks the topic, and remembers it if it passes.
    @usableFromInline
    @inline(never)
    mutating func learnTopic(_ packet: UnsafeRawPointer, of shape: inout PublishShape) -> Bool {
        let topic = packet + shape.topicOffset
        let isPlain = Text.isPlainTopic(topic, count: shape.topicCount) && !self.refusesControlCharacters
        guard isPlain || self.passes(UnsafeRawBufferPointer(start: topic, count: shape.topicCount)) else {
            return false
        }
        shape.topic = topic
        return true
    }
}
