import Ledger
import TestSupport
import Testing

/// All figures in these tables were worked out by hand.
@Suite("Expected against received")
struct ReconciliationTests {
    @Test("pairs: each subscriber expects what its publisher had acknowledged")
    func pairs() {
        let books = Reconciliation(
            ledgers: [
                // On two loops.
                .of([(0, 0, 0, [0, 1, 2, 3]), (1, 1, 1, [0, 2, 2, 1, 4])]), .of([(2, 2, 1, [0, 1])]),
            ],
            fates: [
                PublisherFate(publisher: 0, qos: 0, assigned: 5),
                PublisherFate(publisher: 1, qos: 1, assigned: 6),
                PublisherFate(publisher: 2, qos: 1, assigned: 2),
                PublisherFate(publisher: 3, qos: 2, assigned: 3),
            ],
            feeds: SubscriptionFeed.pairs(4),
            end: .quiet
        )
        // Publisher 1 lost 3, which was passed over, and 5. Of publisher 2 all came. 2 came twice, 1 came behind 2.
        let both: [LossCause: UInt64] = [.violated: 1, .withheld: 1]
        #expect(
            books.rows == [
                .of(qos: 0, expected: 5, received: 4, lost: 1),
                .of(qos: 1, expected: 8, received: 6, lost: 2, lostBy: both, duplicated: 1, reordered: 1, gaps: 1),
                // Publisher 3 had no subscriber.
                .of(qos: 2, expected: 3, received: 0, lost: 3, lostBy: [.withheld: 3]),
            ]
        )
        #expect(books.problems.isEmpty)
    }

    @Test("a message of unknown fate is expected only if it arrives")
    func unknownFate() {
        // Acknowledged: 0, 1, 2, 5, 6, 9. Unknown: 3, 4, 7, 8. Arrived: 0, 2, 3, 6, 8.
        let books = Reconciliation(
            ledgers: [.of([(0, 0, 1, [0, 2, 3, 6, 8])])],
            fates: [PublisherFate(publisher: 0, qos: 1, assigned: 10, unknown: SequenceRanges([7..<9, 3..<5]))],
            feeds: SubscriptionFeed.pairs(1),
            end: .quiet
        )
        // 6 acknowledged and 2 unknown that came; lost are 1, 5 and 9.
        let lostBy: [LossCause: UInt64] = [.violated: 2, .withheld: 1]
        #expect(books.rows == [.of(qos: 1, expected: 8, received: 5, lost: 3, lostBy: lostBy, missing: 5, gaps: 4)])
        #expect(books.problems.isEmpty)
    }

    @Test("a message without an answer is expected, and outstanding unless it arrives")
    func outstanding() {
        // As above; the publishes 4, 7 and 8 were in flight when the drain ended, and 8 arrived.
        let books = Reconciliation(
            ledgers: [.of([(0, 0, 1, [0, 2, 3, 6, 8])])],
            fates: [
                PublisherFate(
                    publisher: 0,
                    qos: 1,
                    assigned: 10,
                    unknown: SequenceRanges([7..<9, 3..<5]),
                    outstanding: SequenceRanges([4..<5, 7..<9])
                )
            ],
            feeds: SubscriptionFeed.pairs(1),
            end: .quiet
        )
        // 6 acknowledged, 2 unknown that came, 2 outstanding that did not; lost are 1 and 5. The server may still read
        // what it did not answer, so 9 may still come.
        let row = Reconciliation.Row.of(qos: 1, expected: 10, received: 5, lost: 2, outstanding: 3, missing: 5, gaps: 4)
        #expect(books.rows == [row])
        #expect(books.problems.isEmpty)
    }

    @Test("a server that answers nothing owes everything and has lost nothing, once for each subscription")
    func hung() {
        let all = SequenceRanges([0..<8])
        let books = Reconciliation(
            ledgers: [.of([(0, 0, 1, [0]), (1, 0, 1, [0, 1])])],
            fates: [PublisherFate(publisher: 0, qos: 1, assigned: 8, unknown: all, outstanding: all)],
            feeds: SubscriptionFeed.all(publishers: 1, subscriptions: 2)
        )
        #expect(books.rows.map(\.expected) == [16] && books.rows.map(\.received) == [3])
        #expect(books.rows.map(\.lost) == [0] && books.rows.map(\.outstanding) == [13])
        #expect(books.problems.isEmpty)
    }

    @Test("what has not come when the drain ends may still come, until the server was quiet", arguments: [false, true])
    func inFlight(_ isQuiet: Bool) {
        let books = Reconciliation(
            ledgers: [.of([(0, 0, 1, [0, 1, 3])])],
            fates: [PublisherFate(publisher: 0, qos: 1, assigned: 6)],
            feeds: SubscriptionFeed.all(publishers: 1, subscriptions: 2),
            end: isQuiet ? .quiet : DeliveryEnd()
        )
        // One lacks 2, which was passed over, 4 and 5; the other one all.
        let lostBy: [LossCause: UInt64] = isQuiet ? [.violated: 1, .withheld: 8] : [.violated: 1]
        #expect(books.rows.map(\.expected) == [12] && books.rows.map(\.received) == [3])
        #expect(books.rows.map(\.lostBy) == [lostBy])
        #expect(books.rows.map(\.outstanding) == [isQuiet ? 0 : 8])
        #expect(books.problems.isEmpty)
    }

    @Test("what is outstanding and was sent before the subscription is excused")
    func outstandingBefore() {
        let all = SequenceRanges([0..<8])
        let books = Reconciliation(
            ledgers: [],
            fates: [PublisherFate(publisher: 0, qos: 1, assigned: 8, unknown: all, outstanding: all)],
            feeds: [SubscriptionFeed(subscription: 0, publishers: 0..<1, missed: [0: SequenceRanges([0..<9])])]
        )
        #expect(books.rows == [.of(qos: 1, expected: 0, received: 0, lost: 0, missing: 8)])
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
            ledgers: [.of([(0, 0, 1, [2, 4, 7])])],
            fates: [PublisherFate(publisher: 0, qos: 1, assigned: 8, unknown: SequenceRanges([1..<2, 6..<7]))],
            feeds: [SubscriptionFeed(subscription: 0, publishers: 0..<1, missed: [0: SequenceRanges([0..<4])])]
        )
        #expect(books.rows == [.of(qos: 1, expected: 4, received: 3, lost: 1, missing: 5, gaps: 3)])
        #expect(books.problems.isEmpty)
    }

    @Test("a subscription that came after the last message expects nothing")
    func subscribedLast() {
        let books = Reconciliation(
            ledgers: [],
            fates: [PublisherFate(publisher: 0, qos: 1, assigned: 8)],
            feeds: [SubscriptionFeed(subscription: 0, publishers: 0..<1, missed: [0: SequenceRanges([0..<9])])]
        )
        #expect(books.rows == [.of(qos: 1, expected: 0, received: 0, lost: 0, missing: 8)])
    }

    @Test("fan-in: one subscriber expects the messages of all publishers, under their own QoS")
    func fanIn() {
        let books = Reconciliation(
            ledgers: [.of([(0, 0, 0, [0, 1]), (0, 1, 1, [1, 0]), (0, 2, 2, [0, 0, 1])])],
            fates: (0..<3).map { PublisherFate(publisher: UInt32($0), qos: UInt8($0), assigned: 3) },
            feeds: SubscriptionFeed.all(publishers: 3, subscriptions: 1),
            end: .quiet
        )
        #expect(
            books.rows == [
                .of(qos: 0, expected: 3, received: 2, lost: 1),
                .of(qos: 1, expected: 3, received: 2, lost: 1, lostBy: [.withheld: 1], reordered: 1),
                .of(qos: 2, expected: 3, received: 2, lost: 1, lostBy: [.withheld: 1], duplicated: 1),
            ]
        )
        #expect(books.problems.isEmpty)
    }

    @Test("fan-out: every subscription expects every message, and an unknown one where it came")
    func fanOut() {
        let books = Reconciliation(
            ledgers: [.of([(0, 0, 1, [0, 1, 2]), (1, 0, 1, [0, 2]), (2, 0, 1, [1])])],
            fates: [PublisherFate(publisher: 0, qos: 1, assigned: 3, unknown: SequenceRanges([2..<3]))],
            feeds: SubscriptionFeed.all(publishers: 1, subscriptions: 4),
            end: .quiet
        )
        // Expected 3 + 3 + 2 + 2; passed over 0 + 1 + 1 + 0, withheld the 2 of the last one.
        let lostBy: [LossCause: UInt64] = [.violated: 2, .withheld: 2]
        #expect(books.rows == [.of(qos: 1, expected: 10, received: 6, lost: 4, lostBy: lostBy, missing: 6, gaps: 1)])
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
            feeds: SubscriptionFeed.all(publishers: 2, subscriptions: 1),
            end: .quiet
        )
        #expect(
            books.rows == [
                .of(qos: 1, expected: 6, received: 5, lost: 1, lostBy: [.withheld: 1], duplicated: 1, permitted: 1)
            ]
        )
        #expect(books.problems.isEmpty)
    }

    @Test("a subscriber alone knows gaps, duplicates and order, and nothing of what was expected")
    func subscriberAlone() {
        // Joined at 10: what came before is not missed.
        let books = Reconciliation(
            ledgers: [.of([(0, 7, 2, [10, 11, 14, 13, 13])])],
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
        let isQuiet = dice.hits(0.5)
        let from = dice.hits(0.5) ? UInt64.random(in: 0..<2010, using: &dice) : 0
        let arrivals = weather.arrivals(&dice)
        let arrived = Set(arrivals)
        let acknowledged = Set((from..<2010).filter { !unknown.contains($0) })

        let books = Reconciliation(
            ledgers: [.of([(0, 0, 1, arrivals)])],
            fates: [PublisherFate(publisher: 0, qos: 1, assigned: 2010, unknown: ranges)],
            feeds: [SubscriptionFeed(subscription: 0, publishers: 0..<1, missed: [0: SequenceRanges([0..<from])])],
            end: isQuiet ? .quiet : DeliveryEnd()
        )
        let absent = acknowledged.subtracting(arrived)
        let tail = absent.filter { $0 > arrived.max() ?? 0 }.count
        #expect(books.problems.isEmpty)
        #expect(books.rows.first?.expected == UInt64(acknowledged.union(arrived).count))
        #expect(books.rows.first?.received == UInt64(arrived.count))
        #expect(books.rows.first?.lost == UInt64(absent.count - (isQuiet ? 0 : tail)))
        #expect(books.rows.first?.outstanding == UInt64(isQuiet ? 0 : tail))
        #expect(books.rows.first?.duplicated == UInt64(arrivals.count - arrived.count))
    }

    @Test("more messages than sent, messages of unknown publishers, and damaged ones cannot be reconciled")
    func impossible() {
        let fate = PublisherFate(publisher: 0, qos: 1, assigned: 2)
        let feeds = SubscriptionFeed.pairs(2)
        func problems(_ arrivals: LedgerExport) -> [LedgerProblem] {
            Reconciliation(ledgers: [arrivals], fates: [fate], feeds: feeds).problems
        }
        func unbalanced(received: UInt64, outstanding: UInt64 = 0) -> LedgerProblem {
            .unbalanced(qos: 1, expected: 2, received: received, lost: 0, outstanding: outstanding)
        }
        #expect(problems(.of([(0, 0, 1, [0, 1])])) == [])
        #expect(
            problems(.of([(0, 0, 1, [0, 1, 2])])) == [.neverSent(streams: 1), unbalanced(received: 3)]
        )
        #expect(problems(.of([(1, 0, 1, [0])])) == [.strayed(streams: 1), unbalanced(received: 1, outstanding: 2)])
        #expect(problems(.of([(0, 0, 3, [0])])) == [.damagedHeaders(messages: 1)])
        #expect(problems(.of([(0, 0, 0, [0, 1])])) == [.mixed(streams: 1), unbalanced(received: 0)])
        #expect(problems(.of([(0, 0, 1, [0, .max])])) == [.tooManyGaps(streams: 1)])
    }

    @Test("a ledger that says too much or too little at once is found out")
    func miscounted() {
        var export = LedgerExport.of([(0, 0, 1, [0, 1, 2])])
        export.counts[1].distinct = 2
        let books = Reconciliation(
            ledgers: [export],
            fates: [PublisherFate(publisher: 0, qos: 1, assigned: 3)],
            feeds: SubscriptionFeed.pairs(1)
        )
        #expect(
            books.problems == [
                .miscounted(qos: 1, arrived: 2, inStreams: 3),
                .unbalanced(qos: 1, expected: 3, received: 2, lost: 0, outstanding: 0),
            ]
        )
    }
}

extension SubscriptionFeed {
    /// Subscription k receives from publisher k.
    fileprivate static func pairs(_ count: UInt32) -> [SubscriptionFeed] {
        (0..<count).map { SubscriptionFeed(subscription: $0, publishers: $0..<$0 + 1) }
    }

    /// Every subscription receives from every publisher: fan-in, fan-out, and shared with one subscription per group.
    fileprivate static func all(publishers: UInt32, subscriptions: UInt32) -> [SubscriptionFeed] {
        (0..<subscriptions).map { SubscriptionFeed(subscription: $0, publishers: 0..<publishers) }
    }
}
