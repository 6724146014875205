import Measurement
import Report

extension Work {
    static let reports = [
        Work(.report, "histogram, V2 payload", operations: 1) {
            let filled = histogram(10_000)
            return { keep(HistogramPayload.encode(filled)) }
        },
        Work(.report, "histogram, V2 text with its compression", operations: 1, isGated: false) {
            let filled = histogram(10_000)
            return { keep(filled.encodedV2()) }
        },
        Work(.report, "run.json", operations: 1) {
            let run = record
            return {
                do { keep(try RunJSON.text(run)) } catch { fatalError("\(error)") }
            }
        },
        Work(.report, "metrics.csv", operations: 1) {
            let metrics = record.metrics
            return { keep(MetricsCSV.text(metrics)) }
        },
        Work(.report, "summary", operations: 1) {
            let run = record
            return { keep(Summary(run).text) }
        },
    ]

    private static func histogram(_ count: Int64) -> Histogram {
        var histogram = Histogram()
        for number in 1...count { histogram.record(number &* 1_017) }
        return histogram
    }

    /// A run of publishers and subscribers at three QoS, of the size that a real one has.
    private static var record: RunRecord {
        var record = RunRecord(
            command: ["clamor", "pubsub", "-c", "1000", "-q", "0,1,2", "--rate", "3000/s"],
            tool: ToolRecord(name: "clamor", version: "0.1.0"),
            host: HostFacts(),
            plan: ["clients": 1_000, "qos": [0, 1, 2]],
            startedAt: WallClock.rfc3339(1_795_225_029_123_000_000)
        )
        record.durationSeconds = 12.345
        record.verdict = .valid
        record.stages = [StageRecord(name: "measure", start: 2.1, durationSeconds: 10, measured: true)]
        // A text of the usual length: what zlib makes of a histogram is another library's.
        let encoded = String(repeating: "HISTFAAAA", count: 100)
        for (qos, legs) in [("0", []), ("1", ["puback"]), ("2", ["pubrec", "pubcomp"])] {
            let labels: Labels = ["qos": qos]
            for name in ["publish_offered", "publish_sent", "publish_acked", "delivery_expected", "delivery_lost"] {
                let reading = CounterReading(value: 40_000, rate: 3_999.5)
                record.metrics.append(Metric(name: name, labels: labels, reading: .counter(reading)))
            }
            let durations =
                [("publish_write_duration", labels), ("delivery_duration", labels)]
                + legs.flatMap { leg in
                    ["publish_ack_duration", "publish_service_duration"].map { ($0, labels.adding("leg", leg)) }
                }
            for (name, labels) in durations {
                if let reading = DurationReading(self.histogram(1_000), encoded: encoded) {
                    record.metrics.append(Metric(duration: name, labels: labels, reading: reading))
                }
            }
            var books = Books(qos: Int(qos) ?? 0)
            (books.offered, books.sent, books.notSent) = (40_000, 40_000, 0)
            (books.expected, books.received, books.lost, books.duplicated) = (40_000, 40_000, 0, 0)
            record.books.append(books)
        }
        record.thresholds = [ThresholdResult(expression: "delivery_lost count == 0", ok: true, value: 0)]
        return record
    }
}
