/// Joins the ledgers of all segments of a run.
struct JointLedger {
    private let segments: [SegmentLedger]
    private(set) var problems: [LedgerProblem] = []
    /// Messages that reached members of a share group in several processes; each arrival but the first counts.
    private(set) var repeated: UInt64 = 0

    init(_ segments: [SegmentLedger]) { self.segments = segments }

    // MARK: - Arrivals

    /// All streams as those of one run.
    ///
    /// Members of a share group may have received one publisher's messages in several segments.
    mutating func received() -> LedgerExport {
        var joint = LedgerExport()
        var places: [StreamKey: Int] = [:]
        places.reserveCapacity(self.segments.reduce(0) { $0 + $1.received.keys.count })
        for own in self.segments.map(\.received) {
            for qos: UInt8 in 0...2 { joint.counts[qos] += own.counts[qos] }
            joint.foreign += own.foreign
            self.repeated += own.repeated
            joint.overflowed = joint.overflowed || own.overflowed
            joint.late.formUnion(own.late)
            joint.absent.formUnion(own.absent)
            for (index, (key, stream)) in zip(own.keys, own.streams).enumerated() {
                if let place = places[key] {
                    self.join(stream, at: place, into: &joint)
                } else {
                    places[key] = joint.streams.count
                    joint.keys.append(key)
                    joint.streams.append(stream)
                }
                let place = places[key] ?? 0
                if let irregular = own.irregular[index] { joint.irregular[place, default: Irregularity()] += irregular }
                for run in own.excused[index]?.runs ?? [] {
                    joint.excused[place, default: SequenceRanges()].insert(run)
                }
            }
        }
        joint.repeated = self.repeated
        guard self.repeated > 0 else { return joint }
        // Each process recorded the first arrival that it saw.
        self.problems.append(.durationsOfDuplicates(messages: self.repeated))
        return joint
    }

    private mutating func join(_ stream: StreamLedger, at place: Int, into joint: inout LedgerExport) {
        let (both, twice) = joint.streams[place].joined(stream)
        joint.streams[place] = both
        guard !twice.isEmpty else { return }
        // One of the two arrivals was the first, and the other one a duplicate.
        let count = twice.count
        joint.counts[stream.qos].distinct -= min(count, joint.counts[stream.qos].distinct)
        joint.counts[stream.qos].duplicated += count
        var irregular = Irregularity()
        if stream.qos == 1 { irregular.permitted = count } else { irregular.duplicated = count }
        irregular.duplicates = twice
        joint.irregular[place, default: Irregularity()] += irregular
        self.repeated += count
    }

    // MARK: - Expected messages

    /// Receivers without a subscription in effect in any segment.
    var neverBegan: Set<UInt32> {
        let began = self.segments.reduce(into: Set<UInt32>()) { $0.formUnion($1.began) }
        return self.segments.reduce(into: Set()) { $0.formUnion($1.receivers) }.subtracting(began)
    }

    /// Segments that add up their arrivals count such a message twice, so subscribers may leave too early by as many.
    func missedBehind(_ lost: UInt64) -> LedgerProblem? {
        guard self.repeated > 0, lost > 0, lost <= self.repeated else { return nil }
        return .leftBehindDuplicates(messages: self.repeated, lost: lost)
    }

    /// Subscribers that left while publishers elsewhere still sent may have missed messages.
    mutating func checkLeaving() {
        var worst: (gap: Int64, of: Int, by: Int)?
        let processes = self.segments.enumerated().flatMap { index, segment in
            segment.ownTimes.map { (segment: index, times: $0) }
        }
        for (subscriber, own) in processes.enumerated() {
            guard let left = own.times.subscribersLeft else { continue }
            for (publisher, other) in processes.enumerated() where publisher != subscriber {
                guard let ended = other.times.publishersEnded, ended > left else { continue }
                if ended - left > worst?.gap ?? 0 { worst = (ended - left, own.segment, other.segment) }
            }
        }
        guard let worst else { return }
        self.problems.append(.leftEarly(subscribers: worst.of + 1, publishers: worst.by + 1, nanoseconds: worst.gap))
    }
}

extension Reconciliation {
    /// Balances the ledgers of all segments of a run, in order, as if they were one.
    package init(joining segments: [SegmentLedger]) {
        var joint = JointLedger(segments)
        let received = joint.received()
        joint.checkLeaving()
        var terms = ReconciliationTerms()
        terms.neverBegan = joint.neverBegan
        for segment in segments {
            terms.granted.merge(segment.granted, uniquingKeysWith: min)
            terms.end += segment.end
        }
        terms.use(segments.first?.places ?? LedgerPlaces())
        // Examples are the first of their kind, in an order that does not depend on what was joined before.
        let published = segments.flatMap(\.published).sorted { $0.firstPublisher < $1.firstPublisher }
        self.init(arrivals: [received], published: published, terms: terms)
        self.problems += joint.problems
        let lost = self.rows.reduce(0) { $0 + ($1.lost ?? 0) }
        if let problem = joint.missedBehind(lost) { self.problems.append(problem) }
    }
}

extension PublishedExport {
    fileprivate var firstPublisher: UInt32 { self.fates.lazy.map(\.publisher).min() ?? .max }
}

extension ReconciliationTerms {
    /// Takes the rows, and publishers' own receivers, from the run's places.
    package mutating func use(_ places: LedgerPlaces) {
        guard !places.receivers.isEmpty else { return }
        self.own = { places.own($0) }
        self.label = { places.label($0, $1) ?? -1 }
    }
}

extension StreamLedger {
    /// The arrivals of both as one stream, and the sequence numbers that arrived in both.
    ///
    /// Below the first arrival in either, nothing is a visible gap, as in a single stream.
    func joined(_ other: StreamLedger) -> (both: StreamLedger, twice: SequenceRanges) {
        let next = max(self.next, other.next)
        func missing(_ stream: StreamLedger) -> SequenceRanges {
            var missing = SequenceRanges(stream.missing)
            if stream.next < next { missing.insert(stream.next..<next) }
            return missing
        }
        let (own, others) = (missing(self), missing(other))
        let both = StreamLedger(
            qos: self.qos,
            next: next,
            missing: own.intersection(others),
            overflowed: self.overflowed || other.overflowed
        )
        return (both, SequenceRanges([0..<next]).subtracting(own).subtracting(others))
    }
}
