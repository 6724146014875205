import Measurement
import Report
import Testing

@Suite("A run as it goes on")
struct LiveRunTests {
    private func live(_ intervals: [TimelineInterval], keepsDurations: Bool = true) -> LiveRun {
        let course = LiveCourse(stages: [LiveCourse.Stage("measure", seconds: 3)])
        let begun = Samples.begun(["clamor", "pub"])
        var run = LiveRun(begun, course: course, clients: 20, keepsDurations: keepsDurations)
        for interval in intervals { run.add(interval) }
        return run
    }

    private func series(_ metrics: [Metric]) -> [Series: Metric] {
        Dictionary(uniqueKeysWithValues: metrics.map { (Series(name: $0.name, labels: $0.labels), $0) })
    }

    @Test("its totals are those of the run's own record")
    func totals() throws {
        let run = SimulatedRun()
        let (own, known) = (self.series(self.live(run.intervals).record.metrics), self.series(run.ended.metrics))
        #expect(Set(own.keys) == Set(known.keys))
        for (key, metric) in known {
            let live = try #require(own[key])
            switch (live.reading, metric.reading) {
            case (.counter(let one), .counter(let other)): #expect(one.value == other.value, "\(key)")
            case (.gauge(let one), .gauge(let other)): #expect(one == other, "\(key)")
            case (.duration(let one), .duration(let other)):
                // An encoding has the buckets, and not the exact extremes.
                #expect((one.count, one.p50, one.p99) == (other.count, other.p50, other.p99), "\(key)")
            default: Issue.record("\(key) is of another kind")
            }
        }
    }

    @Test("durations are added up only where they are asked for")
    func durations() {
        let run = self.live(SimulatedRun().intervals, keepsDurations: false)
        #expect(run.values.isEmpty)
        #expect(run.record.metrics.allSatisfy { $0.duration == nil })
    }

    @Test("a threshold reads the whole run, and knows no single stage")
    func thresholds() throws {
        let run = self.live(SimulatedRun().intervals)
        func value(_ sentence: String) throws -> Double? { try Threshold.parse(sentence).evaluate(in: run).value }
        #expect(try value("publish_sent count > 0") == 1000)
        #expect(try value("publish_ack_duration p50 < 1s") != nil)
        #expect(try value("publish_ack_duration{stage=peak} p50 < 1s") == nil)
    }

    @Test("its time line is the one that the file has", arguments: [6, 3700])
    func timeline(seconds: Int) throws {
        let folder = try TemporaryFolder()
        let begun = Samples.begun(["clamor", "pub"])
        var run = LiveRun(begun, course: LiveCourse(), clients: 20, keepsTimeline: true)
        let writer = try RunWriter(
            ResultDirectory.create(folder.path + "/run"),
            record: Samples.begun(["clamor", "pub"]),
            startedAt: Samples.startedAt
        )
        for second in 0..<seconds {
            let metrics = [
                Metric(name: "received", reading: .counter(CounterReading(value: Double(second % 7), rate: nil))),
                Metric(name: "clients", reading: .gauge(GaugeReading(value: Double(second)))),
            ]
            let interval = TimelineInterval(
                second: second,
                phase: second == 0 ? "connect" : "measure",
                seconds: 1,
                metrics: second % 2 == 0 ? metrics : Array(metrics.dropFirst()),
                lanes: []
            )
            run.add(interval)
            try writer.append(interval) { Samples.begun(["clamor", "pub"]) }
        }
        run.finish(Samples.begun(["clamor", "pub"]))
        let file = try writer.wholeTimeline()
        #expect(run.timeline.seconds == file.seconds)
        #expect(run.timeline.phases == file.phases)
        #expect(run.timeline.columns.map(\.name).sorted() == file.columns.map(\.name).sorted())
        for column in run.timeline.columns {
            let known = try #require(file.columns.first { $0.name == column.name })
            #expect(zip(column.values, known.values).allSatisfy { $0 == $1 || $0.isNaN && $1.isNaN }, "\(column.name)")
        }
    }

    @Test("a row of the time line has the first value of each series")
    func repeatedSeries() {
        var run = LiveRun(Samples.begun(["clamor", "pub"]), course: LiveCourse(), clients: 1, keepsTimeline: true)
        for second in 0..<3 {
            let metrics = [Double(second), 99].map { Metric(name: "clients", reading: .gauge(GaugeReading(value: $0))) }
            run.add(TimelineInterval(second: second, phase: "measure", seconds: 1, metrics: metrics, lanes: []))
        }
        #expect(run.timeline.columns.map(\.values) == [[0, 1, 2]])
    }

    @Test("without a time line it keeps the last minute only")
    func recent() {
        var run = self.live([])
        for second in 0..<4000 {
            let phase = second == 0 ? "connect" : "measure"
            run.add(TimelineInterval(second: second, phase: phase, seconds: 1, metrics: [], lanes: []))
        }
        run.finish(Samples.begun(["clamor", "pub"]))
        #expect(run.timeline.seconds.isEmpty)
        #expect(run.recent.map(\.second) == Array(3940..<4000))
        #expect(run.stages.count == 2)
    }

    @Test("the place in the course is counted from the begin of the load")
    func place() {
        let course = LiveCourse(
            stages: [.init("settle", seconds: 2, isMeasured: false), .init("peak", seconds: 4)],
            stretches: [.init(seconds: 2, from: 100, to: 100), .init(seconds: 4, from: 100, to: 500)]
        )
        var run = LiveRun(Samples.begun(["clamor", "pub"]), course: course, clients: 1)
        func add(_ phase: String, _ seconds: Double) {
            run.add(TimelineInterval(second: Int(run.elapsed), phase: phase, seconds: seconds, metrics: [], lanes: []))
        }
        add("connect", 1.5)
        #expect(run.place == nil)
        add("warmup", 1)
        #expect(run.place?.stage.name == "settle")
        #expect(run.place?.left == 5)
        #expect(run.plannedRate == 100)
        add("warmup", 1)
        add("measure", 1)
        #expect(run.place?.stage.name == "peak")
        #expect(run.place?.elapsed == 1)
        // The middle of the second from 2 s to 3 s of the load.
        #expect(run.plannedRate == 150)
        add("measure", 3)
        add("drain", 1)
        #expect(run.place == nil)
        #expect(run.stages.map(\.name) == ["connect", "settle", "peak", "drain"])
        #expect(run.stages.map(\.start) == [0, 1.5, 3.5, 7.5])
        #expect(run.measuredSeconds == 4)
    }
}
