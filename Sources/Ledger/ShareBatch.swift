/// The messages that one event loop's share group members received since the last swap: one flat array.
package struct ShareBatch: Sendable {
    /// One arrival in 32 bytes.
    ///
    /// Entries of a stream sort by sequence number, then arrival: only off the loops is it known which member was
    /// first.
    struct Entry: Hashable, Sendable, Comparable {
        private static let sequenceShift: UInt64 = 14
        private static let laneShift: UInt64 = 3
        private static let laneMask: UInt64 = 0x7FF

        /// Group, publisher and audience.
        let stream: UInt64
        /// Sequence number (50 bits), lane (11), a free bit, QoS (2).
        let packed: UInt64
        /// Monotonic nanoseconds of this process.
        let due: Int64
        let arrived: Int64

        init(_ arrival: Arrival, group: UInt32) {
            self.stream =
                UInt64(group) << StreamKey.streamBits | UInt64(arrival.publisher) << StreamKey.audienceBits
                | UInt64(arrival.audience)
            self.packed =
                arrival.sequence << Self.sequenceShift | UInt64(arrival.lane) << Self.laneShift
                | UInt64(arrival.qos)
            self.due = arrival.due
            self.arrived = arrival.at
        }

        var group: UInt32 { UInt32(truncatingIfNeeded: self.stream >> StreamKey.streamBits) }
        var publisher: UInt32 {
            UInt32(truncatingIfNeeded: self.stream >> StreamKey.audienceBits) & (StreamKey.publisherLimit - 1)
        }
        var audience: UInt32 { UInt32(truncatingIfNeeded: self.stream) & (StreamKey.audienceLimit - 1) }
        var key: StreamKey { StreamKey(subscription: self.group, publisher: self.publisher, audience: self.audience) }
        var sequence: UInt64 { self.packed >> Self.sequenceShift }
        var lane: Int { Int(self.packed >> Self.laneShift & Self.laneMask) }
        var qos: UInt8 { UInt8(truncatingIfNeeded: self.packed & 3) }

        static func < (left: Entry, right: Entry) -> Bool {
            if left.stream != right.stream { return left.stream < right.stream }
            if left.sequence != right.sequence { return left.sequence < right.sequence }
            return left.arrived != right.arrived ? left.arrived < right.arrived : left.packed < right.packed
        }
    }

    /// The header of a message, and its arrival time.
    package struct Arrival: Hashable, Sendable {
        package var publisher: UInt32
        package var audience: UInt32
        package var qos: UInt8
        package var sequence: UInt64
        /// The lane of its duration: a number of the caller's, below 2,048.
        package var lane: Int
        /// Monotonic nanoseconds of this process.
        package var due: Int64
        package var at: Int64

        package init(
            publisher: UInt32,
            audience: UInt32 = 0,
            qos: UInt8,
            sequence: UInt64,
            lane: Int,
            due: Int64,
            at: Int64
        ) {
            self.publisher = publisher
            self.audience = audience
            self.qos = qos
            self.sequence = sequence
            self.lane = lane
            self.due = due
            self.at = at
        }
    }

    var entries: [Entry] = []
    /// Arrivals whose header names an impossible publisher, QoS or sequence number.
    package internal(set) var foreign: UInt64 = 0

    package init() {}

    package var count: Int { self.entries.count }
    package var isEmpty: Bool { self.entries.isEmpty && self.foreign == 0 }

    /// Records one arrival.
    package mutating func append(_ arrival: Arrival, group: UInt32) {
        self.entries.append(Entry(arrival, group: group))
    }

    /// Removes the entries and keeps the memory.
    package mutating func clear() {
        self.entries.removeAll(keepingCapacity: true)
        self.foreign = 0
    }
}

extension ShareBatch.Entry {
    /// Groups the entries by stream, and keeps their order within a stream.
    ///
    /// A radix sort over eleven bits of the stream per pass, only over the bits in which the streams differ. Up to
    /// 2,048 publishers of one group need one pass.
    ///
    /// `scratch` is memory for as many entries, which the caller keeps between calls.
    static func groupByStream(_ entries: inout [ShareBatch.Entry], scratch: inout [ShareBatch.Entry]) {
        guard let first = entries.first else { return }
        var differing = entries.reduce(0) { $0 | ($1.stream ^ first.stream) }
        guard differing != 0 else { return }
        if scratch.count > entries.count { scratch.removeLast(scratch.count - entries.count) }
        scratch.append(contentsOf: repeatElement(first, count: entries.count - scratch.count))
        withUnsafeTemporaryAllocation(of: Int.self, capacity: 2048) { places in
            while differing != 0 {
                let shift = UInt64(differing.trailingZeroBitCount)
                differing &= ~(2047 << shift)
                places.update(repeating: 0)
                entries.withUnsafeBufferPointer { entries in
                    scratch.withUnsafeMutableBufferPointer { scratch in
                        for entry in entries { places[Int(entry.stream &>> shift & 2047)] &+= 1 }
                        var place = 0
                        for index in places.indices { (places[index], place) = (place, place &+ places[index]) }
                        for entry in entries {
                            let key = Int(entry.stream &>> shift & 2047)
                            scratch[places[key]] = entry
                            places[key] &+= 1
                        }
                    }
                }
                swap(&entries, &scratch)
            }
        }
    }
}

/// The loop's part of the share groups: the highest sequence number that each member saw per publisher, and the batch.
///
/// Belongs to its shard. It takes 8 bytes per member and stream, plus the ``StreamIndex``.
package struct ShareMembers: ~Copyable {
    private var index = StreamIndex()
    private var groups: [UInt32] = []
    /// One past the highest sequence number seen, by slot.
    private var next = RawList<UInt64>()
    private var batch = ShareBatch()
    private let publishers: UInt32

    /// - Parameter publishers: ids are below this; `nil` if the publishers are not in this run.
    package init(publishers: UInt32? = nil) { self.publishers = min(publishers ?? .max, StreamKey.publisherLimit) }

    /// Adds a member and returns its index on this loop: 0, 1, 2...
    ///
    /// `group` is the share group's number among the subscriptions of the run.
    package mutating func addMember(group: UInt32) -> Int {
        self.groups.append(group)
        return self.index.addSubscription()
    }

    /// The whole sequence number of a message that came with a ``ShortHeader``.
    package mutating func whole(member: Int, _ header: PayloadHeader) -> UInt64 {
        guard header.publisher < self.publishers, header.audience < StreamKey.audienceLimit else {
            return header.sequence
        }
        let slot = self.slot(member, header.publisher, header.audience)
        return ShortHeader.whole(header.sequence, next: self.next.base[slot])
    }

    @inline(__always)
    private mutating func slot(_ member: Int, _ publisher: UInt32, _ audience: UInt32) -> Int {
        let slot = self.index.slot(subscription: member, publisher: publisher, audience: audience)
        if slot == self.next.count { self.next.append(0) }
        return slot
    }

    package mutating func arrived(member: Int, _ arrival: ShareBatch.Arrival) {
        guard arrival.publisher < self.publishers, arrival.audience < StreamKey.audienceLimit, arrival.qos <= 2,
            arrival.sequence < StreamLedger.sequenceLimit
        else {
            self.batch.foreign += 1
            return
        }
        let slot = self.slot(member, arrival.publisher, arrival.audience)
        if arrival.sequence >= self.next.base[slot] { self.next.base[slot] = arrival.sequence + 1 }
        self.batch.append(arrival, group: self.groups[member])
    }

    /// The member's streams, with one past the highest number that it has seen in each.
    package func heads(of member: Int, _ body: (_ publisher: UInt32, _ audience: UInt32, _ next: UInt64) -> Void) {
        self.index.forEachSlot(of: member) { slot in
            let stream = self.index.streams.base[slot]
            body(stream.publisher, stream.audience, self.next.base[slot])
        }
    }

    /// Returns the arrivals since the last swap, and continues in `recycled`, whose memory it reuses.
    package mutating func swap(_ recycled: consuming ShareBatch = ShareBatch()) -> ShareBatch {
        recycled.clear()
        let full = self.batch
        self.batch = recycled
        return full
    }
}
