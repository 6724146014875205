import Measurement
import Pages
import Report
import RunResult
import Testing

@Suite("The page of a running run")
struct LivePageTests {
    /// `pub` for a planned 10 s, of which so many have passed.
    private func page(seconds: Int, verdict: Verdict = .valid) -> LivePage {
        var first = RunPageTests.record
        first.metrics = []
        first.books = []
        (first.verdict, first.durationSeconds, first.thresholds) = (nil, nil, [])
        let course = LiveCourse(stages: [LiveCourse.Stage("measure", seconds: 10)])
        var run = LiveRun(first, course: course, clients: 10, keepsDurations: true, keepsTimeline: true)
        for second in 0..<seconds {
            let sent = Metric(
                name: "publish_offered",
                labels: ["qos": "1"],
                reading: .counter(CounterReading(value: 100, rate: 100))
            )
            run.add(
                TimelineInterval(
                    second: second,
                    phase: second == 0 ? "connect" : "measure",
                    seconds: 1,
                    metrics: second == 0 ? [] : [sent],
                    lanes: []
                ),
                LiveStanding(verdict: verdict)
            )
        }
        return LivePage(run, findings: run.record.findings(in: run.timeline))
    }

    @Test("it follows the run, and nothing but its own server")
    func follows() throws {
        let text = try self.page(seconds: 4).text()
        #expect(text.contains("connect-src 'self'"))
        #expect(text.contains("new EventSource(\"events\")"))
        #expect(text.contains("Running for 4 s, 7 s until the load ends"))
        #expect(text.contains("so far: "))
        #expect(!text.contains("Made by") && !text.contains("<template"))
        #expect(text.contains("<p class=\"load\">server 192.0.2.1:1883 · 10 clients</p>"))
    }

    @Test("an event has header and content, and no second page")
    func body() throws {
        let body = try self.page(seconds: 4).body()
        #expect(body.hasPrefix("<header class=\"page\">"))
        #expect(body.contains("<main>"))
        #expect(!body.contains("<html"))
        #expect(!body.contains("<script"))
        #expect(try self.page(seconds: 4).text().contains(body))
    }

    @Test("a reason against the figures is there as soon as it is known")
    func verdict() throws {
        var verdict = Verdict()
        verdict.add(.generatorLimited, Verdict.Reason(code: "generator-cpu", text: "a loop used 99 % of a core"))
        let text = try self.page(seconds: 4, verdict: verdict).text()
        #expect(text.contains("generator-limited"))
        #expect(text.contains("a loop used 99 % of a core"))
    }

    @Test("before the first second it says so", arguments: [0, 1])
    func early(seconds: Int) throws {
        let text = try self.page(seconds: seconds).text()
        #expect(text.contains(seconds == 0 ? "The run is about to begin." : "Clients connect, for 1 s"))
    }

    @Test("the report of a finished run sends no request")
    func finished() throws {
        let text = try RunPage(RunPageTests.record, timeline: RunPageTests.timeline).text()
        #expect(!text.contains("connect-src"))
        #expect(!text.contains("EventSource"))
    }
}
