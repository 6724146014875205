import Glibc
import Measurement
import Report
import Testing

@Suite("Spread of runs of the same build")
struct RunSpreadTests {
    private static func run(p50 milliseconds: Double, rate: Double?) throws -> ComparedRun {
        var record = Samples.begun(["clamor", "pub"])
        record.verdict = .valid
        var histogram = Histogram()
        histogram.record(Int64(milliseconds * 1e6), count: 2_000)
        record.metrics = [
            try #require(Samples.duration("publish_ack_duration", ["leg": "puback", "qos": "1"], histogram))
        ]
        if let rate {
            record.metrics.append(Samples.counter("publish_acked", ["qos": "1"], 2_000, rate: rate))
        }
        return ComparedRun(path: "r", record: record)
    }

    @Test("the deviation is that of the logarithms, of what all runs have")
    func deviation() throws {
        let runs = [
            try Self.run(p50: 1, rate: 100), try Self.run(p50: 2, rate: nil), try Self.run(p50: 4, rate: 100),
        ]
        let spread = try #require(RunSpread(runs))
        let median = try #require(
            spread.figures.first { $0.name == "publish_ack_duration" && $0.field == .percentile(50) }
        )
        // Logarithms that are one step of log 2 apart deviate by that step; a bucket is 0.1 % wide.
        #expect(abs(median.deviation - log(2)) < 0.002)
        #expect(abs(median.mean - 0.002) < 0.000_005)
        #expect(median.isUsual && median.low < 0.00101 && median.high > 0.00399)
        #expect(!spread.figures.contains { $0.name == "publish_acked" })
        #expect(spread.text.contains("publish_ack_duration{leg=puback,qos=1} p50"))
        #expect(!spread.text.contains("p99.9"))
    }

    @Test("of one run nothing is known, and the same run twice does not differ")
    func few() throws {
        let run = try Self.run(p50: 1, rate: 100)
        #expect(RunSpread([run]) == nil)
        let spread = try #require(RunSpread([run, run]))
        #expect(!spread.figures.isEmpty && spread.figures.allSatisfy { $0.deviation == 0 })
    }
}
