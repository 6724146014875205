import Foundation
import Measurement
import Testing
import Workloads

@Suite("Variables of a message")
struct MessageVariableTests {
    static let lines = RowTable(columns: ["line"], cells: ["one", "two", "three"].map { Array($0.utf8) }, digest: "d")
    static let parts = MessageParts(ledgerSize: 24, lines: ["rows.txt": Self.lines])

    static func values(client: Int = 1, message: UInt64 = 0) -> PlaceholderValues {
        // 2026-02-28T23:59:59.987654321Z.
        PlaceholderValues(clientNumber: client, messageNumber: message, nanoseconds: 1_772_323_199_987_654_321)
    }

    private func render(_ text: String, message: UInt64 = 0, client: Int = 1, seed: UInt64 = 1) -> String {
        var random = SplitMix64(seed: seed, client: client, message: message)
        let template = Template(parsing: Array(text.utf8), message: Self.parts)
        let bytes = template.rendered(Self.values(client: client, message: message), random: &random)
        return String(decoding: bytes, as: UTF8.self)
    }

    @Test("have the form that was asked for, within the bounds, and reach both")
    func numbers() throws {
        var (seen, digits) = (Set<Int>(), Set<String>())
        for message in 0..<2_000 as Range<UInt64> {
            seen.insert(try #require(Int(self.render("%{int -2..2}", message: message))))
            let text = self.render("%{float -0.1..0.1 2}", message: message)
            #expect(text.wholeMatch(of: /-?0\.[01][0-9]/) != nil, "\(text)")
            digits.insert(text)
            #expect(["3", "4"].contains(self.render("%{float 3..4 0}", message: message)))
        }
        #expect(seen == [-2, -1, 0, 1, 2])
        #expect(digits.count == 21 && digits.contains("-0.10") && digits.contains("0.10") && digits.contains("0.00"))
        #expect(self.render("%{int -9223372036854775808..-9223372036854775808}") == "-9223372036854775808")
    }

    @Test("choose, name, and tell the time")
    func texts() {
        let choices = (0..<300 as Range<UInt64>).map { self.render("%{choice on,off,,late}", message: $0) }
        #expect(Set(choices) == ["on", "off", "", "late"])
        let names = (0..<300 as Range<UInt64>).map { self.render("%{uuid}", message: $0) }
        #expect(Set(names).count == 300)
        let form = /[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/
        #expect(names.allSatisfy { $0.wholeMatch(of: form) != nil && UUID(uuidString: $0) != nil })
        #expect(self.render("%{time iso}|%{time ms}|%{time s}") == "2026-02-28T23:59:59.987Z|1772323199987|1772323199")
    }

    @Test("a line for each message: clients begin one line apart, and go on from the first after the last")
    func lineTables() {
        let first = (0..<4 as Range<UInt64>).map { self.render("%{line rows.txt}", message: $0) }
        #expect(first == ["one", "two", "three", "one"])
        #expect(self.render("%{line rows.txt}", message: 0, client: 3) == "three")
    }

    @Test("the seed decides what is drawn")
    func seeds() {
        let text = "%{int 0..1000000} %{float 0..9 9} %{choice a,b,c,d} %{uuid}"
        #expect(self.render(text, seed: 5) == self.render(text, seed: 5))
        #expect(self.render(text, seed: 5) != self.render(text, seed: 6))
    }

    @Test("%{ledger} keeps its place, and is the only variable that does not vary")
    func ledger() {
        let template = Template(parsing: Array("{\"n\":%i,\"l\":\"%{ledger}\"}".utf8), message: Self.parts)
        var random = SplitMix64(seed: 1)
        var bytes = Array("front".utf8)
        #expect(template.render(Self.values(), random: &random, into: &bytes) == 5 + 12)
        #expect(bytes.count == 5 + 12 + 24 + 2 && template.hasLedger && !template.variesPerMessage)
        #expect(Template(parsing: Array("%{int 1..2}".utf8), message: Self.parts).variesPerMessage)
    }

    @Test("no other text has them, and a column of that name comes first")
    func elsewhere() {
        var random = SplitMix64(seed: 1)
        let rows = RowTable(columns: ["site"], cells: [Array("north".utf8)], digest: "")
        var values = Self.values()
        values.rows = rows
        let text = Array("%{site} %{uuid}".utf8)
        let plain = Template(parsing: text, columns: rows.columns).rendered(values, random: &random)
        #expect(String(decoding: plain, as: UTF8.self) == "north %{uuid}")
    }

    @Test(
        "a wrong one is reported with the right form",
        arguments: [
            ("%{int 10-90}", "%{int 10-90} is not like %{int 10..90}"),
            ("%{int 9..1}", "%{int 9..1} is not like %{int 10..90}"), ("%{int}", "%{int} is not like %{int 10..90}"),
            ("%{int 1.5..2}", "%{int 1.5..2} is not like %{int 10..90}"),
            ("%{float 1..2}", "%{float 1..2} is not like %{float 18.5..24.0 2}, with 0 to 9 digits"),
            ("%{float 1..2 10}", "%{float 1..2 10} is not like %{float 18.5..24.0 2}, with 0 to 9 digits"),
            ("%{float 1.234..2 2}", "%{float 1.234..2 2} is not like %{float 18.5..24.0 2}, with 0 to 9 digits"),
            ("%{choice}", "%{choice} is not like %{choice a,b,c}"), ("%{uuid 4}", "%{uuid 4} is not like %{uuid}"),
            ("%{time us}", "%{time us} is not like %{time iso}, %{time ms} or %{time s}"),
            ("%{line}", "%{line} is not like %{line FILE}"),
            ("%{ledger}%{ledger}", "%{ledger} is there twice; leave one"),
            ("%{ledger 2}", "%{ledger 2} is not like %{ledger}"),
            ("%{choice a,%{ledger}", "%{choice a,%{ledger} is not like %{choice a,b,c}"),
            ("%%%{int}", "%{int} is not like %{int 10..90}"),
        ]
    )
    func problems(_ text: String, _ problem: String) { #expect(Template.draft(Array(text.utf8)).problem == problem) }

    @Test(
        "the right ones are none",
        arguments: [
            "%{int 1..1}", "%{float -1.5..2 1}", "%{choice a}", "%{uuid}%{time s}", "%{line a b.txt}", "%%{int}",
            "%{site}", "%{ledger}", "{%{",
        ]
    )
    func noProblems(_ text: String) { #expect(Template.draft(Array(text.utf8)).problem == nil) }
}
