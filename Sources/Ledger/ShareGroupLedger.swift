/// The ledgers of a run's share groups, whose members are on several event loops.
///
/// It works off the loops, on the batches that they swap once a second.
///
/// Duplicated means each arrival after the first one at any member. Reordered means a first arrival below the highest
/// sequence number that the same member had seen from that publisher. A set of batches is sorted by arrival, so the
/// result depends only on the set's contents. Of two sets the earlier one has the first arrival, up to the time between
/// the swaps of two loops.
package struct ShareGroupLedger: Sendable {
    private var slots: [UInt64: Int] = [:]
    private var keys: [StreamKey] = []
    private var streams: [StreamLedger] = []
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
    /// `first` gets each first arrival, without duplicates: its duration in nanoseconds, the publisher's QoS and the
    /// lane.
    package mutating func merge(
        _ batches: [ShareBatch],
        first: (_ duration: Int64, _ qos: UInt8, _ lane: Int) -> Void = { _, _, _ in }
    ) {
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
        self.keys.append(StreamKey(subscription: entry.group, publisher: entry.publisher))
        self.streams.append(StreamLedger(qos: entry.qos))
        return slot
    }

    /// Adds the arrivals of one stream.
    private mutating func take(
        _ entries: UnsafeBufferPointer<ShareBatch.Entry>,
        first: (_ duration: Int64, _ qos: UInt8, _ lane: Int) -> Void
    ) {
        let slot = self.slot(of: entries[0])
        let limits = self.limits
        var counts = self.counts
        let gaps = self.streams[slot].gapRuns
        self.streams.withUnsafeMutableBufferPointer { streams in
            guard let stream = streams.baseAddress.map({ $0 + slot }) else { return }
            for entry in entries {
                if !stream.pointee.arrivedInOrder(entry.sequence),
                    stream.pointee.arrived(entry.sequence, limits: limits) == .duplicate
                {
                    counts[entry.qos].duplicated += 1
                    continue
                }
                // A first arrival in the group; its member recorded whether it was late.
                counts[entry.qos].distinct += 1
                if entry.wasBelow { counts[entry.qos].reordered += 1 }
                first(entry.arrived &- entry.due, entry.qos, entry.lane)
            }
        }
        self.counts = counts
        self.gapsLeft -= self.streams[slot].gapRuns - gaps
    }

    package func export() -> LedgerExport {
        LedgerExport(
            keys: self.keys,
            streams: self.streams,
            counts: self.counts,
            foreign: self.foreign,
            overflowed: self.gapsLeft < 0
        )
    }
}
