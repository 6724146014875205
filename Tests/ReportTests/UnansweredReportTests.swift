import Measurement
import Report
import Testing

@Suite("Messages without an answer, in every sink")
struct UnansweredReportTests {
    /// 980 answers, 5 messages that failed after 2 s, and 15 that are outstanding after 6 s.
    private static func values(_ scale: Int64 = 1) -> DurationValues {
        var values = DurationValues(answered: Samples.ramp(980, step: 1_000 * scale))
        values.unanswered.record(2_000_000_000, count: 5, as: .failed)
        values.unanswered.record(6_000_000_000, count: 15, as: .outstanding)
        return values
    }

    private static func interval(_ second: Int, _ values: DurationValues) throws -> TimelineInterval {
        let reading = try #require(DurationReading(values))
        let all = values.all
        return TimelineInterval(
            second: second,
            phase: "measure",
            seconds: 1,
            metrics: [Metric(duration: "publish_ack_duration", labels: ["qos": "1"], reading: reading)],
            lanes: [
                TimelineInterval.Lane(
                    name: "publish_ack_duration",
                    labels: ["qos": "1"],
                    measured: true,
                    count: all.count,
                    max: Double(all.max ?? 0) / 1e9,
                    histogram: all.encodedV2(),
                    unanswered: UnansweredReading(values.unanswered)
                )
            ]
        )
    }

    static var record: RunRecord {
        get throws {
            var record = Samples.pubsub
            let labels: Labels = ["leg": "puback", "qos": "1"]
            let reading = try #require(DurationReading(self.values(), isEncoded: true))
            let place = try #require(
                record.metrics.firstIndex { $0.name == "publish_ack_duration" && $0.labels == labels }
            )
            record.metrics[place].reading = .duration(reading)
            record.metrics += [
                Samples.counter("publish_outstanding", ["qos": "1"], 4_211),
                Samples.counter("delivery_outstanding", ["qos": "1"], 800),
            ]
            record.books[1].deliveryOutstanding = 800
            var lost = ThresholdResult(expression: "delivery_lost == 0", state: .undecided, value: 0)
            (lost.isBound, lost.high) = (true, 800)
            var ack = ThresholdResult(expression: "publish_ack_duration p99 < 250ms", state: .broken, value: 6)
            ack.isBound = true
            record.thresholds = [lost, ack, ThresholdResult(expression: "error_rate < 90%", ok: true, value: 0.5)]
            return record
        }
    }

    @Test("the summary prints bounds, what is outstanding, and three states of an objective")
    func summary() throws {
        let record = try Self.record
        func row(_ word: String, _ expression: String, _ value: String) -> String {
            "\n  \(word.paddedRight(to: 9))  \(expression.paddedRight(to: 32))  \(value)\n"
        }
        for detail in [Summary.Detail.compact, .full] {
            let text = Summary(record, detail: detail).text
            #expect(text.contains("VALID · 1 of 3 objectives met"))
            #expect(text.contains("≥ 6.00 s"))
            #expect(text.contains(row("undecided", "delivery_lost == 0", "0 to 800")))
            #expect(text.contains("\n             800 outstanding when the drain ended; give it more time\n"))
            #expect(text.contains(row("FAILED", "publish_ack_duration p99 < 250ms", "≥ 6.00 s")))
            #expect(text.contains(row("met", "error_rate < 90%", "50.0 %")))
        }
        let compact = Summary(record).text
        for line in compact.split(separator: "\n") { #expect(line.count <= 100, "\(line)") }
        let words = compact.split(whereSeparator: \.isWhitespace).joined(separator: " ")
        #expect(words.contains("4,211 outstanding") && words.contains("0 lost · 800 outstanding"))
    }

    @Test("the equation of what was sent has what the plan excused")
    func excused() {
        var record = Samples.pubsub
        record.books[1].offered? += 3
        record.books[1].sent? += 3
        record.books[1].excused = 3
        #expect(record.books.flatMap(\.imbalances).isEmpty)
        let text = Summary(record, detail: .full).text
        #expect(text.contains(" + excused 3") && !text.contains("≠"))
    }

    @Test("JUnit and Markdown tell a broken objective from an undecided one")
    func exchange() throws {
        let record = try Self.record
        let xml = JUnitXML(record, isStrict: false).text
        #expect(xml.contains("failures=\"2\""))
        let words = "measured: 0 to 800&#10;800 outstanding when the drain ended; give it more time"
        #expect(xml.contains("<failure message=\"\(words)\" type=\"undecided\"/>"))
        #expect(xml.contains("<failure message=\"measured: ≥ 6.00 s\" type=\"broken\"/>"))
        let markdown = RunMarkdown.text(record)
        #expect(markdown.contains("give it more time | **undecided** |"))
        #expect(markdown.contains("| ≥ 6.00 s | **FAILED** |") && markdown.contains("| 50.0 % | met |"))
    }

    @Test("the board and the progress line print a lower bound as one")
    func seconds() throws {
        func line(_ latencies: [Metric]) throws -> (board: String, progress: String) {
            var interval = try Self.interval(0, Self.values())
            interval.metrics = latencies
            var run = LiveRun(Samples.begun(["clamor", "pub"]), course: LiveCourse(), clients: 1)
            run.add(interval)
            let lines = LiveBoard(run, size: WindowSize(columns: 120, rows: 40), style: TerminalStyle()).lines
            let board = try #require(lines.first { $0.hasPrefix("  ack") })
            return (board, ProgressLine(interval, clientsPlanned: 1, errors: 0).plain)
        }
        func metric(_ labels: Labels, _ values: DurationValues) throws -> Metric {
            Metric(duration: "publish_ack_duration", labels: labels, reading: try #require(DurationReading(values)))
        }
        let bound = try metric(["qos": "1", "group": "a"], Self.values())
        let exact = try metric(["qos": "2", "group": "a"], DurationValues(answered: Samples.ramp(1000, step: 1000)))
        let one = try line([bound])
        #expect(one.board.split(whereSeparator: \.isWhitespace).joined(separator: " ").contains("µs ≥6.00 s ≥6.00 s"))
        #expect(one.progress.contains("  ack p99 ≥ 6.00 s"))
        // Of two series in one row, the p99 is at least the lower one, and the maximum is that of both.
        let two = try line([bound, exact]).board.split(whereSeparator: \.isWhitespace).joined(separator: " ")
        #expect(two.contains("µs ≥990 µs ≥6.00 s"), "\(two)")
        #expect(try line([exact]).progress.contains("  ack p99 990 µs"))
        // An exact maximum above a bound is a bound of both, for the missing answer may have taken longer.
        let slow = try metric(
            ["qos": "2", "group": "a"],
            DurationValues(answered: Samples.ramp(1000, step: 10_000_000))
        )
        let both = try line([bound, slow]).board.split(whereSeparator: \.isWhitespace).joined(separator: " ")
        #expect(both.contains("≥10.0 s"), "\(both)")
    }

    @Test("a comparison and a trend print a lower bound as one")
    func comparison() throws {
        let runs = try ["2026-11-25T10:00:00Z", "2026-11-26T10:00:00Z"].map { day in
            var record = try Self.record
            record.startedAt = day
            return ComparedRun(path: day, record: record)
        }
        let comparison = Comparison(base: [runs[0]], new: [runs[1]])
        let figure = try #require(
            comparison.figures.first { $0.name == "publish_ack_duration" && $0.field == .percentile(99) }
        )
        #expect(figure.baseText == "≥ 6.00 s" && figure.newText == "≥ 6.00 s")
        let text = ComparisonText(comparison, showsAll: true).text.split(whereSeparator: \.isWhitespace)
        #expect(text.joined(separator: " ").contains("≥ 6.00 s ≥ 6.00 s"))
        #expect(ComparisonMarkdown.text(comparison).contains("| ≥ 6.00 s | ≥ 6.00 s |"))
        #expect(JUnitXML(comparison).text.contains("≥ 6.00 s to ≥ 6.00 s"))
        let median = try #require(comparison.figures.first { $0.name == figure.name && $0.field == .percentile(50) })
        #expect(!median.baseText.contains("≥"))
        let row = try #require(RunTrend(runs).rows.first { $0.name == figure.name && $0.field == .percentile(99) })
        #expect(row.text(point: 0) == "≥ 6.00 s")
    }

    @Test("the worst second of the summary is a lower bound where its p99 is one", arguments: [true, nil])
    func worst(bound: Bool?) throws {
        var record = try Self.record
        var findings = FindingsRecord(sentence: "800 deliveries had not come")
        findings.worstSecond = FindingPoint(second: 3, value: 6, metric: "publish_ack_duration qos=1")
        findings.worstSecond?.bound = bound
        record.findings = findings
        #expect(Summary(record).text.contains("worst second at 3 s: ack p99 \(bound == true ? "≥ " : "")6.00 s"))
    }

    @Test("the CSV files have their columns, and older time lines without them are read")
    func csv() throws {
        let interval = try Self.interval(3, Self.values())
        let row = MetricsCSV.rows(interval)
        #expect(row.hasSuffix(",980,5,15,mean p99 p999 p9999 max\n"))
        let new = Timeline(text: MetricsCSV.timelineHeader + row)
        let header = MetricsCSV.timelineHeader.replacing(",answered,failed,outstanding,bounds", with: "")
        let old = Timeline(text: header + row.replacing(",980,5,15,mean p99 p999 p9999 max", with: ""))
        #expect(new.columns.map(\.values) == [[1_000]] && old.columns.map(\.values) == [[1_000]])
        #expect(new.columns.map(\.p99) == old.columns.map(\.p99))
        #expect(new.columns.map(\.bounds) == [[0]] && old.columns.map(\.bounds) == [[]])
    }

    @Test("a run that goes on adds them up bucket by bucket, and Prometheus has the answered ones")
    func live() throws {
        let (one, two) = (Self.values(), Self.values(3))
        var whole = one
        whole.merge(two)
        let joined = try #require(JoinedInterval.parallel([Self.interval(3, one), Self.interval(3, two)]))
        let reading = try #require(joined.metrics.first?.duration)
        #expect(reading.answered == 1_960 && reading.unanswered?.failed == 10)
        #expect(reading.unanswered?.outstanding == 30)
        #expect(reading.bounds == DurationReading(whole)?.bounds)
        let lane = try #require(joined.lanes.first)
        #expect(lane.unanswered?.failed == 10 && lane.unanswered?.outstanding == 30)

        var run = LiveRun(Samples.begun(["clamor", "pub"]), course: LiveCourse(), clients: 1, keepsDurations: true)
        for (second, values) in [one, two].enumerated() { run.add(try Self.interval(second, values)) }
        let values = try #require(run.values.first?.value)
        #expect(values.count == 2_000 && values.unanswered.failed == 10 && values.unanswered.outstanding == 30)
        for percent in [50, 90, 99, 99.9, 100] { #expect(values.percentile(percent) == whole.percentile(percent)) }
        let metric = try #require(run.record.metrics.first { $0.duration != nil })
        #expect(metric.duration?.bounds == DurationReading(whole)?.bounds)
        #expect(try Threshold.parse("publish_ack_duration p99 < 10s").evaluate(in: run).state == .undecided)
    }

    @Test("a record of clamor.run/1 is read, with thresholds that are met or broken")
    func first() throws {
        let folder = try TemporaryFolder()
        var record = Samples.aborted
        record.schema = "clamor.run/1"
        let text = try RunJSON.text(record).replacing("\"state\" : \"broken\"", with: "\"ok\" : false")
        try folder.write(text, to: "run.json")
        let read = try RunJSON.read(directory: folder.path)
        #expect(read.schema == "clamor.run/1")
        #expect(read.thresholds == record.thresholds)
        #expect(read.metrics.compactMap(\.duration).allSatisfy { $0.unanswered == nil && $0.bounds.isEmpty })
    }
}
