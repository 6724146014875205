/// The ledgers of one event loop's clients in groups of one size, where every member receives from every other.
///
/// A client's streams are contiguous, one per group member, so no lookup is needed: 32 bytes each and no other memory.
/// Belongs to its shard.
package struct GroupLedger: ~Copyable {
    private var streams: RawList<StreamLedger>
    private let size: Int
    private let limits: StreamLedger.Limits
    private var gapsLeft: Int
    private var overflowed = false
    /// Arrivals whose header names no possible member.
    private var foreign: UInt64 = 0
    private var counts = PerQoS(repeating: DeliveryCounts())
    /// The irregularities by stream; few have an entry.
    private var irregular: [Int: Irregularity] = [:]

    /// - Parameters:
    ///   - clients: clients of the loop.
    ///   - size: members per group.
    ///   - limits: limits of each stream.
    ///   - gaps: runs of missing sequence numbers over all streams together, 16 bytes each.
    package init(clients: Int, size: Int, limits: StreamLedger.Limits = .standard, gaps: Int = 4_194_304) {
        self.streams = RawList(repeating: StreamLedger(), count: clients * size)
        self.size = size
        self.limits = limits
        self.gapsLeft = gaps
    }

    /// Records a message that reached a client from a member of its group.
    package mutating func arrived(client: Int, member: Int, sequence: UInt64) -> StreamLedger.Arrival {
        precondition(member >= 0 && member < self.size, "the group has no such member")
        let place = client * self.size + member
        let stream = self.streams.base + place
        if stream.pointee.arrivedInOrder(sequence) {
            self.counts[0].distinct &+= 1
            return .new
        }
        let before = stream.pointee.gapRuns
        let arrival = stream.pointee.arrived(sequence, limits: self.limits)
        self.gapsLeft -= stream.pointee.gapRuns - before
        switch arrival {
        case .new, .overlap: break
        case .newLate:
            self.irregular[place, default: Irregularity()].reordered += 1
            self.irregular[place, default: Irregularity()].overtaken.insert(sequence)
            self.gapsLeft -= 1
        case .duplicate:
            self.irregular[place, default: Irregularity()].duplicated += 1
            if sequence < StreamLedger.sequenceLimit {
                self.irregular[place, default: Irregularity()].duplicates.insert(sequence)
            }
            self.gapsLeft -= 1
        }
        if self.gapsLeft < 0 { self.overflowed = true }
        self.counts[0].add(arrival)
        return arrival
    }

    /// Counts a message of this run with an impossible header.
    package mutating func countForeign() { self.foreign += 1 }

    /// One past the highest sequence number that reached the client from that member.
    package func next(client: Int, member: Int) -> UInt64 { self.streams.base[client * self.size + member].next }

    /// Whether a message has reached the client.
    ///
    /// It may need a search, so do not call it for every message.
    package func has(client: Int, member: Int, sequence: UInt64) -> Bool {
        let stream = self.streams.base + (client * self.size + member)
        return sequence < stream.pointee.next && !SequenceRanges(stream.pointee.missing).contains(sequence)
    }

    /// All arrivals as values, for the end of a run.
    ///
    /// `number`: the number in the whole run of a client, and of each member of its group.
    package func export(number: (_ client: Int, _ member: Int?) -> UInt32) -> LedgerExport {
        var keys: [StreamKey] = []
        var streams: [StreamLedger] = []
        var irregular: [Int: Irregularity] = [:]
        for index in 0..<self.streams.count where self.streams.base[index].next > 0 {
            let (client, member) = index.quotientAndRemainder(dividingBy: self.size)
            keys.append(StreamKey(subscription: number(client, nil), publisher: number(client, member)))
            irregular[streams.count] = self.irregular[index]
            streams.append(self.streams.base[index])
        }
        return LedgerExport(
            keys: keys,
            streams: streams,
            irregular: irregular,
            counts: self.counts,
            foreign: self.foreign,
            overflowed: self.overflowed
        )
    }
}
