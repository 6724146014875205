/// The metrics of one group of clients, in a run that may have several.
package struct GroupCatalog: Sendable {
    /// The group label of its metrics; `nil` in a run of one command.
    package var name: String?
    package var catalog: MetricCatalog

    package init(_ name: String?, _ catalog: MetricCatalog) {
        self.name = name
        self.catalog = catalog
    }
}

/// The metrics of all groups of a run as one catalog: group metrics have a group label, process metrics are merged.
struct JoinedCatalog: Sendable {
    /// The place where a group records it.
    struct Place: Hashable, Sendable {
        let group: Int
        let index: Int
    }

    private(set) var catalog = MetricCatalog()
    /// By the index in ``catalog``.
    private(set) var durations: [[Place]] = []
    private(set) var counters: [[Place]] = []
    private(set) var gauges: [[Place]] = []

    init(_ groups: [GroupCatalog]) {
        self.catalog.stages = groups.first?.catalog.stages ?? []
        for (number, group) in groups.enumerated() {
            func labels(_ name: String, _ labels: Labels) -> Labels { labels.of(group: group.name, metric: name) }
            for (index, metric) in group.catalog.durations.enumerated() {
                let id = self.catalog.duration(
                    .named(metric.name),
                    labels(metric.name, metric.labels),
                    wholeRun: metric.wholeRun
                )
                Self.note(Place(group: number, index: index), at: id.index, in: &self.durations)
            }
            for (index, metric) in group.catalog.counters.enumerated() {
                let id = self.catalog.counter(
                    .named(metric.name),
                    labels(metric.name, metric.labels),
                    ratesAddUp: metric.ratesAddUp
                )
                Self.note(Place(group: number, index: index), at: id.index, in: &self.counters)
            }
            for (index, metric) in group.catalog.gauges.enumerated() {
                let id = self.catalog.gauge(
                    .named(metric.name),
                    labels(metric.name, metric.labels),
                    merge: metric.merge
                )
                Self.note(Place(group: number, index: index), at: id.index, in: &self.gauges)
            }
        }
    }

    private static func note(_ place: Place, at index: Int, in places: inout [[Place]]) {
        if index == places.count { places.append([]) }
        places[index].append(place)
    }
}

extension MetricCatalog {
    /// The metrics that thresholds may name in a run of these groups.
    package static func joined(_ groups: [GroupCatalog]) -> MetricCatalog { JoinedCatalog(groups).catalog }
}

extension Labels {
    /// The label with the name of a metric's group.
    package static let group = "group"
    /// The label of deliveries with the name of the publishers' group.
    package static let from = "from"
    /// The label with the name of a stream, in a group that has several.
    package static let stream = "stream"
    /// The label of lost messages with the reason.
    package static let cause = "cause"
    /// The label of duplicates: whether the standard permits them, `yes` or `no`.
    package static let permitted = "permitted"

    /// The first group in a group label: a share group with members in several has their names joined by `+`.
    package static func firstGroup(of name: String) -> String { String(name.prefix { $0 != "+" }) }

    /// The place of a connect's phase in the order in which they happen; that of an unknown one comes last.
    package var phasePlace: Int {
        let order = ["dns", "tcp", "tls", "websocket", "stream", "register", "sasl", "bind", "session", "total"]
        return self["phase"].flatMap(order.firstIndex) ?? order.count
    }

    /// Whether the plan wants these disconnects, so that none of them is a loss of a connection.
    package var isOfPlannedDeparture: Bool {
        ["churn", "storm", "offline", "inactive", "cycle"].contains(self["reason"] ?? "")
    }

    /// These labels, with the group label that a run of several groups adds.
    package func of(group: String?, metric name: String) -> Labels {
        // A share group with members in several groups has their names already.
        guard let group, self[Self.group] == nil, MetricDefinition.of(name)?.role != .process else { return self }
        return self.adding(Self.group, group)
    }
}
