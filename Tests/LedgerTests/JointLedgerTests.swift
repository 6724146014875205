import Ledger
import TestSupport
import Testing

@Suite("The ledgers of segments as one")
struct JointLedgerTests {
    /// Messages sent by publishers and received by subscribers, divided over segments, and once more as one process has
    /// them.
    private struct Parts: ~Copyable {
        private var own: [SegmentLedger] = []
        private var whole = LedgerExport()
        private var fates: [PublisherFate] = []
        private var feeds: [SubscriptionFeed] = []

        /// Client k of each kind is in segment k mod `count`.
        init(_ weather: Weather, publishers: Int, subscribers: Int, segments count: Int, seed: UInt64) {
            var dice = SeededDice(seed: seed)
            self.own = (0..<count).map { _ in SegmentLedger(received: LedgerExport()) }
            for publisher in 0..<publishers {
                var fate = PublisherFate(
                    publisher: UInt32(publisher),
                    qos: UInt8(publisher % 3),
                    assigned: weather.count
                )
                for _ in 0..<4 { fate.unknown.insert(UInt64.random(in: 0..<weather.count, using: &dice)) }
                self.fates.append(fate)
                self.own[publisher % count].fates.append(fate)
            }
            for index in self.own.indices {
                self.own[index].loadBegan = 1_000
                self.own[index].publishersEnded = 2_000
                self.own[index].subscribersLeft = 3_000
            }
            let all = 0..<UInt32(publishers)
            for subscriber in 0..<subscribers {
                var ledger = SubscriberLedger(publishers: UInt32(publishers))
                let place = ledger.addSubscription(UInt32(subscriber))
                for publisher in all {
                    for sequence in weather.arrivals(&dice) {
                        _ = ledger.arrived(
                            subscription: place,
                            publisher: publisher,
                            qos: UInt8(publisher % 3),
                            sequence: sequence
                        )
                    }
                }
                let export = ledger.export()
                self.whole.add(export)
                self.own[subscriber % count].received.add(export)
                self.own[subscriber % count].subscriptions.append(
                    SegmentLedger.Subscription(number: UInt32(subscriber), publishers: all, began: 500)
                )
                self.feeds.append(SubscriptionFeed(subscription: UInt32(subscriber), publishers: all))
            }
        }

        var joint: Reconciliation { Reconciliation(joining: self.own) }
        var one: Reconciliation {
            Reconciliation(ledgers: [self.whole], fates: self.fates, feeds: self.feeds)
        }
    }

    @Test(
        "expected, received, lost, duplicated and reordered are those of one run over the joint data",
        arguments: Weather.all.filter { $0.count <= 4000 },
        [1, 2, 3, 5]
    )
    func same(_ weather: Weather, _ segments: Int) {
        var weather = weather
        weather.count = 700
        let parts = Parts(weather, publishers: 4, subscribers: 3, segments: segments, seed: UInt64(segments))
        let joint = parts.joint
        #expect(joint.rows == parts.one.rows)
        #expect(joint.rows.count == 3 && joint.problems.isEmpty, "\(joint.problems)")
    }

    private func stream(_ sequences: [UInt64], qos: UInt8 = 1) -> (StreamLedger, DeliveryCounts) {
        var stream = StreamLedger(qos: qos)
        var counts = DeliveryCounts()
        for sequence in sequences { counts.add(stream.arrived(sequence)) }
        return (stream, counts)
    }

    /// A segment in which one member of the share group 0 received this from publisher 0.
    private func sharing(_ sequences: [UInt64]) -> SegmentLedger {
        var export = LedgerExport()
        let (stream, counts) = self.stream(sequences)
        export.keys = [StreamKey(subscription: 0, publisher: 0)]
        export.streams = [stream]
        export.counts[1] = counts
        var segment = SegmentLedger(received: export)
        segment.subscriptions = [SegmentLedger.Subscription(number: 0, publishers: 0..<1, began: 5)]
        segment.subscribersLeft = 100
        return segment
    }

    private func publishing(_ segment: SegmentLedger, assigned: UInt64) -> SegmentLedger {
        var segment = segment
        segment.fates = [PublisherFate(publisher: 0, qos: 1, assigned: assigned)]
        segment.loadBegan = 10
        segment.publishersEnded = 90
        return segment
    }

    private typealias Row = Reconciliation.Row

    @Test("a share group's members in several segments are one subscription")
    func shared() {
        let segments = [
            self.publishing(self.sharing([1, 3, 6]), assigned: 9), self.sharing([0, 4]), self.sharing([8, 5]),
        ]
        let joint = Reconciliation(joining: segments)
        // 2 and 7 were not received; 5 arrived after 8, at one member.
        #expect(joint.rows == [Row(qos: 1, expected: 9, received: 7, lost: 2, reordered: 1, gaps: 2)])
        #expect(joint.problems.isEmpty)
    }

    @Test("what came to members in different segments is a duplicate, and both segments recorded its duration")
    func duplicates() {
        let segments = [self.publishing(self.sharing([0, 1, 2, 4]), assigned: 6), self.sharing([1, 3, 4, 5])]
        let joint = Reconciliation(joining: segments)
        #expect(joint.rows == [Row(qos: 1, expected: 6, received: 6, lost: 0, duplicated: 2)])
        #expect(joint.problems == [.durationsOfDuplicates(messages: 2)])
    }

    @Test("as many as are lost, such messages may have had the subscribers go too early")
    func duplicatesAndLoss() {
        let segments = [self.publishing(self.sharing([0, 1, 2, 4]), assigned: 6), self.sharing([1, 4, 5])]
        let joint = Reconciliation(joining: segments)
        #expect(joint.rows == [Row(qos: 1, expected: 6, received: 5, lost: 1, duplicated: 2, gaps: 1)])
        #expect(joint.problems == [.durationsOfDuplicates(messages: 2), .leftBehindDuplicates(messages: 2, lost: 1)])
        let more = [self.publishing(self.sharing([0, 1]), assigned: 6), self.sharing([1])]
        #expect(Reconciliation(joining: more).problems == [.durationsOfDuplicates(messages: 1)])
    }

    @Test("if such a message also came out of order, the first arrival is unknown")
    func order() {
        let segments = [self.publishing(self.sharing([0, 2, 1]), assigned: 3), self.sharing([1])]
        let joint = Reconciliation(joining: segments)
        #expect(joint.rows == [Row(qos: 1, expected: 3, received: 3, lost: 0, duplicated: 1, reordered: 1)])
        #expect(joint.problems == [.durationsOfDuplicates(messages: 1), .orderUnknown(messages: 1, reordered: 1)])
    }

    // MARK: - Subscriptions that come late, and leave early

    /// Publisher 0 in segment 1 began at 10, had sent 4 of 9 messages at 20 and all at 30; a subscription in segment 2.
    private func late(began: Int64?, left: Int64 = 100, received: [UInt64]) -> Reconciliation {
        var publishing = SegmentLedger(received: LedgerExport())
        publishing = self.publishing(publishing, assigned: 9)
        publishing.looks = [
            SegmentLedger.Look(at: 20, sent: [0: 4]), SegmentLedger.Look(at: 30, sent: [0: 9]),
        ]
        var subscribing = self.sharing(received)
        subscribing.subscriptions[0].began = began
        subscribing.subscribersLeft = left
        return Reconciliation(joining: [publishing, subscribing])
    }

    @Test("before the load began nothing can have been missed")
    func inTime() {
        let joint = self.late(began: 9, received: [0, 1, 3])
        #expect(joint.rows == [Row(qos: 1, expected: 9, received: 3, lost: 6, gaps: 1)])
        #expect(joint.problems.isEmpty)
    }

    @Test("after that, messages sent before the next look have an unknown fate")
    func behind() {
        // 0 to 3 are: 3 came. Of 4 to 8 three did not come.
        let joint = self.late(began: 15, received: [3, 4, 6])
        #expect(joint.rows == [Row(qos: 1, expected: 6, received: 3, lost: 3, gaps: 1)])
        #expect(joint.problems.isEmpty)
        #expect(self.late(began: 25, received: []).rows == [Row(qos: 1, expected: 0, received: 0, lost: 0)])
    }

    @Test("without a later look, losses are unknown, and this is reported")
    func unseen() {
        let joint = self.late(began: 31, received: [8])
        #expect(joint.rows == [Row(qos: 1, expected: 1, received: 1, lost: 0)])
        #expect(joint.problems == [.subscribedLate(streams: 1)])
    }

    @Test("a subscription that never came into effect expects nothing")
    func never() {
        let joint = self.late(began: nil, received: [])
        #expect(joint.rows == [Row(qos: 1, expected: 0, received: 0, lost: 0)])
        #expect(joint.problems.isEmpty)
    }

    @Test("subscribers that leave while publishers elsewhere continue are reported")
    func left() {
        let joint = self.late(began: 9, left: 89, received: [0])
        #expect(joint.problems == [.leftEarly(subscribers: 2, publishers: 1, nanoseconds: 1)])
        #expect(self.late(began: 9, left: 90, received: [0]).problems.isEmpty)
    }

    // MARK: - Streams from their reports

    @Test("a stream restored from its highest sequence and its missing ones is the same", arguments: Weather.all)
    func restored(_ weather: Weather) {
        var dice = SeededDice(seed: 3)
        var stream = StreamLedger(qos: 2)
        for sequence in weather.arrivals(from: dice.hits(0.5) ? 7 : 0, &dice) { _ = stream.arrived(sequence) }
        let told = StreamLedger(
            qos: 2,
            next: stream.next,
            missing: SequenceRanges(stream.missing),
            overflowed: stream.overflowed
        )
        #expect(told.missing == stream.missing)
        #expect(told.distinct == stream.distinct && told.next == stream.next && told.qos == 2)
        // Gaps below the first arrival were not observed.
        #expect(told.gaps == stream.gaps)
    }
}

extension LedgerExport {
    fileprivate mutating func add(_ other: LedgerExport) {
        self.keys += other.keys
        self.streams += other.streams
        self.foreign += other.foreign
        for qos: UInt8 in 0...2 { self.counts[qos] += other.counts[qos] }
    }
}
