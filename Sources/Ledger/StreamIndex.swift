/// Finds the slot of a (subscription, publisher, audience) triple on the hot path.
///
/// Each subscription stores its latest stream. With one stream per subscription (pair, fan-out) a lookup is one
/// comparison, and the stream never enters the table. Many streams (fan-in) use an open-addressing table with a
/// multiplicative hash. It takes 16 bytes per subscription, 16 per stream, and some 16 to 32 per stream in the table.
struct StreamIndex: ~Copyable {
    // Neither type is private. Without optimization, Swift 6.3's `RawList` of a private type in another file of this
    // module would refer to a missing symbol.
    struct Latest {
        /// Publisher and audience.
        var stream: UInt64 = 0
        var slot: UInt32 = .max
        /// The slot that was entered last; the older ones follow by ``older``.
        var head: UInt32 = .max
    }

    struct Entry {
        var key: UInt64 = 0
        /// A free slot is `.max`.
        var slot: UInt32 = .max
    }

    struct Stream {
        var subscription: UInt32
        var publisher: UInt32
        var audience: UInt32
        /// The slot of the same subscription that was entered before; `.max` for the first one.
        var older: UInt32
    }

    private var latest = RawList<Latest>()
    /// Empty, or a power of two.
    private var table = RawList<Entry>()
    private var tabled = 0
    private var shift: UInt64 = 64
    /// Subscription (on this loop), publisher and audience of each slot.
    private(set) var streams = RawList<Stream>()

    mutating func addSubscription() -> Int {
        precondition(self.latest.count < StreamKey.receiverLimit, "a loop has too many subscriptions")
        self.latest.append(Latest())
        return self.latest.count - 1
    }

    /// Reserves space, so that the table does not grow during the run.
    mutating func reserve(subscriptions: Int, streams: Int) {
        self.latest.reserve(subscriptions)
        self.streams.reserve(streams)
        if streams > subscriptions { self.resize(forAtLeast: streams) }
    }

    /// The slot of the stream; a new one gets the next free slot, which is `streams.count` before the call.
    ///
    /// The publisher is below ``StreamKey/publisherLimit`` and the audience below ``StreamKey/audienceLimit``.
    @inline(always)
    mutating func slot(subscription: Int, publisher: UInt32, audience: UInt32 = 0) -> Int {
        precondition(subscription >= 0 && subscription < self.latest.count, "there is no such subscription")
        let stream = UInt64(publisher) << StreamKey.audienceBits | UInt64(audience)
        let latest = self.latest.base + subscription
        if latest.pointee.stream == stream, latest.pointee.slot != .max { return Int(latest.pointee.slot) }
        if latest.pointee.slot != .max, self.table.count > 0 {
            let slot = self.find(Self.key(subscription, stream))
            if slot != .max {
                latest.pointee.stream = stream
                latest.pointee.slot = slot
                return Int(slot)
            }
        }
        return self.enter(subscription, stream)
    }

    /// The streams of a subscription, the last one first.
    func forEachSlot(of subscription: Int, _ body: (_ slot: Int) -> Void) {
        var slot = self.latest.base[subscription].head
        while slot != .max {
            body(Int(slot))
            slot = self.streams.base[Int(slot)].older
        }
    }

    /// Assigns a slot to a new stream.
    @inline(never)
    private mutating func enter(_ subscription: Int, _ stream: UInt64) -> Int {
        let latest = self.latest.base[subscription]
        let slot = UInt32(self.streams.count)
        self.streams.append(
            Stream(
                subscription: UInt32(subscription),
                publisher: UInt32(truncatingIfNeeded: stream >> StreamKey.audienceBits),
                audience: UInt32(truncatingIfNeeded: stream) & (StreamKey.audienceLimit - 1),
                older: latest.head
            )
        )
        if latest.head != .max {
            // The first stream enters the table with the second one.
            if self.streams.base[Int(latest.head)].older == .max {
                self.insert(Self.key(subscription, latest.stream), latest.slot)
            }
            self.insert(Self.key(subscription, stream), slot)
        }
        self.latest.base[subscription] = Latest(stream: stream, slot: slot, head: slot)
        return Int(slot)
    }

    // MARK: - The table

    private static func key(_ subscription: Int, _ stream: UInt64) -> UInt64 {
        UInt64(subscription) << StreamKey.streamBits | stream
    }

    /// Fibonacci hashing: neighbouring publishers are spread far apart, and the upper bits are the best ones.
    @inline(always)
    private mutating func position(of key: UInt64) -> Int {
        Int(truncatingIfNeeded: (key &* 0x9E37_79B9_7F4A_7C15) &>> self.shift)
    }

    /// Requires a non-empty table.
    @inline(always)
    private mutating func find(_ key: UInt64) -> UInt32 {
        let mask = self.table.count &- 1
        var position = self.position(of: key)
        while true {
            let entry = self.table.base + position
            if entry.pointee.key == key || entry.pointee.slot == .max { return entry.pointee.slot }
            position = (position &+ 1) & mask
        }
    }

    private mutating func insert(_ key: UInt64, _ slot: UInt32) {
        self.resize(forAtLeast: self.tabled + 1)
        var position = self.position(of: key)
        while self.table.base[position].slot != .max { position = (position + 1) & (self.table.count - 1) }
        self.table.base[position] = Entry(key: key, slot: slot)
        self.tabled += 1
    }

    /// Keeps the table at most three quarters full.
    private mutating func resize(forAtLeast count: Int) {
        guard count * 4 > self.table.count * 3 else { return }
        var size = max(16, self.table.count)
        while count * 4 > size * 3 { size *= 2 }
        var old = RawList(repeating: Entry(), count: size)
        swap(&self.table, &old)
        self.shift = UInt64(64 - size.trailingZeroBitCount)
        self.tabled = 0
        for index in 0..<old.count where old.base[index].slot != .max {
            self.insert(old.base[index].key, old.base[index].slot)
        }
    }
}
