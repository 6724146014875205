/// Finds the filters that match a topic, among those of many clients.
///
/// Filters of one shape, with their wildcards at the same levels, share a hash of their other levels. A topic is looked
/// up once per shape. An entry takes 16 bytes, in a table that is at most three quarters full; the text of a client's
/// filter is made again to verify a match.
struct FilterIndex: Sendable {
    /// A filter of one client, or of all clients of a group.
    struct Entry: Hashable, Sendable {
        static let everyClient = UInt32.max

        var group: UInt16
        /// The filter's place among those of its client.
        var filter: UInt16
        var client: UInt32

        /// The topics of P2P roots have the last places.
        var isP2P: Bool { self.filter > UInt16.max - 256 }
    }

    /// Where the wildcards of a filter are.
    private struct Shape: Hashable, Sendable {
        /// Levels before `#`, if the filter ends with it.
        var levels: Int
        var endsWithHash: Bool
        /// Bit k: level k is `+`.
        var plus: UInt64
    }

    private struct Slot: Sendable {
        var hash: UInt64
        var entry: Entry?
    }

    private var shapes: [Shape] = []
    private var known: Set<Shape> = []
    private var slots: [Slot] = Array(repeating: Slot(hash: 0, entry: nil), count: 16)
    private var count = 0
    /// Filters with more levels than a shape has bits.
    private var deep: [Entry] = []

    mutating func insert(_ filter: String, _ entry: Entry) {
        var levels = Self.levels(Array(filter.utf8)[...])
        let endsWithHash = levels.last?.elementsEqual("#".utf8) ?? false
        if endsWithHash { levels.removeLast() }
        guard levels.count <= UInt64.bitWidth else {
            self.deep.append(entry)
            return
        }
        var plus: UInt64 = 0
        for (index, level) in levels.enumerated() where level.elementsEqual("+".utf8) { plus |= 1 << UInt64(index) }
        let shape = Shape(levels: levels.count, endsWithHash: endsWithHash, plus: plus)
        if self.known.insert(shape).inserted { self.shapes.append(shape) }
        self.insert(Slot(hash: Self.hash(levels, shape), entry: entry))
    }

    private mutating func insert(_ slot: Slot) {
        if (self.count + 1) * 4 > self.slots.count * 3 {
            var old = Array(repeating: Slot(hash: 0, entry: nil), count: self.slots.count * 2)
            swap(&old, &self.slots)
            self.count = 0
            for slot in old where slot.entry != nil { self.insert(slot) }
        }
        var place = Int(truncatingIfNeeded: slot.hash) & (self.slots.count - 1)
        while self.slots[place].entry != nil { place = (place + 1) & (self.slots.count - 1) }
        self.slots[place] = slot
        self.count += 1
    }

    /// Calls `body` with each filter that may match the topic; the caller verifies it.
    func candidates(of topic: ArraySlice<UInt8>, _ body: (Entry) -> Void) {
        let levels = Self.levels(topic)
        for shape in self.shapes where shape.endsWithHash ? levels.count >= shape.levels : levels.count == shape.levels
        {
            let hash = Self.hash(levels, shape)
            var place = Int(truncatingIfNeeded: hash) & (self.slots.count - 1)
            while let entry = self.slots[place].entry {
                if self.slots[place].hash == hash { body(entry) }
                place = (place + 1) & (self.slots.count - 1)
            }
        }
        for entry in self.deep { body(entry) }
    }

    private static func levels(_ text: ArraySlice<UInt8>) -> [ArraySlice<UInt8>] {
        text.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    }

    /// FNV-1a over the levels without a wildcard, with a last step that spreads the lower bits.
    private static func hash(_ levels: [ArraySlice<UInt8>], _ shape: Shape) -> UInt64 {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325 ^ UInt64(shape.levels) ^ shape.plus << 8
        for (index, level) in levels.prefix(shape.levels).enumerated() where shape.plus & (1 << UInt64(index)) == 0 {
            for byte in level { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
            hash = (hash ^ 0x2F) &* 0x100_0000_01B3
        }
        return (hash ^ hash >> 32) &* 0x9E37_79B9_7F4A_7C15 ^ hash >> 29
    }
}
