import Glibc

/// CPU time stolen by the host, as a reason why runs of one build differ.
///
/// On a shared host it is the largest reason, and the kernel counts it. An analysis of covariance with one slope,
/// fitted within the sides, compares the sides as if the host had stolen equally from both. The cost in certainty is
/// part of the variance: one degree of freedom, and the slope's own error times the difference between the sides.
struct StolenTime {
    /// Where the host took less in all runs there is nothing to reckon with.
    static let least = 0.01
    /// With fewer runs a slope takes more than it gives: each has to leave three degrees of freedom.
    static let fewestRuns = 6

    /// The slope of a figure's logarithm by the share that was taken.
    private let slope: Double
    /// The mean share of all runs.
    private let mean: Double
    /// The mean share in NEW less that in BASE.
    private let difference: Double
    private let variance: Double
    private let degrees: Double

    /// Nothing where a run does not know its share, where hardly anything was taken, or where runs are too few.
    init?(base: [RunSample], new: [RunSample]) {
        let sides = [base, new].map { side in
            // A share outside 0...1 comes from a damaged file.
            side.compactMap { run in run.stolen.flatMap { (0...1).contains($0) ? (run: run, share: $0) : nil } }
        }
        let runs = sides[0].count + sides[1].count
        guard runs == base.count + new.count, base.count > 1, new.count > 1, runs >= Self.fewestRuns,
            sides.joined().contains(where: { $0.share > Self.least })
        else { return nil }
        var (shares, both, figures) = (0.0, 0.0, 0.0)
        var means: [Double] = []
        for side in sides {
            let share = side.reduce(0) { $0 + $1.share } / Double(side.count)
            let figure = side.reduce(0) { $0 + log($1.run.value) } / Double(side.count)
            for run in side {
                let (x, y) = (run.share - share, log(run.run.value) - figure)
                shares += x * x
                both += x * y
                figures += y * y
            }
            means.append(share)
        }
        // As good as the same in all runs of a side.
        guard shares > 1e-9 else { return nil }
        self.slope = both / shares
        self.mean = sides.joined().reduce(0) { $0 + $1.share } / Double(runs)
        self.difference = means[1] - means[0]
        self.degrees = Double(runs - 3)
        self.variance = max(0, figures - both * both / shares) / self.degrees / shares
    }

    /// How much of the shift between the sides it explains.
    var shift: Double { self.slope * self.difference }

    /// The run as if the host had taken of it what it took of all on the average.
    func corrected(_ run: RunSample) -> RunSample {
        var run = run
        if let share = run.stolen { run.value *= exp(-self.slope * (share - self.mean)) }
        return run
    }

    /// The variance added by the slope's own error.
    var error: SideDifference.Variance {
        SideDifference.Variance(value: self.variance * self.difference * self.difference, degrees: self.degrees)
    }

    /// The variance of a side's corrected runs, which lie closer to the slope than they would to the true one.
    func widened(_ variance: SideDifference.Variance) -> SideDifference.Variance {
        let left = self.degrees / (self.degrees + 1)
        return SideDifference.Variance(value: variance.value / left, degrees: variance.degrees * left)
    }
}
