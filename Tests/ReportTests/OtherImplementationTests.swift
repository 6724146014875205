import Foundation
import Measurement
import Report
import Testing

/// PyPI `hdrhistogram` shares no line with this code.
private let reason: Comment = "needs a Python with PyPI hdrhistogram: set CLAMOR_PYTHON to it"

@Suite("Another HdrHistogram", .enabled(if: Python.hasHdrHistogram, reason))
struct OtherImplementationTests {
    let folder: TemporaryFolder

    init() throws { self.folder = try TemporaryFolder() }

    private static let percents = [0.5, 25, 50, 90, 95, 99, 99.9, 99.99, 100]

    /// Per tag: count, percentiles, mean and deviation, of all its intervals together.
    private static let reader = """
        import sys
        from hdrh.histogram import HdrHistogram
        from hdrh.log import HistogramLogReader
        log = HistogramLogReader(sys.argv[1], HdrHistogram(1, 600000000000, 3))
        totals, spans = {}, []
        while True:
            interval = log.get_next_interval_histogram()
            if interval is None: break
            spans.append("%.3f+%.3f" % (interval.get_start_time_stamp() / 1000 - log.base_time_sec,
                (interval.get_end_time_stamp() - interval.get_start_time_stamp()) / 1000))
            tag = interval.get_tag()
            totals.setdefault(tag, HdrHistogram(1, 600000000000, 3)).add(interval)
        print(log.get_start_time_sec())
        print(" ".join(spans))
        for tag, h in sorted(totals.items()):
            figures = [h.get_value_at_percentile(float(p)) for p in sys.argv[2].split(",")]
            print(tag, h.get_total_count(), *figures, "%.3f" % h.get_mean_value(), "%.3f" % h.get_stddev())
        """

    /// Values over nine decades from a seed, ten thousand per interval, so that percentiles fall on whole ranks.
    private static func values(seed: UInt64) -> Histogram {
        var state = seed
        var histogram = Histogram()
        for _ in 0..<10_000 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            let exponent = Double(state >> 11) / Double(1 << 53) * 11.7
            histogram.record(Int64(pow(10, exponent)))
        }
        return histogram
    }

    @Test("reads latency.hlog and finds the same percentiles")
    func log() throws {
        let labels: Labels = ["stage": "peak, 2 m"]
        let intervals = (0..<3).map { second in
            let ack = Self.values(seed: UInt64(second))
            let delivery = Self.values(seed: UInt64(second + 100))
            func max(_ histogram: Histogram) -> Double { Double(histogram.max ?? 0) / 1e9 }
            return TimelineInterval(
                second: second,
                phase: "measure",
                seconds: second == 2 ? 0.25 : 1,
                metrics: [],
                lanes: [
                    Samples.lane("publish_ack_duration", ["qos": "1"], max: max(ack), ack.encodedV2()),
                    Samples.lane(
                        "delivery_duration",
                        labels,
                        measured: false,
                        max: max(delivery),
                        delivery.encodedV2()
                    ),
                ]
            )
        }
        let record = Samples.begun(["clamor", "pub"])
        let directory = try ResultDirectory.create("\(self.folder.path)/out")
        let writer = try RunWriter(directory, record: record, startedAt: Samples.startedAt)
        for interval in intervals { try writer.append(interval) { record } }
        let path = try writer.finish(record)

        let percents = Self.percents.map { String($0) }.joined(separator: ",")
        let lines = try Python.run(Self.reader, path + "/latency.hlog", percents).split(separator: "\n")
        #expect(lines[0] == "1795225029.123")
        #expect(lines[1] == "0.000+1.000 0.000+1.000 1.000+1.000 1.000+1.000 2.000+0.250 2.000+0.250")
        #expect(try lines[2] == Self.figures("delivery_duration;stage=peak%2C%202%20m;measured=no", 100..<103))
        #expect(try lines[3] == Self.figures("publish_ack_duration;qos=1", 0..<3))
        #expect(lines.count == 4)
    }

    /// The line that is expected of Python, from this side's histogram.
    private static func figures(_ tag: String, _ seeds: Range<UInt64>) throws -> String {
        var total = Histogram()
        for seed in seeds { total.merge(self.values(seed: seed)) }
        // Not bounded by the exact maximum, which an encoded histogram does not hold.
        total = try Histogram(decodingV2: total.encodedV2())
        let percentiles = total.percentiles(self.percents).map { String($0) }
        let mean = Words.plainFixed(total.mean ?? 0, digits: 3)
        let deviation = Words.plainFixed(total.standardDeviation ?? 0, digits: 3)
        return ([tag, String(total.count)] + percentiles + [mean, deviation]).joined(separator: " ")
    }
}
