/// What the share group members of one event loop received since the last swap: one flat array.
package struct ShareBatch: Sendable {
    /// One arrival in 16 bytes.
    ///
    /// Entries sort by stream, then sequence, then "was below", then QoS.
    struct Entry: Hashable, Sendable, Comparable {
        /// Group and publisher.
        let stream: UInt64
        /// Sequence, then one bit "below the highest this member had seen", then two bits QoS.
        let packed: UInt64

        init(group: UInt32, publisher: UInt32, sequence: UInt64, wasBelow: Bool, qos: UInt8) {
            self.stream = UInt64(group) << 32 | UInt64(publisher)
            self.packed = sequence << 3 | (wasBelow ? 4 : 0) | UInt64(qos)
        }

        var group: UInt32 { UInt32(truncatingIfNeeded: self.stream >> 32) }
        var publisher: UInt32 { UInt32(truncatingIfNeeded: self.stream) }
        var sequence: UInt64 { self.packed >> 3 }
        var wasBelow: Bool { self.packed & 4 != 0 }
        var qos: UInt8 { UInt8(truncatingIfNeeded: self.packed & 3) }

        static func < (left: Entry, right: Entry) -> Bool {
            left.stream != right.stream ? left.stream < right.stream : left.packed < right.packed
        }
    }

    var entries: [Entry] = []
    /// Arrivals whose header names a publisher, a QoS or a sequence that cannot be.
    package internal(set) var foreign: UInt64 = 0

    package init() {}

    package var count: Int { self.entries.count }

    /// Notes one arrival; `wasBelow` is whether the same member had already seen a higher sequence of this publisher.
    package mutating func append(group: UInt32, publisher: UInt32, sequence: UInt64, wasBelow: Bool, qos: UInt8) {
        self.entries.append(
            Entry(group: group, publisher: publisher, sequence: sequence, wasBelow: wasBelow, qos: qos)
        )
    }

    /// Forgets the entries and keeps the memory.
    package mutating func clear() {
        self.entries.removeAll(keepingCapacity: true)
        self.foreign = 0
    }
}

extension ShareBatch.Entry {
    /// Brings the entries of each stream together, and leaves them in their order.
    ///
    /// Counts and places them by eleven bits of the stream at a time, and only by those in which the streams differ:
    /// one pass up to 2,048 publishers of one group.
    static func groupByStream(_ entries: inout [ShareBatch.Entry]) {
        guard let first = entries.first else { return }
        var differing = entries.reduce(0) { $0 | ($1.stream ^ first.stream) }
        var places = [Int](repeating: 0, count: 2048)
        while differing != 0 {
            let shift = UInt64(differing.trailingZeroBitCount)
            differing &= ~(2047 << shift)
            for index in places.indices { places[index] = 0 }
            for entry in entries { places[Int(entry.stream &>> shift & 2047)] += 1 }
            var place = 0
            for index in places.indices { (places[index], place) = (place, place + places[index]) }
            entries = [ShareBatch.Entry](unsafeUninitializedCapacity: entries.count) { target, count in
                for entry in entries {
                    let key = Int(entry.stream &>> shift & 2047)
                    target.initializeElement(at: places[key], to: entry)
                    places[key] += 1
                }
                count = entries.count
            }
        }
    }
}

/// The loop's side of share groups: the highest sequence that each member saw of each publisher, and the batch.
///
/// Belongs to its shard. 8 bytes a member and publisher, and what ``StreamIndex`` takes.
package struct ShareMembers: ~Copyable {
    private var index = StreamIndex()
    private var groups: [UInt32] = []
    /// By slot: one past the highest sequence seen.
    private var next = RawList<UInt64>()
    private var batch = ShareBatch()
    private let publishers: UInt32

    /// - Parameter publishers: ids are below this; `nil` if the publishers are not in this run.
    package init(publishers: UInt32? = nil) {
        self.publishers = publishers ?? .max
    }

    package mutating func reserve(members: Int, streams: Int) {
        self.index.reserve(subscriptions: members, streams: streams)
        self.groups.reserveCapacity(members)
        self.next.reserve(streams)
    }

    /// Adds a member and returns its index on this loop: 0, 1, 2...
    ///
    /// `group` is the share group's number among the subscriptions of the run.
    package mutating func addMember(group: UInt32) -> Int {
        self.groups.append(group)
        return self.index.addSubscription()
    }

    package mutating func arrived(member: Int, publisher: UInt32, qos: UInt8, sequence: UInt64) {
        guard publisher < self.publishers, qos <= 2, sequence < StreamLedger.sequenceLimit else {
            self.batch.foreign += 1
            return
        }
        let slot = self.index.slot(subscription: member, publisher: publisher)
        if slot == self.next.count { self.next.append(0) }
        let wasBelow = sequence + 1 < self.next.base[slot]
        if !wasBelow { self.next.base[slot] = sequence + 1 }
        self.batch.append(
            group: self.groups[member],
            publisher: publisher,
            sequence: sequence,
            wasBelow: wasBelow,
            qos: qos
        )
    }

    /// Hands out what came since the last swap, and goes on in `recycled`, whose memory it keeps.
    package mutating func swap(_ recycled: consuming ShareBatch = ShareBatch()) -> ShareBatch {
        recycled.clear()
        let full = self.batch
        self.batch = recycled
        return full
    }
}
