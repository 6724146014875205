package import Measurement

/// A histogram as HdrHistogram's percentile distribution text (`.hgrm`), which its plotters read.
///
/// Five rows per halving of the distance to 100 %, values in milliseconds.
///
/// Spec: AbstractHistogram.outputPercentileDistribution of HdrHistogram (Java), scaling ratio 1,000,000.
package enum PercentileDistribution {
    private static let ticksPerHalfDistance = 5.0

    /// Whether a metric gets a file of its own: the main latencies do.
    static func isMain(_ metric: Metric) -> Bool {
        metric.definition?.hasFile == true && metric.labels.isWhole()
    }

    /// `latency-publish_ack_duration-leg=puback-qos=1.hgrm`.
    static func fileName(_ metric: Metric) -> String {
        let parts = [metric.name] + metric.labels.all.map { "\($0.key)=\($0.value)" }
        let name = String((["latency"] + parts).joined(separator: "-").map { $0 == "/" || $0 == " " ? "_" : $0 })
        return name + ".hgrm"
    }

    package static func text(_ histogram: Histogram) -> String {
        var text = "       Value     Percentile TotalCount 1/(1-Percentile)\n\n"
        var level = 0.0
        var seen: UInt64 = 0
        let total = histogram.count
        histogram.forEachBucket { highest, count in
            seen += count
            let reached = 100 * Double(seen) / Double(total)
            // A bucket gets a row for every level that it reaches, but the last bucket only one besides the final row.
            while reached >= level {
                text += self.row(highest, level: level, seen: seen)
                level += self.step(from: level)
                if seen == total { break }
            }
            if seen == total { text += self.row(highest, level: 100, seen: seen) }
        }
        return text + self.footer(histogram)
    }

    private static func step(from level: Double) -> Double {
        var distance = 100 / (100 - level)
        var ticks = self.ticksPerHalfDistance * 2
        while distance >= 2 {
            distance /= 2
            ticks *= 2
        }
        return 100 / ticks
    }

    private static func row(_ value: Int64, level: Double, seen: UInt64) -> String {
        let value = self.milliseconds(Double(value)).paddedLeft(to: 12)
        let count = String(seen).paddedLeft(to: 10)
        let share = Words.plainFixed(level / 100, digits: 12)
        guard level < 100 else { return "\(value) \(share) \(count)\n" }
        return "\(value) \(share) \(count) \(Words.plainFixed(1 / (1 - level / 100), digits: 2).paddedLeft(to: 14))\n"
    }

    private static func footer(_ histogram: Histogram) -> String {
        let mean = self.milliseconds(histogram.mean ?? 0).paddedLeft(to: 12)
        let deviation = self.milliseconds(histogram.standardDeviation ?? 0).paddedLeft(to: 12)
        let highest = self.milliseconds(Double(histogram.max ?? 0)).paddedLeft(to: 12)
        let total = String(histogram.count).paddedLeft(to: 12)
        // 2,048 values counted one by one, then as many doublings as reach the highest.
        let doublings = Int64.bitWidth - (Histogram.highest / 2048).leadingZeroBitCount
        let buckets = String(doublings + 1).paddedLeft(to: 12)
        return """
            #[Mean    = \(mean), StdDeviation   = \(deviation)]
            #[Max     = \(highest), Total count    = \(total)]
            #[Buckets = \(buckets), SubBuckets     =         2048]

            """
    }

    private static func milliseconds(_ nanoseconds: Double) -> String {
        Words.plainFixed(nanoseconds / 1_000_000, digits: 3)
    }
}

extension String {
    func paddedLeft(to width: Int) -> String { String(repeating: " ", count: max(0, width - self.count)) + self }

    package func paddedRight(to width: Int) -> String {
        self + String(repeating: " ", count: max(0, width - self.count))
    }
}
