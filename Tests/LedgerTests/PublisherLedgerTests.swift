import Ledger
import Testing

@Suite("The ledger of one event loop's publishers")
struct PublisherLedgerTests {
    @Test("sequences are dense per publisher and audience")
    func sequences() {
        var ledger = PublisherLedger()
        let publishers = [ledger.addPublisher(), ledger.addPublisher()]
        #expect(publishers == [0, 1])
        var taken: [[UInt64]] = []
        for (publisher, audience) in [(0, 5), (1, 5), (0, 6), (0, 5), (1, 5), (0, 6), (0, 5)] as [(Int, UInt32)] {
            let row = ledger.row(publisher: publisher, audience: audience)
            #expect(ledger.publisher(ofRow: row) == publisher)
            #expect(ledger.audience(ofRow: row) == audience)
            taken.append([UInt64(publisher), UInt64(audience), ledger.take(row)])
        }
        #expect(taken == [[0, 5, 0], [1, 5, 0], [0, 6, 0], [0, 5, 1], [1, 5, 1], [0, 6, 1], [0, 5, 2]])
    }

    @Test("the parts of a message in flight follow from one number", arguments: [0, 1, 4, 3_000_000] as [UInt64])
    func flights(_ number: UInt64) {
        var ledger = PublisherLedger()
        let publisher = ledger.addPublisher()
        let row = ledger.row(publisher: publisher, audience: 7)
        let other = ledger.row(publisher: publisher, audience: 8)
        for _ in 0..<5 { _ = ledger.take(other) }
        let sequence = ledger.take(row)
        let flight = ledger.flight(row, sequence: sequence, number: number)
        // Later messages of the same publisher change nothing.
        _ = ledger.flight(other, sequence: ledger.take(other), number: number + 65_535)
        let parts = ledger.parts(ofFlight: flight)
        #expect(parts.row == row)
        #expect(parts.sequence == sequence)
        #expect(parts.number == number)
    }

    @Test("the end of a connection confirms the messages of QoS 0 since its beginning, or makes them unknown or owed")
    func connections() {
        var ledger = PublisherLedger()
        let publisher = ledger.addPublisher()
        var settled: [[UInt64]] = []
        func end(_ fate: PublisherLedger.ConnectionFate) {
            ledger.endConnection(publisher: publisher, fate) { settled.append([UInt64($0), $1, $2]) }
        }
        let row = ledger.row(publisher: publisher, audience: 1)
        for _ in 0..<3 { _ = ledger.take(row) }
        end(.confirmed)
        for _ in 0..<2 { _ = ledger.take(row) }
        let other = ledger.row(publisher: publisher, audience: 2)
        _ = ledger.take(other)
        end(.broken)
        end(.broken)
        _ = ledger.take(row)
        end(.confirmed)
        // Of the four messages of the last connection two were never written.
        for _ in 0..<4 { _ = ledger.take(row) }
        _ = ledger.take(other)
        for sequence: UInt64 in [8, 9] { ledger.noteUnsent(row, sequence) }
        end(.outstanding)
        end(.outstanding)
        // The latest row comes first.
        #expect(settled == [[0, 3, 0], [1, 1, 0], [0, 2, 0], [0, 1, 0], [1, 1, 0], [0, 4, 2]])
        let fates = ledger.fates { PublisherFate(publisher: UInt32($0), audience: $1, qos: 0, assigned: 0) }
        #expect(fates.map(\.assigned) == [10, 2])
        #expect(fates.map(\.unknown.runs) == [[3..<5, 6..<10], [0..<2]])
        #expect(fates.map(\.outstanding.runs) == [[6..<8], [1..<2]])
        #expect(fates.map(\.unsent.runs) == [[8..<10], []])
        #expect(fates.map(\.audience) == [1, 2])
    }

    @Test("a fate has what is unknown, not answered, never written, sent again and admitted; never written is unknown")
    func fates() {
        var ledger = PublisherLedger()
        _ = ledger.addPublisher()
        let rows = [ledger.row(publisher: 0, audience: 0), ledger.row(publisher: 0, audience: 3)]
        for row in rows { for _ in 0..<9 { _ = ledger.take(row) } }
        ledger.noteUnknown(rows[0], 2)
        ledger.noteUnsent(rows[0], 3)
        ledger.exceptions[rows[0], default: PublishExceptions()].resent.insert(5)
        ledger.exceptions[rows[0], default: PublishExceptions()].admitted.insert(7)
        ledger.noteUnknown(rows[0], 8)
        ledger.exceptions[rows[0], default: PublishExceptions()].outstanding.insert(8)
        ledger.exceptions[rows[1], default: PublishExceptions()].neverSent.add(2, lane: 0, last: 0)
        var fates = ledger.fates { PublisherFate(publisher: UInt32($0), qos: 1, assigned: 0, expires: $1 == 3) }
        for place in fates.indices { fates[place].dues = [] }
        #expect(
            fates == [
                PublisherFate(
                    publisher: 0,
                    qos: 1,
                    assigned: 9,
                    unknown: SequenceRanges([2..<4, 8..<9]),
                    unsent: SequenceRanges([3..<4]),
                    outstanding: SequenceRanges([8..<9]),
                    resent: SequenceRanges([5..<6]),
                    admitted: SequenceRanges([7..<8])
                ),
                PublisherFate(publisher: 0, audience: 3, qos: 1, assigned: 9, neverSent: 2, expires: true),
            ]
        )
    }

    @Test("the messages of each lane have the time of the last one, those without a number come after all others")
    func dues() throws {
        var ledger = PublisherLedger()
        let audience = StreamKey.audienceLimit - 1
        let row = ledger.row(publisher: ledger.addPublisher(), audience: audience)
        let sent: [(due: Int64, lane: Int)] = [(5, 1), (6, 1), (7, 2), (9, 2), (9, 2), (11, 1_023)]
        for (due, lane) in sent { _ = ledger.take(row, due: due, lane: lane) }
        for (due, lane) in [(12, 1_023), (13, 1), (14, 1)] as [(Int64, Int)] {
            ledger.exceptions[row, default: PublishExceptions()].neverSent.add(lane: lane, last: due)
        }
        let fate = try #require(ledger.fates { PublisherFate(publisher: 0, audience: $1, qos: 0, assigned: 0) }.first)
        #expect(ledger.audience(ofRow: row) == audience && fate.audience == audience)
        #expect(fate.assigned == 6 && fate.neverSent == 3)
        #expect(
            fate.dues == [
                DueMark(lane: 1, count: 2, last: 6), DueMark(lane: 2, count: 3, last: 9),
                DueMark(lane: 1_023, count: 1, last: 11), DueMark(lane: 1_023, count: 1, last: 12),
                DueMark(lane: 1, count: 2, last: 14),
            ]
        )
    }

    @Test("the rows of a receiver's audiences are found")
    func ofAudiences() {
        var ledger = PublisherLedger()
        for _ in 0..<3 { _ = ledger.addPublisher() }
        for (publisher, audience) in [(0, 1), (0, 2), (1, 1), (2, 3)] as [(Int, UInt32)] {
            _ = ledger.take(ledger.row(publisher: publisher, audience: audience))
        }
        #expect((0..<ledger.count).filter { [1, 3].contains(ledger.audience(ofRow: $0)) } == [0, 2, 3])
    }
}
