package import Measurement

/// The histograms of a run's blocks, laid out so that any mix of them has its percentiles at once.
///
/// Each block's counts are summed up from the lowest bucket on, over the buckets that any of them uses: a percentile of
/// a mix is then a binary search. 8 bytes for each such bucket and block, some 2,000 buckets for a latency.
package struct BlockedHistogram: Sendable {
    package let blocks: Int
    /// The highest value of each bucket in use, nanoseconds, ascending.
    private var values: [Int64] = []
    /// The counts by bucket, and within it by block.
    private var sums: [UInt64] = []
    /// The sum of each block's values, each standing for its bucket.
    private var totals: [Double]

    /// Nothing where all together count 2^53 or more: no run does, and any mix of blocks has to fit.
    package init?(_ histograms: [Histogram]) {
        var total: UInt64 = 0
        for histogram in histograms {
            histogram.forEachBucket { total = min(total + min($1, 1 << 53), 1 << 53) }
            guard total < 1 << 53 else { return nil }
        }
        self.blocks = histograms.count
        self.totals = histograms.map { ($0.mean ?? 0) * Double($0.count) }
        var counts: [Int64: [UInt64]] = [:]
        for (block, histogram) in histograms.enumerated() {
            histogram.forEachBucket { highest, count in
                counts[highest, default: Array(repeating: 0, count: histograms.count)][block] = count
            }
        }
        self.values = counts.keys.sorted()
        var running: [UInt64] = Array(repeating: 0, count: self.blocks)
        self.sums.reserveCapacity(self.values.count * self.blocks)
        for value in self.values {
            for (block, count) in (counts[value] ?? []).enumerated() { running[block] += count }
            self.sums += running
        }
    }

    /// How many values a mix holds; `weights`: how often each block is in it.
    package func count(_ weights: [Int]) -> UInt64 {
        self.values.isEmpty ? 0 : self.count(upTo: self.values.count - 1, weights)
    }

    /// The percentile of a mix in nanoseconds, as merged histograms have it; nothing when it is empty.
    package func percentile(_ percent: Double, _ weights: [Int]) -> Double? {
        let total = self.count(weights)
        guard total > 0 else { return nil }
        let wanted = (Swift.min(Swift.max(percent.nextDown, 0), 100) * Double(total) / 100).rounded(.up)
        let rank = Swift.min(Swift.max(UInt64(wanted), 1), total)
        var (low, high) = (0, self.values.count - 1)
        while low < high {
            let middle = (low + high) / 2
            if self.count(upTo: middle, weights) >= rank { high = middle } else { low = middle + 1 }
        }
        return Double(self.values[low])
    }

    /// The mean of a mix in nanoseconds; nothing when it is empty.
    package func mean(_ weights: [Int]) -> Double? {
        let total = self.count(weights)
        guard total > 0 else { return nil }
        return zip(self.totals, weights).reduce(0) { $0 + $1.0 * Double($1.1) } / Double(total)
    }

    private func count(upTo bucket: Int, _ weights: [Int]) -> UInt64 {
        var count: UInt64 = 0
        let start = bucket * self.blocks
        for block in 0..<self.blocks where weights[block] > 0 {
            count += self.sums[start + block] * UInt64(weights[block])
        }
        return count
    }
}
