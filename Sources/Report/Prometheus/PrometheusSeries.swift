package import Measurement

/// One metric with one set of labels, as a scrape sees it.
package struct PrometheusSeries: Sendable {
    package enum Value: Sendable {
        case duration(Histogram)
        /// Since the start of the run, warm-up included; never a rate.
        case counter(Double)
        case gauge(Double)

        var kind: Metric.Kind {
            switch self {
            case .duration: .duration
            case .counter: .counter
            case .gauge: .gauge
            }
        }
    }

    /// The short name, such as `publish_acked`.
    package var name: String
    package var labels: Labels
    /// As in ``Metric/unit``.
    package var unit: String?
    package var value: Value

    package init(name: String, labels: Labels = [:], unit: String? = nil, value: Value) {
        self.name = name
        self.labels = labels
        self.unit = unit
        self.value = value
    }

    /// A metric of a record, or of the run so far.
    ///
    /// `histogram`: that of a duration, if it is known apart from the metric's encoded one. Without either a duration
    /// has no buckets, and the result is nil.
    package init?(_ metric: Metric, histogram: Histogram? = nil) {
        let value: Value
        switch metric.reading {
        case .duration(let reading):
            guard let histogram = histogram ?? reading.decodedValues()?.answered, !histogram.isEmpty else {
                return nil
            }
            value = .duration(histogram)
        case .counter(let reading): value = .counter(reading.value)
        case .gauge(let reading): value = .gauge(reading.value)
        }
        self.init(name: metric.name, labels: metric.labels, unit: metric.unit, value: value)
    }
}

extension [PrometheusSeries] {
    /// The metrics of a run as its record has them.
    ///
    /// Metrics of single stages are left out: a sum over labels would count them twice.
    package init(record: RunRecord) {
        self = record.metrics.filter { $0.labels[Labels.stage] == nil }.compactMap { PrometheusSeries($0) }
    }
}

/// The facts of a run that are no measurements.
package struct PrometheusInfo: Hashable, Sendable {
    /// The name that the user gave to the run.
    package var name: String?
    /// Program and command, such as `clamor pubsub`.
    package var command: String
    /// Of Clamor.
    package var version: String
    /// Name and version of the server under load.
    package var server: String?
    /// The current phase or stage.
    package var phase: String?
    /// Whether the figures are final.
    package var isFinished: Bool
    /// Nanoseconds since 1970.
    package var startedAt: Int64?

    package init(
        name: String? = nil,
        command: String,
        version: String,
        server: String? = nil,
        phase: String? = nil,
        isFinished: Bool = false,
        startedAt: Int64? = nil
    ) {
        self.name = name
        self.command = command
        self.version = version
        self.server = server
        self.phase = phase
        self.isFinished = isFinished
        self.startedAt = startedAt
    }

    /// Of a run that has ended, if the record says so.
    package init(record: RunRecord, server: String? = nil) {
        self.init(
            name: record.plan["name"].flatMap { if case .string(let name) = $0 { name } else { nil } },
            command: Summary(record).commandName,
            version: record.tool.version,
            server: server,
            isFinished: record.verdict != nil,
            startedAt: WallClock.nanoseconds(record.startedAt)
        )
    }
}
