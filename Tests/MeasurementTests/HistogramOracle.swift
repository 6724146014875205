import Histogram

/// hdrhistogram-swift behind a name of its own: its module and its type are called as ours is.
struct HistogramOracle {
    private var histogram = Histogram<UInt64>(
        lowestDiscernibleValue: 1,
        highestTrackableValue: 600_000_000_000,
        numberOfSignificantValueDigits: .three
    )

    mutating func record(_ value: Int64, count: UInt64 = 1) {
        self.histogram.record(UInt64(value), count: count)
    }

    func percentile(_ percent: Double) -> Int64 { Int64(self.histogram.valueAtPercentile(percent)) }

    var min: Int64 { Int64(self.histogram.min) }
    var max: Int64 { Int64(self.histogram.maxRecorded) }
    var mean: Double { self.histogram.mean }
    var standardDeviation: Double { self.histogram.stdDeviation }
    var count: UInt64 { self.histogram.totalCount }
}
