import Glibc
package import Measurement

/// The difference between two groups of runs, and its uncertainty.
///
/// The figure of a side is the mean over its runs, of logarithms if changes are ratios. Its variance comes from
/// resampling: whole runs, and within each run its blocks of a few seconds. Each draw has one element fewer than there
/// are. With n of n, the variance of a mean would be too small by 1/n, a fifth with five runs. The two variances are
/// not added, because the variance between runs already contains the one between blocks. The larger one counts, so that
/// a few runs that agree by chance do not claim more certainty than their own seconds allow. The interval is Student's
/// with Welch's degrees of freedom. For a side of one run, an assumed noise replaces the variance between runs. If the
/// host stole CPU time, ratios are compared as if it had stolen equally from both sides (``StolenTime``).
package enum Resampling {
    package static let draws = 1_000

    package enum Scale: Sendable {
        /// Ratios: every figure is above 0.
        case ratio
        /// For counts that may be 0.
        case difference
    }

    struct Variance {
        var value: Double
        var degrees: Double
    }

    struct Side {
        /// On the scale.
        var mean: Double
        var parts: [Variance]
    }

    package struct Change: Hashable, Sendable {
        /// NEW less BASE on the scale: the logarithm of the ratio, or the difference.
        package var shift: Double
        package var error: Double
        package var degrees: Double
        /// The part of the difference explained by stolen CPU time, which the shift excludes; `nil` if it was not
        /// computed.
        package var stolen: Double?

        /// Half the width of the two-sided interval at that confidence.
        package func margin(confidence: Double) -> Double {
            guard self.error > 0 else { return 0 }
            return self.error * StudentT(degrees: self.degrees).quantile(upperTail: (1 - confidence) / 2)
        }

        /// The chance of a shift as large as this one or larger, if the real one were `limit`.
        package func probability(above limit: Double) -> Double {
            // Values that agree to the last digits do not differ; the rest is rounding.
            guard self.error > 1e-12 else { return self.shift > limit + 1e-9 ? 0 : 1 }
            return StudentT(degrees: self.degrees).upperTail((self.shift - limit) / self.error)
        }

        /// The same in the other direction.
        var reversed: Change {
            Change(shift: -self.shift, error: self.error, degrees: self.degrees, stolen: self.stolen.map(-))
        }
    }

    /// Compares two sides of at least one run each.
    ///
    /// `noise`: the standard deviation between runs of the same build, for a side with a single run. `random`: the
    /// source of the draws.
    package static func change(
        base: [RunSample],
        new: [RunSample],
        scale: Scale,
        noise: Double?,
        random: inout SplitMix64
    ) -> Change {
        let stolen = scale == .ratio ? StolenTime(base: base, new: new) : nil
        let old = self.side(base, scale: scale, noise: noise, stolen: stolen, random: &random)
        let young = self.side(new, scale: scale, noise: noise, stolen: stolen, random: &random)
        let parts = old.parts + young.parts + [stolen?.error].compactMap(\.self)
        let variance = parts.reduce(0) { $0 + $1.value }
        // Welch and Satterthwaite.
        let spread = parts.reduce(0) { $0 + ($1.value > 0 ? $1.value * $1.value / $1.degrees : 0) }
        return Change(
            shift: young.mean - old.mean,
            error: variance.squareRoot(),
            degrees: spread > 0 ? variance * variance / spread : .infinity,
            stolen: stolen?.shift
        )
    }

    /// Compares runs that were taken in pairs: what a host does for a while is in both, and not in their difference.
    package static func change(pairs: [(base: Double, new: Double)], scale: Scale) -> Change {
        var moments = Moments()
        for pair in pairs { moments.add(self.scaled(pair.new, scale) - self.scaled(pair.base, scale)) }
        // Pairs may agree by chance: counts vary at least as random events do, other figures by their last digit.
        let least = scale == .ratio ? 1e-6 : pairs.reduce(0) { $0 + abs($1.base) + abs($1.new) } / moments.count
        let variance = moments.mean == 0 && moments.variance == 0 ? 0 : max(moments.variance, least)
        return Change(
            shift: moments.mean,
            error: (variance / moments.count).squareRoot(),
            degrees: max(1, moments.count - 1)
        )
    }

    static func side(
        _ runs: [RunSample],
        scale: Scale,
        noise: Double?,
        stolen: StolenTime?,
        random: inout SplitMix64
    ) -> Side {
        let runs = stolen.map { runs.map($0.corrected) } ?? runs
        let values = runs.map { self.scaled($0.value, scale) }
        let mean = values.reduce(0, +) / Double(values.count)
        var parts: [Variance] = []
        let blocks = self.blockVariance(runs, values, scale, &random)
        let counts = scale == .difference ? self.countVariance(runs) : nil
        if runs.count > 1 {
            let drawn = self.runVariance(values, &random)
            let whole = stolen?.widened(drawn) ?? drawn
            parts = [[whole, blocks, counts].compactMap(\.self).max { $0.value < $1.value } ?? whole]
        } else {
            parts = [blocks ?? counts].compactMap(\.self)
            if let noise {
                let deviation = scale == .ratio ? noise : noise * abs(mean)
                parts.append(Variance(value: deviation * deviation, degrees: .infinity))
            }
        }
        return Side(mean: mean, parts: parts)
    }

    /// The mean of a side's runs, in the original scale.
    static func mean(_ values: [Double], _ scale: Scale) -> Double {
        let mean = values.reduce(0) { $0 + self.scaled($1, scale) } / Double(values.count)
        return scale == .ratio ? exp(mean) : mean
    }

    /// A shift as a share of the base; nothing where that is 0.
    static func relative(_ shift: Double, _ scale: Scale, base: Double?) -> Double? {
        if scale == .ratio { return exp(shift) - 1 }
        guard let base, base > 0 else { return shift == 0 ? 0 : nil }
        return shift / base
    }

    /// The shift that getting worse by a share is; `isDrop`: of a figure that should be high.
    static func shift(_ share: Double, _ scale: Scale, base: Double, isDrop: Bool) -> Double {
        guard scale == .ratio else { return share * base }
        guard isDrop else { return log(1 + share) }
        return share < 1 ? -log(1 - share) : .infinity
    }

    private static func scaled(_ value: Double, _ scale: Scale) -> Double {
        scale == .ratio ? log(value) : value
    }

    /// Whole runs drawn anew.
    private static func runVariance(_ values: [Double], _ random: inout SplitMix64) -> Variance {
        var moments = Moments()
        for _ in 0..<self.draws {
            var sum = 0.0
            for _ in 1..<values.count { sum += values[random.below(values.count)] }
            moments.add(sum / Double(values.count - 1))
        }
        return Variance(value: moments.variance, degrees: Double(values.count - 1))
    }

    /// The same runs, each of blocks drawn anew; nothing where no run has two blocks.
    private static func blockVariance(
        _ runs: [RunSample],
        _ values: [Double],
        _ scale: Scale,
        _ random: inout SplitMix64
    ) -> Variance? {
        let counts = runs.map { $0.blocks?.count ?? 0 }
        let degrees = counts.reduce(0) { $0 + max($1 - 1, 0) }
        guard degrees > 0 else { return nil }
        var moments = Moments()
        var weights = counts.map { Array(repeating: 0, count: $0) }
        for _ in 0..<self.draws {
            var sum = 0.0
            for (index, run) in runs.enumerated() {
                var value: Double?
                if let blocks = run.blocks, counts[index] > 1 {
                    for block in weights[index].indices { weights[index][block] = 0 }
                    for _ in 1..<counts[index] { weights[index][random.below(counts[index])] += 1 }
                    value = blocks.value(weights[index])
                }
                // Blocks without a value do not show how values differ.
                let usable = value.flatMap { scale == .ratio && $0 <= 0 ? nil : self.scaled($0, scale) }
                sum += usable ?? values[index]
            }
            moments.add(sum / Double(runs.count))
        }
        return Variance(value: moments.variance, degrees: Double(degrees))
    }

    /// The variance of random events of which only the number is known: at least that number.
    private static func countVariance(_ runs: [RunSample]) -> Variance? {
        let sum = runs.reduce(0) { $0 + abs($1.value) }
        guard sum > 0 else { return nil }
        return Variance(value: sum / Double(runs.count * runs.count), degrees: .infinity)
    }
}

/// Mean and variance as values come, after Welford.
struct Moments {
    private(set) var count = 0.0
    private(set) var mean = 0.0
    private var squares = 0.0

    mutating func add(_ value: Double) {
        self.count += 1
        let distance = value - self.mean
        self.mean += distance / self.count
        self.squares += distance * (value - self.mean)
    }

    var variance: Double { self.count > 1 ? self.squares / (self.count - 1) : 0 }
}

extension SplitMix64 {
    /// Seeded by a text, so that the same files give the same answer.
    package init(naming text: String) { self.init(seed: text.stableHash) }

    /// A number from 0 to `bound` - 1; the bias of a multiplication is below 2^-32 for any `bound` in use.
    package mutating func below(_ bound: Int) -> Int {
        Int(self.next().multipliedFullWidth(by: UInt64(bound)).high)
    }
}
