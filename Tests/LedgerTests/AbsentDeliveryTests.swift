import Ledger
import Testing

@Suite("Deliveries that did not come, by the time at which their messages were due")
struct AbsentDeliveryTests {
    struct Case: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var arrivals: [UInt64] = [0, 1, 4]
        var fate: @Sendable (inout PublisherFate) -> Void = { _ in }
        /// By lane and last due time: lost, outstanding.
        var absent: [[UInt64]]
    }

    /// Six messages with a number, three each in lanes 2 and 3; two without one follow in lane 3.
    static let cases: [Case] = [
        Case(
            testDescription: "passed over in both lanes, not proven in the second, never sent",
            absent: [[2, 30, 1, 0], [3, 60, 1, 1], [3, 80, 0, 2]]
        ),
        Case(
            testDescription: "without an answer",
            fate: {
                $0.unknown = SequenceRanges([2..<4])
                $0.outstanding = SequenceRanges([2..<4])
            },
            absent: [[2, 30, 0, 1], [3, 60, 0, 2], [3, 80, 0, 2]]
        ),
        Case(
            testDescription: "a publish that failed is excused",
            fate: { $0.unknown = SequenceRanges([2..<4]) },
            absent: [[3, 60, 0, 1], [3, 80, 0, 2]]
        ),
        Case(testDescription: "messages that expire have no age", fate: { $0.expires = true }, absent: []),
        Case(testDescription: "all came", arrivals: [0, 1, 2, 3, 4, 5], fate: { $0.neverSent = 0 }, absent: []),
        Case(
            testDescription: "messages beyond the marks have no age",
            fate: { $0.dues.removeLast(2) },
            absent: [[2, 30, 1, 0]]
        ),
    ]

    @Test("each is lost or outstanding at the last due time of its lane", arguments: cases)
    func absent(_ row: Case) {
        var subscriber = SubscriberLedger()
        let place = subscriber.addSubscription(1)
        for sequence in row.arrivals {
            _ = subscriber.arrived(subscription: place, publisher: 0, audience: 0, qos: 1, sequence: sequence)
        }
        var fate = PublisherFate(publisher: 0, qos: 1, assigned: 6, neverSent: 2)
        fate.dues = [
            DueMark(lane: 2, count: 3, last: 30), DueMark(lane: 3, count: 3, last: 60),
            DueMark(lane: 3, count: 2, last: 80),
        ]
        row.fate(&fate)
        var terms = ReconciliationTerms()
        terms.end.ended = 100
        let reconciliation = Reconciliation(
            arrivals: [subscriber.export()],
            published: [PublishedExport(audiences: [[AudienceMember(receiver: 1, qos: 1)]], fates: [fate])],
            terms: terms
        )
        let found = reconciliation.absences.map { [UInt64($0.lane), UInt64($0.last), $0.lost, $0.outstanding] }
        #expect(found == row.absent)
        #expect(reconciliation.ended == 100)
        let sums = reconciliation.rows[0]
        guard !row.testDescription.contains("beyond") else { return }
        #expect(sums.lost == row.absent.reduce(0) { $0 + $1[2] })
        #expect(sums.outstanding == row.absent.reduce(0) { $0 + $1[3] })
    }

    @Test("the times of a fate move with its clock, and the earliest end counts for several processes")
    func clocks() {
        var fate = PublisherFate(publisher: 0, qos: 1, assigned: 1)
        fate.dues = [DueMark(lane: 0, count: 1, last: 7)]
        #expect(PublishedExport(fates: [fate]).shifted(by: -9).fates[0].dues[0].last == -2)
        var (one, other) = (DeliveryEnd(), DeliveryEnd())
        one.ended = 5
        one += other
        #expect(one.ended == 5)
        other.ended = 3
        one += other
        #expect(one.ended == 3 && one.shifted(by: 10).ended == 13)
    }
}
