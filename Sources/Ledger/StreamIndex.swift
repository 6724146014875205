/// Finds the slot of a (subscription, publisher) pair on the hot path.
///
/// Each subscription stores its latest publisher. With one publisher per subscription (pair, fan-out) a lookup is one
/// comparison, and the pair never enters the table. Many publishers (fan-in) use an open-addressing table with a
/// multiplicative hash. It takes 12 bytes per subscription, 8 per stream, and some 16 to 32 per stream in the table.
struct StreamIndex: ~Copyable {
    // Neither type is private. Without optimization, Swift 6.3's `RawList` of a private type in another file of this
    // module would refer to a missing symbol.
    struct Latest {
        var publisher: UInt32 = 0
        var slot: UInt32 = .max
        /// Whether the pair is also in the table.
        var isTabled = false
    }

    struct Entry {
        var key: UInt64 = 0
        /// A free slot is `.max`.
        var slot: UInt32 = .max
    }

    private var latest = RawList<Latest>()
    /// Empty, or a power of two.
    private var table = RawList<Entry>()
    private var tabled = 0
    private var shift: UInt64 = 64
    /// Subscription (on this loop) and publisher of each slot.
    private(set) var pairs: [(subscription: UInt32, publisher: UInt32)] = []

    mutating func addSubscription() -> Int {
        self.latest.append(Latest())
        return self.latest.count - 1
    }

    /// Reserves space, so that the table does not grow during the run.
    mutating func reserve(subscriptions: Int, streams: Int) {
        self.latest.reserve(subscriptions)
        self.pairs.reserveCapacity(streams)
        if streams > subscriptions { self.resize(forAtLeast: streams) }
    }

    /// The slot of the pair; a new pair gets the next free one, which is `pairs.count` before the call.
    @inline(always)
    mutating func slot(subscription: Int, publisher: UInt32) -> Int {
        precondition(subscription >= 0 && subscription < self.latest.count, "there is no such subscription")
        let latest = self.latest.base + subscription
        if latest.pointee.publisher == publisher, latest.pointee.slot != .max { return Int(latest.pointee.slot) }
        if latest.pointee.isTabled {
            let slot = self.find(Self.key(subscription, publisher))
            if slot != .max {
                latest.pointee.publisher = publisher
                latest.pointee.slot = slot
                return Int(slot)
            }
        }
        return self.enter(subscription, publisher)
    }

    /// Assigns a slot to a new pair.
    @inline(never)
    private mutating func enter(_ subscription: Int, _ publisher: UInt32) -> Int {
        let latest = self.latest.base[subscription]
        let slot = self.newSlot(subscription, publisher)
        if latest.slot == .max {
            self.latest.base[subscription] = Latest(publisher: publisher, slot: slot, isTabled: false)
            return Int(slot)
        }
        if !latest.isTabled { self.insert(Self.key(subscription, latest.publisher), latest.slot) }
        self.insert(Self.key(subscription, publisher), slot)
        self.latest.base[subscription] = Latest(publisher: publisher, slot: slot, isTabled: true)
        return Int(slot)
    }

    private mutating func newSlot(_ subscription: Int, _ publisher: UInt32) -> UInt32 {
        self.pairs.append((UInt32(subscription), publisher))
        return UInt32(self.pairs.count - 1)
    }
}

// MARK: - The table

extension StreamIndex {
    private static func key(_ subscription: Int, _ publisher: UInt32) -> UInt64 {
        UInt64(subscription) << 32 | UInt64(publisher)
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
