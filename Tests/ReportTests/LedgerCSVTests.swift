import Ledger
import Report
import Testing

@Suite("A segment's ledger in its file")
struct LedgerCSVTests {
    static func ledger() -> SegmentLedger {
        var subscriptions = SubscriberLedger()
        let (first, second) = (subscriptions.addSubscription(1), subscriptions.addSubscription(3))
        for sequence: UInt64 in [0, 1, 5, 4, 9, 9] {
            _ = subscriptions.arrived(subscription: first, publisher: 0, qos: 1, sequence: sequence)
        }
        for sequence: UInt64 in [2, 3] {
            _ = subscriptions.arrived(subscription: second, publisher: 2, qos: 0, sequence: sequence)
        }
        _ = subscriptions.arrived(subscription: first, publisher: 0, qos: 3, sequence: 0)
        var ledger = SegmentLedger(received: subscriptions.export())
        ledger.loadBegan = 1_700_000_000_123_456_789
        ledger.publishersEnded = 1_700_000_010_000_000_000
        ledger.subscribersLeft = 1_700_000_011_000_000_000
        ledger.subscriptions = [
            SegmentLedger.Subscription(number: 1, publishers: 0..<4, began: 1_700_000_000_000_000_001),
            SegmentLedger.Subscription(number: 3, publishers: 0..<4, began: nil),
        ]
        ledger.early = [SegmentLedger.Early(subscription: 1, publisher: 2, sequence: 17)]
        ledger.looks = [
            SegmentLedger.Look(at: 1_700_000_001_000_000_000, sent: [:]),
            SegmentLedger.Look(at: 1_700_000_002_000_000_000, sent: [2: 20, 0: 7]),
        ]
        ledger.fates = [
            PublisherFate(publisher: 0, qos: 1, assigned: 10, unknown: SequenceRanges([3..<4, 7..<10])),
            PublisherFate(publisher: 2, qos: 0, assigned: 0),
        ]
        return ledger
    }

    @Test("a written ledger reads back with the same counts for every message")
    func read() throws {
        var other = SegmentLedger(received: LedgerExport())
        other.group = "devices, \"old\""
        let text = LedgerCSV.text([Self.ledger(), other])
        let read = try #require(LedgerCSV.read(text))
        #expect(read.map(\.group) == [nil, "devices, \"old\""])
        let (was, own) = (Self.ledger(), read[0])
        #expect(own.loadBegan == was.loadBegan && own.publishersEnded == was.publishersEnded)
        #expect(own.subscribersLeft == was.subscribersLeft)
        #expect(own.subscriptions == was.subscriptions && own.early == was.early && own.looks == was.looks)
        #expect(own.fates == was.fates)
        #expect(own.received.keys == was.received.keys && own.received.counts == was.received.counts)
        #expect(own.received.foreign == 1 && !own.received.overflowed)
        #expect(own.received.streams.map(\.missing) == was.received.streams.map(\.missing))
        #expect(own.received.streams.map(\.next) == [10, 4] && own.received.streams.map(\.qos) == [1, 0])
        #expect(LedgerCSV.text(read) == text)
    }

    @Test("the rows are these")
    func rows() {
        let rows = LedgerCSV.text([Self.ledger()]).split(separator: "\n").map(String.init)
        #expect(rows.first == "kind,subscription,publisher,qos,at,count,sequences")
        for row in [
            "ledger,,,,,,", "load_began,,,,1700000000123456789,,", "subscription,1,,,1700000000000000001,,0-3",
            "subscription,3,,,,,0-3", "early,1,2,,,17,", "look,,,,1700000002000000000,,", "sent,,2,,,20,",
            "publisher,,0,1,,10,3 7-9", "distinct,,,1,,5,", "duplicated,,,1,,1,", "reordered,,,1,,1,",
            "foreign,,,,,1,", "stream,1,0,1,,10,2-3 6-8",
        ] {
            #expect(rows.contains(row), "\(row)")
        }
        #expect(rows.last == "end,,,,,\(rows.count - 2),")
    }

    @Test("a file that was cut, or holds anything else, is none")
    func refused() {
        let text = LedgerCSV.text([Self.ledger()])
        #expect(LedgerCSV.read(text) != nil)
        let lines = text.split(separator: "\n").map(String.init)
        for index in lines.indices {
            var cut = lines
            cut.remove(at: index)
            #expect(LedgerCSV.read(cut.joined(separator: "\n") + "\n") == nil, "without \(lines[index])")
        }
        #expect(LedgerCSV.read(String(text.dropLast())) == nil)
        for (row, other) in [
            ("stream,1,0,1,,10,2-3 6-8", "stream,1,0,1,,10,3-2"), ("stream,1,0,1,,10,2-3 6-8", "stream,1,0,1,,10,2-x"),
            ("stream,1,0,1,,10,2-3 6-8", "stream,1,0,3,,10,"), ("early,1,2,,,17,", "early,1,2,,,,"),
            ("early,1,2,,,17,", "earlier,1,2,,,17,"), ("early,1,2,,,17,", "early,1,2,,,-17,"),
            ("early,1,2,,,17,", "early,1,2,,,17"), ("subscription,3,,,,,0-3", "subscription,3,,,,,"),
        ] {
            #expect(lines.contains(row))
            let changed = lines.map { $0 == row ? other : $0 }.joined(separator: "\n") + "\n"
            #expect(LedgerCSV.read(changed) == nil, "\(other)")
        }
    }
}
