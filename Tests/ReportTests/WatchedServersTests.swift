import Measurement
import Report
import Testing

@Suite("Servers that watches on their own hosts saw")
struct WatchedServersTests {
    private static func interval(
        _ second: Int,
        _ phase: String,
        seconds: Double = 1,
        _ metrics: [Metric] = []
    )
        -> TimelineInterval
    {
        TimelineInterval(second: second, phase: phase, seconds: seconds, metrics: metrics)
    }

    private static func cpu(_ value: Double, of process: String = "mosquitto") -> [Metric] {
        [
            Metric(.serverCPU, labels: ["process": process], reading: .gauge(GaugeReading(value: value))),
            Metric(
                .serverCPUTime,
                labels: ["process": process],
                reading: .counter(CounterReading(value: value, rate: value))
            ),
        ]
    }

    private static func time(_ interval: TimelineInterval, _ process: String = "mosquitto") -> Double? {
        interval.metrics.first { $0.isOf(.serverCPUTime) && $0.labels["process"] == process }?.counter?.value
    }

    @Test("each second of the load has what was seen in it, and the longer of two phases in one second")
    func seconds() {
        var watched = WatchedServers()
        for second in 0..<4 {
            watched.add(Self.interval(second, "watch", Self.cpu(Double(second + 1) / 10)), of: 1 << 20)
        }
        let load = [
            Self.interval(0, "connect", seconds: 0.3), Self.interval(0, "measure", seconds: 0.7),
            Self.interval(1, "measure"), Self.interval(2, "measure"), Self.interval(3, "drain", seconds: 0.5),
        ]
        let all = watched.adding(to: load)
        #expect(all.map { Self.time($0) } == [nil, 0.1, 0.2, 0.3, 0.4])
        #expect(all.map(\.phase) == load.map(\.phase))
        let metrics = watched.adding(to: [], of: all)
        let time = metrics.first { $0.isOf(.serverCPUTime) }?.counter
        #expect(abs((time?.value ?? 0) - 1) < 1e-9)
        // 0.6 CPU-seconds in 2.7 measured ones.
        #expect(abs((time?.rate ?? 0) - 0.6 / 2.7) < 1e-9)
    }

    @Test("ten seconds as one have the time of all ten, and the last level")
    func coarse() {
        var watched = WatchedServers()
        for second in 3_600..<3_610 {
            watched.add(Self.interval(second, "watch", Self.cpu(Double(second - 3_599) / 10)), of: 1 << 20)
        }
        let all = watched.adding(to: [Self.interval(3_600, "measure", seconds: 10)])
        #expect(abs((Self.time(all[0]) ?? 0) - 5.5) < 1e-9)
        #expect(all[0].metrics.first { $0.isOf(.serverCPU) }?.gauge?.value == 1)
    }

    @Test("a process that a segment watched too counts once, and servers of one name on two hosts stay apart")
    func names() {
        var watched = WatchedServers()
        watched.add(Self.interval(0, "watch", Self.cpu(0.5)), of: 1 << 20)
        watched.add(Self.interval(0, "watch", Self.cpu(0.2)), of: (1 << 20) + 9)
        let all = watched.adding(to: [Self.interval(0, "measure", Self.cpu(0.4))])
        #expect(all[0].metrics.count { $0.isOf(.serverCPUTime) } == 2)
        #expect(Self.time(all[0]) == 0.5)
        #expect(Self.time(all[0], "mosquitto (host 2)") == 0.2)
        #expect(watched.adding(to: Self.cpu(0.4), of: all).count { $0.isOf(.serverCPUTime) } == 2)
    }

    @Test("a watch cannot add what is not of a server")
    func foreign() {
        var watched = WatchedServers()
        let metric = Metric(.publishSent, labels: ["qos": "0"], reading: .counter(CounterReading(value: 5, rate: 5)))
        watched.add(Self.interval(0, "watch", [metric]), of: 1 << 20)
        #expect(watched.adding(to: [Self.interval(0, "measure")])[0].metrics.isEmpty)
    }
}
