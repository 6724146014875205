import Measurement
import Report
import Testing

@Suite("The limit of a capacity search")
struct CapacityLimitTests {
    private typealias Limit = CapacityRecord.Limit

    /// A run of one step: the figures that name a limit, each of which is absent unless it is given.
    struct Facts: Sendable, CustomTestStringConvertible {
        var name: String
        var verdict = "broken"
        var code: String?
        var idle: Double? = 0.5
        var thread: Double?
        var cpu: Double?
        var stopped: Double?
        var memory: (used: Double, limit: Double)?
        var tcp: Int64?
        var lostConnects: UInt64 = 0
        /// Nanoseconds from the write, and from due.
        var service: Int64 = 400_000
        var response: Int64 = 500_000
        var kind: CapacityRecord.Limit.Kind?

        var testDescription: String { self.name }

        /// Levels in the two measured seconds; in the connect phase they were 0, and an idle host idle.
        var timeline: Timeline {
            var timeline = Timeline()
            timeline.seconds = [0, 1, 2, 3]
            timeline.lengths = [1, 1, 1, 1]
            timeline.phases = ["connect", "measure", "measure", "drain"]
            func add(_ kind: MetricDefinition, _ value: Double?, _ labels: Labels = [:], rest: Double = 0) {
                guard let value else { return }
                var column = Timeline.Column(name: kind.name, labels: labels, kind: .gauge)
                column.values = [rest, value * 0.99, value * 1.01, rest]
                timeline.columns.append(column)
            }
            add(.hostCPUIdle, self.idle, rest: 1)
            add(.serverCPU, self.cpu ?? self.thread, ["process": "one"])
            add(.serverThreadCPU, self.thread.map { $0 / 10 }, ["process": "one", "thread": "log"])
            add(.serverThreadCPU, self.thread, ["process": "one", "thread": "loop"])
            // Many threads that have no series of their own.
            add(.serverThreadCPU, self.thread.map { $0 * 3 }, ["process": "one", "thread": "other"])
            add(.serverCPUThrottled, self.stopped, ["process": "one"])
            return timeline
        }

        var run: RunRecord {
            var run = Samples.begun(["clamor"])
            run.metrics = []
            run.verdict = Verdict()
            if let code { run.verdict?.add(.generatorLimited, [Verdict.Reason(code: code, text: "it was late")]) }
            func gauge(_ kind: MetricDefinition, _ value: Double, _ labels: Labels) {
                let reading = GaugeReading(value: value, min: value, mean: value, max: value)
                run.metrics.append(Metric(kind, labels: labels, reading: .gauge(reading)))
            }
            if let memory {
                gauge(.serverMemory, memory.used, ["process": "one"])
                gauge(.serverMemoryLimit, memory.limit, ["process": "one"])
                gauge(.serverMemory, memory.limit, ["process": "another"])
                gauge(.serverMemoryLimit, memory.limit * 8, ["process": "another"])
            }
            func duration(_ name: String, _ labels: Labels, _ nanoseconds: Int64) {
                var histogram = Histogram()
                histogram.record(nanoseconds, count: 100)
                run.metrics += [Samples.duration(name, labels, histogram)].compactMap(\.self)
            }
            duration("publish_service_duration", ["qos": "1", "leg": "puback"], self.service)
            duration("publish_ack_duration", ["qos": "1", "leg": "puback"], self.response)
            if let tcp { duration("connect_duration", ["phase": "tcp"], tcp) }
            if self.lostConnects > 0 {
                var histogram = Histogram()
                histogram.record(1_000_000, count: 100)
                var reading = DurationReading(histogram)
                reading?.unanswered = UnansweredReading(failed: self.lostConnects, outstanding: 0)
                let labels: Labels = ["phase": "total"]
                let metric = reading.map { Metric(duration: "connect_duration", labels: labels, reading: $0) }
                run.metrics += [metric].compactMap(\.self)
            }
            run.metrics.append(Samples.counter("publish_acked", ["qos": "1"], 100, rate: 1_500))
            return run
        }
    }

    static let rows: [Facts] = [
        Facts(name: "a load that holds has no limit", verdict: "held", thread: 0.99, kind: nil),
        Facts(name: "a step that was disturbed has none", verdict: "disturbed", idle: 0.01, thread: 0.99, kind: nil),
        Facts(name: "a full thread of the server", thread: 0.91, kind: .thread),
        Facts(name: "threads that have no series of their own are no thread", thread: 0.4, kind: .server),
        Facts(name: "a full thread on a full host", idle: 0.01, thread: 0.95, kind: .thread),
        Facts(name: "no thread is full, and the host is", idle: 0.04, thread: 0.8, kind: .host),
        Facts(name: "a full host, and no server is watched", idle: 0.04, kind: .host),
        Facts(name: "a quota comes before the thread that it stops", thread: 0.95, stopped: 0.3, kind: .quota),
        Facts(name: "a quota that hardly ever stops it", thread: 0.5, stopped: 0.01, kind: .server),
        Facts(name: "the memory of its group", thread: 0.2, memory: (950, 1_000), kind: .memory),
        Facts(name: "memory to spare", thread: 0.2, memory: (800, 1_000), kind: .server),
        Facts(name: "no CPU", verdict: "generator-limited", code: "generator-cpu", idle: 0.01, kind: .generator),
        Facts(name: "a full host", verdict: "generator-limited", code: "host-full", kind: .host),
        Facts(name: "waiting for the client, and fast answers", thread: 0.1, response: 9_000_000, kind: .window),
        Facts(name: "slow answers", thread: 0.1, service: 9_000_000, response: 30_000_000, kind: .server),
        Facts(
            name: "late answers that no client waited for",
            thread: 0.1,
            service: 700_000,
            response: 900_000,
            kind: .server
        ),
        Facts(name: "slow answers, and no server is watched", service: 9_000_000, response: 30_000_000, kind: .unknown),
        Facts(name: "connects are no limit of a rate", thread: 0.1, tcp: 1_010_000_000, lostConnects: 3, kind: .server),
    ]

    static let clients: [Facts] = [
        Facts(name: "connects that are sent again", thread: 0.1, tcp: 1_010_000_000, kind: .backlog),
        Facts(name: "connects that are refused", thread: 0.1, tcp: 1_000_000, lostConnects: 7, kind: .connections),
        Facts(name: "a full thread", thread: 0.95, tcp: 1_010_000_000, kind: .thread),
    ]

    private func record(_ steps: [(load: Double, facts: Facts)], of varies: String = "rate") -> CapacityRecord {
        var record = CapacityRecord(command: ["pub"], varies: varies, objectives: [], holdSeconds: 1)
        for (number, step) in ([(500, Facts(name: "small", verdict: "held"))] + steps).enumerated() {
            let made = CapacityRecord.Step(
                number: number + 1,
                load: step.0,
                phase: "doubling",
                verdict: step.1.verdict,
                reason: step.1.verdict == "held" ? nil : "late",
                directory: "steps/\(number + 1)"
            )
            _ = record.add(made, measuredBy: step.1.run, step.1.timeline)
        }
        return record
    }

    @Test("is what its figures show", arguments: rows)
    func kinds(_ facts: Facts) throws {
        let record = self.record([(2_000, facts)])
        let step = try #require(record.steps.last)
        #expect(step.limit?.kind == facts.kind, "\(step.limit?.words ?? "")")
        // Of the measured phase alone.
        for (figure, expected) in [(step.use?.serverThread, facts.thread), (step.use?.hostIdle, facts.idle)] {
            #expect(figure.map { ($0 * 1e6).rounded() } == expected.map { ($0 * 1e6).rounded() })
        }
        let line = record.line(step)
        #expect(line.contains("limit: ") == (facts.kind != nil && facts.kind != .unknown), "\(line)")
    }

    @Test("of a search for clients may be their connects", arguments: clients)
    func connects(_ facts: Facts) throws {
        let step = try #require(self.record([(2_000, facts)], of: "clients").steps.last)
        #expect(step.limit?.kind == facts.kind, "\(step.limit?.words ?? "")")
    }

    @Test("of the answer is what most of the steps show that broke nearest above it, and not those far beyond")
    func answer() {
        let full = Facts(name: "full", thread: 0.95)
        let idle = Facts(name: "idle", thread: 0.1, service: 9_000_000, response: 20_000_000)
        let far = Facts(name: "far", idle: 0.01, thread: 0.5)
        var record = self.record([
            (2_000, far), (1_000, idle), (1_050, full), (1_100, full), (1_900, far), (8_000, far),
        ])
        #expect(record.answer?.limit == nil)
        record.answer = .init(kind: "found", load: 900, low: 900, high: 1_100)
        record.nameLimit()
        #expect(record.answer?.limit?.kind == .thread)
        #expect(record.summary(files: nil).contains("Limit  thread: the server's thread loop used 95.0 % of a core\n"))
        // Of as many of each, the one nearer to what holds.
        record = self.record([(1_000, idle), (1_050, full)])
        record.answer = .init(kind: "found", load: 900, low: 900, high: 1_100)
        record.nameLimit()
        #expect(record.answer?.limit?.kind == .server)
        let reason = "the host was busy"
        record.answer = .init(kind: "generator-limited", load: 900, high: 1_000, reason: reason)
        record.nameLimit()
        #expect(record.answer?.limit == .init(.generator, reason))
        // A load that broke at or below the one that holds broke by chance.
        record.answer = .init(kind: "at-least", load: 8_000, low: 8_000)
        record.nameLimit()
        #expect(record.answer?.limit == nil)
    }
}
