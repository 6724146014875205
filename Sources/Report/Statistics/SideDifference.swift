import Glibc
import Measurement

/// One figure of one run.
package struct RunSample: Sendable {
    /// The value as the run's own results have it.
    package var value: Double
    /// The share of the CPU that the host took for others in that run; absent where it is not known.
    package var stolen: Double?

    package init(value: Double, stolen: Double? = nil) {
        self.value = value
        self.stolen = stolen
    }
}

/// The difference between two groups of runs, and its uncertainty.
///
/// The figure of a side is the mean over its runs, of logarithms if changes are ratios. Its variance is that between the
/// runs; counts vary at least as random events do. The interval is Student's with Welch's degrees of freedom. For a side
/// of one run, an assumed noise replaces the variance. If the host stole CPU time, ratios are compared as if it had
/// stolen equally from both sides (``StolenTime``).
package enum SideDifference {
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
    /// `noise`: the standard deviation between runs of the same build, for a side with a single run.
    package static func change(base: [RunSample], new: [RunSample], scale: Scale, noise: Double?) -> Change {
        let stolen = scale == .ratio ? StolenTime(base: base, new: new) : nil
        let old = self.side(base, scale: scale, noise: noise, stolen: stolen)
        let young = self.side(new, scale: scale, noise: noise, stolen: stolen)
        let parts = old.parts + young.parts + [stolen?.error].compactMap(\.self)
        // Runs may agree by chance, or to the bucket of a histogram.
        let least = scale == .ratio && young.mean != old.mean ? 1e-6 : 0
        let variance = max(least, parts.reduce(0) { $0 + $1.value })
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

    static func side(_ runs: [RunSample], scale: Scale, noise: Double?, stolen: StolenTime?) -> Side {
        let runs = stolen.map { runs.map($0.corrected) } ?? runs
        var moments = Moments()
        for run in runs { moments.add(self.scaled(run.value, scale)) }
        let counts = scale == .difference ? self.countVariance(runs) : nil
        if runs.count > 1 {
            let drawn = Variance(value: moments.variance / moments.count, degrees: moments.count - 1)
            let whole = stolen?.widened(drawn) ?? drawn
            return Side(mean: moments.mean, parts: [counts.map { $0.value > whole.value ? $0 : whole } ?? whole])
        }
        let assumed = noise.map { noise in
            let deviation = scale == .ratio ? noise : noise * abs(moments.mean)
            return Variance(value: deviation * deviation, degrees: .infinity)
        }
        return Side(mean: moments.mean, parts: [counts, assumed].compactMap(\.self))
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

    private static func scaled(_ value: Double, _ scale: Scale) -> Double { scale == .ratio ? log(value) : value }

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
