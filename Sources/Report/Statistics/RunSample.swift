/// One figure of one run: the whole, and what it would be over its blocks drawn anew.
package struct RunSample: Sendable {
    package enum Blocks: Sendable {
        /// A sum by a sum, as events by seconds.
        case ratios([(part: Double, whole: Double)])
        case percentile(Double, BlockedHistogram)
        case mean(BlockedHistogram)

        var count: Int {
            switch self {
            case .ratios(let ratios): ratios.count
            case .percentile(_, let histogram), .mean(let histogram): histogram.blocks
            }
        }

        /// Durations in seconds; nothing where what was drawn holds no value.
        func value(_ weights: [Int]) -> Double? {
            switch self {
            case .ratios(let ratios):
                var (part, whole) = (0.0, 0.0)
                for (ratio, weight) in zip(ratios, weights) where weight > 0 {
                    part += ratio.part * Double(weight)
                    whole += ratio.whole * Double(weight)
                }
                return whole > 0 ? part / whole : nil
            case .percentile(let percent, let histogram): return histogram.percentile(percent, weights).map { $0 / 1e9 }
            case .mean(let histogram): return histogram.mean(weights).map { $0 / 1e9 }
            }
        }
    }

    /// The value as the run's own results have it.
    package var value: Double
    /// Absent if only the totals are known.
    package var blocks: Blocks?
    /// The share of the CPU that the host took for others in that run; absent where it is not known.
    package var stolen: Double?

    package init(value: Double, blocks: Blocks? = nil, stolen: Double? = nil) {
        self.value = value
        self.blocks = blocks
        self.stolen = stolen
    }
}
