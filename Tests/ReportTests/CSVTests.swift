import Report
import Testing

@Suite("CSV")
struct CSVTests {
    static let rows: [([String], String)] = [
        (["a", "", "b"], "a,,b\n"),
        (["", ""], ",\n"),
        (["qos=1;leg=puback", "0.5"], "qos=1;leg=puback,0.5\n"),
        (["a,b", "say \"no\"", "two\nlines"], "\"a,b\",\"say \"\"no\"\"\",\"two\nlines\"\n"),
        (["\"", "\"\"", "é"], "\"\"\"\",\"\"\"\"\"\",é\n"),
    ]

    @Test("quotes only what must be quoted, and reads it back", arguments: rows)
    func roundTrip(_ cells: [String], _ line: String) {
        #expect(CSV.row(cells) == line)
        #expect(CSV.cells(of: line.dropLast()) == cells)
    }

    @Test("an open quote is no row")
    func openQuote() { #expect(CSV.cells(of: "a,\"b") == nil) }
}
