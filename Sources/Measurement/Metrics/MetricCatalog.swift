/// A duration metric of the catalog.
///
/// A `LoopMeter` has a histogram of it for each ``MetricLane``.
public struct DurationID: Hashable, Sendable {
    @usableFromInline let index: Int
    /// Whether it covers the whole run.
    @usableFromInline let isWholeRun: Bool
}

/// A counter of the catalog.
public struct CounterID: Hashable, Sendable {
    @usableFromInline let index: Int
}

/// A gauge of the catalog.
public struct GaugeID: Hashable, Sendable {
    @usableFromInline let index: Int
}

/// Every metric that a run can record, by name and labels, made before the first loop starts.
///
/// A request for an existing name and labels returns the same identifier.
package struct MetricCatalog: Sendable {
    /// How the values of several loops are combined.
    package enum GaugeMerge: Sendable {
        case sum
        case highest
        /// There is only one value. Values with different labels are not added up, so a threshold has to name one.
        case none
    }

    struct Duration: Sendable {
        let name: String
        let labels: Labels
        let wholeRun: Bool
    }

    struct Counter: Sendable {
        let name: String
        let labels: Labels
        let unit: String
        let ratesAddUp: Bool
    }

    struct Gauge: Sendable {
        let name: String
        let labels: Labels
        let unit: String
        let merge: GaugeMerge
    }

    /// In order; empty in a run without stages.
    package var stages: [MetricStage] = []
    private(set) var durations: [Duration] = []
    private(set) var counters: [Counter] = []
    private(set) var gauges: [Gauge] = []

    package init() {}

    /// The names of all metrics, whatever their labels.
    package var names: Set<String> { Set(self.all.map(\.name)) }

    /// All metrics with their labels.
    var all: [(name: String, labels: Labels, kind: Metric.Kind)] {
        self.durations.map { ($0.name, $0.labels, .duration) } + self.counters.map { ($0.name, $0.labels, .counter) }
            + self.gauges.map { ($0.name, $0.labels, .gauge) }
    }

    /// Adds a duration.
    ///
    /// `wholeRun`: recorded in every phase, as for connect metrics; otherwise only operations due in the measured phase
    /// enter the totals.
    package mutating func duration(
        _ metric: MetricDefinition,
        _ labels: Labels = [:],
        wholeRun: Bool = false
    ) -> DurationID {
        let new = Duration(name: metric.name, labels: labels, wholeRun: wholeRun)
        let index = Self.place(of: new, in: &self.durations) { $0.name == new.name && $0.labels == labels }
        return DurationID(index: index, isWholeRun: self.durations[index].wholeRun)
    }

    /// Adds a counter, which is increased in nanoseconds if its unit is seconds.
    ///
    /// `ratesAddUp`: whether counters with other labels count over the same time.
    package mutating func counter(
        _ metric: MetricDefinition,
        _ labels: Labels = [:],
        ratesAddUp: Bool = true
    ) -> CounterID {
        let new = Counter(name: metric.name, labels: labels, unit: metric.unit ?? "", ratesAddUp: ratesAddUp)
        return CounterID(index: Self.place(of: new, in: &self.counters) { $0.name == new.name && $0.labels == labels })
    }

    /// Adds all metrics of another catalog, whose identifiers remain valid only for that catalog.
    package mutating func add(_ other: MetricCatalog) {
        self.durations += other.durations
        self.counters += other.counters
        self.gauges += other.gauges
    }

    /// Adds a gauge, which keeps its value until it is set again.
    package mutating func gauge(
        _ metric: MetricDefinition,
        _ labels: Labels = [:],
        merge: GaugeMerge = .sum
    ) -> GaugeID {
        let new = Gauge(name: metric.name, labels: labels, unit: metric.unit ?? "", merge: merge)
        return GaugeID(index: Self.place(of: new, in: &self.gauges) { $0.name == new.name && $0.labels == labels })
    }

    private static func place<Kind>(of new: Kind, in all: inout [Kind], where isSame: (Kind) -> Bool) -> Int {
        if let known = all.firstIndex(where: isSame) { return known }
        all.append(new)
        return all.count - 1
    }
}
