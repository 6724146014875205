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

    /// Of all metrics, whatever their labels.
    package var names: Set<String> {
        Set(self.durations.map(\.name) + self.counters.map(\.name) + self.gauges.map(\.name))
    }

    /// Adds a duration.
    ///
    /// `wholeRun`: recorded in every phase, as for connect metrics; otherwise only operations due in the measured phase
    /// enter the totals.
    package mutating func duration(_ name: String, _ labels: Labels = [:], wholeRun: Bool = false) -> DurationID {
        var index = self.durations.firstIndex { $0.name == name && $0.labels == labels }
        if index == nil {
            index = self.durations.count
            self.durations.append(Duration(name: name, labels: labels, wholeRun: wholeRun))
        }
        let known = index ?? 0
        return DurationID(index: known, isWholeRun: self.durations[known].wholeRun)
    }

    /// Adds a counter.
    ///
    /// - `unit`: for example "bytes". A counter in "seconds" is increased in nanoseconds.
    /// - `ratesAddUp`: whether counters with other labels count over the same time.
    package mutating func counter(
        _ name: String,
        _ labels: Labels = [:],
        unit: String = "",
        ratesAddUp: Bool = true
    ) -> CounterID {
        if let index = self.counters.firstIndex(where: { $0.name == name && $0.labels == labels }) {
            return CounterID(index: index)
        }
        self.counters.append(Counter(name: name, labels: labels, unit: unit, ratesAddUp: ratesAddUp))
        return CounterID(index: self.counters.count - 1)
    }

    /// Adds all metrics of another catalog, whose identifiers remain valid only for that catalog.
    package mutating func add(_ other: MetricCatalog) {
        self.durations += other.durations
        self.counters += other.counters
        self.gauges += other.gauges
    }

    /// Adds a gauge, which keeps its value until it is set again.
    package mutating func gauge(
        _ name: String,
        _ labels: Labels = [:],
        unit: String = "",
        merge: GaugeMerge = .sum
    ) -> GaugeID {
        if let index = self.gauges.firstIndex(where: { $0.name == name && $0.labels == labels }) {
            return GaugeID(index: index)
        }
        self.gauges.append(Gauge(name: name, labels: labels, unit: unit, merge: merge))
        return GaugeID(index: self.gauges.count - 1)
    }
}
