import Measurement
import Report
import TestSupport
import Testing

@Suite("The page that Prometheus scrapes")
struct PrometheusPageTests {
    /// Texts of both formats, with what stands at the end of the golden files' names.
    static let formats: [PrometheusFormat: String] = [.text: "prom", .openMetrics: "openmetrics"]

    static let records = ["pubsub": Samples.pubsub, "mixed": Samples.mixed, "decode": Samples.decode]

    @Test("a record in both formats", arguments: ["pubsub", "mixed", "decode"], [PrometheusFormat.text, .openMetrics])
    func golden(_ name: String, _ format: PrometheusFormat) throws {
        let record = try #require(Self.records[name])
        let page = PrometheusPage(record: record, server: "mosquitto 2.0.11").text(format)
        let text = String(decoding: page, as: UTF8.self)
        try Golden.check(text, "prometheus-\(name).\(try #require(Self.formats[format]))")
        #expect(PrometheusParser(page, format).problems == [])
    }

    static func page(_ series: [PrometheusSeries], _ format: PrometheusFormat = .text) -> PrometheusParser {
        let info = PrometheusInfo(command: "clamor pub", version: "1")
        return PrometheusParser(PrometheusPage(info: info, series: series).text(format), format)
    }

    @Test("counters and gauges have base units and suffixes, and no suffix twice")
    func names() {
        let page = Self.page([
            PrometheusSeries(name: "publish_sent", labels: ["qos": "1"], value: .counter(3)),
            PrometheusSeries(name: "bytes_sent", unit: "bytes", value: .counter(12_345_678_901)),
            PrometheusSeries(name: "decode_time", labels: ["protocol": "mqtt"], unit: "seconds", value: .counter(0.5)),
            PrometheusSeries(name: "generator_memory_bytes", unit: "bytes", value: .gauge(48_300_000)),
            PrometheusSeries(name: "generator_cpu", labels: ["loop": "0"], unit: "cores", value: .gauge(0.25)),
            PrometheusSeries(name: "decode_packet_time", unit: "seconds", value: .gauge(2.6e-9)),
        ])
        #expect(page.problems == [])
        #expect(page["clamor_publish_sent_total", ["qos": "1"]] == 3)
        #expect(page["clamor_bytes_sent_total"] == 12_345_678_901)
        #expect(page["clamor_decode_time_seconds_total", ["protocol": "mqtt"]] == 0.5)
        #expect(page["clamor_generator_memory_bytes"] == 48_300_000)
        #expect(page["clamor_generator_cpu", ["loop": "0"]] == 0.25)
        #expect(page["clamor_decode_packet_time_seconds"] == 2.6e-9)
    }

    @Test("the type of a counter names its sample in the text format and its family in OpenMetrics")
    func counterType() {
        let series = [PrometheusSeries(name: "publish_sent", value: .counter(3))]
        #expect(Self.page(series).types["clamor_publish_sent_total"] == "counter")
        #expect(Self.page(series, .openMetrics).types["clamor_publish_sent"] == "counter")
        #expect(Self.page(series, .openMetrics)["clamor_publish_sent_total"] == 3)
    }

    @Test("a duration has buckets, sum, count, percentiles and the maximum")
    func duration() {
        // 1 ms to 1 s in steps of 1 ms.
        let ramp = Samples.ramp(1000, step: 1_000_000)
        let page = Self.page([PrometheusSeries(name: "ping_duration", unit: "seconds", value: .duration(ramp))])
        #expect(page.problems == [])
        let name = "clamor_ping_duration_seconds"
        let counts = ["0.0005": 0, "0.001": 1, "0.0025": 2, "0.1": 100, "0.25": 250, "1.0": 1000, "60.0": 1000.0]
        for (bound, count) in counts { #expect(page[name + "_bucket", ["le": bound]] == count, "le=\(bound)") }
        #expect(page[name + "_count"] == 1000)
        #expect(abs((page[name + "_sum"] ?? 0) / 500.5 - 1) < 0.0005)
        let quantiles = "clamor_ping_duration_quantile_seconds"
        #expect(page[quantiles, ["q": "1"]] == 1)
        for (label, value) in ["0.5": 0.5, "0.9": 0.9, "0.99": 0.99, "0.999": 0.999] {
            #expect(abs((page[quantiles, ["q": label]] ?? 0) / value - 1) < 0.001, "q=\(label)")
        }
    }

    @Test("an empty duration has counts of 0, and no percentiles")
    func emptyDuration() {
        let page = Self.page([PrometheusSeries(name: "ping_duration", unit: "seconds", value: .duration(Histogram()))])
        #expect(page.problems == [])
        #expect(page["clamor_ping_duration_seconds_count"] == 0)
        #expect(!page.samples.contains { $0.name == "clamor_ping_duration_quantile_seconds" })
    }

    @Test("labels are escaped, and their names made Prometheus's", arguments: [PrometheusFormat.text, .openMetrics])
    func labels(_ format: PrometheusFormat) {
        let labels: Labels = [
            "kind": "a \"quoted\"\\path\nnext", "le": "1", "q": "2", "a-b": "3", "a.b": "4", "9": "5", "__own": "6",
            "größe": "7", "none": "", "": "8",
        ]
        let page = Self.page([PrometheusSeries(name: "errors", labels: labels, value: .counter(1))], format)
        #expect(page.problems == [])
        let expected = [
            "kind": "a \"quoted\"\\path\nnext", "exported_le": "1", "exported_q": "2", "a_b": "3", "a_b2": "4",
            "_9": "5", "_own": "6", "gr__e": "7", "_": "8",
        ]
        #expect(page.samples.last?.labels == expected)
    }

    @Test("what is not known is absent, and of two equals the first counts")
    func absent() {
        let page = Self.page([
            PrometheusSeries(name: "clients", value: .gauge(.nan)),
            PrometheusSeries(name: "host_cpu_idle", value: .gauge(.infinity)),
            PrometheusSeries(name: "errors", value: .counter(-1)),
            PrometheusSeries(name: "reads", value: .counter(1)),
            PrometheusSeries(name: "reads", value: .counter(2)),
            // Another metric of the same name would spoil the page.
            PrometheusSeries(name: "reads_total", value: .gauge(3)),
        ])
        #expect(page.problems == [])
        #expect(page.samples.map(\.name) == ["clamor_run_info", "clamor_run_finished", "clamor_reads_total"])
        #expect(page["clamor_reads_total"] == 1)
    }

    @Test("the run's facts are constant metrics", arguments: [PrometheusFormat.text, .openMetrics])
    func info(_ format: PrometheusFormat) {
        var info = PrometheusInfo(command: "clamor pub", version: "0.1.0")
        info.name = "night"
        info.server = "mosquitto 2.0.11"
        info.phase = "drain"
        info.isFinished = true
        info.startedAt = 1_795_225_029_123_000_000
        let page = PrometheusParser(PrometheusPage(info: info, series: []).text(format), format)
        #expect(page.problems == [])
        let labels = ["name": "night", "command": "clamor pub", "version": "0.1.0", "server": "mosquitto 2.0.11"]
        #expect(page["clamor_run_info", labels] == 1)
        #expect(page["clamor_run_phase", ["phase": "drain"]] == 1)
        #expect(page["clamor_run_finished"] == 1)
        #expect(page["clamor_run_start_time_seconds"] == 1_795_225_029.123)
    }

    @Test("metrics of single stages are left out of a record's series")
    func stages() {
        var record = Samples.pubsub
        let whole = [PrometheusSeries](record: record).count
        record.metrics.append(Samples.counter("publish_sent", ["qos": "1", "stage": "peak"], 5))
        #expect([PrometheusSeries](record: record).count == whole)
        #expect(whole == Samples.pubsub.metrics.count)
    }

    @Test("a run so far has the counts of its record")
    func live() throws {
        let run = SimulatedRun()
        var live = LiveRun(run.begun, course: LiveCourse(), clients: 20, keepsDurations: true)
        for interval in run.intervals { live.add(interval) }
        let labels = ["qos": "1", "leg": "puback"]
        func page(_ live: LiveRun) -> PrometheusParser { PrometheusParser(PrometheusPage(live).text(.text), .text) }
        let soFar = page(live)
        live.finish(run.ended)
        let final = page(live)
        for (name, labels) in [
            ("clamor_publish_sent_total", ["qos": "1"]), ("clamor_publish_acked_total", ["qos": "1"]),
            ("clamor_publish_ack_duration_seconds_count", labels), ("clamor_clients", ["state": "connected"]),
        ] {
            let known = try #require(final[name, labels])
            #expect(known > 0)
            #expect(soFar[name, labels] == known, "\(name)")
        }
        #expect((soFar["clamor_run_finished", [:]], final["clamor_run_finished", [:]]) == (0, 1))
    }

    @Test("any series make a page without a broken rule", arguments: 0..<20 as Range<UInt64>)
    func anySeries(_ seed: UInt64) {
        var dice = SeededDice(seed: seed)
        let words = [
            "reads", "le", "q", "a b", "é", "\"", "\\", "\n", "total", "bytes", "", "9", "_", "seconds", "ß{}=,",
        ]
        func word() -> String {
            (0..<Int.random(in: 0...3, using: &dice)).compactMap { _ in words.randomElement(using: &dice) }
                .joined(separator: "_")
        }
        let series = (0..<30).map { _ in
            let labels = (0..<Int.random(in: 0...3, using: &dice)).map { _ in (word(), word()) }
            var histogram = Histogram()
            for _ in 0..<Int.random(in: 0...50, using: &dice) {
                histogram.record(Int64(truncatingIfNeeded: dice.next() >> UInt64.random(in: 44...60, using: &dice)))
            }
            let numbers: [Double] = [0, 1.5, 1e300, .leastNonzeroMagnitude, -3, .nan, .infinity, 9_007_199_254_740_992]
            let number = numbers.randomElement(using: &dice) ?? 0
            let values: [PrometheusSeries.Value] = [.duration(histogram), .counter(number), .gauge(number)]
            return PrometheusSeries(
                name: word(),
                labels: Labels(Dictionary(labels, uniquingKeysWith: { $1 })),
                unit: [nil, "bytes", "seconds", "cores"].randomElement(using: &dice) ?? nil,
                value: values.randomElement(using: &dice) ?? .gauge(0)
            )
        }
        for format in PrometheusFormat.allCases { #expect(Self.page(series, format).problems == []) }
    }

    @Test(
        "promtool has nothing to remark",
        .enabled(if: PrometheusServer.isInstalled, Comment(rawValue: PrometheusServer.missing)),
        arguments: ["pubsub", "mixed", "decode"]
    )
    func promtool(_ name: String) throws {
        let record = try #require(Self.records[name])
        #expect(try PrometheusServer.remarks(on: PrometheusPage(record: record).text(.text)) == "")
        // It does remark on a page that is wrong.
        #expect(try PrometheusServer.remarks(on: Array("# TYPE a counter\na 1\n".utf8)) != "")
    }
}
