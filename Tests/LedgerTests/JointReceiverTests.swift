import Ledger
import Testing

@Suite("Receivers in other segments than their publishers")
struct JointReceiverTests {
    private struct Late: CustomTestStringConvertible {
        var testDescription: String
        /// `nil`: the receiver is away.
        var arrivals: [UInt64?]
        var qos: UInt8 = 1
        var isLate = false
        var expires = false
        var expected: UInt64
        /// With a quiet server; without that those behind the last arrival may still come.
        var lost: UInt64
        var tail: UInt64 = 0
    }

    /// Publisher 0 in segment 1 sent 9 messages; a receiver in segment 2.
    private static let cases = [
        Late(
            testDescription: "before the load began nothing can have been missed",
            arrivals: [1, 3],
            expected: 9,
            lost: 7,
            tail: 5
        ),
        Late(
            testDescription: "after that, the first arrival is the first expected",
            arrivals: [3, 4, 6],
            isLate: true,
            expected: 6,
            lost: 3,
            tail: 2
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
            testDescription: "a gap after the first arrival that follows it is not",
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
            testDescription: "and all messages that expire",
            arrivals: [0, nil, 1, 3, 8],
            expires: true,
            expected: 4,
            lost: 0
        ),
    ]

    @Test("a receiver without marks of the publisher", arguments: cases, [false, true])
    private func late(_ one: Late, _ isQuiet: Bool) {
        var publishing = SegmentLedger.publishing(9, qos: one.qos)
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
        if isQuiet { subscribing.end = .quiet }
        let joint = Reconciliation(joining: [publishing, subscribing])
        #expect(joint.rows.map(\.expected) == [one.expected])
        #expect(joint.rows.map(\.lost) == [isQuiet ? one.lost : one.lost - one.tail])
        #expect(joint.rows.map(\.outstanding) == [isQuiet ? 0 : one.tail])
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
        subscribing.end = .quiet
        // Nor what was due and never sent: it has no number, and any message may have been with that member.
        var publishing = SegmentLedger.publishing(9, isShared: true)
        publishing.published[0].fates[0].neverSent = 2
        let joint = Reconciliation(joining: [publishing, subscribing])
        #expect(joint.rows == [.of(qos: 1, expected: 3, received: 3, lost: 0, missing: 6, gaps: 2)])
    }

    @Test("a receiver that never had a subscription in effect expects nothing")
    func never() {
        var subscribing = SegmentLedger(received: LedgerExport())
        subscribing.receivers = [0]
        subscribing.end = .quiet
        var publishing = SegmentLedger.publishing(9)
        publishing.published[0].fates[0].neverSent = 2
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
        subscribing.end = .quiet
        let publishing = SegmentLedger.publishing(9)
        let joint = Reconciliation(joining: [publishing, subscribing])
        #expect(joint.rows == [.of(qos: 1, expected: 9, received: 0, lost: 9, lostBy: [.dropped: 9])])
    }
}
