import Ledger
import Testing

@Suite("Deliveries that are outstanding because of their publish, and those that are excused")
struct OutstandingTests {
    private typealias Case = DeliveryCase

    // MARK: - Publishes without an answer

    static let unanswered: [DeliveryCase] = [
        .row(
            "what has no answer is outstanding, and nothing passes it over",
            fate: {
                $0.unknown = SequenceRanges([3..<4, 9..<10])
                $0.outstanding = $0.unknown
            },
            lost: [.violated: 1],
            outstanding: 2,
            example: [7]
        ),
        .row(
            "what arrived without an answer is received",
            fate: {
                $0.unknown = SequenceRanges([8..<9])
                $0.outstanding = $0.unknown
            },
            lost: [.violated: 2],
            outstanding: 1,
            example: [3]
        ),
        .row(
            "what failed is expected only if it arrives",
            fate: { $0.unknown = SequenceRanges([3..<4, 8..<10]) },
            terms: Case.quiet,
            expected: 8,
            lost: [.violated: 1],
            example: [7]
        ),
        .row(
            "what was numbered and never written is outstanding, though the server was quiet, and not missing",
            fate: {
                $0.unknown = SequenceRanges([3..<4, 9..<10])
                $0.unsent = $0.unknown
            },
            terms: Case.quiet,
            lost: [.violated: 1],
            outstanding: 2,
            missing: 1,
            example: [7]
        ),
        .row(
            "what never got a number likewise",
            fate: { $0.neverSent = 4 },
            terms: Case.quiet,
            expected: 14,
            lost: [.violated: 2, .withheld: 1],
            outstanding: 4,
            example: [3, 9]
        ),
        DeliveryCase(
            testDescription: "of a publisher that never sent",
            arrivals: [],
            fate: {
                $0.assigned = 0
                $0.neverSent = 4
            },
            terms: Case.quiet,
            expected: 4,
            outstanding: 4,
            missing: 0
        ),
        .row(
            "each counts once",
            fate: {
                $0.unknown = SequenceRanges([3..<4, 7..<8, 9..<10])
                $0.outstanding = SequenceRanges([3..<4, 7..<8])
                $0.unsent = SequenceRanges([7..<8, 9..<10])
                $0.neverSent = 1
            },
            expected: 11,
            outstanding: 4,
            missing: 1
        ),
    ]

    // MARK: - Excused

    /// A fate with everything that is outstanding or lost for any other reason.
    private static let worst: @Sendable (inout PublisherFate) -> Void = {
        $0.unknown = SequenceRanges([1..<3])
        $0.outstanding = SequenceRanges([1..<2])
        $0.unsent = SequenceRanges([2..<3])
        $0.admitted = SequenceRanges([3..<4])
        $0.neverSent = 4
    }

    private static func excused(
        _ testDescription: String,
        fate: @Sendable @escaping (inout PublisherFate) -> Void = { _ in },
        terms: @escaping Case.Terms = { _ in }
    ) -> DeliveryCase {
        DeliveryCase(
            testDescription: testDescription,
            arrivals: [0, 4, 6, 8],
            fate: {
                self.worst(&$0)
                fate(&$0)
            },
            terms: Case.all(Case.quiet, Case.away { $0.sessionLost = SequenceRanges([5..<6]) }, terms),
            expected: 4,
            missing: 5
        )
    }

    static let excuses: [DeliveryCase] = [
        excused("messages that expire (MQTT 5.0 §3.3.2.3.3)", fate: { $0.expires = true }),
        excused("a receiver without a subscription", terms: { $0.neverBegan = [1] }),
        excused("messages that are too large (§3.1.2.11.4)", terms: { $0.isTooLarge = { $0 == 0 && $1 == 1 } }),
        .row(
            "what was not answered, or not written, while the session had ended",
            fate: {
                $0.unknown = SequenceRanges([3..<4, 7..<8, 9..<10])
                $0.outstanding = SequenceRanges([3..<4, 9..<10])
                $0.unsent = SequenceRanges([7..<8])
            },
            terms: Case.away { $0.ended = SequenceRanges([3..<8]) },
            expected: 8,
            outstanding: 1,
            missing: 2
        ),
    ]

    @Test("not answered, or not sent", arguments: unanswered)
    func owes(_ one: DeliveryCase) { one.check() }

    @Test("excused", arguments: excuses)
    func excusesAll(_ one: DeliveryCase) { one.check() }
}
