package import Measurement

/// The figures of one interval that the progress line and the board show.
///
/// A figure that the interval does not have is absent.
package struct IntervalFigures: Hashable, Sendable {
    /// Operations per second of a QoS, a kind of stanza, or a group.
    package struct Rates: Hashable, Sendable {
        package struct Name: Hashable, Sendable {
            package var group: String?
            package var qos: String?
            package var stanza: String?
        }

        package var name: Name
        package var offered: Double?
        package var sent: Double?
        package var acked: Double?
        package var received: Double?

        /// Whether the row is the one of these labels; a group has one row.
        fileprivate func isOf(_ labels: Labels) -> Bool {
            if let group = self.name.group { return group == labels[Labels.group] }
            let name = self.name
            return labels[Labels.group] == nil && name.qos == labels["qos"] && name.stanza == labels["stanza"]
        }
    }

    /// A latency of one series, or of several under one name.
    package struct Latency: Hashable, Sendable {
        package var place: Int
        package var labels: Labels
        package var reading: DurationReading
    }

    package struct Level: Hashable, Sendable {
        package var labels: Labels
        package var value: Double
    }

    package var second: Int
    package var phase: String
    /// The length of the interval; the end of a phase cuts a second in two.
    package var seconds: Double
    /// Whether it is long enough for rates.
    package var hasRates: Bool { self.seconds >= TimelineInterval.shortestRated }
    package var clients: [Level] = []
    package var rates: [Rates] = []
    /// By place in ``MetricDefinition/latencies``.
    package var latencies: [Latency] = []
    /// Cores that the threads of the event loops used, by loop.
    package var loops: [Level] = []
    /// Cores that the watched processes of the server used, by process.
    package var server: [Level] = []

    package init(_ interval: TimelineInterval) {
        self.second = interval.second
        self.phase = interval.phase
        self.seconds = interval.seconds
        let written = Self.written(interval.metrics)
        for metric in interval.metrics where metric.labels[Labels.stage] == nil {
            switch metric.reading {
            case .counter(let reading):
                guard self.hasRates, let rate = reading.rate, let field = Self.field(metric, written)
                else { continue }
                self.add(rate, to: field, metric.labels)
            case .gauge(let reading):
                self.add(reading.value, of: metric)
            case .duration(let reading):
                guard let place = MetricDefinition.latencies.firstIndex(where: { $0.isLatency(metric) }) else {
                    continue
                }
                self.latencies.append(Latency(place: place, labels: metric.labels, reading: reading))
            }
        }
        self.rates.sort {
            ($0.name.group ?? "", $0.name.qos ?? "", $0.name.stanza ?? "")
                < ($1.name.group ?? "", $1.name.qos ?? "", $1.name.stanza ?? "")
        }
    }

    /// Group and kind of the stanzas that clients send.
    private static func written(_ metrics: [Metric]) -> Set<[String?]> {
        Set(metrics.lazy.filter { $0.isOf(.stanzaOffered) }.map { [$0.labels[Labels.group], $0.labels["stanza"]] })
    }

    /// The messages that clients received, added up, of requests their answers; absent where no counter is there.
    package static func received(_ metrics: [Metric]) -> Double? {
        SummaryCounts(metrics.filter { $0.labels[Labels.stage] == nil }).arrived.value
    }

    private static func field(_ metric: Metric, _ written: Set<[String?]>) -> WritableKeyPath<Rates, Double?>? {
        switch metric.definition?.role {
        case .offered?: return \.offered
        case .sent?: return \.sent
        case .acked?: return \.acked
        case _ where metric.isOf(.received):
            guard metric.labels["from"] != "other" else { return nil }
            guard let stanza = metric.labels["stanza"] else { return \.received }
            // Of XMPP clients, only what they send each other.
            return stanza != "iq" && written.contains([metric.labels[Labels.group], stanza]) ? \.received : nil
        default: return nil
        }
    }

    private mutating func add(_ level: Double, of metric: Metric) {
        guard level.isFinite else { return }
        let level = Level(labels: metric.labels, value: max(0, level))
        if metric.isOf(.clients) { self.clients.append(level) }
        if metric.isOf(.generatorCPU) { self.loops.append(level) }
        if metric.isOf(.serverCPU) { self.server.append(level) }
    }

    private mutating func add(_ rate: Double, to field: WritableKeyPath<Rates, Double?>, _ labels: Labels) {
        let known = self.rates.firstIndex { $0.isOf(labels) }
        if known == nil {
            let group = labels[Labels.group]
            let isOne = group == nil
            let name = Rates.Name(
                group: group,
                qos: isOne ? labels["qos"] : nil,
                stanza: isOne ? labels["stanza"] : nil
            )
            self.rates.append(Rates(name: name))
        }
        let place = known ?? self.rates.count - 1
        self.rates[place][keyPath: field] = (self.rates[place][keyPath: field] ?? 0) + rate
    }

    /// All rows together; absent where no row has the figure.
    package func total(_ field: KeyPath<Rates, Double?>) -> Double? {
        let known = self.rates.compactMap { $0[keyPath: field] }
        return known.isEmpty ? nil : known.reduce(0, +)
    }

    /// Clients that are connected; absent where the interval does not say.
    package var clientsUp: Double? {
        let up = self.clients.filter { $0.labels["state"] ?? "connected" == "connected" }
        return up.isEmpty ? nil : up.reduce(0) { $0 + $1.value }
    }

    /// The reading of whole operations with the highest p99; absent where nothing came.
    package func slowest(_ metric: MetricDefinition) -> DurationReading? {
        self.latencies.filter { MetricDefinition.latencies[$0.place] == metric }.map(\.reading)
            .max { $0.p99 < $1.p99 }
    }
}

extension MetricDefinition {
    /// The latencies of whole operations that board and summary show, in the order of their tables.
    package static let latencies: [MetricDefinition] = [
        .connect, .publishWrite, .publishAck, .iq, .smResponse, .request, .delivery, .message, .presence, .mucFanout,
        .presenceFanout,
    ]

    /// Whether the short summary has it too: the time of an answer or a delivery.
    var isMainLatency: Bool { self.role == .answer || self.role == .delivery }

    fileprivate func isLatency(_ metric: Metric) -> Bool {
        guard metric.isOf(self), metric.labels.isWhole() else { return false }
        // At QoS 0 nothing answers: that the write returned is all there is to know.
        return self != .publishWrite || metric.labels["qos"] == "0"
    }
}

extension Labels {
    /// The kind of operation in words: `QoS 1`, `message`, `ping`, with its stream where there are several.
    var operationKinds: [String] {
        [
            self["qos"].map { "QoS \($0)" }, self["stanza"], self["request"], self["receiver"], self[Labels.stream],
        ].compactMap(\.self)
    }
}
