package import Measurement

/// The series of both sides.
struct Sides {
    let base: [ComparedRun]
    let new: [ComparedRun]
    let all: [Series]

    private let metrics: [[Series: Metric]]
    private let errors: [[Labels: Double]]

    init(_ base: [ComparedRun], _ new: [ComparedRun]) {
        self.base = base
        self.new = new
        self.metrics = (base + new).map(\.series)
        self.errors = (base + new).map(\.errors)
        let named = Set(self.metrics.flatMap(\.keys))
        let kinds = Set(self.errors.flatMap(\.keys)).map { Series(name: MetricDefinition.errors.name, labels: $0) }
        self.all = Array(named) + kinds
    }

    private func metric(_ series: Series) -> Metric? { self.metrics.lazy.compactMap { $0[series] }.first }
    func unit(_ series: Series) -> String? { self.metric(series)?.unit }

    /// The field of a name without one.
    func plainField(_ series: Series) -> Threshold.Field { self.metric(series)?.gauge == nil ? .count : .mean }

    /// The plain field of the series that a limit selects; all of them have the same kind.
    func plainField(of limit: RegressionLimit) -> Threshold.Field {
        self.all.first { limit.chooses($0.name, $0.labels) }.map(self.plainField) ?? .count
    }

    /// The fields worth comparing.
    func fields(_ series: Series) -> [Threshold.Field] {
        guard !series.isOf(.errors) else { return [.count] }
        switch self.metric(series)?.reading {
        case .duration:
            let least = self.metrics.compactMap { $0[series]?.duration?.count }.min() ?? 0
            // Ten values above a percentile at least, or it is the height of a few.
            let fields: [Threshold.Field] = [50, 90, 99, 99.9].filter { Double(least) * (100 - $0) > 999.999 }.map {
                .percentile($0)
            }
            return fields + [.mean]
        case .counter(let reading):
            return [reading.rate == nil || MetricDefinition.named(series.name).isMishap ? .count : .rate]
        case .gauge: return [.mean]
        case nil: return []
        }
    }

    /// Whether that figure is only known to be at least so much.
    func isBound(_ series: Series, _ field: Threshold.Field, run: Int) -> Bool {
        self.metrics[run][series]?.isBound(field) == true
    }

    /// A figure of the run with that number, counted from the base's first.
    func value(_ series: Series, _ field: Threshold.Field, run: Int) -> Double? {
        if series.isOf(.errors) { return field == .count ? self.errors[run][series.labels] ?? 0 : nil }
        let value = self.metrics[run][series]?.value(of: field)
        // A run without such an event has no such metric.
        return value ?? (field == .count && series.definition?.isRare == true ? 0 : nil)
    }
}

/// A series in all runs.
struct SeriesSamples {
    let series: Series
    let sides: Sides

    /// Whether some run of each side has but a lower bound of the figure.
    func areBounds(_ field: Threshold.Field) -> (base: Bool, new: Bool) {
        let all = (0..<(self.sides.base.count + self.sides.new.count)).map {
            self.sides.isBound(self.series, field, run: $0)
        }
        return (all.prefix(self.sides.base.count).contains(true), all.dropFirst(self.sides.base.count).contains(true))
    }

    func base(_ field: Threshold.Field) -> [RunSample] {
        self.sides.base.indices.compactMap { self.sample(field, run: $0) }
    }

    func new(_ field: Threshold.Field) -> [RunSample] {
        self.sides.new.indices.compactMap { self.sample(field, run: self.sides.base.count + $0) }
    }

    private func sample(_ field: Threshold.Field, run: Int) -> RunSample? {
        guard let value = self.sides.value(self.series, field, run: run), value.isFinite else { return nil }
        let stolen = (self.sides.base + self.sides.new)[run].record.generator.hostSteal
        return RunSample(value: value, stolen: stolen)
    }
}

// The figures of the single runs that a comparison is made of.
extension Comparison {
    /// One value for each run of both sides; absent where a run lacks the figure.
    package func values(_ figure: ComparedFigure) -> (base: [Double?], new: [Double?]) {
        let series = Series(name: figure.name, labels: figure.labels)
        let values = (self.base + self.new).indices.map { self.sides.value(series, figure.field, run: $0) }
        return (Array(values.prefix(self.base.count)), Array(values.dropFirst(self.base.count)))
    }

    /// A figure of the run with that number, counted from the base's first, for people.
    package func text(_ figure: ComparedFigure, run: Int) -> String {
        let series = Series(name: figure.name, labels: figure.labels)
        let isBound = self.sides.isBound(series, figure.field, run: run)
        return figure.text(self.sides.value(series, figure.field, run: run), isBound: isBound)
    }

    /// All values of a duration on each side; absent without any.
    package func histograms(_ figure: ComparedFigure) -> (base: Histogram?, new: Histogram?) {
        func joined(_ runs: [ComparedRun]) -> Histogram? {
            let series = Series(name: figure.name, labels: figure.labels)
            var whole = Histogram()
            for run in runs {
                if let histogram = run.series[series]?.duration?.decodedHistogram() { whole.merge(histogram) }
            }
            return whole.count > 0 ? whole : nil
        }
        return (joined(self.base), joined(self.new))
    }
}
