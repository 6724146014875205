import Ledger
import Testing

@Suite("The ledger of groups in which all members receive all messages")
struct GroupLedgerTests {
    @Test("each pair has its stream, and what never spoke is not exported")
    func pairs() {
        // Two groups of two: clients 0 and 2 are the first one, 1 and 3 the second.
        var ledger = GroupLedger(clients: 4, size: 2)
        #expect(ledger.arrived(client: 0, member: 0, sequence: 0) == .new)
        #expect(ledger.arrived(client: 2, member: 0, sequence: 0) == .new)
        #expect(ledger.arrived(client: 2, member: 0, sequence: 2) == .new)
        #expect(ledger.arrived(client: 2, member: 0, sequence: 2) == .duplicate)
        #expect(ledger.arrived(client: 2, member: 0, sequence: 1) == .newLate)
        #expect(ledger.arrived(client: 1, member: 1, sequence: 0) == .new)
        #expect(ledger.next(client: 2, member: 0) == 3)
        #expect(ledger.next(client: 3, member: 0) == 0)
        let export = ledger.export { client, member in UInt32(client % 2 * 2 + (member ?? client / 2)) }
        #expect(
            export.keys == [
                StreamKey(subscription: 0, publisher: 0), StreamKey(subscription: 2, publisher: 3),
                StreamKey(subscription: 1, publisher: 0),
            ]
        )
        #expect(export.counts[0] == DeliveryCounts(distinct: 5, duplicated: 1, reordered: 1))
        #expect(!export.overflowed)
    }

    @Test("knows of each message whether it came, behind gaps too")
    func knows() {
        var ledger = GroupLedger(clients: 1, size: 1)
        for sequence: UInt64 in [0, 1, 4] { _ = ledger.arrived(client: 0, member: 0, sequence: sequence) }
        #expect(
            (0..<7).map { ledger.has(client: 0, member: 0, sequence: $0) } == [
                true, true, false, false, true, false, false,
            ]
        )
    }

    @Test("a message sent while a member was away is expected of it only if it arrives")
    func away() {
        var ledger = GroupLedger(clients: 2, size: 2)
        // Client 1 has 0 and 1, was away for 2 to 5, of which 5 came all the same, and lost 7.
        for sequence: UInt64 in [0, 1, 5, 6, 8] { _ = ledger.arrived(client: 1, member: 0, sequence: sequence) }
        for sequence: UInt64 in 0..<9 { _ = ledger.arrived(client: 0, member: 0, sequence: sequence) }
        let books = Reconciliation(
            ledgers: [ledger.export { client, member in UInt32(member ?? client) }],
            fates: [
                PublisherFate(publisher: 0, qos: 0, assigned: 9), PublisherFate(publisher: 1, qos: 0, assigned: 0),
            ],
            feeds: [
                SubscriptionFeed(subscription: 0, publishers: 0..<2),
                SubscriptionFeed(subscription: 1, publishers: 0..<2, missed: [0: SequenceRanges([2..<6])]),
            ]
        )
        #expect(books.rows.first?.expected == 15)
        #expect(books.rows.first?.received == 14)
        #expect(books.rows.first?.lost == 1)
        #expect(books.problems.isEmpty)
    }

    @Test("a header of an unknown sender is reported")
    func foreign() {
        var ledger = GroupLedger(clients: 1, size: 1)
        ledger.countForeign()
        let books = Reconciliation(ledgers: [ledger.export { _, _ in 0 }], fates: [], feeds: [])
        #expect(books.problems == [.damagedHeaders(messages: 1)])
    }
}
