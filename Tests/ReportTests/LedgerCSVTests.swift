import Ledger
import Measurement
import Report
import Testing

@Suite("A segment's ledger in its file")
struct LedgerCSVTests {
    /// Rows that end with empty cells are written without them here.
    private static func row(_ short: String) -> String {
        short + String(repeating: ",", count: max(0, 10 - short.count { $0 == "," }))
    }

    @Test("a written ledger reads back with all that it has")
    func full() throws {
        let text = LedgerCSV.text(LedgerSamples.full)
        let read = try #require(LedgerCSV.read(text))
        #expect(LedgerContents(read) == LedgerContents(LedgerSamples.full))
        #expect(LedgerCSV.text(read) == text)
    }

    @Test("so does any other ledger", arguments: 0..<200)
    func drawn(_ seed: Int) throws {
        let ledger = LedgerSamples.drawn(seed: UInt64(seed))
        let text = LedgerCSV.text(ledger)
        let read = try #require(LedgerCSV.read(text))
        #expect(LedgerContents(read) == LedgerContents(ledger))
        #expect(LedgerCSV.text(read) == text)
    }

    @Test("the rows are these")
    func rows() {
        let text = LedgerCSV.text(LedgerSamples.full)
        let rows = text.split(separator: "\n").map(String.init)
        #expect(rows.first == "kind,receiver,publisher,audience,qos,at,count,sequences,flags,group,name")
        let expected = [
            "load_began,,,,,1700000000123456789", "publishers_ended,,,,,1700000010000000000",
            "subscribers_left,,,,,1700000011000000000", "process", "subscribers_left,,,,,1700000012000000000",
            "ended,,,,,1795224000000000000", "receivers,,,,,,,1-3 7 5-6", "began,,,,,,,1-3 6",
            "granted,,,,0,,,2 6", "granted,,,,1,,,3", "place_publishers,1,0,,,,2,,,ops,\"a, \"\"b\"\"\r\n\"",
            "place_publishers,,2,,,,0,,,ops,\"\"\"\"", "place_publishers,,2,,,,7", "place_receivers,0,,,,,7,,,devices,",
            "place_receivers,7,,,,,1,,,devices+audit,", "place_stage,,,,,,,,,,\"warm, up\"",
            "place_stage,,,,,,,,measured,,peak", "audiences,,,,,,4", "members,,,1,1,,1,1",
            "members,,,2,1,,1,1-2", "members,,,2,2,,3,3-4", "no_local,,,,2,,2", "members,,,2,1,,1,6 8",
            "publisher,,0,1,1,,10,3 7-9,expires ordered", "unsent,,,,,,,8-9", "outstanding,,,,,,,3",
            "resent,,,,,,,0-1", "admitted,,,,,,,6",
            "publisher,,2,2,0,,4", "never_sent,,,,,,2", "due,,,2,,1795223990000000000,1", "due,,,3,,42,3",
            "due,,,3,,43,2", "publisher,,1,0,2,,0,,expires", "audiences,,,,,,2", "members,,,1,1,,1,1",
            "members,,,1,1,,1,2-3,shared", "members,,,1,2,,2,5", "no_local,,,,0,,1", "members,,,1,2,,2,6",
            "no_local,,,,1,,1", "publisher,,5,1,2,,7,,ordered", "distinct,,,,0,,2", "duplicated,,,,0,,1",
            "overlapped,,,,0,,1", "distinct,,,,1,,5", "duplicated,,,,1,,1", "reordered,,,,1,,1", "foreign,,,,,,1",
            "repeated,,,,,,4", "overflowed", "late,,,,,,,3", "absent,,,,,,,3", "stream,1,0,1,1,,10,2-3 6-8",
            "stream_duplicated,,,,,,1,9",
            "stream_reordered,,,,,,1,4", "stream,3,2,2,0,,4,0-1", "stream_permitted,,,,,,1", "stream_overlapped,,,,,,1",
            "stream_excused,,,,,,,4-1125899906842623",
        ]
        for short in expected {
            #expect(rows.contains(Self.row(short)), "\(short)")
        }
        #expect(rows.last == Self.row("end,,,,,,\(expected.count)"))
        #expect(rows.count == expected.count + 2)
    }

    @Test("a longer run with the same losses has no more rows, and no longer ones but for the digits")
    func size() {
        func shape(_ messages: UInt64) -> String {
            LedgerCSV.text(LedgerSamples.run(messages: messages)).split(separator: "\n").map { line in
                line.split { $0.isNumber }.joined(separator: "#")
            }.joined(separator: "\n")
        }
        #expect(shape(10) == shape(100_000))
    }

    @Test("consecutive receivers are one run, in as many rows as needed")
    func receivers() throws {
        var ledger = SegmentLedger(received: LedgerExport())
        ledger.receivers = Array(0..<100_000)
        #expect(LedgerCSV.text(ledger).split(separator: "\n")[1] == "receivers,,,,,,,0-99999,,,")
        // Every third client is in this segment.
        ledger.receivers = (0..<3_000).map { $0 * 3 }
        let text = LedgerCSV.text(ledger)
        #expect(text.split(separator: "\n").count { $0.hasPrefix("receivers,") } == 3)
        #expect(LedgerCSV.read(text)?.receivers == ledger.receivers)
    }

    @Test("members with the same terms share a row, and each other term makes another")
    func members() {
        let terms = [
            AudienceMember(receiver: 0, copies: 2, noLocal: 1, qos: 1, ownQoS: 1),
            AudienceMember(receiver: 0, copies: 3, noLocal: 1, qos: 1, ownQoS: 1),
            AudienceMember(receiver: 0, copies: 2, noLocal: 2, qos: 1, ownQoS: 1),
            AudienceMember(receiver: 0, copies: 2, noLocal: 1, qos: 2, ownQoS: 1),
            AudienceMember(receiver: 0, copies: 2, noLocal: 1, qos: 1, ownQoS: 0),
            AudienceMember(receiver: 0, copies: 2, noLocal: 1, qos: 1, ownQoS: 1, isShared: true),
        ]
        var ledger = SegmentLedger(received: LedgerExport())
        let members = (0..<UInt32(1_000)).map { receiver in
            var member = terms[Int(receiver) * terms.count / 1_000]
            member.receiver = receiver
            return member
        }
        ledger.published[0].audiences = [[], members]
        let text = LedgerCSV.text(ledger)
        #expect(text.split(separator: "\n").count { $0.hasPrefix("members,") } == terms.count)
        #expect(LedgerCSV.read(text)?.published == ledger.published)
    }

    @Test("each event loop has its publishers, even one without any", arguments: 0...3)
    func loops(_ count: Int) {
        var ledger = SegmentLedger(received: LedgerExport())
        ledger.published = Array(repeating: PublishedExport(), count: count)
        #expect(LedgerCSV.read(LedgerCSV.text(ledger))?.published == ledger.published)
    }

    /// A file of these rows.
    private static func file(_ rows: [String]) -> String {
        let header = "kind,receiver,publisher,audience,qos,at,count,sequences,flags,group,name"
        let all = [header] + rows.map(Self.row) + [Self.row("end,,,,,,\(rows.count)")]
        return all.joined(separator: "\n") + "\n"
    }

    @Test(
        "publishers and members belong to an event loop that has begun",
        arguments: ["publisher,,0,0,1,,10", "members,,,0,1,,1,1"]
    )
    func begun(_ row: String) {
        #expect(LedgerCSV.read(Self.file(["audiences,,,,,,1", row])) != nil)
        #expect(LedgerCSV.read(Self.file([row])) == nil)
        // An audience of the loop before is none of this one.
        #expect(LedgerCSV.read(Self.file(["audiences,,,,,,1", "audiences,,,,,,0", "members,,,0,1,,1,1"])) == nil)
    }

    @Test("event loops, and audiences of all of them together, are limited")
    func limits() {
        #expect(LedgerCSV.read(Self.file(Array(repeating: "audiences,,,,,,1048576", count: 17))) == nil)
        #expect(LedgerCSV.read(Self.file(Array(repeating: "audiences,,,,,,1", count: 4_096)))?.published.count == 4_096)
        #expect(LedgerCSV.read(Self.file(Array(repeating: "audiences,,,,,,1", count: 4_097))) == nil)
    }

    @Test("a file that lacks a row, or its end, is none")
    func cut() {
        let text = LedgerCSV.text(LedgerSamples.full)
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).dropLast().map(String.init)
        for index in lines.indices {
            var cut = lines
            cut.remove(at: index)
            #expect(LedgerCSV.read(cut.joined(separator: "\n") + "\n") == nil, "without \(lines[index])")
        }
        for count in stride(from: text.utf8.count - 1, through: 0, by: -7) {
            #expect(LedgerCSV.read(String(decoding: Array(text.utf8.prefix(count)), as: UTF8.self)) == nil)
        }
        #expect(LedgerCSV.read("") == nil && LedgerCSV.read("\n") == nil && LedgerCSV.read("end\n") == nil)
    }

    static let damages: [(row: String, instead: String)] = [
        ("load_began,,,,,1700000000123456789,,,,,", "load_began,,,,,-1,,,,,"),
        ("load_began,,,,,1700000000123456789,,,,,", "load_began,,,,,9223372036854775808,,,,,"),
        ("load_began,,,,,1700000000123456789,,,,,", "subscribers_left,,,,,1,,,,,"),
        ("load_began,,,,,1700000000123456789,,,,,", "load_begun,,,,,1700000000123456789,,,,,"),
        ("load_began,,,,,1700000000123456789,,,,,", "load_began,,,,,1700000000123456789,,,,"),
        ("load_began,,,,,1700000000123456789,,,,,", "load_began,,,,,1700000000123456789,,,,,,"),
        ("load_began,,,,,1700000000123456789,,,,,", "load_began,,,,,,,,,,"),
        ("load_began,,,,,1700000000123456789,,,,,", "load_began,,,,,1,,,,a,"),
        ("load_began,,,,,1700000000123456789,,,,,", "load_began,,,,,1,,3,,,"),
        ("load_began,,,,,1700000000123456789,,,,,", "end,,,,,,50,,,,"),
        ("process,,,,,,,,,,", "process,,,,,,2,,,,"),
        ("process,,,,,,,,,,", "load_began,,,,,1,,,,,"),
        ("repeated,,,,,,4,,,,", "repeated,,,,,,0,,,,"),
        ("repeated,,,,,,4,,,,", "repeated,,,,1,,4,,,,"),
        ("receivers,,,,,,,1-3 7 5-6,,,", "receivers,,,,,,,0-16777216,,,"),
        ("receivers,,,,,,,1-3 7 5-6,,,", "receivers,,,,,,,0-4294967295,,,"),
        ("receivers,,,,,,,1-3 7 5-6,,,", "receivers,,,,,,,4294967296,,,"),
        ("receivers,,,,,,,1-3 7 5-6,,,", "receivers,,,,,,,3-1,,,"),
        ("receivers,,,,,,,1-3 7 5-6,,,", "receivers,,,,,,,1-3  7,,,"),
        ("receivers,,,,,,,1-3 7 5-6,,,", "receivers,,,,,,,1-,,,"),
        ("receivers,,,,,,,1-3 7 5-6,,,", "receivers,,,,,,,+1,,,"),
        ("began,,,,,,,1-3 6,,,", "began,,,,,,,0-1125899906842623,,,"),
        ("granted,,,,1,,,3,,,", "granted,,,,3,,,3,,,"),
        ("place_publishers,,2,,,,7,,,,", "place_publishers,,1,,,,7,,,,"),
        ("place_publishers,,2,,,,7,,,,", "place_publishers,,2,,,,4294967295,,,,"),
        ("place_publishers,,2,,,,7,,,,", "place_publishers,4294967290,2,,,,7,,,,"),
        ("place_publishers,,2,,,,7,,,,", "place_publishers,,2,,,,7,,,\",\n"),
        ("place_receivers,7,,,,,1,,,devices+audit,", "place_receivers,6,,,,,1,,,devices+audit,"),
        ("place_receivers,7,,,,,1,,,devices+audit,", "place_receivers,7,,,,,1,,,devices+audit,x"),
        ("audiences,,,,,,4,,,,", "audiences,,,,,,2,,,,"),
        ("audiences,,,,,,4,,,,", "audiences,,,,,,1048577,,,,"),
        ("members,,,1,1,,1,1,,,", "members,,,4,1,,1,1,,,"),
        ("members,,,1,1,,1,1,,,", "members,,,1,1,,65536,1,,,"),
        ("members,,,1,1,,1,1,,,", "members,,,1,1,,1,0-16777216,,,"),
        ("members,,,2,2,,3,3-4,,,", "granted,,,,1,,,3,,,"),
        ("members,,,1,1,,1,2-3,shared,,", "members,,,1,1,,1,2-3,ordered,,"),
        ("members,,,1,1,,1,2-3,shared,,", "members,,,2,1,,1,2-3,shared,,"),
        ("no_local,,,,2,,2,,,,", "no_local,,,,2,,65536,,,,"),
        ("no_local,,,,2,,2,,,,", "no_local,,,,3,,2,,,,"),
        ("no_local,,,,2,,2,,,,", "no_local,,,,,,2,,,,"),
        ("audiences,,,,,,2,,,,", "audiences,,,,,,1,,,,"),
        ("publisher,,5,1,2,,7,,ordered,,", "publisher,,5,2,2,,7,,ordered,,"),
        ("publisher,,0,1,1,,10,3 7-9,expires ordered,,", "publisher,,0,4,1,,10,3 7-9,expires ordered,,"),
        ("publisher,,0,1,1,,10,3 7-9,expires ordered,,", "publisher,,0,1,1,,10,3 7-9,expires expires,,"),
        ("publisher,,0,1,1,,10,3 7-9,expires ordered,,", "publisher,,0,1,1,,10,3 7-9,overflowed,,"),
        ("publisher,,0,1,1,,10,3 7-9,expires ordered,,", "publisher,,0,1,1,,10,7-9 3,ordered,,"),
        ("publisher,,0,1,1,,10,3 7-9,expires ordered,,", "publisher,,0,1,1,,10,3-7 5-9,ordered,,"),
        ("publisher,,0,1,1,,10,3 7-9,expires ordered,,", "publisher,,0,1,1,,10,3 4-9,ordered,,"),
        ("publisher,,0,1,1,,10,3 7-9,expires ordered,,", "publisher,,4194304,1,1,,10,,ordered,,"),
        ("publisher,,0,1,1,,10,3 7-9,expires ordered,,", "publisher,,0,1,1,,1125899906842625,,ordered,,"),
        // 6 receivers: more messages than a merge can add up.
        ("publisher,,2,2,0,,4,,,,", "publisher,,2,2,0,,1501199875790166,,,,"),
        ("unsent,,,,,,,8-9,,,", "unsent,,,,,,,,,,"),
        ("unsent,,,,,,,8-9,,,", "resent,,,,,,,8-9,,,"),
        ("distinct,,,,1,,5,,,,", "distinct,,,,0,,5,,,,"),
        ("distinct,,,,1,,5,,,,", "distinct,,,,1,,0,,,,"),
        ("distinct,,,,1,,5,,,,", "distinct,,,,,,5,,,,"),
        ("stream,1,0,1,1,,10,2-3 6-8,,,", "stream,1,0,1,3,,10,2-3 6-8,,,"),
        ("stream,1,0,1,1,,10,2-3 6-8,,,", "stream,1,0,1,1,,8,2-3 6-8,,,"),
        ("stream,1,0,1,1,,10,2-3 6-8,,,", "stream,1,0,1048576,1,,10,2-3 6-8,,,"),
        ("stream,1,0,1,1,,10,2-3 6-8,,,", "stream,4294967296,0,1,1,,10,2-3 6-8,,,"),
        ("stream,1,0,1,1,,10,2-3 6-8,,,", "stream,1,0,1,1,,10,2-1125899906842624,,,"),
        ("stream,1,0,1,1,,10,2-3 6-8,,,", "stream,1,0,1,1,,10,2-3 6-8,ordered,,"),
        ("stream,1,0,1,1,,10,2-3 6-8,,,", "stream,1,0,1,1,,10,18446744073709551616,,,"),
        ("stream,1,0,1,1,,10,2-3 6-8,,,", "late,,,,,,,1,,,"),
        ("absent,,,,,,,3,,,", "absent,,,,,,,0-16777216,,,"),
        ("absent,,,,,,,3,,,", "absent,,,,,,1,3,,,"),
        ("stream_reordered,,,,,,1,4,,,", "stream_duplicated,,,,,,1,,,,"),
        ("stream_reordered,,,,,,1,4,,,", "stream_reordered,,,,,,1,4 2,,,"),
        ("stream_reordered,,,,,,1,4,,,", "stream_reordered,,,,,,1,1125899906842624,,,"),
        ("stream_reordered,,,,,,1,4,,,", "stream_permitted,,,,,,1,4,,,"),
    ]

    @Test("a row with another kind, a number out of bounds or an impossible reference is refused", arguments: damages)
    func damaged(_ sample: (row: String, instead: String)) {
        let text = LedgerCSV.text(LedgerSamples.full)
        #expect(text.contains("\n\(sample.row)\n"))
        #expect(LedgerCSV.read(text.replacing("\n\(sample.row)\n", with: "\n\(sample.instead)\n")) == nil)
    }

    @Test("whatever a file has, reading it and joining what was read never traps", arguments: 0..<20)
    func hostile(_ seed: Int) {
        var random = SplitMix64(seed: UInt64(seed))
        let text = Array(LedgerCSV.text(seed == 0 ? LedgerSamples.full : LedgerSamples.drawn(seed: UInt64(seed))).utf8)
        let numbers = ["0", "1", "65535", "1048575", "4194303", "4294967295", "1125899906842623", "1125899906842624"]
        var accepted = 0
        for _ in 0..<100 {
            var other = text
            let place = Int.random(in: 0..<other.count, using: &random)
            if Bool.random(using: &random) {
                other[place] = UInt8.random(in: 0x20...0x7E, using: &random)
            } else {
                // A whole number becomes another one.
                let isDigit: (UInt8) -> Bool = { (0x30...0x39).contains($0) }
                guard let start = other[place...].firstIndex(where: isDigit) else { continue }
                let end = other[start...].firstIndex { !isDigit($0) } ?? other.endIndex
                other.replaceSubrange(start..<end, with: numbers.randomElement(using: &random)?.utf8 ?? "7".utf8)
            }
            guard let ledger = LedgerCSV.read(String(decoding: other, as: UTF8.self)) else { continue }
            accepted += 1
            let joint = Reconciliation(joining: [ledger, ledger])
            #expect(joint.metrics(ledger.places, hasGroups: true, hasGaps: true).allSatisfy { $0.counter != nil })
        }
        #expect(accepted > 0)
    }
}
