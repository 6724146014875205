extension Histogram {
    /// The value that `percent` of all values do not exceed: the largest value of its bucket, at most the maximum.
    ///
    /// `percent`: 0 to 100; 0 gives the minimum.
    ///
    /// Returns nanoseconds, or nil if the histogram is empty.
    package func percentile(_ percent: Double) -> Int64? { self.percentiles([percent]).first }

    /// Computes several percentiles in one pass.
    ///
    /// `percents`: 0 to 100 each, ascending.
    ///
    /// Returns one value per percentile, or none if the histogram is empty.
    package func percentiles(_ percents: [Double]) -> [Int64] {
        guard self.total > 0 else { return [] }
        var values: [Int64] = []
        values.reserveCapacity(percents.count)
        var seen: UInt64 = 0
        let range = self.touched
        var index = range.lowerBound
        for percent in percents {
            let wanted = self.rank(of: percent)
            while index < range.upperBound, seen + self.count(at: index) < wanted {
                seen += self.count(at: index)
                index += 1
            }
            let bucket = Swift.min(index, range.upperBound - 1)
            let highest = Swift.min(HistogramLayout.highest(at: bucket), self.highestValue)
            values.append(percent <= 0 ? self.lowestValue : highest)
        }
        return values
    }

    /// The number of values that a percentile covers: rounded up, at least one.
    func rank(of percent: Double) -> UInt64 {
        let clamped = Swift.min(Swift.max(percent.nextDown, 0), 100)
        // One step down first: 99.9 × 1,000 ÷ 100 may yield slightly more than 999 and would be rounded up to 1,000.
        let wanted = (clamped * Double(self.total) / 100).rounded(.up)
        return Swift.min(Swift.max(UInt64(wanted), 1), self.total)
    }

    /// The value that so many values do not exceed: the largest value of its bucket, at most the maximum.
    ///
    /// Returns nanoseconds, or nil if there are fewer values.
    func value(atRank rank: UInt64) -> Int64? {
        guard rank > 0, rank <= self.total else { return nil }
        var seen: UInt64 = 0
        for index in self.touched {
            seen += self.count(at: index)
            if seen >= rank { return Swift.min(HistogramLayout.highest(at: index), self.highestValue) }
        }
        return nil
    }

    /// The mean, where the middle of its bucket represents each value; nil if empty.
    package var mean: Double? { self.total > 0 ? self.sum / Double(self.total) : nil }

    /// The sum in nanoseconds, where the middle of its bucket represents each value; 0 if empty.
    package var sum: Double {
        let range = self.touched
        let sum = self.withCounts { counts in
            var sum = 0.0
            for index in range where counts[index] > 0 {
                sum += Double(HistogramLayout.middle(at: index)) * Double(counts[index])
            }
            return sum
        }
        return sum ?? 0
    }

    /// The number of values up to each bound, as the buckets of a Prometheus histogram count them.
    ///
    /// A value that equals a bound is below it. The bucket in which a bound lies is counted whole, so every value up to
    /// the bound is in its count. Also in it are values above the bound that share its bucket: these exceed the bound
    /// by less than one 1,024th. A bound below the minimum counts nothing, and one from 2,047 ns down is exact.
    ///
    /// `bounds`: nanoseconds, ascending.
    package func cumulativeCounts(upTo bounds: [Int64]) -> [UInt64] {
        var seen: UInt64 = 0
        let range = self.touched
        var index = range.lowerBound
        return bounds.map { bound in
            guard bound >= self.lowestValue else { return 0 }
            let end = bound >= self.highestValue ? range.upperBound : HistogramLayout.index(of: bound) + 1
            self.withCounts { counts in
                while index < end {
                    seen += counts[index]
                    index += 1
                }
            }
            return seen
        }
    }

    /// The standard deviation of the whole population; nil if empty.
    package var standardDeviation: Double? {
        guard let mean = self.mean else { return nil }
        var sum = 0.0
        for index in self.touched where self.count(at: index) > 0 {
            let distance = Double(HistogramLayout.middle(at: index)) - mean
            sum += distance * distance * Double(self.count(at: index))
        }
        return (sum / Double(self.total)).squareRoot()
    }

    /// Calls `body` for every non-empty bucket, with its largest value and its count.
    package func forEachBucket(_ body: (_ highest: Int64, _ count: UInt64) -> Void) {
        for index in self.touched where self.count(at: index) > 0 {
            body(HistogramLayout.highest(at: index), self.count(at: index))
        }
    }
}
