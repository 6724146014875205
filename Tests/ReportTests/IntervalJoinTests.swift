import Measurement
import Report
import Testing

/// Intervals of two processes that do not wait for each other, and the times of the run.
@Suite("Times of a run of several processes")
struct JoinedTimesTests {
    struct Case: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var intervals: [(second: Int, phase: String, seconds: Double)]
        var elapsed: Double
        var measured: Double
        var stages: [StageRecord]
    }

    private static func stage(_ name: String, _ start: Double, _ seconds: Double) -> StageRecord {
        StageRecord(name: name, start: start, durationSeconds: seconds, measured: name == "measure")
    }

    static let cases = [
        Case(
            testDescription: "one process connects while another measures",
            intervals: [
                (0, "connect", 1), (1, "connect", 1), (1, "measure", 1), (2, "connect", 1), (2, "measure", 1),
                (3, "measure", 1),
            ],
            elapsed: 4,
            measured: 3,
            stages: [Self.stage("connect", 0, 3), Self.stage("measure", 1, 3)]
        ),
        Case(
            testDescription: "an interval comes late and alone",
            intervals: [(0, "measure", 1), (1, "measure", 1), (2, "measure", 1), (0, "measure", 1), (3, "measure", 1)],
            elapsed: 4,
            measured: 4,
            stages: [Self.stage("measure", 0, 4)]
        ),
        Case(
            testDescription: "they wait for each other",
            intervals: [(0, "connect", 0.5), (0, "measure", 0.5), (1, "measure", 1), (2, "measure", 0.25)],
            elapsed: 2.25,
            measured: 1.75,
            stages: [Self.stage("connect", 0, 0.5), Self.stage("measure", 0.5, 1.75)]
        ),
        Case(
            testDescription: "one process measures a quarter of a second before another",
            intervals: [(0, "connect", 0.5), (0, "measure", 0.75), (1, "measure", 1), (2, "measure", 0.25)],
            elapsed: 2.25,
            measured: 2,
            stages: [Self.stage("connect", 0, 0.5), Self.stage("measure", 0.25, 2)]
        ),
        Case(
            testDescription: "samples that come late do not add up",
            intervals: (0..<100).map { ($0, "measure", 1.0625) },
            elapsed: 100.0625,
            measured: 100.0625,
            stages: [Self.stage("measure", 0, 100.0625)]
        ),
    ]

    private func run(_ intervals: [(second: Int, phase: String, seconds: Double)], processes: Int) -> LiveRun {
        var run = LiveRun(Samples.begun(["clamor", "pub"]), course: LiveCourse(), clients: 2, processes: processes)
        for (second, phase, seconds) in intervals {
            run.add(TimelineInterval(second: second, phase: phase, seconds: seconds, metrics: [], lanes: []))
        }
        return run
    }

    @Test("no stretch of time counts twice", arguments: Self.cases)
    func times(_ example: Case) {
        let run = self.run(example.intervals, processes: 2)
        #expect(run.elapsed == example.elapsed)
        #expect(run.measuredSeconds == example.measured)
        #expect(run.stages == example.stages)
        #expect(run.latest?.second == example.intervals.map(\.second).max())
        #expect(run.recent.map(\.second) == example.intervals.map(\.second).sorted().suffix(run.recent.count))
    }

    @Test("the parts of a second of one process add up, and a second that is missing counts")
    func oneProcess() {
        let run = self.run(
            [(0, "connect", 0.5), (0, "measure", 0.75), (1, "measure", 1), (4, "measure", 1)],
            processes: 1
        )
        #expect(run.elapsed == 5)
        #expect(run.measuredSeconds == 2.75)
    }
}

@Suite("Intervals of several processes, joined as they come")
struct IntervalJoinTests {
    private func interval(
        _ second: Int,
        _ phase: String = "measure",
        seconds: Double = 1,
        sent: Double
    ) -> TimelineInterval {
        let metric = Metric(name: "publish_sent", reading: .counter(CounterReading(value: sent, rate: sent / seconds)))
        return TimelineInterval(second: second, phase: phase, seconds: seconds, metrics: [metric], lanes: [])
    }

    private func sent(_ intervals: [TimelineInterval]) -> [[Double]] {
        intervals.map { [Double($0.second), $0.metrics.compactMap(\.counter?.value).reduce(0, +)] }
    }

    @Test("a second is complete when every process has reported it")
    func complete() {
        var join = IntervalJoin(0..<2)
        #expect(join.add(self.interval(0, sent: 1), of: 0).isEmpty)
        #expect(join.add(self.interval(1, sent: 2), of: 0).isEmpty)
        #expect(self.sent(join.add(self.interval(0, sent: 10), of: 1)) == [[0, 11]])
        #expect(self.sent(join.add(self.interval(1, sent: 20), of: 1)) == [[1, 22]])
    }

    /// The second hand of a busy process is late, and then two intervals begin in one second.
    @Test("two intervals of one process in one second follow each other", arguments: [false, true])
    func parts(isEnded: Bool) {
        var join = IntervalJoin(0..<2)
        _ = join.add(self.interval(0, seconds: 0.5, sent: 10), of: 0)
        _ = join.add(self.interval(0, seconds: 0.75, sent: 15), of: 0)
        _ = join.add(self.interval(1, sent: 1), of: 0)
        if isEnded { #expect(join.end(0).isEmpty) }
        let joined = join.add(self.interval(0, sent: 8), of: 1)
        let rates = joined.map { $0.metrics.compactMap(\.counter?.rate) }
        #expect(joined.first?.seconds == 1.25)
        #expect(rates.first == [28])
    }

    @Test("intervals missing from a process come alone when it has ended")
    func end() {
        var join = IntervalJoin(0..<2)
        _ = join.add(self.interval(0, sent: 1), of: 0)
        #expect(self.sent(join.end(1)) == [[0, 1]])
        #expect(self.sent(join.add(self.interval(1, sent: 2), of: 0)) == [[1, 2]])
        #expect(join.end(0).isEmpty)
    }

    @Test("a process that stands still holds up the others for a few seconds only")
    func patience() {
        var join = IntervalJoin(0..<2)
        var joined: [TimelineInterval] = []
        for second in 0..<20 { joined += join.add(self.interval(second, sent: 1), of: 0) }
        #expect(joined.count == 16)
        #expect(self.sent(join.add(self.interval(0, sent: 5), of: 1)) == [[0, 5]])
    }

    /// Whatever the order, each interval is counted once.
    @Test("every interval is counted once", arguments: 0..<50 as Range<UInt64>)
    func once(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        let phases = ["connect", "warmup", "measure", "drain"]
        var queues = (0..<3).map { process in
            (0..<Int(random.next() % 30)).map { second in
                self.interval(second / 2, phases[min(3, second / 8)], sent: Double(process * 1000 + second))
            }
        }
        let whole = queues.flatMap(\.self).flatMap(\.metrics).compactMap(\.counter?.value).reduce(0, +)
        var join = IntervalJoin(0..<3)
        var joined: [TimelineInterval] = []
        var live = Set(0..<3)
        while let process = live.randomElement(using: &random) {
            if queues[process].isEmpty {
                joined += join.end(process)
                live.remove(process)
            } else {
                joined += join.add(queues[process].removeFirst(), of: process)
            }
        }
        #expect(joined.flatMap(\.metrics).compactMap(\.counter?.value).reduce(0, +) == whole)
    }
}
