import Charts
import Pages
import Testing

@Suite("Exact values behind charts")
struct PageDataTests {
    static let numbers: [(Double, String)] = [
        (0, "0"), (12_345, "12350"), (0.001_234_56, "0.001235"), (-1.5, "-1.5"), (999_999, "1000000"), (.nan, "null"),
        (.infinity, "null"),
    ]

    @Test("have four significant digits", arguments: numbers)
    func digits(_ value: Double, _ text: String) {
        #expect(PageData.number(value) == text)
    }

    @Test("are null in gaps, and cannot end the element that they stand in")
    func gaps() {
        var data = PageData(begins: [0, 1], lengths: [1, 0.5], stages: ["</script>", "b\"\\"])
        data.series = [.init("p", "n", unit: "s", style: ChartStyle(1), values: [.nan, 0.25])]
        #expect(data.json.contains("\"values\":[null,0.25]"))
        #expect(data.json.contains("[0,\"\\u003c/script>\"],[1,\"b\\\"\\\\\"]"))
        #expect(!data.json.contains("<"))
    }

    @Test("of a long run are joined: the mean of a rate, the highest of all else")
    func joined() {
        let count = 100_000
        let values = (0..<count).map { Double($0 % 2) }
        let begins = (0..<count).map(Double.init)
        var data = PageData(
            begins: begins,
            lengths: begins.map { _ in 1 },
            stages: begins.map { _ in "measure" }
        )
        data.series = [
            .init("a", "rate", unit: "/s", style: ChartStyle(0), values: values),
            .init("a", "latency", unit: "s", style: ChartStyle(1), values: values),
        ]
        // 200,000 values are more than 80,000: three intervals are joined, the first 0, 1, 0.
        #expect(data.json.contains("\"begin\":[0,3,6,"))
        #expect(data.json.contains("\"length\":[3,3,"))
        #expect(data.json.contains("\"values\":[0.3333,0.6667,"))
        #expect(data.json.contains("\"values\":[1,1,"))
        #expect(data.json.utf8.count < 1_000_000)
    }
}
