import Ledger
import Testing

@Suite("What decides about an expectation besides the fates")
struct ReconciliationTermsTests {
    /// What receiver 1 got from publisher 0.
    private static func plain(_ sequences: [UInt64], qos: UInt8) -> LedgerExport {
        var ledger = SubscriberLedger()
        let place = ledger.addSubscription(1)
        for sequence in sequences {
            _ = ledger.arrived(subscription: place, publisher: 0, qos: qos, sequence: sequence)
        }
        return ledger.export()
    }

    static let terms = [
        DeliveryCase(
            testDescription: "a message of QoS 0 was dropped",
            arrivals: [0, 1, 2, 4, 5, 6, 8, 9],
            qos: 0,
            lost: [.dropped: 2],
            example: [3]
        ),
        DeliveryCase(
            testDescription: "at QoS 1 the promise was violated",
            arrivals: [0, 1, 2, 4, 5, 6, 8, 9],
            lost: [.violated: 2],
            example: [3]
        ),
        DeliveryCase(
            testDescription: "the QoS of a delivery is the lower one: published 2, asked for 0",
            arrivals: [0, 1, 2, 4, 5, 6, 8, 9],
            qos: 2,
            member: { $0.qos = 0 },
            lost: [.dropped: 2],
            example: [3]
        ),
        DeliveryCase(
            testDescription: "published 2, granted 0",
            arrivals: [0, 1, 2, 4, 5, 6, 8, 9],
            qos: 2,
            terms: { $0.granted = [1: 0] },
            lost: [.dropped: 2],
            example: [3]
        ),
        DeliveryCase(
            testDescription: "a client's own messages have the QoS of its filters that are not No Local",
            arrivals: [0, 1, 2, 4, 5, 6, 8, 9],
            qos: 2,
            member: {
                ($0.copies, $0.noLocal, $0.ownQoS) = (2, 1, 0)
            },
            terms: { $0.own = { _ in 1 } },
            lost: [.dropped: 2],
            example: [3]
        ),
        DeliveryCase(
            testDescription: "the server admitted one",
            arrivals: [0, 1, 2, 4, 5, 6, 8, 9],
            fate: { $0.admitted = SequenceRanges([2..<4]) },
            lost: [.violated: 1, .serverAdmitted: 1],
            example: [3, 7]
        ),
        DeliveryCase(
            testDescription: "one was within the grace of a new subscription",
            arrivals: [0, 1, 2, 4, 5, 6, 8, 9],
            terms: DeliveryCase.away { $0.fresh = SequenceRanges([0..<4]) },
            lost: [.violated: 1, .freshSubscription: 1],
            example: [3, 7]
        ),
        DeliveryCase(
            testDescription: "a lost session explains more than an admission, and that more than the grace",
            arrivals: [1, 2, 4, 5, 6, 8, 9],
            fate: { $0.admitted = SequenceRanges([0..<4]) },
            terms: DeliveryCase.away {
                $0.fresh = SequenceRanges([0..<8])
                $0.sessionLost = SequenceRanges([2..<4])
            },
            lost: [.sessionLost: 1, .serverAdmitted: 1, .freshSubscription: 1],
            missing: 3,
            example: [3, 0, 7]
        ),
        DeliveryCase(
            testDescription: "a session that ended excuses at any QoS",
            arrivals: [0, 1, 2, 4, 5, 6, 8, 9],
            terms: DeliveryCase.away { $0.ended = SequenceRanges([3..<4]) },
            expected: 9,
            lost: [.violated: 1],
            example: [7]
        ),
        DeliveryCase(
            testDescription: "a connection that broke excuses QoS 0",
            arrivals: [0, 1, 2, 4, 5, 6, 8, 9],
            qos: 0,
            terms: DeliveryCase.away { $0.broken = SequenceRanges([0..<6]) },
            // Those that came are expected because they came.
            expected: 9,
            lost: [.dropped: 1],
            example: [7]
        ),
        DeliveryCase(
            testDescription: "but not QoS 1",
            arrivals: [0, 1, 2, 4, 5, 6, 8, 9],
            terms: DeliveryCase.away { $0.broken = SequenceRanges([0..<6]) },
            lost: [.violated: 2],
            example: [3]
        ),
        DeliveryCase(
            testDescription: "messages that expire are excused without any absence",
            arrivals: [0, 1, 2, 4, 5, 6, 8, 9],
            fate: { $0.expires = true },
            expected: 8
        ),
        DeliveryCase(
            testDescription: "a receiver that never had a subscription expects nothing",
            arrivals: [],
            terms: { $0.neverBegan = [1] },
            expected: 0,
            missing: 10
        ),
        DeliveryCase(
            testDescription: "what was never written is outstanding, and not missing",
            arrivals: [0, 1, 2, 4, 5, 6, 8, 9],
            fate: {
                $0.unknown = SequenceRanges([3..<4, 7..<8])
                $0.unsent = SequenceRanges([3..<4])
            },
            expected: 9,
            outstanding: 1,
            missing: 1
        ),
    ]

    @Test("what is expected, and why it is lost", arguments: terms)
    func decides(_ one: DeliveryCase) { one.check() }

    @Test("a client that gets no copy of its own messages expects none, and one that comes has strayed")
    func noLocal() {
        var terms = ReconciliationTerms()
        terms.own = { _ in 1 }
        let member = AudienceMember(receiver: 1, copies: 2, noLocal: 2, qos: 1)
        let published = PublishedExport(
            audiences: [[member]],
            fates: [PublisherFate(publisher: 0, qos: 1, assigned: 10)]
        )
        let books = Reconciliation(arrivals: [], published: [published], terms: terms)
        #expect(books.rows.isEmpty && books.problems.isEmpty)
        let strayed = Reconciliation(arrivals: [Self.plain([0], qos: 1)], published: [published], terms: terms)
        #expect(strayed.problems == [.strayed(streams: 1)])
    }

    struct Irregular: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var arrivals: [UInt64]
        var qos: UInt8 = 1
        var resent: [Range<UInt64>] = []
        var isOrdered = true
        var isShared = false
        var requested: UInt8 = 2
        var duplicated: UInt64 = 0
        var permitted: UInt64 = 0
        var reordered: UInt64 = 0
        /// The first example's message.
        var example: [UInt64] = []
    }

    static let irregular = [
        Irregular(testDescription: "a repeat", arrivals: [0, 1, 1], duplicated: 1, example: [1]),
        Irregular(
            testDescription: "of a message that its publisher sent again, however often",
            arrivals: [0, 1, 1, 1],
            resent: [1..<2],
            duplicated: 2,
            permitted: 2
        ),
        Irregular(
            testDescription: "of that and of another one",
            arrivals: [0, 1, 1, 1, 0],
            resent: [1..<2],
            duplicated: 3,
            permitted: 2,
            example: [0]
        ),
        Irregular(
            testDescription: "at QoS 2 the publisher's second sending is none",
            arrivals: [0, 1, 1],
            qos: 2,
            resent: [1..<2],
            duplicated: 1,
            example: [1]
        ),
        Irregular(testDescription: "late", arrivals: [0, 2, 1, 3], reordered: 1, example: [1]),
        Irregular(testDescription: "late, sent again", arrivals: [0, 2, 1, 3], resent: [1..<2]),
        Irregular(
            testDescription: "late, and another one sent again",
            arrivals: [0, 2, 1, 3],
            resent: [2..<3],
            reordered: 1,
            example: [1]
        ),
        Irregular(testDescription: "late, of several topics", arrivals: [0, 2, 1, 3], isOrdered: false),
        Irregular(
            testDescription: "at another member of a share group, published at QoS 1",
            arrivals: [0, 1, 1],
            isShared: true,
            duplicated: 1,
            permitted: 1
        ),
        Irregular(
            testDescription: "published at QoS 2, delivered at QoS 1",
            arrivals: [0, 1, 1],
            qos: 2,
            isShared: true,
            requested: 1,
            duplicated: 1,
            permitted: 1
        ),
        Irregular(
            testDescription: "published and delivered at QoS 2",
            arrivals: [0, 1, 1],
            qos: 2,
            isShared: true,
            duplicated: 1,
            example: [1]
        ),
        Irregular(
            testDescription: "published at QoS 1, delivered at QoS 0",
            arrivals: [0, 1, 1],
            isShared: true,
            requested: 0,
            duplicated: 1,
            example: [1]
        ),
        Irregular(
            testDescription: "published at QoS 1 twice, delivered at QoS 0",
            arrivals: [0, 1, 1],
            resent: [0..<4],
            isShared: true,
            requested: 0,
            duplicated: 1,
            permitted: 1
        ),
    ]

    @Test("repeats and order, as the fates explain them", arguments: irregular)
    func explains(_ one: Irregular) {
        var members = ShareMembers()
        let member = members.addMember(group: 1)
        for (at, sequence) in one.arrivals.enumerated() {
            members.arrived(member: member, .of(0, sequence, qos: one.qos, at: Int64(at)))
        }
        var shares = ShareGroupLedger()
        shares.merge([members.swap()])
        let plain = Self.plain(one.arrivals, qos: one.qos)
        let fate = PublisherFate(
            publisher: 0,
            qos: one.qos,
            assigned: 4,
            resent: SequenceRanges(one.resent),
            isOrdered: one.isOrdered
        )
        let receiver = AudienceMember(receiver: 1, qos: one.requested, isShared: one.isShared)
        let books = Reconciliation(
            arrivals: [one.isShared ? shares.export() : plain],
            published: [PublishedExport(audiences: [[receiver]], fates: [fate])]
        )
        #expect(books.rows.map(\.duplicated) == [one.duplicated])
        #expect(books.rows.map(\.permitted) == [one.permitted])
        #expect(books.rows.map(\.reordered) == [one.reordered])
        #expect(
            books.examples.filter { $0.finding == .duplicated || $0.finding == .reordered }.map(\.sequence)
                == one.example
        )
    }
}
