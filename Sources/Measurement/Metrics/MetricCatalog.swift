/// A duration metric of the catalog; a histogram of a `LoopMeter` for each ``MetricLane``.
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

/// Every metric a run can record, by name and labels, made before the first loop starts.
///
/// To ask for the same name and labels again gives the same identifier.
package struct MetricCatalog: Sendable {
    /// How the values that several loops set make one.
    package enum GaugeMerge: Sendable {
        case sum
        case highest
        /// There is one value alone. Those of several labels are not added up: a threshold has to name one.
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

    /// In their order; none in a run without.
    package var stages: [MetricStage] = []
    private(set) var durations: [Duration] = []
    private(set) var counters: [Counter] = []
    private(set) var gauges: [Gauge] = []

    package init() {}

    /// A duration.
    ///
    /// `wholeRun`: counts in every phase, as connect metrics do; else only operations due in the
    ///   measured phase enter the totals.
    package mutating func duration(_ name: String, _ labels: Labels = [:], wholeRun: Bool = false) -> DurationID {
        var index = self.durations.firstIndex { $0.name == name && $0.labels == labels }
        if index == nil {
            index = self.durations.count
            self.durations.append(Duration(name: name, labels: labels, wholeRun: wholeRun))
        }
        let known = index ?? 0
        return DurationID(index: known, isWholeRun: self.durations[known].wholeRun)
    }

    /// A counter.
    ///
    /// - `unit`: "bytes", say. A counter in "seconds" is added to in nanoseconds.
    /// - `ratesAddUp`: whether those of other labels are counted in the same time.
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

    /// Takes over all metrics of another catalog; its identifiers stay good for that one alone.
    package mutating func add(_ other: MetricCatalog) {
        self.durations += other.durations
        self.counters += other.counters
        self.gauges += other.gauges
    }

    /// A gauge: it keeps its value until it is set again.
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
