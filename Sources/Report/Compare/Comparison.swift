import Measurement

/// Two sides of runs held against each other, figure by figure.
package struct Comparison: Sendable {
    /// The confidence of the intervals, two-sided, each by itself.
    package private(set) var confidence = 0.95
    /// How often a comparison of the same build may find a regression, over all that it judges.
    package static let falseAlarms = 0.02

    package let base: [ComparedRun]
    package let new: [ComparedRun]
    package private(set) var figures: [ComparedFigure] = []
    /// The reasons why requested limits cannot be judged, one per line: a gate that cannot fail is useless.
    package private(set) var problems: [String] = []

    let sides: Sides
    /// Runs that are another one of their side once more.
    let copies: Int
    /// A regression counts in an indicative comparison too.
    let isStrict: Bool
    /// Whether the runs of the sides were taken in turn, and are judged after each pair.
    let isPaired: Bool

    /// The most pairs of a comparison that is judged after each of them.
    package static let mostPairs = 60
    /// The chance that such a comparison of a build with itself calls some figure better or worse.
    static let pairedFalseAlarms = 0.05
    /// Looks at each of the pairs are wrong as often as so many looks that have nothing in common: by simulation 12 for
    /// one figure, 16 for ten.
    private static let looks = 18.0

    /// Compares two sides of at least one run each.
    ///
    /// `limits`: what is judged; `nil` for the usual. `isStrict`: a regression between two single runs fails.
    /// `isPaired`: run N of one side was taken next to run N of the other, and this is one of several looks at them.
    package init(
        base: [ComparedRun],
        new: [ComparedRun],
        limits: [RegressionLimit]? = nil,
        isStrict: Bool = false,
        isPaired: Bool = false
    ) {
        self.base = Self.distinct(base)
        self.new = Self.distinct(new)
        self.isPaired = isPaired && self.base.count == self.new.count && self.base.count > 1
        self.copies = base.count + new.count - self.base.count - self.new.count
        self.isStrict = isStrict
        let sides = Sides(self.base, self.new)
        self.sides = sides
        let limits = limits.map { Gates(limits: $0, isGiven: true) } ?? Gates(limits: Self.usual(sides), isGiven: false)
        if self.isPaired {
            let judged = sides.all.reduce(0) { count, series in
                count + limits.limits.count { $0.chooses(series.name, series.labels) }
            }
            self.confidence = Self.pairedConfidence(figures: judged)
        }
        for series in sides.all { self.figures += self.figures(series, sides, limits) }
        self.correct()
        self.figures.sort { ($0.name, $0.labels, $0.field.order) < ($1.name, $1.labels, $1.field.order) }
        if limits.isGiven {
            self.problems = limits.limits.compactMap { limit in
                self.problem(limit, limit.field ?? sides.plainField(of: limit)).map { "'\(limit.expression)': \($0)" }
            }
        }
    }

    /// The confidence of each interval after each of up to ``mostPairs`` pairs.
    package static func pairedConfidence(figures: Int) -> Double {
        1 - self.pairedFalseAlarms / (self.looks * Double(max(1, figures)))
    }

    /// Drops copies of a run, which do not show how runs differ.
    private static func distinct(_ runs: [ComparedRun]) -> [ComparedRun] {
        var known: Set<RunRecord> = []
        return runs.filter { known.insert($0.record).inserted }
    }

    /// The judged figures that regressed beyond their limit, and significantly.
    package var regressions: [ComparedFigure] { self.figures.filter { $0.gate?.isBroken == true } }
    package var judged: [ComparedFigure] { self.figures.filter { $0.gate != nil } }

    /// One run a side, with an assumed noise: a difference may be that of any two runs.
    package var isIndicative: Bool { self.base.count == 1 && self.new.count == 1 }

    /// A judged figure regressed, and the runs can show it.
    package var hasFailed: Bool { !self.regressions.isEmpty && (self.isStrict || !self.isIndicative) }
    package var isSingle: Bool { self.base.count == 1 || self.new.count == 1 }

    static func usual(_ sides: Sides) -> [RegressionLimit] {
        for limits in [RegressionLimit.usual, RegressionLimit.usualOfConnects, RegressionLimit.usualOfBenchmarks] {
            let chosen = limits.filter { limit in
                !limit.isOf(.errors) && sides.all.contains { limit.chooses($0.name, $0.labels) }
            }
            if !chosen.isEmpty { return limits.filter { $0.isOf(.errors) } + chosen }
        }
        return []
    }

    // MARK: - Figures of a series

    private func figures(_ series: Series, _ sides: Sides, _ gates: Gates) -> [ComparedFigure] {
        var fields = sides.fields(series)
        let limits = gates.limits.filter { limit in
            guard limit.chooses(series.name, series.labels) else { return false }
            // A percentile of few values is judged only on request.
            return gates.isGiven || fields.contains(limit.field ?? sides.plainField(series))
        }
        for limit in limits {
            let field = limit.field ?? sides.plainField(series)
            if !fields.contains(field) { fields.append(field) }
        }
        let samples = SeriesSamples(series: series, sides: sides)
        return fields.map { field in
            // Of several limits for the same figure the narrowest one judges.
            let limit = limits.filter { ($0.field ?? sides.plainField(series)) == field }.min { $0.share < $1.share }
            return self.figure(series, field, samples, limit, unit: sides.unit(series))
        }
    }

    private func figure(
        _ series: Series,
        _ field: Threshold.Field,
        _ samples: SeriesSamples,
        _ limit: RegressionLimit?,
        unit: String?
    ) -> ComparedFigure {
        let direction = MetricDefinition.named(series.name).direction
        let (old, young) = (samples.base(field), samples.new(field))
        var figure = ComparedFigure(
            name: series.name,
            labels: series.labels,
            field: field,
            unit: unit,
            direction: direction,
            basis: self.isSingle ? .assumedNoise : .runs,
            finding: .missing
        )
        (figure.isBaseBound, figure.isNewBound) = samples.areBounds(field)
        let isComplete = old.count == self.base.count && young.count == self.new.count
        guard isComplete, !old.isEmpty, !young.isEmpty else {
            figure.base = Self.mean(old, .difference)
            figure.new = Self.mean(young, .difference)
            // A figure that all base runs have and a new run lacks is a loss, worse than any value.
            if let limit, old.count == self.base.count, young.count < self.new.count {
                figure.gate = ComparedFigure.Gate(
                    expression: limit.expression,
                    limit: limit.share,
                    probability: 0,
                    adjusted: 0,
                    isBeyond: true
                )
            }
            return figure
        }
        let scale = Self.scale(series, field, old + young)
        let change =
            self.isPaired
            ? SideDifference.change(pairs: zip(old, young).map { ($0.value, $1.value) }, scale: scale)
            : SideDifference.change(base: old, new: young, scale: scale, noise: self.noise(series, field))
        figure.base = Self.mean(old, scale)
        figure.new = Self.mean(young, scale)
        figure.take(change, scale, self.confidence)
        if let limit { figure.judge(change, limit, scale, self.confidence, runs: max(old.count, young.count)) }
        return figure
    }

    private static func scale(
        _ series: Series,
        _ field: Threshold.Field,
        _ samples: [RunSample]
    ) -> SideDifference.Scale {
        let isMishap = field == .count && MetricDefinition.named(series.name).isMishap
        return isMishap || samples.contains { $0.value <= 0 } ? .difference : .ratio
    }

    private static func mean(_ samples: [RunSample], _ scale: SideDifference.Scale) -> Double? {
        guard !samples.isEmpty else { return nil }
        return SideDifference.mean(samples.map(\.value), scale)
    }

    /// The noise that is assumed for a single run per side, as the standard deviation between runs of a logarithm.
    ///
    /// It is generous, because the true noise is unknown. Errors and losses count as random.
    private func noise(_ series: Series, _ field: Threshold.Field) -> Double? {
        let definition = MetricDefinition.named(series.name)
        guard self.isSingle, !definition.isMishap || field != .count else { return nil }
        guard definition.kind == .duration else { return definition.role == .server ? 0.15 : 0.03 }
        return switch field {
        case .percentile(let percent) where percent <= 75: 0.05
        case .percentile(let percent) where percent <= 95: 0.1
        case .percentile(let percent) where percent <= 99: 0.15
        case .percentile, .max, .min: 0.3
        default: 0.1
        }
    }

    /// Why a limit judges nothing, or not all that it chooses.
    private func problem(_ limit: RegressionLimit, _ field: Threshold.Field) -> String? {
        let chosen = self.figures.filter { $0.field == field && limit.chooses($0.name, $0.labels) }
        guard self.figures.contains(where: { limit.chooses($0.name, $0.labels) }) else {
            return "the runs have no such metric"
        }
        let known = chosen.filter { $0.base != nil || $0.new != nil }
        guard !known.isEmpty else { return "\(limit.name) has no \(field.text) in these runs" }
        // A figure that only some base runs have was not judged.
        if let partial = known.first(where: { $0.gate == nil && $0.base != nil }) {
            return "not all runs of the base have a \(field.text) of \(partial.title)"
        }
        return known.contains { $0.gate != nil } ? nil : "no run of the base has a \(field.text) of \(limit.name)"
    }

    // MARK: - All that is judged, together

    private mutating func correct() {
        let judged = self.figures.indices.filter { self.figures[$0].gate != nil }
        // The confidence of pairs is that of all figures already.
        guard !self.isPaired else { return judged.forEach { self.figures[$0].gate?.adjusted = nil } }
        let adjusted = Holm.adjusted(judged.map { self.figures[$0].gate?.probability ?? 1 })
        for (index, probability) in zip(judged, adjusted) { self.figures[index].gate?.adjusted = probability }
    }
}

/// The limits to judge, and whether they were requested.
private struct Gates {
    var limits: [RegressionLimit]
    var isGiven: Bool
}

extension ComparedFigure {
    fileprivate mutating func take(_ change: SideDifference.Change, _ scale: SideDifference.Scale, _ confidence: Double)
    {
        let margin = change.margin(confidence: confidence)
        let (low, high) = (change.shift - margin, change.shift + margin)
        self.change = SideDifference.relative(change.shift, scale, base: self.base)
        self.measuredChange = change.stolen.flatMap {
            SideDifference.relative(change.shift + $0, scale, base: self.base)
        }
        if let low = SideDifference.relative(low, scale, base: self.base),
            let high = SideDifference.relative(high, scale, base: self.base), low <= high, low.isFinite, high.isFinite
        {
            self.interval = low...high
        }
        if low <= 1e-9, high >= -1e-9 {
            self.finding = .same
        } else {
            switch self.direction {
            case .none: self.finding = .changed
            case .down: self.finding = change.shift > 0 ? .worse : .better
            case .up: self.finding = change.shift > 0 ? .better : .worse
            }
        }
    }

    fileprivate mutating func judge(
        _ change: SideDifference.Change,
        _ limit: RegressionLimit,
        _ scale: SideDifference.Scale,
        _ confidence: Double,
        runs: Int
    ) {
        let toWorse = self.direction == .up ? change.reversed : change
        let most = SideDifference.shift(limit.share, scale, base: self.base ?? 0, isDrop: self.direction == .up)
        let least = SideDifference.shift(limit.share, scale, base: self.base ?? 0, isDrop: self.direction != .up)
        let margin = toWorse.margin(confidence: confidence)
        let (low, high) = (toWorse.shift - margin, toWorse.shift + margin)
        var gate = Gate(
            expression: limit.expression,
            limit: limit.share,
            probability: toWorse.probability(above: 0),
            adjusted: 1,
            isBeyond: low > most + 1e-9,
            isInside: high <= most + 1e-9 && low >= -least - 1e-9,
            isBetter: high < -1e-9
        )
        let gap = min(abs(most - toWorse.shift), max(abs(toWorse.shift), abs(toWorse.shift + least)))
        if !gate.isBeyond, !gate.isInside, !gate.isBetter, runs > 1, gap > 0 {
            gate.runs = (runs + 1..<1_000).first { count in
                // The error falls with the root of the number of runs, and Student's factor with their number.
                let more = Double(count) / Double(runs)
                var change = toWorse
                (change.error, change.degrees) = (toWorse.error / more.squareRoot(), toWorse.degrees * more)
                return change.margin(confidence: confidence) < gap
            }
        }
        self.gate = gate
    }
}

extension Threshold.Field {
    /// Percentiles first, ascending.
    fileprivate var order: Double {
        switch self {
        case .percentile(let percent): percent
        case .mean: 200
        case .rate: 300
        case .count: 400
        case .min: 500
        case .max: 600
        case .slope: 700
        }
    }
}
