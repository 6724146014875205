/// The sums of a ``Reconciliation``.
struct Balance {
    private struct Sums {
        var acknowledged: UInt64 = 0
        var unknownArrived: UInt64 = 0
        var lost: UInt64 = 0
        /// Counted from the streams; the counts made at each arrival must be equal.
        var received: UInt64 = 0
        var gaps: UInt64 = 0
        var isPublished = false
    }

    private var sums = PerQoS(repeating: Sums())
    private var counts = PerQoS(repeating: DeliveryCounts())
    private var streams: [StreamKey: StreamLedger] = [:]
    private var overflowed = 0
    private var isOutOfMemory = false
    private var foreign: UInt64 = 0
    private var aboveAssigned = 0
    private var strayed = 0
    private var mixed = 0

    init(ledgers: [LedgerExport]) {
        self.streams.reserveCapacity(ledgers.reduce(0) { $0 + $1.keys.count })
        for ledger in ledgers {
            for qos: UInt8 in 0...2 { self.counts[qos] += ledger.counts[qos] }
            self.foreign += ledger.foreign
            self.isOutOfMemory = self.isOutOfMemory || ledger.overflowed
            for (key, stream) in zip(ledger.keys, ledger.streams) {
                if self.streams.updateValue(stream, forKey: key) != nil { self.mixed += 1 }
                if stream.overflowed { self.overflowed += 1 }
                self.sums[stream.qos].received += stream.distinct
                self.sums[stream.qos].gaps += stream.gaps
            }
        }
    }

    /// Adds the publishers' side, and computes the expected and the lost messages.
    mutating func settle(fates: [PublisherFate], feeds: [SubscriptionFeed]) {
        var byPublisher: [UInt32: Int] = [:]
        for (index, fate) in fates.enumerated() {
            byPublisher[fate.publisher] = index
            if fate.assigned > 0 { self.sums[fate.qos].isPublished = true }
        }
        var met = 0
        for feed in feeds {
            for publisher in feed.publishers {
                guard let index = byPublisher[publisher] else { continue }
                let key = StreamKey(subscription: feed.subscription, publisher: publisher)
                let stream = self.streams[key]
                if stream != nil { met += 1 }
                self.settle(
                    fates[index],
                    from: feed.expectedFrom[publisher] ?? 0,
                    missed: feed.missed[publisher],
                    stream
                )
            }
        }
        self.strayed = self.streams.count - met
    }

    private mutating func settle(
        _ fate: PublisherFate,
        from: UInt64,
        missed: SequenceRanges?,
        _ stream: StreamLedger?
    ) {
        let next = stream?.next ?? 0
        if next > fate.assigned { self.aboveAssigned += 1 }
        if let stream, stream.qos != fate.qos { self.mixed += 1 }

        // Messages with an unknown fate for this subscription: those whose fate the publisher does not know, those sent
        // before its SUBACK, and those sent while it was away.
        let assigned = fate.assigned
        var unknown = fate.unknown.clamped(to: 0..<assigned)
        unknown.insert(0..<min(from, assigned))
        for run in missed?.clamped(to: 0..<assigned).runs ?? [] { unknown.insert(run) }
        var missing = SequenceRanges(stream?.missing ?? [])
        if next < assigned { missing.insert(next..<assigned) }

        let unknownMissing = unknown.intersectionCount(missing)
        self.sums[fate.qos].acknowledged += assigned - unknown.count
        self.sums[fate.qos].unknownArrived += unknown.count - unknownMissing
        self.sums[fate.qos].lost += missing.clamped(to: 0..<assigned).count - unknownMissing
    }
}

extension Balance {
    func rows(publishersKnown: Bool) -> [Reconciliation.Row] {
        [0, 1, 2].compactMap { (qos: UInt8) -> Reconciliation.Row? in
            let sums = self.sums[qos]
            let counts = self.counts[qos]
            guard sums.isPublished || counts.received > 0 else { return nil }
            return Reconciliation.Row(
                qos: qos,
                expected: publishersKnown ? sums.acknowledged + sums.unknownArrived : nil,
                received: counts.distinct,
                lost: publishersKnown ? sums.lost : nil,
                duplicated: counts.duplicated,
                reordered: counts.reordered,
                gaps: sums.gaps
            )
        }
    }

    /// All invariants that are violated.
    var problems: [LedgerProblem] {
        var problems: [LedgerProblem] = []
        if self.overflowed > 0 { problems.append(.tooManyGaps(streams: self.overflowed)) }
        if self.isOutOfMemory { problems.append(.outOfMemory) }
        if self.foreign > 0 { problems.append(.damagedHeaders(messages: self.foreign)) }
        if self.aboveAssigned > 0 { problems.append(.neverSent(streams: self.aboveAssigned)) }
        if self.strayed > 0 { problems.append(.strayed(streams: self.strayed)) }
        if self.mixed > 0 { problems.append(.mixed(streams: self.mixed)) }
        for qos: UInt8 in 0...2 { problems += self.imbalance(qos) }
        return problems
    }

    private func imbalance(_ qos: UInt8) -> [LedgerProblem] {
        let sums = self.sums[qos]
        let counted = self.counts[qos].distinct
        let expected = sums.acknowledged + sums.unknownArrived
        var problems: [LedgerProblem] = []
        if sums.received != counted {
            problems.append(.miscounted(qos: qos, arrived: counted, inStreams: sums.received))
        }
        if sums.isPublished, expected != counted + sums.lost {
            problems.append(.unbalanced(qos: qos, expected: expected, received: counted, lost: sums.lost))
        }
        return problems
    }
}
