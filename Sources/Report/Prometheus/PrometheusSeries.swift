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
    package var version: String
    /// Name and version of the server under load.
    package var server: String?
    /// The current phase or stage.
    package var phase: String?
    /// Whether the figures are final.
    package var isFinished = false
    /// Nanoseconds since 1970.
    package var startedAt: Int64?

    package init(command: String, version: String) {
        self.command = command
        self.version = version
    }

    /// The facts of a run, which has ended if the record says so.
    package init(record: RunRecord, server: String? = nil) {
        self.init(command: Summary(record).commandName, version: record.tool.version)
        if case .string(let name)? = record.plan["name"] { self.name = name }
        self.server = server
        self.isFinished = record.verdict != nil
        self.startedAt = WallClock.nanoseconds(record.startedAt)
    }
}

/// The names of a metric and its parts in Prometheus: prefix, base unit, suffix of the type.
package struct PrometheusName: Hashable, Sendable {
    package static let prefix = "clamor_"
    /// Units that are base units of Prometheus, and so part of a name.
    private static let baseUnits = ["seconds", "bytes"]
    /// Labels that the format uses for parts of a metric; one of ours with such a name gets ``exported``.
    static let reservedLabels: Set = ["le", "q", "quantile"]
    static let exported = "exported_"

    /// The name of the family in OpenMetrics, without the suffix of a counter.
    package let family: String
    /// The unit at the end of the family's name, if it has one.
    package let unit: String?
    package let kind: Metric.Kind

    /// `name`: the metric's short name.
    package init(_ name: String, kind: Metric.Kind, unit: String?) {
        let base = Self.prefix + Self.valid(name, colons: true)
        var family = base
        // Only of words: "bytes_sent" names its unit, and "megabytes" would not.
        if let unit, Self.baseUnits.contains(unit), !base.split(separator: "_").contains(unit[...]) {
            family += "_" + unit
        }
        while kind == .counter, family.hasSuffix("_total") { family.removeLast("_total".count) }
        self.family = family
        self.unit = unit.flatMap { family.hasSuffix("_" + $0) ? $0 : nil }
        self.kind = kind
    }

    package init(_ help: MetricDefinition) { self.init(help.name, kind: help.kind, unit: help.unit) }

    /// The name of a counter's or gauge's samples.
    package var sample: String { self.kind == .counter ? self.family + "_total" : self.family }

    /// The gauges with a duration's percentiles.
    package var quantiles: String {
        guard let unit = self.unit else { return self.family + "_quantile" }
        return self.family.dropLast(unit.count) + "quantile_" + unit
    }

    package var samples: [String] {
        switch self.kind {
        case .counter, .gauge: [self.sample]
        case .duration: ["_bucket", "_sum", "_count"].map { self.family + $0 } + [self.quantiles]
        }
    }

    /// A name of Prometheus's alphabet: anything else becomes an underscore, and a digit does not begin it.
    static func valid(_ name: String, colons: Bool) -> String {
        var valid = ""
        for byte in name.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "_"):
                valid.unicodeScalars.append(Unicode.Scalar(byte))
            case UInt8(ascii: "0")...UInt8(ascii: "9"):
                valid.unicodeScalars.append(Unicode.Scalar(byte))
            case UInt8(ascii: ":") where colons: valid.append(":")
            // One for each character, not for each of its further bytes.
            case 0x80...0xBF: continue
            default: valid.append("_")
            }
        }
        return valid
    }

    static func label(_ key: String) -> String {
        var name = self.valid(key, colons: false)
        // Names that begin with two underscores are Prometheus's own.
        while name.hasPrefix("__") { name.removeFirst() }
        if name.isEmpty || name.utf8.first.map({ $0 < UInt8(ascii: "A") }) == true { name = "_" + name }
        return self.reservedLabels.contains(name) ? self.exported + name : name
    }
}
