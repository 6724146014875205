/// Joins the ledgers of all segments of a run.
struct JointLedger {
    private let segments: [SegmentLedger]
    /// The segment of each publisher.
    private var owners: [UInt32: Int] = [:]
    private(set) var problems: [LedgerProblem] = []
    /// Subscriptions that came into effect after the record of other segments' publishers had ended.
    private var unseen = 0
    /// Messages that reached members of a share group in several segments; each arrival but the first counts.
    private(set) var repeated: UInt64 = 0

    init(_ segments: [SegmentLedger]) {
        self.segments = segments
        for (index, segment) in segments.enumerated() {
            for fate in segment.fates { self.owners[fate.publisher] = index }
        }
    }

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
            joint.overflowed = joint.overflowed || own.overflowed
            for (key, stream) in zip(own.keys, own.streams) {
                guard let place = places[key] else {
                    places[key] = joint.streams.count
                    joint.keys.append(key)
                    joint.streams.append(stream)
                    continue
                }
                let (both, twice) = joint.streams[place].joined(stream)
                joint.streams[place] = both
                // One of the two arrivals was the first, and the other one a duplicate.
                joint.counts[stream.qos].distinct -= min(twice, joint.counts[stream.qos].distinct)
                joint.counts[stream.qos].duplicated += twice
                self.repeated += twice
            }
        }
        guard self.repeated > 0 else { return joint }
        // Each segment recorded the first arrival that it saw.
        self.problems.append(.durationsOfDuplicates(messages: self.repeated))
        let reordered = (0...2).reduce(UInt64(0)) { $0 + joint.counts[UInt8($1)].reordered }
        // A duplicate is not reordered. It is unknown which of two arrivals in different segments was the first.
        if reordered > 0 { self.problems.append(.orderUnknown(messages: self.repeated, reordered: reordered)) }
        return joint
    }

    // MARK: - Expected messages

    /// The publishers that feed each subscription, and from which message on.
    mutating func feeds() -> [SubscriptionFeed] {
        var holders: [UInt32: [(segment: Int, subscription: SegmentLedger.Subscription)]] = [:]
        var order: [UInt32] = []
        for (index, segment) in self.segments.enumerated() {
            for subscription in segment.subscriptions {
                if holders[subscription.number] == nil { order.append(subscription.number) }
                holders[subscription.number, default: []].append((index, subscription))
            }
        }
        let early = self.segments.map { segment in
            Dictionary(
                segment.early.map { (StreamKey(subscription: $0.subscription, publisher: $0.publisher), $0.sequence) },
                uniquingKeysWith: min
            )
        }
        let feeds = order.sorted().compactMap { number -> SubscriptionFeed? in
            guard let own = holders[number], let first = own.first?.subscription else { return nil }
            var feed = SubscriptionFeed(subscription: number, publishers: first.publishers)
            let begun = own.compactMap { holder in holder.subscription.began.map { (segment: holder.segment, at: $0) } }
            for publisher in feed.publishers {
                guard let owner = self.owners[publisher] else { continue }
                let key = StreamKey(subscription: number, publisher: publisher)
                let from = self.expectedFrom(publisher, of: owner, begun: begun) { early[owner][key] ?? 0 }
                if from > 0 { feed.expectedFrom[publisher] = from }
            }
            return feed
        }
        if self.unseen > 0 { self.problems.append(.subscribedLate(streams: self.unseen)) }
        self.checkLeaving(holders)
        return feeds
    }

    /// The first message that a publisher certainly sent after the subscription was in effect somewhere.
    private mutating func expectedFrom(
        _ publisher: UInt32,
        of owner: Int,
        begun: [(segment: Int, at: Int64)],
        early: () -> UInt64
    ) -> UInt64 {
        var from = UInt64.max
        if begun.contains(where: { $0.segment == owner }) { from = early() }
        // In the publisher's own segment the exact message is known; a time in another segment can only be later.
        guard from > 0, let at = begun.filter({ $0.segment != owner }).map({ $0.at }).min() else { return from }
        return min(from, self.sent(publisher, of: owner, at: at))
    }

    /// The most messages that a publisher may have sent by a given time.
    private mutating func sent(_ publisher: UInt32, of owner: Int, at moment: Int64) -> UInt64 {
        let segment = self.segments[owner]
        guard let began = segment.loadBegan, moment >= began else { return 0 }
        if let look = segment.looks.first(where: { $0.at >= moment }) { return look.sent[publisher] ?? 0 }
        self.unseen += 1
        return .max
    }

    /// Segments that add up their arrivals count such a message twice, so subscribers may leave too early by as many.
    func missedBehind(_ lost: UInt64) -> LedgerProblem? {
        guard self.repeated > 0, lost > 0, lost <= self.repeated else { return nil }
        return .leftBehindDuplicates(messages: self.repeated, lost: lost)
    }

    /// Subscribers that left while publishers elsewhere still sent may have missed messages.
    private mutating func checkLeaving(
        _ holders: [UInt32: [(segment: Int, subscription: SegmentLedger.Subscription)]]
    ) {
        let heard = Set(holders.values.joined().map { $0.segment })
        var worst: (gap: Int64, of: Int, by: Int)?
        for subscriber in heard {
            guard let left = self.segments[subscriber].subscribersLeft else { continue }
            for (publisher, segment) in self.segments.enumerated() where publisher != subscriber {
                guard !segment.fates.isEmpty, let ended = segment.publishersEnded, ended > left else { continue }
                if ended - left > worst?.gap ?? 0 { worst = (ended - left, subscriber, publisher) }
            }
        }
        guard let worst else { return }
        self.problems.append(
            .leftEarly(subscribers: worst.of + 1, publishers: worst.by + 1, nanoseconds: worst.gap)
        )
    }
}

extension Reconciliation {
    /// Balances the ledgers of all segments of a run, in order, as if they were one.
    package init(joining segments: [SegmentLedger]) {
        var joint = JointLedger(segments)
        let received = joint.received()
        let feeds = joint.feeds()
        self.init(ledgers: [received], fates: segments.flatMap(\.fates), feeds: feeds)
        self.problems += joint.problems
        let lost = self.rows.reduce(0) { $0 + ($1.lost ?? 0) }
        if let problem = joint.missedBehind(lost) { self.problems.append(problem) }
    }
}

extension StreamLedger {
    /// The arrivals of both as one stream, and how many sequence numbers arrived in both.
    ///
    /// Below the first arrival in either, nothing is a visible gap, as in a single stream.
    func joined(_ other: StreamLedger) -> (both: StreamLedger, twice: UInt64) {
        let next = max(self.next, other.next)
        func missing(_ stream: StreamLedger) -> SequenceRanges {
            var missing = SequenceRanges(stream.missing)
            if stream.next < next { missing.insert(stream.next..<next) }
            return missing
        }
        let both = StreamLedger(
            qos: self.qos,
            next: next,
            missing: missing(self).intersection(missing(other)),
            overflowed: self.overflowed || other.overflowed
        )
        let all = self.distinct + other.distinct
        return (both, all - min(all, both.distinct))
    }
}
