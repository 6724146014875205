package import Measurement

/// One figure of one metric on both sides.
package struct ComparedFigure: Hashable, Sendable {
    package enum Finding: String, Codable, Sendable {
        /// Beyond the interval of chance, on the bad side.
        case worse
        case better
        /// Beyond it, where neither way is better.
        case changed
        /// No significant difference.
        case same
        /// Not on both sides.
        case missing
    }

    /// The basis of the interval.
    package enum Basis: String, Codable, Sendable {
        case runs
        /// The same, with the measured noise of the host as further runs.
        case runsAndNoise = "runs-and-noise"
        /// A side is a single run: its blocks and the measured noise of the host.
        case noiseFloor = "noise-floor"
        /// The same with a noise that is assumed.
        case assumedNoise = "assumed-noise"
    }

    package struct Gate: Hashable, Sendable {
        package var expression: String
        /// 0.1 is 10 %.
        package var limit: Double
        /// The chance of such a figure if the build were the same.
        package var probability: Double
        /// The same after Holm's correction over all that is judged.
        package var adjusted: Double
        /// The interval lies beyond the limit.
        package var isBeyond: Bool
        /// The interval has the limit in it: a regression is neither shown nor excluded.
        package var isUndecided = false

        /// Regressed beyond the limit, and significantly.
        package var isBroken: Bool { self.isBeyond && self.adjusted < Comparison.falseAlarms }
    }

    package var name: String
    package var labels: Labels
    package var field: Threshold.Field
    package var unit: String?
    package var direction: MetricDirection
    /// Means over the runs: of logarithms where the change is a ratio.
    package var base: Double?
    package var new: Double?
    /// NEW by BASE less 1, and its interval; absent where BASE is 0.
    package var change: Double?
    package var interval: ClosedRange<Double>?
    /// The change as measured; ``change`` is the one corrected for CPU stolen by the host.
    package var measuredChange: Double?
    package var basis: Basis
    package var finding: Finding
    package var gate: Gate?

    /// `publish_ack_duration{leg=puback,qos=1}`.
    package var title: String {
        self.labels.isEmpty ? self.name : "\(self.name){\(self.labels.words)}"
    }

    /// A value of either side for people.
    package func text(_ value: Double?) -> String {
        value.map { self.field.text($0, unit: self.unit) } ?? Human.unknown
    }

    package var changeText: String { self.change.map(Self.percent) ?? Human.unknown }

    package var intervalText: String {
        guard let interval = self.interval else { return Human.unknown }
        return "\(Self.percent(interval.lowerBound)) … \(Self.percent(interval.upperBound))"
    }

    /// `hasFailed`: of the comparison; without it a broken gate is not a regression yet.
    package func findingText(hasFailed: Bool) -> String {
        if let gate = self.gate, gate.isBroken { return hasFailed ? "REGRESSION" : "beyond limit" }
        return switch self.finding {
        case .same: self.gate?.isUndecided == true ? "undecided" : "no difference"
        default: self.finding.rawValue
        }
    }

    /// With its sign, to the tenth of a percent; whole from 100 % on.
    package static func percent(_ share: Double) -> String {
        guard share.isFinite else { return Human.unknown }
        let percent = share * 100
        let digits = PlainNumber.fixed(abs(percent), digits: 1)
        if digits == "0.0" { return "0.0 %" }
        let sign = percent < 0 ? "-" : "+"
        return sign + (abs(percent) >= 99.95 ? Human.number(abs(percent).rounded()) : digits) + " %"
    }
}
