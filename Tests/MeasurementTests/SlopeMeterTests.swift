import Measurement
import Testing

@Suite("Slopes of levels and latencies")
struct SlopeMeterTests {
    private static let memory = Metric(
        .serverMemory,
        labels: ["process": "one"],
        reading: .gauge(GaugeReading(value: 0))
    )

    private static let record = RunRecord(
        command: ["clamor"],
        tool: ToolRecord(name: "clamor", version: "1"),
        host: HostFacts(),
        plan: [:],
        startedAt: "2026-11-21T01:37:09Z"
    )

    private static func memory(_ bytes: Double) -> Metric {
        var metric = Self.memory
        metric.reading = .gauge(GaugeReading(value: bytes))
        return metric
    }

    private static func latency(_ seconds: Double, isBound: Bool = false) throws -> Metric {
        var histogram = Histogram()
        histogram.record(1_000, count: 100)
        var reading = try #require(DurationReading(histogram))
        reading.p99 = seconds
        if isBound { reading.bounds = ["p99"] }
        return Metric(duration: "publish_ack_duration", labels: ["qos": "1", "leg": "puback"], reading: reading)
    }

    /// The slope of each metric after so many intervals, of half a second and a second in turn.
    private static func slopes(_ count: Int, _ metrics: (_ time: Double) throws -> [Metric]) rethrows -> [Double?] {
        var meter = SlopeMeter()
        var time = 1e5
        for interval in 0..<count {
            let seconds = interval.isMultiple(of: 2) ? 0.5 : 1
            meter.add(try metrics(time), seconds: seconds)
            time += seconds
        }
        return meter.adding(to: try metrics(time)).map(\.slope)
    }

    @Test("are per hour, of a level and of the p99 of a latency, whatever the lengths of the intervals")
    func linear() throws {
        let slopes = try Self.slopes(90) { time in
            [Self.memory(4e9 + time * 1_048_576 / 3_600), try Self.latency(1 + time * 0.002 / 3_600)]
        }
        let (memory, latency) = (try #require(slopes[0]), try #require(slopes[1]))
        #expect(abs(memory - 1_048_576) < 1 && abs(latency - 0.002) < 1e-6)
    }

    @Test("of a level that only swings are near 0, and a level that falls has a negative one")
    func others() {
        let swings = Self.slopes(600) { [Self.memory(1e9 + ($0.rounded(.down).remainder(dividingBy: 2)) * 1e6)] }[0]
        #expect(abs(swings ?? .infinity) < 1e6)
        #expect(Self.slopes(60) { [Self.memory(1e9 - $0)] }[0].map { $0.rounded() } == -3_600)
    }

    @Test("are absent with fewer than 60 intervals, of what is no level of a server, and of bounds")
    func absent() throws {
        #expect(Self.slopes(59) { [Self.memory($0)] } == [nil])
        let clients = Metric(.clients, labels: ["state": "connected"], reading: .gauge(GaugeReading(value: 1)))
        let sent = Metric(name: "publish_sent", reading: .counter(CounterReading(value: 1, rate: 1)))
        #expect(Self.slopes(100) { _ in [clients, sent] } == [nil, nil])
        #expect(try Self.slopes(100) { [try Self.latency($0, isBound: true)] } == [nil])
        #expect(try Self.slopes(100) { [try Self.latency($0, isBound: $0 > 1e5 + 60)] } != [nil])
    }

    @Test(
        "are judged by thresholds",
        arguments: [
            ("server_memory_bytes slope < 1MiB/h", 1e6, true), ("server_memory_bytes slope < 1MiB/h", 1.1e6, false),
            ("server_memory_bytes slope <= 1MB/h", 1e6, true), ("server_memory_bytes slope < 1GiB/h", 1e9, true),
            ("server_memory_bytes{process=one} slope > 1kB/h", -5.0, false),
            ("server_memory_bytes slope < 1MiB/h", nil, false),
        ]
    )
    func thresholds(_ text: String, _ slope: Double?, _ isMet: Bool) throws {
        var record = Self.record
        var metric = Self.memory
        metric.slope = slope
        record.metrics = [metric]
        let result = try Threshold.parse(text).evaluate(in: record)
        #expect(result.ok == isMet && result.value == slope)
    }

    @Test(
        "are refused where no run has one",
        arguments: [
            ("publish_sent slope < 1/h", "publish_sent has no slope"), ("errors slope < 1/h", "errors has no slope"),
            ("clients slope < 1/h", "clients has no slope"), ("server_cpu_time slope < 1/h", "has no slope"),
            ("server_memory_bytes{stage=peak} slope < 1MiB/h", "leave 'stage' out"),
            ("server_memory_bytes slope < 1MiB/h", nil), ("host_cpu_idle slope > 0/h", nil),
        ]
    )
    func refused(_ text: String, _ words: String?) throws {
        var catalog = MetricCatalog()
        _ = catalog.gauge(.hostCPUIdle)
        let problem = try Threshold.parse(text).problem(in: catalog)?.description
        if let words { #expect(problem?.contains(words) == true, "\(problem ?? "")") }
    }

    @Test("of several servers add up, and of several latencies the steepest counts")
    func several() throws {
        var record = Self.record
        for (index, slope) in [2e6, 3e6].enumerated() {
            var metric = Metric(.serverMemory, labels: ["process": "\(index)"], reading: .gauge(GaugeReading(value: 0)))
            metric.slope = slope
            record.metrics.append(metric)
        }
        for (qos, slope) in [0.001, 0.003].enumerated() {
            var histogram = Histogram()
            histogram.record(1_000_000)
            let reading = try #require(DurationReading(histogram, encoded: histogram.encodedV2()))
            let labels: Labels = ["qos": "\(qos + 1)", "leg": qos == 0 ? "puback" : "pubcomp"]
            var metric = Metric(duration: "publish_ack_duration", labels: labels, reading: reading)
            metric.slope = slope
            record.metrics.append(metric)
        }
        #expect(try Threshold.parse("server_memory_bytes slope < 5.1MB/h").evaluate(in: record).value == 5e6)
        #expect(try Threshold.parse("publish_ack_duration slope < 2ms/h").evaluate(in: record).value == 0.003)
    }
}
