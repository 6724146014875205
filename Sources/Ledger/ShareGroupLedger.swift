/// The ledgers of a run's share groups, whose members are on several event loops.
///
/// It works off the loops, on the batches that they swap once a second.
///
/// Duplicated means each arrival after the first one at any member. Nothing is reordered, since the server keeps no
/// order for shared subscriptions (MQTT 5.0 §4.6). A set of batches is sorted by arrival, so the result depends only on
/// the set's contents. Of two sets the earlier one has the first arrival, up to the time between the swaps of two
/// loops.
package struct ShareGroupLedger: Sendable {
    private var slots: [UInt64: Int] = [:]
    private var keys: [StreamKey] = []
    private var streams: [StreamLedger] = []
    private var irregular: [Int: Irregularity] = [:]
    private var late: Set<UInt32> = []
    private var absent: Set<UInt32> = []
    private var foreign: UInt64 = 0
    private var gapsLeft: Int
    private let limits: StreamLedger.Limits
    // Memory that one merge reuses from the last.
    private var entries: [ShareBatch.Entry] = []
    private var scratch: [ShareBatch.Entry] = []
    /// The arrivals so far, by the publisher's QoS.
    package private(set) var counts = PerQoS(repeating: DeliveryCounts())

    /// - Parameters:
    ///   - limits: limits of each stream.
    ///   - gaps: runs of missing sequence numbers over all streams together, 16 bytes each.
    package init(limits: StreamLedger.Limits = .standard, gaps: Int = 4_194_304) {
        self.limits = limits
        self.gapsLeft = gaps
    }

    /// Adds the batches of all loops from one swap.
    ///
    /// `first` gets each first arrival, without duplicates.
    package mutating func merge(_ batches: [ShareBatch], first: (FirstArrival) -> Void = { _ in }) {
        var entries: [ShareBatch.Entry] = []
        swap(&entries, &self.entries)
        defer {
            entries.removeAll(keepingCapacity: true)
            swap(&entries, &self.entries)
        }
        entries.reserveCapacity(batches.reduce(0) { $0 + $1.count })
        for batch in batches {
            entries.append(contentsOf: batch.entries)
            self.foreign += batch.foreign
        }
        ShareBatch.Entry.groupByStream(&entries, scratch: &self.scratch)
        entries.withUnsafeMutableBufferPointer { entries in
            var start = 0
            while start < entries.count {
                let stream = entries[start].stream
                var end = start + 1
                var isSorted = true
                while end < entries.count, entries[end].stream == stream {
                    isSorted = isSorted && entries[end - 1].sequence < entries[end].sequence
                    end += 1
                }
                // Members of one loop deliver in turn, so most streams arrive in order.
                if !isSorted { entries[start..<end].sort() }
                self.take(UnsafeBufferPointer(rebasing: entries[start..<end]), first: first)
                start = end
            }
        }
    }

    private mutating func slot(of entry: ShareBatch.Entry) -> Int {
        if let slot = self.slots[entry.stream] { return slot }
        let slot = self.streams.count
        self.slots[entry.stream] = slot
        self.keys.append(entry.key)
        self.streams.append(StreamLedger(qos: entry.qos))
        return slot
    }

    /// Adds the arrivals of one stream.
    private mutating func take(_ entries: UnsafeBufferPointer<ShareBatch.Entry>, first: (FirstArrival) -> Void) {
        let slot = self.slot(of: entries[0])
        let limits = self.limits
        var counts = self.counts
        let gaps = self.streams[slot].gapRuns
        var irregular = Irregularity()
        self.streams.withUnsafeMutableBufferPointer { streams in
            guard let stream = streams.baseAddress.map({ $0 + slot }) else { return }
            for entry in entries {
                if !stream.pointee.arrivedInOrder(entry.sequence),
                    stream.pointee.arrived(entry.sequence, limits: limits) == .duplicate
                {
                    counts[entry.qos].duplicated += 1
                    // A member that leaves may have its message sent to another one (MQTT 5.0 §4.8.2).
                    if entry.qos == 1 { irregular.permitted += 1 } else { irregular.duplicated += 1 }
                    irregular.duplicates.insert(entry.sequence)
                    continue
                }
                counts[entry.qos].distinct += 1
                first(FirstArrival(entry))
            }
        }
        self.counts = counts
        self.gapsLeft -= self.streams[slot].gapRuns - gaps + irregular.duplicates.runs.count
        if irregular != Irregularity() { self.irregular[slot, default: Irregularity()] += irregular }
    }

    /// The group's first subscription came into effect after the load had begun.
    package mutating func beganLate(_ group: UInt32) { self.late.insert(group) }

    /// A member's connection ended, in a run whose publishers may be in other segments.
    ///
    /// Missing messages may have been with that member.
    package mutating func memberLeft(_ group: UInt32) { self.absent.insert(group) }

    package func export() -> LedgerExport {
        LedgerExport(
            keys: self.keys,
            streams: self.streams,
            irregular: self.irregular,
            late: self.late,
            absent: self.absent,
            counts: self.counts,
            foreign: self.foreign,
            overflowed: self.gapsLeft < 0
        )
    }
}

/// The first arrival of a message at any member of a share group.
package struct FirstArrival: Hashable, Sendable {
    package var publisher: UInt32
    package var audience: UInt32
    package var sequence: UInt64
    /// The share group's number among the receivers of the run.
    package var group: UInt32
    package var qos: UInt8
    package var lane: Int
    /// Monotonic nanoseconds of this process.
    package var due: Int64
    /// Nanoseconds from due.
    package var duration: Int64

    init(_ entry: ShareBatch.Entry) {
        self.publisher = entry.publisher
        self.audience = entry.audience
        self.sequence = entry.sequence
        self.group = entry.group
        self.qos = entry.qos
        self.lane = entry.lane
        self.due = entry.due
        self.duration = entry.arrived &- entry.due
    }
}
