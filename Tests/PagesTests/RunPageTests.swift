import Measurement
import Pages
import Report
import Testing

@Suite("report.html of a run")
struct RunPageTests {
    /// A run of `pub` with one second of connects and three of load.
    static var record: RunRecord {
        var record = RunRecord(
            command: ["clamor", "pub", "-P", "it's"],
            tool: ToolRecord(name: "clamor", version: "0"),
            host: HostFacts(),
            plan: ["clients": 10, "targets": ["192.0.2.1:1883"], "name": "<night> & day"],
            startedAt: "2026-01-01T00:00:00Z"
        )
        record.durationSeconds = 4
        record.stages = [
            StageRecord(name: "connect", start: 0, durationSeconds: 1, measured: false),
            StageRecord(name: "measure", start: 1, durationSeconds: 3, measured: true),
        ]
        record.verdict = .valid
        var histogram = Histogram()
        histogram.record(2_000_000, count: 299)
        histogram.record(900_000_000)
        let acks = DurationReading(histogram, encoded: histogram.encodedV2()).map {
            Metric(duration: "publish_ack_duration", labels: ["qos": "1", "leg": "puback"], reading: $0)
        }
        record.metrics = [acks].compactMap(\.self)
        for name in ["publish_offered", "publish_acked"] {
            let reading = CounterReading(value: 300, rate: 100)
            record.metrics.append(Metric(name: name, labels: ["qos": "1"], reading: .counter(reading)))
        }
        record.thresholds = [
            ThresholdResult(expression: "publish_ack_duration p99 < 1ms", ok: false, value: 0.002),
            ThresholdResult(expression: "error_rate < 1%", ok: true, value: 0),
        ]
        var books = Books(qos: 1)
        books.offered = 300
        books.sent = 300
        books.notSent = 0
        record.books = [books]
        record.notes = [Verdict.Reason(code: "server-books", text: "<b>it's</b> & \"that\"")]
        return record
    }

    static var timeline: Timeline {
        var lines = [
            "second,phase,name,labels,type,unit,value,rate,count,min,mean,stddev,p50,p90,p95,p99,p999,p9999,max"
        ]
        for second in 0..<4 {
            let phase = second == 0 ? "connect" : "measure"
            let count = second == 0 ? 0 : second == 2 ? 0 : 100
            if count > 0 {
                lines.append(
                    "\(second),\(phase),publish_ack_duration,leg=puback;qos=1,duration,seconds,,,\(count),"
                        + ".001,.002,.001,.002,.002,.002,.0\(second),.9,.9,.9"
                )
            }
            for name in ["publish_offered", "publish_acked"] {
                lines.append("\(second),\(phase),\(name),qos=1,counter,,\(count),\(count),,,,,,,,,,,")
            }
        }
        return Timeline(text: lines.joined(separator: "\n") + "\n")
    }

    private func text(_ record: RunRecord = Self.record, _ timeline: Timeline = Self.timeline) throws -> String {
        try RunPage(record, timeline: timeline).text()
    }

    static let parts = [
        "<h1>&lt;night&gt; &amp; day</h1>", "<title>&lt;night&gt; &amp; day · clamor pub</title>",
        "<p class=\"load\">server 192.0.2.1:1883 · 10 clients</p>", "<li>2026-01-01 00:00:00 UTC</li>",
        "<li>3.00 s measured</li>", "<li>4.00 s in all</li>",
        // The badges.
        "valid</span>", "1 of 2 met, 1 broken</span>",
        // The sentence.
        "<p class=\"lead bad\">99 % of 300 messages answered within 2.00 ms.</p>",
        // The tiles: 299 of 300 answers took 2 ms.
        "<p class=\"value\">2.00 ms</p>", "</span>p99 &lt; 1ms</p>", "</span>error rate &lt; 1%</p>",
        "worst 30.0 ms at 3 s", "acked 0/s at 2 s",
        // The course.
        "data-panel=\"rates\"", "data-panel=\"ack latency\"", "Table of the charts",
        // What failed is open, all else is folded.
        "<details class=\"section\" id=\"objectives\" open>", "<details class=\"section\" id=\"latency\" open>",
        "<details class=\"section\" id=\"books\">", "✗ broken", "✓ met",
        // An expression may wrap.
        "<code>publish_<wbr>ack_<wbr>duration p99 &lt; 1ms</code>",
        // The command as a shell needs it.
        "<code>clamor pub -P &#39;it&#39;\\&#39;&#39;s&#39;</code>",
        // A note may quote what a server said.
        "<li>&lt;b&gt;it&#39;s&lt;/b&gt; &amp; &quot;that&quot; <code>server-books</code></li>",
    ]

    @Test("has what its first screen and its sections promise", arguments: parts)
    func holds(_ part: String) throws {
        #expect(try self.text().contains(part))
    }

    @Test("asks for nothing from a network, and forbids it")
    func offline() throws {
        let text = try self.text()
        #expect(text.contains("content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"))
        let urls = text.split(separator: "http", omittingEmptySubsequences: false).dropFirst().map { $0.prefix(22) }
        #expect(urls.allSatisfy { $0 == "://www.w3.org/2000/svg" || $0.hasPrefix("-equiv=") }, "\(Set(urls))")
    }

    @Test("leaves out what it has no data for")
    func absent() throws {
        var record = Self.record
        record.metrics = []
        record.books = []
        record.thresholds = []
        let text = try self.text(record, Timeline())
        #expect(text.contains("none set</span>") && !text.contains("class=\"badge good\""))
        for part in ["<figure", "id=\"course\"", "id=\"latency\"", "id=\"books\"", "id=\"objectives\"", "id=\"data\""] {
            #expect(!text.contains(part), "\(part)")
        }
    }

    @Test("shows the sentence with a link to its event, and gives a reason once")
    func lead() throws {
        var record = Self.record
        record.verdict?.add(.generatorLimited, .init(code: "schedule-lag", text: "sends began too late"))
        record.findings = FindingsRecord(
            sentence: "the generator was the limit from 2 s on: sends began too late",
            evidence: 1,
            events: [FindingEvent(number: 1, kind: .generator, second: 2, text: "too late at 2 s")]
        )
        let text = try self.text(record)
        #expect(
            text.contains(
                "<p class=\"lead bad\">The generator was the limit from 2 s on: sends began too late."
                    + " 99 % of 300 messages answered within 2.00 ms."
                    + " <a href=\"#event-1\">event 1</a></p>"
            )
        )
        #expect(text.contains("<li id=\"event-1\" class=\"evidence\" data-at=\"2\">"))
        #expect(!text.contains("class=\"remarks\""))
    }

    static let tones: [(sentence: String, thresholds: [ThresholdResult.State], tone: String, badge: String)] = [
        ("nothing broke", [], "plain", "plain\"><span class=\"label\">Objectives"),
        ("nothing broke", [.met], "good", "good\"><span class=\"label\">Objectives"),
        ("error reset at 2 s", [.met], "warn", "good\"><span class=\"label\">Objectives"),
        ("error reset at 2 s", [], "warn", "plain\"><span class=\"label\">Objectives"),
        ("nothing broke", [.met, .broken], "bad", "bad\"><span class=\"label\">Objectives"),
        ("nothing broke", [.met, .undecided], "bad", "warn\"><span class=\"label\">Objectives"),
    ]

    @Test("is green only where objectives are set and met, and nothing is wrong", arguments: tones)
    func tone(sentence: String, thresholds: [ThresholdResult.State], tone: String, badge: String) throws {
        var record = Self.record
        record.findings = FindingsRecord(sentence: sentence)
        record.thresholds = thresholds.map { ThresholdResult(expression: "error_rate < 1%", state: $0, value: 0) }
        let text = try self.text(record)
        #expect(text.contains("<p class=\"lead \(tone)\">99 % of 300 messages answered within 2.00 ms. "))
        #expect(text.contains("<p class=\"badge \(badge)"))
        #expect(!text.contains("nothing broke"))
    }

    @Test("has its head as Markdown, with all figures of the tiles, for the script")
    func markdown() throws {
        var record = Self.record
        record.plan["name"] = "night </template> & *day*"
        let text = try self.text(record)
        let begin = try #require(text.firstRange(of: "<template id=\"markdown\">")).upperBound
        let end = try #require(text[begin...].firstRange(of: "</template>")).lowerBound
        let markdown = text[begin..<end].replacing("&lt;", with: "<").replacing("&gt;", with: ">")
            .replacing("&amp;", with: "&")
        for part in [
            "### night &lt;/template&gt; &amp; \\*day\\*\n\n",
            "\n\nMeasurement: valid · Objectives: 1 of 2 met, 1 broken\n\n",
            "\n\nserver 192.0.2.1:1883 · 10 clients\n\n", "\n\n99 % of 300 messages answered within 2.00 ms.\n\n",
            "| ack p99 | 2.00 ms |\n", "| messages offered | 100/s |\n",
        ] {
            #expect(markdown.contains(part), "\(part) in\n\(markdown)")
        }
        // Buttons are the script's.
        #expect(!text.contains("<button"))
    }

    @Test("says that a run did not end, and shows nothing that is unknown")
    func killed() throws {
        var record = Self.record
        record.verdict = nil
        record.metrics = []
        record.thresholds = []
        let text = try self.text(record, Timeline())
        #expect(text.contains("The run did not end"))
        #expect(!text.contains("clients up"))
        #expect(!text.contains("<h2>errors</h2>"))
    }

    /// Messages in the last part of a second, at 100/s, and the rate that is drawn of it.
    static let lastParts: [(count: Int, rate: String, isMarked: Bool)] = [
        (2, "null", false), (9, "null", false), (30, "100", true), (60, "100", true), (95, "100", false),
    ]

    @Test("draws the rate of a part of a second as one, none below 100 ms, and each error", arguments: lastParts)
    func partialInterval(_ last: (count: Int, rate: String, isMarked: Bool)) throws {
        let length = Double(last.count) / 100
        var record = Self.record
        record.durationSeconds = 4 + length
        record.stages[1].durationSeconds = 3 + length
        record.errors = [ErrorRecord(kind: "reset", count: 1, firstAt: "2026-01-01T00:00:04Z", example: "")]
        let rest = ",count,min,mean,stddev,p50,p90,p95,p99,p999,p9999,max"
        var lines = ["second,phase,name,labels,type,unit,value,rate" + rest]
        for second in 0..<5 {
            let phase = second == 0 ? "connect" : "measure"
            let (count, rate) = second == 4 ? (last.count, 100) : second == 0 ? (0, 0) : (100, 100)
            for name in ["publish_offered", "publish_acked"] {
                lines.append("\(second),\(phase),\(name),qos=1,counter,,\(count),\(rate),,,,,,,,,,,")
            }
            let errors = second == 4 ? "1,\(1 / length)" : "0,0"
            lines.append("\(second),\(phase),errors,kind=reset,counter,,\(errors),,,,,,,,,,,")
        }
        let timeline = Timeline(text: lines.joined(separator: "\n") + "\n")
        #expect(timeline.lengths == [1, 1, 1, 1, length])
        let text = try self.text(record, timeline)
        #expect(text.ranges(of: "\"values\":[0,100,100,100,\(last.rate)]").count == 2)
        #expect(text.contains("class=\"hatch\"") == last.isMarked)
        #expect(text.contains("\"values\":[0,0,0,0,1]"))
        #expect(text.contains("most 1/s at 4 s"))
    }

    static let objectives: [(expression: String, value: Double, label: String, text: String)] = [
        ("publish_ack_duration p95 < 1ms", 0.0015, "ack p95", "1.50 ms"),
        ("publish_ack_duration{qos=1} p99.9 < 1s", 0.9, "ack p99.9", "900 ms"),
        ("publish_ack_duration max < 2s", 0.85, "ack max", "850 ms"),
        ("publish_acked count > 1", 300, "ack p99", "2.00 ms"),
    ]

    @Test("the tile of a latency has the figure of its objective", arguments: objectives)
    func objective(_ row: (expression: String, value: Double, label: String, text: String)) throws {
        var record = Self.record
        record.thresholds = [ThresholdResult(expression: row.expression, ok: true, value: row.value)]
        let text = try self.text(record)
        #expect(text.contains("<h2>\(row.label)</h2>\n<p class=\"value\">\(row.text)</p>"))
        // Of each second there is a p99 alone.
        #expect(text.contains("worst 30.0 ms at 3 s") == (row.label == "ack p99"))
        #expect(text.contains("worst p99 30.0 ms at 3 s") == (row.label != "ack p99"))
    }

    static let figureRows: [(headroom: Double?, hasTotals: Bool, facts: [String])] = [
        (nil, true, []), (nil, false, ["delivered of expected"]),
        (2.13, true, ["generator</dt><dd>could offer 2.1 times this load"]),
        (12.4, true, ["generator</dt><dd>could offer 12 times this load"]),
    ]

    @Test("key figures are those that no tile shows", arguments: figureRows)
    func keyFigures(_ row: (headroom: Double?, hasTotals: Bool, facts: [String])) throws {
        var record = Self.record
        (record.books[0].expected, record.books[0].received, record.books[0].lost) = (300, 299, 1)
        if row.hasTotals {
            for (name, value) in [("delivery_expected", 300.0), ("delivery_lost", 1)] {
                let reading = CounterReading(value: value, rate: nil)
                record.metrics.append(Metric(name: name, labels: ["qos": "1"], reading: .counter(reading)))
            }
        }
        var findings = FindingsRecord(sentence: "1 of 300 messages was lost")
        findings.worstSecond = FindingPoint(second: 3, value: 0.03)
        findings.headroom = row.headroom
        record.findings = findings
        let text = try self.text(record)
        #expect(text.contains("id=\"figures\"") == !row.facts.isEmpty)
        for fact in row.facts { #expect(text.contains("<dt>\(fact)")) }
        #expect(text.ranges(of: "<dt>worst second").isEmpty)
        #expect(text.contains("<h2>lost</h2>") == row.hasTotals)
    }

    static let heats: [(fixture: String, panels: [String])] = [
        ("mixed", ["ack latency", "delivery latency"]), ("one client", ["ack latency", "delivery latency"]),
        ("nothing received", []),
    ]

    @Test("answers and deliveries have a heat map each", arguments: heats)
    func heat(_ row: (fixture: String, panels: [String])) throws {
        let html = try #require(Fixture.all.first { $0.name == row.fixture }).html()
        for panel in row.panels { #expect(html.contains(" data-panel=\"\(panel)\"")) }
        // In three widths.
        #expect(html.ranges(of: " data-chart=\"heat\" data-plot").count == 3 * row.panels.count)
    }

    @Test("the CPU of the whole host is a line of its own hue")
    func host() throws {
        let html = try #require(Fixture.all.first { $0.name == "mixed" }).html()
        let panel = try #require(html.firstRange(of: "data-panel=\"CPU\""))
        let figure = html[panel.upperBound...].split(separator: "</figure>", maxSplits: 1)[0]
        #expect(figure.contains("<path class=\"line s7\""))
        #expect(!figure.contains("dash"))
    }

    static let slowestRows: [(count: Int, rows: Int, rest: String?)] = [
        (3, 3, nil), (10, 10, nil), (11, 10, "1 more"), (100, 10, "90 more"),
    ]

    @Test("the slowest messages fold after ten", arguments: slowestRows)
    func slowest(_ row: (count: Int, rows: Int, rest: String?)) throws {
        var fixture = Fixture.oneClient
        fixture.addSlowest(row.count, around: 5, of: ["client-1"])
        let html = try fixture.html()
        let section = html[try #require(html.firstRange(of: "id=\"slowest\"")).upperBound...]
        let table = section[..<(try #require(section.firstRange(of: "</table>")).lowerBound)]
        // The row of headers is one more.
        #expect(table.ranges(of: "<tr>").count == row.rows + 1)
        #expect(table.contains(">delivery</td>") && !table.contains("delivery_duration"))
        #expect(section.contains(" more</summary>") == (row.rest != nil))
        if let rest = row.rest { #expect(section.contains("<details class=\"part\"><summary>\(rest)</summary>")) }
    }

    @Test("names the segment whose p99 is over twice the median")
    func segments() throws {
        let segments = (1...4).map { number in
            var record = Self.record
            var histogram = Histogram()
            histogram.record(number == 3 ? 50_000_000 : 2_000_000, count: 1000)
            let acks = DurationReading(histogram).map {
                Metric(duration: "publish_ack_duration", labels: ["qos": "1"], reading: $0)
            }
            record.metrics = [acks].compactMap(\.self)
            return RunPage.Segment(name: "segment \(number)", record: record, timeline: Self.timeline)
        }
        let text = try RunPage(Self.record, timeline: Self.timeline, segments: segments).text()
        #expect(text.contains("outlier: segment 3"))
    }
}
