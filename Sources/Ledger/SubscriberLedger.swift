/// The ledgers of all ordinary subscriptions of one event loop.
///
/// Belongs to its shard. It takes 32 bytes per ordered stream, plus the ``StreamIndex``.
package struct SubscriberLedger: ~Copyable {
    private var index = StreamIndex()
    private var numbers: [UInt32] = []
    private var streams = RawList<StreamLedger>()
    private let publishers: UInt32
    private let limits: StreamLedger.Limits
    private var gapsLeft: Int
    private var overflowed = false
    private var foreign: UInt64 = 0
    private var irregular: [Int: Irregularity] = [:]
    /// Runs of messages that came late, over all streams together: without their numbers the books are exact too.
    private var overtakenLeft: Int
    /// Runs of late messages of one stream, since a server may reorder all the time.
    ///
    /// The record of a segment must not grow with that.
    private static let overtakenLimit = 256
    /// One ledger for each further copy of a message, by slot.
    private var copies: [Int: [StreamLedger]] = [:]
    /// Messages with a permitted repeat instead of a further copy, by slot as ``copies``.
    private var borrowed: [Int: [SequenceRanges]] = [:]
    /// One past the highest number seen when the receiver went away, until the next gap, by slot.
    private var openings: [Int: UInt64] = [:]
    private var excused: [Int: SequenceRanges] = [:]
    private var late: Set<UInt32> = []
    private var absent: Set<UInt32> = []
    /// The arrivals so far, by the publisher's QoS.
    package private(set) var counts = PerQoS(repeating: DeliveryCounts())

    /// - Parameters:
    ///   - publishers: ids are below this; `nil` if the publishers are not in this run.
    ///   - limits: limits of each stream.
    ///   - gaps: runs of missing sequence numbers over all streams together, 16 bytes each.
    ///   - overtaken: runs of sequence numbers that came late, likewise.
    package init(
        publishers: UInt32? = nil,
        limits: StreamLedger.Limits = .standard,
        gaps: Int = 4_194_304,
        overtaken: Int = 1_048_576
    ) {
        self.publishers = min(publishers ?? .max, StreamKey.publisherLimit)
        self.limits = limits
        self.gapsLeft = gaps
        self.overtakenLeft = overtaken
    }

    /// Reserves space for the planned load, so that nothing large moves during the run.
    package mutating func reserve(subscriptions: Int, streams: Int) {
        self.index.reserve(subscriptions: subscriptions, streams: streams)
        self.numbers.reserveCapacity(subscriptions)
        self.streams.reserve(streams)
    }

    /// Adds a subscription under its number in the whole run and returns its index on this loop: 0, 1, 2...
    package mutating func addSubscription(_ number: UInt32) -> Int {
        self.numbers.append(number)
        return self.index.addSubscription()
    }

    /// The whole sequence number of a message that came with a ``ShortHeader``.
    package mutating func whole(subscription: Int, _ header: PayloadHeader) -> UInt64 {
        guard header.publisher < self.publishers, header.audience < StreamKey.audienceLimit, header.qos <= 2 else {
            return header.sequence
        }
        let slot = self.slot(subscription, header.publisher, header.audience, qos: header.qos)
        return ShortHeader.whole(header.sequence, next: self.streams.base[slot].next)
    }

    @inline(__always)
    private mutating func slot(_ subscription: Int, _ publisher: UInt32, _ audience: UInt32, qos: UInt8) -> Int {
        let slot = self.index.slot(subscription: subscription, publisher: publisher, audience: audience)
        if slot == self.streams.count { self.streams.append(StreamLedger(qos: qos)) }
        return slot
    }

    /// Records one arrival of this run.
    ///
    /// - Parameters:
    ///   - subscription: the receiver's index on this loop.
    ///   - publisher: from the header.
    ///   - audience: from the header.
    ///   - qos: the publisher's.
    ///   - sequence: from the header.
    ///   - isRedelivery: the server sent it before; it may then come late (MQTT 5.0 §4.6).
    ///   - mayRepeat: whether the standard permits a second arrival.
    ///   - copies: the client's filters that match; asked only for a repeated message.
    /// - Returns: what the arrival is; `nil` if its header names an impossible publisher or QoS.
    package mutating func arrived(
        subscription: Int,
        publisher: UInt32,
        audience: UInt32 = 0,
        qos: UInt8,
        sequence: UInt64,
        isRedelivery: Bool = false,
        mayRepeat: Bool = false,
        copies: @autoclosure () -> Int = 1
    ) -> StreamLedger.Arrival? {
        guard publisher < self.publishers, audience < StreamKey.audienceLimit, qos <= 2 else {
            self.foreign += 1
            return nil
        }
        let slot = self.slot(subscription, publisher, audience, qos: qos)
        if (self.streams.base + slot).pointee.arrivedInOrder(sequence) {
            self.counts[qos].distinct &+= 1
            return .new
        }
        var arrival = self.arrivedIrregularly(slot, sequence)
        switch arrival {
        case .new, .overlap: break
        case .newLate:
            if isRedelivery { arrival = .new } else { self.reordered(slot, sequence) }
        case .duplicate: arrival = self.repeated(slot, sequence, mayRepeat: mayRepeat, of: copies())
        }
        self.counts[qos].add(arrival)
        return arrival
    }

    @inline(never)
    private mutating func arrivedIrregularly(_ slot: Int, _ sequence: UInt64) -> StreamLedger.Arrival {
        let stream = self.streams.base + slot
        let (runs, next) = (stream.pointee.gapRuns, stream.pointee.next)
        let arrival = stream.pointee.arrived(sequence, limits: self.limits)
        self.gapsLeft -= stream.pointee.gapRuns - runs
        if self.gapsLeft < 0 { self.overflowed = true }
        if sequence > next, !self.openings.isEmpty, self.openings.removeValue(forKey: slot) == next {
            self.excused[slot, default: SequenceRanges()].insert(next..<sequence)
        }
        return arrival
    }

    private mutating func reordered(_ slot: Int, _ sequence: UInt64) {
        self.irregular[slot, default: Irregularity()].reordered += 1
        let runs = self.irregular[slot]?.overtaken.runs.count ?? 0
        guard self.overtakenLeft > 0, runs < Self.overtakenLimit else { return }
        self.irregular[slot, default: Irregularity()].overtaken.insert(sequence)
        self.overtakenLeft -= (self.irregular[slot]?.overtaken.runs.count ?? 0) - runs
    }

    private mutating func repeated(
        _ slot: Int,
        _ sequence: UInt64,
        mayRepeat: Bool,
        of copies: Int
    ) -> StreamLedger.Arrival {
        // Its stream reports that the header is damaged.
        guard sequence < StreamLedger.sequenceLimit else { return .duplicate }
        for copy in 0..<max(0, copies - 1) {
            var ledgers = self.copies[slot] ?? []
            if copy == ledgers.count { ledgers.append(StreamLedger()) }
            let isNew = ledgers[copy].arrived(sequence, limits: self.limits) != .duplicate
            self.copies[slot] = ledgers
            guard isNew else { continue }
            if mayRepeat { self.borrow(slot, sequence) }
            self.irregular[slot, default: Irregularity()].overlapped += 1
            return .overlap
        }
        if mayRepeat || self.giveBack(slot, sequence) {
            self.irregular[slot, default: Irregularity()].permitted += 1
        } else {
            self.irregular[slot, default: Irregularity()].duplicated += 1
            let runs = self.irregular[slot]?.duplicates.runs.count ?? 0
            self.irregular[slot, default: Irregularity()].duplicates.insert(sequence)
            self.gapsLeft -= (self.irregular[slot]?.duplicates.runs.count ?? 0) - runs
        }
        return .duplicate
    }

    /// Copies at several levels of QoS repeat under several rules, so the arrival that is one too many may be none that
    /// is permitted to repeat.
    private mutating func borrow(_ slot: Int, _ sequence: UInt64) {
        var levels = self.borrowed[slot] ?? []
        let level = levels.firstIndex { !$0.contains(sequence) } ?? levels.count
        if level == levels.count { levels.append(SequenceRanges()) }
        levels[level].insert(sequence)
        self.borrowed[slot] = levels
    }

    /// Whether a permitted repeat had come instead of this copy.
    private mutating func giveBack(_ slot: Int, _ sequence: UInt64) -> Bool {
        guard var levels = self.borrowed[slot], let level = levels.lastIndex(where: { $0.contains(sequence) }) else {
            return false
        }
        levels[level] = levels[level].subtracting(SequenceRanges([sequence..<sequence + 1]))
        self.borrowed[slot] = levels
        return true
    }

    // MARK: - Absence

    /// The receiver's streams, with one past the highest number that has arrived in each.
    package func heads(of subscription: Int, _ body: (_ publisher: UInt32, _ audience: UInt32, _ next: UInt64) -> Void)
    {
        self.index.forEachSlot(of: subscription) { slot in
            let stream = self.index.streams.base[slot]
            body(stream.publisher, stream.audience, self.streams.base[slot].next)
        }
    }

    /// The receiver is away, in a run whose publishers may be in other segments.
    ///
    /// The next gap is excused if it begins here, in each stream of a publisher's QoS that `where` selects. A stream of
    /// which nothing has arrived yet is expected from its first arrival.
    package mutating func open(_ subscription: Int, where isExcused: (_ qos: UInt8) -> Bool = { _ in true }) {
        self.absent.insert(self.numbers[subscription])
        var heads: [(slot: Int, next: UInt64)] = []
        self.index.forEachSlot(of: subscription) { slot in
            let stream = self.streams.base + slot
            if isExcused(stream.pointee.qos) { heads.append((slot, stream.pointee.next)) }
        }
        for head in heads { self.openings[head.slot] = head.next }
    }

    /// The receiver's first subscription came into effect after the load had begun.
    package mutating func beganLate(_ subscription: Int) { self.late.insert(self.numbers[subscription]) }

    /// The ledger's contents as values, for the end of a run.
    package mutating func export() -> LedgerExport {
        // Of an absence that no arrival ended, the end is unknown.
        for (slot, next) in self.openings where self.streams.base[slot].next == next {
            self.excused[slot, default: SequenceRanges()].insert(next..<StreamLedger.sequenceLimit)
        }
        var export = LedgerExport()
        export.keys = (0..<self.index.streams.count).map { slot in
            let stream = self.index.streams.base[slot]
            return StreamKey(
                subscription: self.numbers[Int(stream.subscription)],
                publisher: stream.publisher,
                audience: stream.audience
            )
        }
        export.streams = Array(UnsafeBufferPointer(start: self.streams.base, count: self.streams.count))
        export.irregular = self.irregular
        export.excused = self.excused
        export.late = self.late
        export.absent = self.absent
        export.counts = self.counts
        export.foreign = self.foreign
        export.overflowed = self.overflowed || self.gapsLeft < 0
        return export
    }
}
