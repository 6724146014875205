import Ledger
import TestSupport
import Testing

/// All figures in these tables were worked out by hand.
@Suite("Expected against received")
struct ReconciliationTests {
    private func ledger(
        _ arrivals: [(subscription: UInt32, publisher: UInt32, qos: UInt8, sequences: [UInt64])]
    )
        -> LedgerExport
    {
        var ledger = SubscriberLedger()
        var indices: [UInt32: Int] = [:]
        for arrival in arrivals {
            if indices[arrival.subscription] == nil {
                indices[arrival.subscription] = ledger.addSubscription(arrival.subscription)
            }
            for sequence in arrival.sequences {
                _ = ledger.arrived(
                    subscription: indices[arrival.subscription] ?? 0,
                    publisher: arrival.publisher,
                    qos: arrival.qos,
                    sequence: sequence
                )
            }
        }
        return ledger.export()
    }

    @Test("pairs: each subscriber expects what its publisher had acknowledged")
    func pairs() {
        let books = Reconciliation(
            ledgers: [
                // On two loops.
                ledger([(0, 0, 0, [0, 1, 2, 3]), (1, 1, 1, [0, 2, 2, 1, 4])]), ledger([(2, 2, 1, [0, 1])]),
            ],
            fates: [
                PublisherFate(publisher: 0, qos: 0, assigned: 5),
                PublisherFate(publisher: 1, qos: 1, assigned: 6),
                PublisherFate(publisher: 2, qos: 1, assigned: 2),
                PublisherFate(publisher: 3, qos: 2, assigned: 3),
            ],
            feeds: SubscriptionFeed.pairs(4)
        )
        #expect(
            books.rows == [
                .of(qos: 0, expected: 5, received: 4, lost: 1),
                // Publisher 1 lost 3 and 5; of publisher 2 all came. 2 came twice, 1 came behind 2.
                .of(qos: 1, expected: 8, received: 6, lost: 2, duplicated: 1, reordered: 1, gaps: 1),
                // Publisher 3 had no subscriber.
                .of(qos: 2, expected: 3, received: 0, lost: 3),
            ]
        )
        #expect(books.problems.isEmpty)
    }

    @Test("a message of unknown fate is expected only if it arrives")
    func unknownFate() {
        // Acknowledged: 0, 1, 2, 5, 6, 9. Unknown: 3, 4, 7, 8. Arrived: 0, 2, 3, 6, 8.
        let books = Reconciliation(
            ledgers: [ledger([(0, 0, 1, [0, 2, 3, 6, 8])])],
            fates: [PublisherFate(publisher: 0, qos: 1, assigned: 10, unknown: SequenceRanges([7..<9, 3..<5]))],
            feeds: SubscriptionFeed.pairs(1)
        )
        // 6 acknowledged and 2 unknown that came; lost are 1, 5 and 9.
        #expect(books.rows == [.of(qos: 1, expected: 8, received: 5, lost: 3, missing: 5, gaps: 4)])
        #expect(books.problems.isEmpty)
    }

    @Test("nothing confirmed and nothing received is nothing lost")
    func allUnknown() {
        let books = Reconciliation(
            ledgers: [],
            fates: [PublisherFate(publisher: 0, qos: 0, assigned: 100, unknown: SequenceRanges([0..<100]))],
            feeds: SubscriptionFeed.pairs(1)
        )
        #expect(books.rows == [.of(qos: 0, expected: 0, received: 0, lost: 0, missing: 100)])
        #expect(books.problems.isEmpty)
    }

    @Test("what was sent before the first SUBACK is expected only if it arrives")
    func expectedFrom() {
        // From 4 on; 2 came all the same (in flight around the SUBACK); 6 is unknown and did not come, 5 is lost.
        let books = Reconciliation(
            ledgers: [ledger([(0, 0, 1, [2, 4, 7])])],
            fates: [PublisherFate(publisher: 0, qos: 1, assigned: 8, unknown: SequenceRanges([1..<2, 6..<7]))],
            feeds: [SubscriptionFeed(subscription: 0, publishers: 0..<1, expectedFrom: [0: 4])]
        )
        #expect(books.rows == [.of(qos: 1, expected: 4, received: 3, lost: 1, missing: 5, gaps: 3)])
        #expect(books.problems.isEmpty)
    }

    @Test("a subscription that came after the last message expects nothing")
    func subscribedLast() {
        let books = Reconciliation(
            ledgers: [],
            fates: [PublisherFate(publisher: 0, qos: 1, assigned: 8)],
            feeds: [SubscriptionFeed(subscription: 0, publishers: 0..<1, expectedFrom: [0: 9])]
        )
        #expect(books.rows == [.of(qos: 1, expected: 0, received: 0, lost: 0, missing: 8)])
    }

    @Test("fan-in: one subscriber expects the messages of all publishers, under their own QoS")
    func fanIn() {
        let books = Reconciliation(
            ledgers: [ledger([(0, 0, 0, [0, 1]), (0, 1, 1, [1, 0]), (0, 2, 2, [0, 0, 1])])],
            fates: (0..<3).map { PublisherFate(publisher: UInt32($0), qos: UInt8($0), assigned: 3) },
            feeds: SubscriptionFeed.all(publishers: 3, subscriptions: 1)
        )
        #expect(
            books.rows == [
                .of(qos: 0, expected: 3, received: 2, lost: 1),
                .of(qos: 1, expected: 3, received: 2, lost: 1, reordered: 1),
                .of(qos: 2, expected: 3, received: 2, lost: 1, duplicated: 1),
            ]
        )
        #expect(books.problems.isEmpty)
    }

    @Test("fan-out: every subscription expects every message, and an unknown one where it came")
    func fanOut() {
        let books = Reconciliation(
            ledgers: [ledger([(0, 0, 1, [0, 1, 2]), (1, 0, 1, [0, 2]), (2, 0, 1, [1])])],
            fates: [PublisherFate(publisher: 0, qos: 1, assigned: 3, unknown: SequenceRanges([2..<3]))],
            feeds: SubscriptionFeed.all(publishers: 1, subscriptions: 4)
        )
        // Expected 3 + 3 + 2 + 2; lost 0 + 1 + 1 + 2.
        #expect(books.rows == [.of(qos: 1, expected: 10, received: 6, lost: 4, missing: 6, gaps: 1)])
        #expect(books.problems.isEmpty)
    }

    @Test("shared: the group expects each message once, at whichever member")
    func shared() {
        var one = ShareMembers(publishers: 2)
        var two = ShareMembers(publishers: 2)
        let (first, second) = (one.addMember(group: 0), two.addMember(group: 0))
        for sequence: UInt64 in [0, 3, 2] { one.arrived(member: first, .of(0, sequence, qos: 1)) }
        for sequence: UInt64 in [1, 3] { two.arrived(member: second, .of(0, sequence, qos: 1, at: 1)) }
        two.arrived(member: second, .of(1, 0, qos: 1))
        var ledger = ShareGroupLedger()
        ledger.merge([one.swap(), two.swap()])
        let books = Reconciliation(
            ledgers: [ledger.export()],
            fates: [
                PublisherFate(publisher: 0, qos: 1, assigned: 5), PublisherFate(publisher: 1, qos: 1, assigned: 1),
            ],
            feeds: SubscriptionFeed.all(publishers: 2, subscriptions: 1)
        )
        #expect(books.rows == [.of(qos: 1, expected: 6, received: 5, lost: 1, duplicated: 1, permitted: 1)])
        #expect(books.problems.isEmpty)
    }

    @Test("a subscriber alone knows gaps, duplicates and order, and nothing of what was expected")
    func subscriberAlone() {
        // Joined at 10: what came before is not missed.
        let books = Reconciliation(
            ledgers: [ledger([(0, 7, 2, [10, 11, 14, 13, 13])])],
            fates: nil,
            feeds: []
        )
        #expect(
            books.rows == [.of(qos: 2, expected: nil, received: 4, lost: nil, duplicated: 1, reordered: 1, gaps: 1)]
        )
        #expect(books.problems.isEmpty)
    }

    @Test("agrees with sets, and balances, for random fates and arrivals", arguments: 1...20 as ClosedRange<UInt64>)
    func oracle(_ seed: UInt64) {
        var dice = SeededDice(seed: seed)
        let weather = Weather(
            testDescription: "",
            count: 2000,
            loss: 0.1,
            duplicates: 0.05,
            delays: 0.1,
            farthest: 1500
        )
        var unknown: Set<UInt64> = []
        for sequence: UInt64 in 0..<2010 where dice.hits(0.2) { unknown.insert(sequence) }
        var ranges = SequenceRanges()
        for sequence in unknown.shuffled(using: &dice) { ranges.insert(sequence) }
        let from = dice.hits(0.5) ? UInt64.random(in: 0..<2010, using: &dice) : 0
        let arrivals = weather.arrivals(&dice)
        let arrived = Set(arrivals)
        let acknowledged = Set((from..<2010).filter { !unknown.contains($0) })

        let books = Reconciliation(
            ledgers: [ledger([(0, 0, 1, arrivals)])],
            fates: [PublisherFate(publisher: 0, qos: 1, assigned: 2010, unknown: ranges)],
            feeds: [SubscriptionFeed(subscription: 0, publishers: 0..<1, expectedFrom: [0: from])]
        )
        #expect(books.problems.isEmpty)
        #expect(books.rows.first?.expected == UInt64(acknowledged.union(arrived).count))
        #expect(books.rows.first?.received == UInt64(arrived.count))
        #expect(books.rows.first?.lost == UInt64(acknowledged.subtracting(arrived).count))
        #expect(books.rows.first?.duplicated == UInt64(arrivals.count - arrived.count))
    }

    @Test("more messages than sent, messages of unknown publishers, and damaged ones cannot be reconciled")
    func impossible() {
        let fate = PublisherFate(publisher: 0, qos: 1, assigned: 2)
        let feeds = SubscriptionFeed.pairs(2)
        func problems(_ ledger: LedgerExport) -> [LedgerProblem] {
            Reconciliation(ledgers: [ledger], fates: [fate], feeds: feeds).problems
        }
        func unbalanced(received: UInt64, lost: UInt64) -> LedgerProblem {
            .unbalanced(qos: 1, expected: 2, received: received, lost: lost)
        }
        #expect(problems(ledger([(0, 0, 1, [0, 1])])) == [])
        #expect(
            problems(ledger([(0, 0, 1, [0, 1, 2])])) == [.neverSent(streams: 1), unbalanced(received: 3, lost: 0)]
        )
        #expect(problems(ledger([(1, 0, 1, [0])])) == [.strayed(streams: 1), unbalanced(received: 1, lost: 2)])
        #expect(problems(ledger([(0, 0, 3, [0])])) == [.damagedHeaders(messages: 1)])
        #expect(problems(ledger([(0, 0, 0, [0, 1])])) == [.mixed(streams: 1), unbalanced(received: 0, lost: 0)])
        #expect(problems(ledger([(0, 0, 1, [0, .max])])) == [.tooManyGaps(streams: 1)])
    }

    @Test("a ledger that says too much or too little at once is found out")
    func miscounted() {
        var export = ledger([(0, 0, 1, [0, 1, 2])])
        export.counts[1].distinct = 2
        let books = Reconciliation(
            ledgers: [export],
            fates: [PublisherFate(publisher: 0, qos: 1, assigned: 3)],
            feeds: SubscriptionFeed.pairs(1)
        )
        #expect(
            books.problems == [
                .miscounted(qos: 1, arrived: 2, inStreams: 3), .unbalanced(qos: 1, expected: 3, received: 2, lost: 0),
            ]
        )
    }
}
