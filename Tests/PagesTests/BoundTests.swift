import Measurement
import Pages
import Report
import Testing

@Suite("Lower bounds on pages")
struct BoundTests {
    /// 100 answers after 1 ms, and as many messages without one after 6 s.
    private static var values: DurationValues {
        var values = DurationValues()
        values.answered.record(1_000_000, count: 100)
        values.unanswered.record(6_000_000_000, count: 100, as: .outstanding)
        return values
    }

    /// A run of 20,000 answers and 2,000 messages without one.
    private static func run(_ path: String, day: Int) throws -> ComparedRun {
        let run = ComparedSamples.run(path, median: 0.001, startedAt: "2026-11-0\(day)T10:00:00Z")
        var record = run.record
        var values = try #require(record.metrics[0].duration?.decodedValues())
        values.unanswered.record(6_000_000_000, count: 2_000, as: .outstanding)
        record.metrics[0].reading = .duration(try #require(DurationReading(values, isEncoded: true)))
        var findings = FindingsRecord(sentence: "2,000 messages were not answered")
        findings.worstSecond = FindingPoint(second: 1, value: 6)
        findings.worstSecond?.bound = true
        record.findings = findings
        return ComparedRun(path: path, record: record)
    }

    @Test("the page of a run: tile, its worst second and table")
    func page() throws {
        let record = try Self.run("run", day: 1).record
        let seconds = [DurationValues(answered: Self.values.answered), Self.values]
        let rows = try seconds.enumerated().map { second, values in
            let reading = try #require(DurationReading(values))
            let labels: Labels = ["leg": "puback", "qos": "1"]
            let metric = Metric(duration: "publish_ack_duration", labels: labels, reading: reading)
            return MetricsCSV.rows(
                TimelineInterval(second: second, phase: "measure", seconds: 1, metrics: [metric], lanes: [])
            )
        }
        let page = try RunPage(record, timeline: Timeline(text: MetricsCSV.timelineHeader + rows.joined())).text()
        #expect(page.contains("worst ≥ 6.00 s at 1 s"))
        // The tile has it.
        #expect(!page.contains("<dt>worst second, p99</dt>"))
        #expect(page.contains(">≥ 6.00 s</td>"))
        #expect(page.contains(">≥ 6.00 s<"))
    }

    @Test("the page of a comparison, and that of a trend")
    func runs() throws {
        let (base, new) = (try Self.run("base", day: 1), try Self.run("new", day: 2))
        let page = try ComparePage(Comparison(base: [base], new: [new])).text()
        #expect(page.contains("≥ 6.00 s → ≥ 6.00 s"))
        #expect(page.contains(">≥ 6.00 s</td>"))
        #expect(try TrendPage(RunTrend([base, new])).text().contains(": ≥ 6.00 s"))
    }
}
