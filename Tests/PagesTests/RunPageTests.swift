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
        "<li>server 192.0.2.1:1883</li>", "<li>2026-01-01 00:00:00 UTC</li>", "3.00 s measured of 4.00 s",
        // The badges.
        "valid</span>", "1 of 2 met</span>",
        // The tiles: 299 of 300 answers took 2 ms.
        "<p class=\"value\">2.00 ms</p>", "p99 &lt; 1ms: 2.00 ms", "worst 30.0 ms at 3 s", "acked 0/s at 2 s",
        // The course.
        "data-panel=\"rates\"", "data-panel=\"ack latency\"", "Table of the charts",
        // What failed is open, all else is folded.
        "<details class=\"section\" id=\"objectives\" open>", "<details class=\"section\" id=\"latency\" open>",
        "<details class=\"section\" id=\"books\">", "✗ broken", "✓ met",
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
        #expect(text.contains("none set</span>"))
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
                "<p class=\"lead bad\">The generator was the limit from 2 s on: sends began too late"
                    + " <a href=\"#event-1\">event 1</a></p>"
            )
        )
        #expect(text.contains("<li id=\"event-1\" class=\"evidence\" data-at=\"2\">"))
        #expect(!text.contains("class=\"remarks\""))
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

    @Test("draws no rate of the last 20 ms, and leaves out no error of them")
    func partialInterval() throws {
        var record = Self.record
        record.durationSeconds = 4.02
        record.stages[1].durationSeconds = 3.02
        record.errors = [ErrorRecord(kind: "reset", count: 1, firstAt: "2026-01-01T00:00:04Z", example: "")]
        let rest = ",count,min,mean,stddev,p50,p90,p95,p99,p999,p9999,max"
        var lines = ["second,phase,name,labels,type,unit,value,rate" + rest]
        for second in 0..<5 {
            let phase = second == 0 ? "connect" : "measure"
            let (count, rate) = second == 4 ? (1, 50) : second == 0 ? (0, 0) : (100, 100)
            for name in ["publish_offered", "publish_acked"] {
                lines.append("\(second),\(phase),\(name),qos=1,counter,,\(count),\(rate),,,,,,,,,,,")
            }
            let errors = second == 4 ? "1,50" : "0,0"
            lines.append("\(second),\(phase),errors,kind=reset,counter,,\(errors),,,,,,,,,,,")
        }
        let timeline = Timeline(text: lines.joined(separator: "\n") + "\n")
        #expect(timeline.lengths == [1, 1, 1, 1, 0.02])
        let text = try self.text(record, timeline)
        #expect(text.ranges(of: "\"values\":[0,100,100,100,null]").count == 2)
        #expect(text.contains("\"values\":[0,0,0,0,1]"))
        #expect(text.contains("most 1/s at 4 s"))
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
