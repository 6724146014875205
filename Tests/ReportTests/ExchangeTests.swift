import Measurement
import Report
import Testing

@Suite("Comparisons as texts")
struct ComparisonTextTests {
    private static let comparison: Comparison = {
        var synthetic = SyntheticRuns(seed: 20)
        let base = synthetic.runs(5)
        var new = synthetic.runs(5, slower: 1.2)
        var record = new[4].record
        record.errors = [ErrorRecord(kind: "<reset>", count: 3, firstAt: "", example: "")]
        record.verdict?.add(.generatorLimited, Verdict.Reason(code: "cpu", text: "late"))
        new[4] = ComparedRun(path: "run-4|*", record: record)
        return Comparison(base: base, new: new)
    }()

    @Test("for a terminal")
    func terminal() throws {
        try Golden.check(ComparisonText(Self.comparison, showsAll: true).text, "compare.txt")
        let pair = Comparison(base: [Self.comparison.base[0]], new: [Self.comparison.new[0]])
        try Golden.check(ComparisonText(pair).text, "compare-pair.txt")
    }

    @Test("for a pull request, for build servers, and as JSON")
    func others() throws {
        try Golden.check(ComparisonMarkdown.text(Self.comparison), "compare.md")
        try Golden.check(JUnitXML(Self.comparison).text, "compare-junit.xml")
        try Golden.check(try ComparisonJSON.text(Self.comparison), "compare.json")
    }

    @Test("JUnit holds what XML has no characters for as U+FFFD, and escapes the rest")
    func escapes() {
        let text = JUnitXML(
            suite: "a<b",
            cases: [.init(group: "\"&'", name: "x\u{1}\ny", outcome: .failed("\u{1B}[0m>"))]
        )
        .text
        #expect(text.contains(#"<testsuite name="a&lt;b" tests="1" failures="1" errors="0" skipped="0">"#))
        #expect(text.contains("<testcase classname=\"&quot;&amp;'\" name=\"x\u{FFFD}&#10;y\">"))
        #expect(text.contains("<failure message=\"\u{FFFD}[0m&gt;\"/>"))
    }
}

@Suite("Runs for build servers")
struct RunExchangeTests {
    static let records: [(name: String, record: RunRecord)] = [
        ("pubsub", Samples.pubsub), ("aborted", Samples.aborted),
    ]

    @Test("thresholds and verdict as JUnit XML and Markdown", arguments: 0..<2)
    func texts(_ index: Int) throws {
        let (name, record) = Self.records[index]
        try Golden.check(JUnitXML(record, isStrict: false).text, "junit-\(name).xml")
        try Golden.check(RunMarkdown.text(record), "summary-\(name).md")
    }

    @Test("a run of the generator's fails its case with --strict alone")
    func strict() {
        var record = Samples.pubsub
        record.verdict?.add(.generatorLimited, Verdict.Reason(code: "schedule-lag", text: "late <1>"))
        #expect(JUnitXML(record, isStrict: true).text.contains("failures=\"1\""))
        let lenient = JUnitXML(record, isStrict: false).text
        #expect(lenient.contains("failures=\"0\""))
        #expect(lenient.contains("<system-out>generator-limited&#10;late &lt;1&gt; [schedule-lag]</system-out>"))
    }

    @Test("a threshold of lost messages has their causes with it, no other one does", arguments: [true, false])
    func losses(_ ok: Bool) {
        var record = Samples.pubsub
        record.ledger.lost = ["violated": 1]
        record.thresholds = [
            ThresholdResult(expression: "delivery_lost == 0", ok: ok, value: 1),
            ThresholdResult(expression: "publish_sent > 0", ok: true, value: 1),
        ]
        let text = JUnitXML(record, isStrict: false).text
        let words = "measured: 1&#10;lost 1 (violated)"
        let failure = "<failure message=\"\(words)\" type=\"broken\"/>"
        #expect(text.contains(ok ? "<system-out>\(words)</system-out>" : failure))
        #expect(text.contains("<system-out>measured: 1</system-out>"))
    }

    @Test("where nothing can be written is known before")
    func places() throws {
        let folder = try TemporaryFolder()
        #expect(ReportFile.problem("\(folder.path)/new.xml") == nil)
        #expect(ReportFile.problem(folder.path) == "is a directory; name a file")
        #expect(ReportFile.problem("\(folder.path)/no/new.xml") == "No such file or directory")
        #expect(try folder.entries().isEmpty)
        try ReportFile.append("a", to: "\(folder.path)/s.md")
        try ReportFile.append("b", to: "\(folder.path)/s.md")
        #expect(try folder.read("s.md") == "ab")
        try ReportFile.write("c", to: "\(folder.path)/s.md")
        #expect(try folder.read("s.md") == "c")
    }
}
