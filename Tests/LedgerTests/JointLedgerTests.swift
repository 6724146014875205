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
            return Reconciliation(arrivals: [self.whole], published: [published])
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

    // MARK: - Share groups

    /// A segment in which one member of the share group 0 received this from publisher 0.
    private func sharing(_ sequences: [UInt64], qos: UInt8 = 1) -> SegmentLedger {
        var members = ShareMembers(publishers: 1)
        let member = members.addMember(group: 0)
        for sequence in sequences { members.arrived(member: member, .of(0, sequence, qos: qos)) }
        var ledger = ShareGroupLedger()
        ledger.merge([members.swap()])
        var segment = SegmentLedger(received: ledger.export())
        segment.receivers = [0]
        segment.began = [0]
        segment.subscribersLeft = 100
        return segment
    }

    /// The same segment with publisher 0, whose messages reach the receivers 0..<`receivers`.
    private func publishing(
        _ segment: SegmentLedger,
        assigned: UInt64,
        qos: UInt8 = 1,
        receivers: UInt32 = 1
    ) -> SegmentLedger {
        var segment = segment
        segment.published[0] = PublishedExport(
            audiences: [(0..<receivers).map { AudienceMember(receiver: $0, qos: 2) }],
            fates: [PublisherFate(publisher: 0, qos: qos, assigned: assigned)]
        )
        segment.loadBegan = 10
        segment.publishersEnded = 90
        return segment
    }

    @Test("a share group's members in several segments are one receiver")
    func shared() {
        let segments = [
            self.publishing(self.sharing([1, 3, 6]), assigned: 9), self.sharing([0, 4]), self.sharing([8, 5]),
        ]
        let joint = Reconciliation(joining: segments)
        // 2 and 7 were not received. There is no order across the messages of a share group.
        #expect(joint.rows == [.of(qos: 1, expected: 9, received: 7, lost: 2, gaps: 2)])
        #expect(joint.problems.isEmpty)
    }

    @Test(
        "what came to members in different segments is a duplicate, permitted at QoS 1, with two durations",
        arguments: [0, 1, 2] as [UInt8]
    )
    func duplicates(_ qos: UInt8) {
        let segments = [
            self.publishing(self.sharing([0, 1, 2, 4], qos: qos), assigned: 6, qos: qos),
            self.sharing([1, 3, 4, 5], qos: qos),
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
        let segments = [self.publishing(self.sharing([0, 1, 2, 4]), assigned: 6), self.sharing([1, 4, 5])]
        let joint = Reconciliation(joining: segments)
        #expect(
            joint.rows == [.of(qos: 1, expected: 6, received: 5, lost: 1, duplicated: 2, permitted: 2, gaps: 1)]
        )
        #expect(joint.problems == [.durationsOfDuplicates(messages: 2), .leftBehindDuplicates(messages: 2, lost: 1)])
        let more = [self.publishing(self.sharing([0, 1]), assigned: 6), self.sharing([1])]
        #expect(Reconciliation(joining: more).problems == [.durationsOfDuplicates(messages: 1)])
    }

    // MARK: - Receivers that come late, are away, and leave early

    private struct Late: CustomTestStringConvertible {
        var testDescription: String
        /// `nil`: the receiver is away.
        var arrivals: [UInt64?]
        var qos: UInt8 = 1
        var isLate = false
        var expires = false
        var expected: UInt64
        var lost: UInt64
    }

    /// Publisher 0 in segment 1 sent 9 messages; a receiver in segment 2.
    private static let cases = [
        Late(
            testDescription: "before the load began nothing can have been missed",
            arrivals: [1, 3],
            expected: 9,
            lost: 7
        ),
        Late(
            testDescription: "after that, the first arrival is the first expected",
            arrivals: [3, 4, 6],
            isLate: true,
            expected: 6,
            lost: 3
        ),
        Late(
            testDescription: "without an arrival nothing is expected",
            arrivals: [],
            isLate: true,
            expected: 0,
            lost: 0
        ),
        Late(
            testDescription: "the gap that begins with an absence is excused",
            arrivals: [0, 1, nil, 4, 6, 7, 8],
            expected: 7,
            lost: 1
        ),
        Late(
            testDescription: "a gap after the first arrival behind it is not",
            arrivals: [0, nil, 1, 3, 4, 5, 6, 7, 8],
            expected: 9,
            lost: 1
        ),
        Late(
            testDescription: "of an absence without an end all is excused",
            arrivals: [0, 1, 3, nil],
            expected: 4,
            lost: 1
        ),
        Late(
            testDescription: "a stream that began during an absence is expected from its first arrival",
            arrivals: [nil, 4, 6, 7, 8],
            expected: 5,
            lost: 1
        ),
        Late(
            testDescription: "a stream that never came to a receiver with absences is not expected",
            arrivals: [nil],
            expected: 0,
            lost: 0
        ),
        Late(
            testDescription: "at QoS 0 an absence excuses all",
            arrivals: [0, nil, 1, 3, 8],
            qos: 0,
            expected: 4,
            lost: 0
        ),
        Late(
            testDescription: "with an expiry interval too",
            arrivals: [0, nil, 1, 3, 8],
            expires: true,
            expected: 4,
            lost: 0
        ),
    ]

    @Test("a receiver without marks of the publisher", arguments: cases)
    private func late(_ one: Late) {
        var publishing = self.publishing(SegmentLedger(received: LedgerExport()), assigned: 9, qos: one.qos)
        publishing.published[0].fates[0].expires = one.expires
        var ledger = SubscriberLedger(publishers: 1)
        let place = ledger.addSubscription(0)
        if one.isLate { ledger.beganLate(place) }
        for sequence in one.arrivals {
            if let sequence {
                _ = ledger.arrived(subscription: place, publisher: 0, qos: one.qos, sequence: sequence)
            } else {
                ledger.open(place)
            }
        }
        var subscribing = SegmentLedger(received: ledger.export())
        subscribing.receivers = [0]
        subscribing.began = [0]
        let joint = Reconciliation(joining: [publishing, subscribing])
        #expect(joint.rows.map(\.expected) == [one.expected])
        #expect(joint.rows.map(\.lost) == [one.lost])
        #expect(joint.problems.isEmpty)
    }

    @Test("what may have been with a member of a share group that left is not expected")
    func memberLeft() {
        var members = ShareMembers(publishers: 1)
        let (one, two) = (members.addMember(group: 0), members.addMember(group: 0))
        for (member, sequence) in [(one, 0), (two, 1), (one, 4)] as [(Int, UInt64)] {
            members.arrived(member: member, .of(0, sequence, qos: 1))
        }
        var ledger = ShareGroupLedger()
        ledger.merge([members.swap()])
        ledger.memberLeft(0)
        var subscribing = SegmentLedger(received: ledger.export())
        subscribing.receivers = [0]
        subscribing.began = [0]
        var publishing = self.publishing(SegmentLedger(received: LedgerExport()), assigned: 9)
        publishing.published[0].audiences[0][0].isShared = true
        let joint = Reconciliation(joining: [publishing, subscribing])
        #expect(joint.rows == [.of(qos: 1, expected: 3, received: 3, lost: 0, missing: 6, gaps: 2)])
    }

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
        var publishing = self.publishing(SegmentLedger(received: LedgerExport()), assigned: 5)
        if isResent { publishing.published[0].fates[0].resent = SequenceRanges([3..<4]) }
        let joint = Reconciliation(joining: [publishing, subscribing])
        #expect(joint.rows == [.of(qos: 1, expected: 5, received: 5, lost: 0, reordered: isResent ? 1 : 2)])
        #expect(joint.examples.map(\.sequence) == [1])
        #expect(joint.problems.isEmpty)
    }

    @Test("each event loop of a segment has audiences of its own")
    func loops() {
        var publishing = self.publishing(SegmentLedger(received: LedgerExport()), assigned: 5)
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
        let joint = Reconciliation(joining: [publishing, subscribing])
        #expect(
            joint.rows == [
                .of(qos: 1, expected: 5, received: 5, lost: 0), .of(qos: 2, expected: 3, received: 2, lost: 1),
            ]
        )
        #expect(joint.problems.isEmpty)
    }

    @Test("a receiver that never had a subscription in effect expects nothing")
    func never() {
        var subscribing = SegmentLedger(received: LedgerExport())
        subscribing.receivers = [0]
        let publishing = self.publishing(SegmentLedger(received: LedgerExport()), assigned: 9)
        let joint = Reconciliation(joining: [publishing, subscribing])
        #expect(joint.rows == [.of(qos: 1, expected: 0, received: 0, lost: 0, missing: 9)])
        #expect(joint.problems.isEmpty)
    }

    @Test("the lowest QoS that any segment was granted holds")
    func granted() {
        var subscribing = SegmentLedger(received: LedgerExport())
        subscribing.receivers = [0]
        subscribing.began = [0]
        subscribing.granted = [0: 0]
        let publishing = self.publishing(SegmentLedger(received: LedgerExport()), assigned: 9)
        let joint = Reconciliation(joining: [publishing, subscribing])
        #expect(joint.rows == [.of(qos: 1, expected: 9, received: 0, lost: 9, lostBy: [.dropped: 9])])
    }

    @Test("subscribers that leave while publishers elsewhere continue are reported", arguments: [89, 90] as [Int64])
    func left(_ left: Int64) {
        var subscribing = self.sharing([0])
        subscribing.subscribersLeft = left
        let publishing = self.publishing(SegmentLedger(received: LedgerExport()), assigned: 1)
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
