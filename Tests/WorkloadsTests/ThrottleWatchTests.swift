import Measurement
import RunResult
import Testing
import Workloads

@Suite("A server that holds its clients at a rate")
struct ThrottleWatchTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        var clients = 10.0
        var window = 16
        var offered: Double?
        var size = 350.0
        /// Stanzas that got through, by second.
        var progress: [Double]
        /// Of the clients, by client.
        var counts: [UInt64] = Array(repeating: 100, count: 10)
        /// Idle CPU of the host, by second, the last value repeated; empty if the kernel reports none.
        var idle: [Double] = [0.9]
        /// The part of a second in which a task waited for a CPU, in the same form.
        var pressure: [Double] = [0.02]
        /// Of a TCP connect, seconds.
        var way = 0.0002
        /// The rate in the report.
        var limit: Double?

        /// So many seconds alike, the first one with a burst.
        static func steady(_ rate: Double, burst: Double = 1, seconds: Int = 12) -> [Double] {
            [rate * burst] + Array(repeating: rate, count: seconds - 1)
        }
    }

    static let cases = [
        Case(testDescription: "ejabberd's 1,000 B/s", progress: Case.steady(28.6, burst: 10), limit: 1_000),
        Case(
            testDescription: "the same in lumps, as it reads",
            progress: [300, 0, 57, 29, 0, 57, 29, 0, 57, 29, 0, 57, 29, 0, 57],
            limit: 1_000
        ),
        Case(testDescription: "3,000 B/s", progress: Case.steady(85.7, burst: 6), limit: 3_000),
        Case(
            testDescription: "a bit below, since one ping waits for its answer too",
            window: 1,
            size: 91,
            progress: Case.steady(297, burst: 3),
            limit: 3_000
        ),
        Case(
            testDescription: "prosody's 10 kB/s with a thousand clients",
            clients: 1_000,
            progress: Case.steady(28_571),
            limit: 10_000
        ),
        Case(
            testDescription: "open loop, and it does not keep up",
            offered: 100,
            progress: Case.steady(28.6, burst: 3),
            limit: 1_000
        ),
        Case(
            testDescription: "open loop, and it keeps up: the plan is what is even",
            offered: 28.6,
            progress: Case.steady(28.6)
        ),
        Case(
            testDescription: "slow, and just at that rate, but from the first second on",
            window: 1,
            size: 91,
            progress: Case.steady(165)
        ),
        Case(
            testDescription: "clients that differ",
            progress: Case.steady(28.6, burst: 10),
            counts: (0..<10).map { 50 + $0 * 10 }
        ),
        Case(testDescription: "no such rate", progress: Case.steady(50)),
        Case(testDescription: "a fast server", progress: Case.steady(60_000)),
        Case(
            testDescription: "a busy server at that rate, whose seconds differ",
            clients: 1_000,
            progress: [28_571, 25_000, 32_000, 28_000, 24_000, 33_000, 28_571, 25_000, 32_000, 28_571, 26_000, 31_000]
        ),
        Case(
            testDescription: "a busy server at that rate, whose clients differ",
            clients: 1_000,
            progress: Case.steady(28_571),
            counts: (0..<100).map { 900 + $0 * 2 }
        ),
        Case(
            testDescription: "a long way, which is what takes the time",
            window: 1,
            size: 100,
            progress: Case.steady(100),
            way: 0.1
        ),
        Case(
            testDescription: "prosody's 10 KiB/s, by four clients",
            clients: 4,
            window: 4,
            progress: Case.steady(117),
            limit: 10_240
        ),
        Case(
            testDescription: "the same by reads of a whole window",
            clients: 4,
            window: 4,
            progress: [120, 112, 112, 112, 128, 112, 112, 128, 96, 128, 112, 112],
            limit: 10_240
        ),
        // As ejabberd was seen to, without any limit.
        Case(
            testDescription: "a server that slows down, and passes that rate",
            clients: 4,
            window: 4,
            progress: [330, 389, 265, 188, 154, 175, 141, 130, 122, 94, 102, 113]
        ),
        Case(
            testDescription: "at that rate in the end, but a limit without a burst lets no first seconds through",
            clients: 4,
            window: 4,
            progress: [330, 389, 265, 188, 116, 117, 118, 117, 116, 117, 118, 117]
        ),
        Case(
            testDescription: "the same, and the host is full: it came about by chance",
            clients: 4,
            window: 4,
            progress: Case.steady(117),
            idle: [0.02],
            pressure: [0.98]
        ),
        Case(
            testDescription: "no CPU is idle, and the kernel does not account for waiting tasks",
            clients: 4,
            window: 4,
            progress: Case.steady(117),
            idle: [0.1],
            pressure: []
        ),
        Case(
            testDescription: "CPU is idle, and yet a task waits for one: in another group, or bound to a few cores",
            clients: 4,
            window: 4,
            progress: Case.steady(117),
            idle: [0.6],
            pressure: [0.7]
        ),
        Case(
            testDescription: "the kernel tells nothing",
            clients: 4,
            window: 4,
            progress: Case.steady(117),
            idle: [],
            pressure: [],
            limit: 10_240
        ),
        Case(
            testDescription: "full for half of the time, which is left out",
            clients: 4,
            window: 4,
            progress: Case.steady(117, seconds: 8) + Case.steady(20, seconds: 4),
            idle: Array(repeating: 0.5, count: 8) + [0],
            limit: 10_240
        ),
        Case(
            testDescription: "full for all but three of the seconds",
            clients: 4,
            window: 4,
            progress: Case.steady(117),
            idle: Array(repeating: 0, count: 9) + [0.9]
        ),
        Case(
            testDescription: "full, and with CPU to spare much faster: the mean is near a limit by chance",
            clients: 4,
            window: 4,
            progress: [117, 117, 117, 117, 30, 400, 30, 400, 30, 400, 30, 400, 30, 400, 30, 400, 30, 30, 30],
            idle: [0.5, 0.5, 0.5, 0.5, 0, 0.5, 0, 0.5, 0, 0.5, 0, 0.5, 0, 0.5, 0, 0.5, 0, 0, 0]
        ),
        Case(testDescription: "three seconds say nothing", progress: Case.steady(28.6, seconds: 3)),
        Case(testDescription: "nothing gets through", progress: Case.steady(0)),
    ]

    @Test("is distinguished from one at its limit", arguments: cases)
    func judges(_ example: Case) throws {
        var watch = ThrottleWatch(isOpenLoop: example.offered != nil, window: example.window)
        for (second, progress) in example.progress.enumerated() {
            let host = [("host_cpu_idle", example.idle), ("host_cpu_pressure", example.pressure)].compactMap {
                name,
                shares in
                (second < shares.count ? shares[second] : shares.last)
                    .map { Metric(name: name, reading: .gauge(GaugeReading(value: $0))) }
            }
            let sent = example.offered ?? progress
            watch.second(
                TimelineInterval(
                    second: second,
                    phase: "measure",
                    seconds: 1,
                    metrics: [
                        self.counter("stanza_offered", ["stanza": "message"], sent),
                        self.counter("stanza_sent", ["stanza": "message"], sent),
                        self.counter("bytes_sent", [:], sent * example.size),
                        self.counter("received", ["stanza": "message", "delayed": "false"], progress),
                        Metric(
                            name: "clients",
                            labels: ["state": "connected"],
                            reading: .gauge(GaugeReading(value: example.clients))
                        ),
                    ] + host,
                    lanes: []
                )
            )
        }
        var way = Histogram()
        way.record(Int64(example.way * 1e9))
        var record = RunRecord(
            command: [],
            tool: ToolRecord(name: "clamor", version: "0"),
            host: HostFacts.read(),
            plan: [:],
            startedAt: ""
        )
        record.metrics = [
            Metric(
                duration: "connect_duration",
                labels: ["phase": "tcp"],
                reading: try #require(DurationReading(way))
            )
        ]
        let notes = watch.notes(record, example.counts.enumerated().map(self.client))
        #expect(notes.map(\.limit) == (example.limit.map { [$0] } ?? []))
        #expect(notes.allSatisfy { $0.code == "server-shaper" })
    }

    private func counter(_ name: String, _ labels: Labels, _ value: Double) -> Metric {
        Metric(name: name, labels: labels, reading: .counter(CounterReading(value: value, rate: value)))
    }

    private func client(_ number: Int, _ count: UInt64) -> ClientAccount {
        var tally = ClientTally()
        tally.received = count
        return ClientAccount(
            number: number,
            group: "clients",
            qos: nil,
            tally: tally,
            sends: true,
            acknowledged: false,
            receives: true
        )
    }
}
