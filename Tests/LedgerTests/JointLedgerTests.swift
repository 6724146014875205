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
        private var table = AudienceTable()
        private var audience: UInt32 = 0

        /// Client k of each kind is in segment k mod `count`.
        init(_ weather: Weather, publishers: Int, subscribers: Int, segments count: Int, seed: UInt64) {
            var dice = SeededDice(seed: seed)
            let receivers = (0..<UInt32(subscribers)).map { AudienceMember(receiver: $0, qos: 2) }
            self.audience = self.table.number(of: receivers)
            self.own = (0..<count).map { _ in SegmentLedger(received: LedgerExport()) }
            for publisher in 0..<publishers {
                var fate = PublisherFate(
                    publisher: UInt32(publisher),
                    audience: self.audience,
                    qos: UInt8(publisher % 3),
                    assigned: weather.count
                )
                for _ in 0..<4 { fate.unknown.insert(UInt64.random(in: 0..<weather.count, using: &dice)) }
                self.fates.append(fate)
                self.own[publisher % count].published[0].fates.append(fate)
            }
            for index in self.own.indices {
                // Each segment knows a part of the end.
                self.own[index].end.lastPublish = index == count - 1 ? 0 : nil
                self.own[index].end.lastArrival = index == 0 ? 0 : nil
                self.own[index].end.probed = index == count / 2 ? 2_000_000_000 : nil
                self.own[index].published[0].audiences = self.table.audiences
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
                            audience: self.audience,
                            qos: UInt8(publisher % 3),
                            sequence: sequence
                        )
                    }
                }
                let export = ledger.export()
                self.whole.add(export)
                self.own[subscriber % count].received.add(export)
                self.own[subscriber % count].receivers.append(UInt32(subscriber))
                self.own[subscriber % count].began.insert(UInt32(subscriber))
            }
        }

        var joint: Reconciliation { Reconciliation(joining: self.own) }
        var one: Reconciliation {
            let published = PublishedExport(audiences: self.table.audiences, fates: self.fates)
            var terms = ReconciliationTerms()
            terms.end = .quiet
            return Reconciliation(arrivals: [self.whole], published: [published], terms: terms)
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

    // MARK: - Share groups

    /// A quiet server, of which each segment knows a part, and a share group without the messages 2 and 7.
    private static var threeSegments: [SegmentLedger] {
        var segments = [
            SegmentLedger.sharing([1, 3, 6]).publishing(9, isShared: true), .sharing([0, 4]), .sharing([8, 5]),
        ]
        segments[0].end.lastPublish = 0
        segments[1].end.lastArrival = 0
        (segments[1].end.probed, segments[2].end.probed) = (2_500_000_000, 2_000_000_000)
        return segments
    }

    @Test("a share group's members in several segments are one receiver")
    func shared() {
        let joint = Reconciliation(joining: Self.threeSegments)
        // 2 and 7 were not received. There is no order across the messages of a share group.
        #expect(joint.rows == [.of(qos: 1, expected: 9, received: 7, lost: 2, lostBy: [.withheld: 2], gaps: 2)])
        #expect(joint.problems.isEmpty)
    }

    @Test(
        "what came to members in different segments is a duplicate, permitted at QoS 1, with two durations",
        arguments: [0, 1, 2] as [UInt8]
    )
    func duplicates(_ qos: UInt8) {
        let segments = [
            SegmentLedger.sharing([0, 1, 2, 4], qos: qos).publishing(6, qos: qos, isShared: true),
            .sharing([1, 3, 4, 5], qos: qos),
        ]
        let joint = Reconciliation(joining: segments)
        #expect(
            joint.rows == [
                .of(qos: qos, expected: 6, received: 6, lost: 0, duplicated: 2, permitted: qos == 1 ? 2 : 0)
            ]
        )
        #expect(joint.problems == [.durationsOfDuplicates(messages: 2)])
        #expect(joint.examples.map(\.sequence) == (qos == 1 ? [] : [1]))
    }

    @Test("as many as are lost, such messages may have had the subscribers go too early")
    func duplicatesAndLoss() {
        var quiet = SegmentLedger(received: LedgerExport())
        quiet.end = .quiet
        let segments = [
            SegmentLedger.sharing([0, 1, 2, 4]).publishing(6, isShared: true), .sharing([1, 4, 5]), quiet,
        ]
        let joint = Reconciliation(joining: segments)
        let row = Reconciliation.Row.of(
            qos: 1,
            expected: 6,
            received: 5,
            lost: 1,
            lostBy: [.withheld: 1],
            duplicated: 2,
            permitted: 2,
            gaps: 1
        )
        #expect(joint.rows == [row])
        #expect(joint.problems == [.durationsOfDuplicates(messages: 2), .leftBehindDuplicates(messages: 2, lost: 1)])
        let more = [SegmentLedger.sharing([0, 1]).publishing(6, isShared: true), .sharing([1]), quiet]
        #expect(Reconciliation(joining: more).problems == [.durationsOfDuplicates(messages: 1)])
    }

    // MARK: - The end

    struct End: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var change: @Sendable (inout [SegmentLedger]) -> Void
        var isWithheld = false
    }

    static let ends = [
        End(testDescription: "quiet for all segments", change: { _ in }, isWithheld: true),
        End(testDescription: "a later message in one", change: { $0[2].end.lastArrival = 1_000_000_001 }),
        End(testDescription: "a later publish in one", change: { $0[1].end.lastPublish = 1_000_000_001 }),
        End(testDescription: "an earlier probe in one", change: { $0[1].end.probed = 999_999_999 }),
        End(testDescription: "no probe in any", change: { ($0[1].end.probed, $0[2].end.probed) = (nil, nil) }),
        End(testDescription: "a longer delivery in one", change: { $0[1].end.longest = 2_000_000_001 }),
        End(testDescription: "a member without an answer in one", change: { $0[2].end.unproved = [0] }),
        End(
            testDescription: "a publish without an answer in one",
            change: {
                $0[0].published[0].fates[0].unknown = SequenceRanges([8..<9])
                $0[0].published[0].fates[0].outstanding = SequenceRanges([8..<9])
            }
        ),
    ]

    @Test("what all segments know together decides whether the server withheld messages", arguments: ends)
    func end(_ one: End) {
        var segments = Self.threeSegments
        one.change(&segments)
        // Or as the processes of one segment.
        for joint in [Reconciliation(joining: segments), Reconciliation(joining: [SegmentLedger(joining: segments)])] {
            #expect(joint.rows.map(\.expected) == [9] && joint.rows.map(\.received) == [7])
            #expect(joint.rows.map(\.lostBy) == [one.isWithheld ? [.withheld: 2] : [:]])
            #expect(joint.rows.map(\.outstanding) == [one.isWithheld ? 0 : 2])
            #expect(joint.problems.isEmpty)
        }
    }

    // MARK: - Publishers and receivers in different segments

    @Test("a message that its publisher sent again may come late in another segment", arguments: [false, true])
    func overtaken(_ isResent: Bool) {
        var ledger = SubscriberLedger(publishers: 1)
        let place = ledger.addSubscription(0)
        for sequence: UInt64 in [0, 2, 1, 4, 3] {
            _ = ledger.arrived(subscription: place, publisher: 0, qos: 1, sequence: sequence)
        }
        var subscribing = SegmentLedger(received: ledger.export())
        subscribing.receivers = [0]
        subscribing.began = [0]
        var publishing = SegmentLedger.publishing(5)
        if isResent { publishing.published[0].fates[0].resent = SequenceRanges([3..<4]) }
        let joint = Reconciliation(joining: [publishing, subscribing])
        #expect(joint.rows == [.of(qos: 1, expected: 5, received: 5, lost: 0, reordered: isResent ? 1 : 2)])
        #expect(joint.examples.map(\.sequence) == [1])
        #expect(joint.problems.isEmpty)
    }

    @Test("each event loop of a segment has audiences of its own")
    func loops() {
        var publishing = SegmentLedger.publishing(5)
        publishing.published.append(
            PublishedExport(
                audiences: [[AudienceMember(receiver: 1, qos: 2)]],
                fates: [PublisherFate(publisher: 1, qos: 2, assigned: 3)]
            )
        )
        var ledger = SubscriberLedger(publishers: 2)
        for (receiver, qos, count) in [(0, 1, 5), (1, 2, 2)] as [(UInt32, UInt8, UInt64)] {
            let place = ledger.addSubscription(receiver)
            for sequence in 0..<count {
                _ = ledger.arrived(subscription: place, publisher: receiver, qos: qos, sequence: sequence)
            }
        }
        var subscribing = SegmentLedger(received: ledger.export())
        subscribing.receivers = [0, 1]
        subscribing.began = [0, 1]
        subscribing.end = .quiet
        let joint = Reconciliation(joining: [publishing, subscribing])
        #expect(
            joint.rows == [
                .of(qos: 1, expected: 5, received: 5, lost: 0),
                .of(qos: 2, expected: 3, received: 2, lost: 1, lostBy: [.withheld: 1]),
            ]
        )
        #expect(joint.problems.isEmpty)
    }

    @Test("subscribers that leave while publishers elsewhere continue are reported", arguments: [89, 90] as [Int64])
    func left(_ left: Int64) {
        var subscribing = SegmentLedger.sharing([0])
        subscribing.subscribersLeft = left
        let publishing = SegmentLedger.publishing(1)
        let joint = Reconciliation(joining: [publishing, subscribing])
        let early = LedgerProblem.leftEarly(subscribers: 2, publishers: 1, nanoseconds: 1)
        #expect(joint.problems == (left < 90 ? [early] : []))
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
