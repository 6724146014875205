package import Measurement

/// One figure of one metric on both sides.
package struct ComparedFigure: SeriesFigure, Hashable {
    package enum Finding: String, Codable, Sendable {
        /// The change lies beyond the interval of chance, on the bad side.
        case worse
        case better
        /// The change lies beyond it, where neither way is better.
        case changed
        /// No significant difference.
        case same
        /// Not on both sides.
        case missing
    }

    /// The basis of the interval.
    package enum Basis: String, Codable, Sendable {
        case runs
        /// A side is a single run: its blocks, and a noise between runs that is assumed.
        case assumedNoise = "assumed-noise"
    }

    package struct Gate: Hashable, Sendable {
        package var expression: String
        /// 0.1 is 10 %.
        package var limit: Double
        /// The chance of such a figure if the build were the same.
        package var probability: Double
        /// The same after Holm's correction over all that is judged.
        ///
        /// `nil`: the interval covers all that is judged already.
        package var adjusted: Double?
        /// The interval lies beyond the limit.
        package var isBeyond: Bool
        /// The whole interval is inside the limit, to the better as to the worse.
        package var isInside = false
        /// The whole interval is on the better side.
        package var isBetter = false
        /// How many runs of each side would decide it, if they differed as these do.
        package var runs: Int?

        /// Regressed beyond the limit, and significantly.
        package var isBroken: Bool { self.isBeyond && self.adjusted ?? 0 < Comparison.falseAlarms }
        /// A regression beyond the limit is neither shown nor excluded.
        package var isUndecided: Bool { !self.isBroken && !self.isInside && !self.isBetter }
    }

    package var name: String
    package var labels: Labels
    package var field: Threshold.Field
    package var unit: String?
    package var direction: MetricDefinition.Direction
    /// Means over the runs: of logarithms where the change is a ratio.
    package var base: Double?
    package var new: Double?
    /// Whether some run of the side has but a lower bound of the figure.
    package var isBaseBound = false
    package var isNewBound = false
    /// NEW by BASE less 1, and its interval; absent where BASE is 0.
    package var change: Double?
    package var interval: ClosedRange<Double>?
    /// The change as measured; ``change`` is the one corrected for CPU stolen by the host.
    package var measuredChange: Double?
    package var basis: Basis
    package var finding: Finding
    package var gate: Gate?

    package var baseText: String { self.text(self.base, isBound: self.isBaseBound) }
    package var newText: String { self.text(self.new, isBound: self.isNewBound) }
    /// Both sides, the change and its interval, as tables of text have them.
    var texts: [String] { [self.baseText, self.newText, self.changeText, self.intervalText] }
    package var changeText: String { self.change.map { Self.change($0) } ?? Words.unknown }

    package var intervalText: String {
        guard let interval = self.interval else { return Words.unknown }
        let isWide = [interval.lowerBound, interval.upperBound].contains { abs($0) > Self.mostPercent }
        return [interval.lowerBound, interval.upperBound].map { Self.change($0, isFactor: isWide) }
            .joined(separator: " … ")
    }

    package var limitText: String? {
        guard let limit = self.gate?.limit else { return nil }
        let sign = limit == 0 ? "" : self.direction == .up ? "-" : "+"
        return "\(sign)\(Words.plain((limit * 1000).rounded() / 10)) %"
    }

    /// `hasFailed`: of the comparison; without it a broken gate is not a regression yet.
    package func findingText(hasFailed: Bool) -> String {
        guard let gate = self.gate, self.finding != .missing else {
            return self.finding == .same
                ? (self.base == self.new ? "no difference" : "within noise") : self.finding.rawValue
        }
        if gate.isBroken { return hasFailed ? "WORSE" : "beyond limit" }
        guard gate.isUndecided else { return gate.isInside ? "no difference" : "better" }
        return gate.runs.map { "undecided, \($0) runs a side" } ?? "undecided"
    }

    /// From here on a change is easier to read as a factor.
    private static let mostPercent = 0.5

    /// A change as `+12.5 %`, or as the factor `2.7 ×`.
    private static func change(_ share: Double, isFactor: Bool? = nil) -> String {
        isFactor ?? (abs(share) > self.mostPercent) && share > -1
            ? "\(Words.significant(1 + share)) ×" : self.percent(share)
    }

    /// A share with its sign, to the tenth of a percent; whole from 100 % on.
    package static func percent(_ share: Double) -> String {
        guard share.isFinite else { return Words.unknown }
        let percent = share * 100
        let digits = Words.plainFixed(abs(percent), digits: 1)
        if digits == "0.0" { return "0.0 %" }
        let sign = percent < 0 ? "-" : "+"
        return sign + (abs(percent) >= 99.95 ? Words.number(abs(percent).rounded()) : digits) + " %"
    }
}
