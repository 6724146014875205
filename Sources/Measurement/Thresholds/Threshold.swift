/// A condition that a run must meet: `publish_ack_duration{qos=1} p99.9 < 50ms abort`.
///
///     threshold := name [ "{" label "=" value { "," label "=" value } "}" ] [ field ] op value [ "abort" ]
///     field     := count | rate | min | mean | max | p0 ... p100
///     op        := < | <= | > | >= | == | !=
///     value     := number [ ns | us | µs | ms | s | % | /s ]
///
/// Labels that are not given are merged, except that `phase` is then `total`, and `leg` the last. `error_rate` is
/// errors divided by operations.
package struct Threshold: Hashable, Sendable {
    package enum Field: Hashable, Sendable {
        case count, rate, min, mean, max
        case percentile(Double)
    }

    package enum Comparison: String, Hashable, Sendable, CaseIterable {
        case less = "<"
        case atMost = "<="
        case greater = ">"
        case atLeast = ">="
        case equal = "=="
        case notEqual = "!="

        func holds(_ left: Double, _ right: Double) -> Bool {
            switch self {
            case .less: left < right
            case .atMost: left <= right
            case .greater: left > right
            case .atLeast: left >= right
            case .equal: left == right
            case .notEqual: left != right
            }
        }
    }

    /// The kind of the limit, given by its unit.
    package enum Unit: Hashable, Sendable {
        case plain, time, share, perSecond
    }

    /// The original text, for reports.
    package let expression: String
    package let name: String
    package internal(set) var labels: Labels
    /// Absent if omitted: a counter's count, a gauge's last value.
    package let field: Field?
    package let comparison: Comparison
    /// In seconds, events, events per second, or as a fraction.
    package let limit: Double
    package let unit: Unit
    /// Whether the run ends as soon as the threshold is broken.
    package let aborts: Bool

    package static let errorRate = "error_rate"
}

/// The reason why a text is not a threshold, in one line: the error and the remedy.
package struct ThresholdError: Error, Hashable, Sendable, CustomStringConvertible {
    package let expression: String
    package let problem: String

    package var description: String { "threshold '\(self.expression)': \(self.problem)" }

    package init(_ expression: String, _ problem: String) {
        self.expression = expression
        self.problem = problem
    }
}

/// The result of a threshold.
package struct ThresholdResult: Codable, Hashable, Sendable {
    package var expression: String
    package var ok: Bool
    /// The measured figure in the limit's base unit; absent without a sample.
    package var value: Double?

    package init(expression: String, ok: Bool, value: Double?) {
        self.expression = expression
        self.ok = ok
        self.value = value
    }
}

extension [Threshold] {
    /// The result of each threshold; `broken` ended the run, and counts as failed even if it would pass now.
    package func results(in record: some MetricSource, broken: String?) -> [ThresholdResult] {
        self.map { threshold in
            var result = threshold.evaluate(in: record)
            if threshold.expression == broken { result.ok = false }
            return result
        }
    }
}

extension Threshold {
    /// Checks the threshold.
    ///
    /// Without a sample every field except `count` fails.
    package func evaluate(in source: some MetricSource) -> ThresholdResult {
        let value = self.measured(in: source)
        let ok = value.map { self.comparison.holds($0, self.limit) } ?? false
        return ThresholdResult(expression: self.expression, ok: ok, value: value)
    }

    /// Whether the current run has definitely broken it.
    ///
    /// An unknown value is not broken, nor is a count that can still reach its limit.
    package func isBroken(in source: some MetricSource) -> Bool {
        guard let value = self.measured(in: source), !self.comparison.holds(value, self.limit) else { return false }
        guard self.isCount(in: source) else { return true }
        return switch self.comparison {
        case .less, .atMost: true
        case .equal: value > self.limit
        case .greater, .atLeast, .notEqual: false
        }
    }

    private func isCount(in source: some MetricSource) -> Bool {
        if self.field == .count { return true }
        guard self.field == nil, self.name != Self.errorRate else { return false }
        return !self.selected(in: source).contains { if case .gauge = $0.value { true } else { false } }
    }

    private func measured(in source: some MetricSource) -> Double? {
        if self.name == Self.errorRate { return self.errorRate(in: source) }
        let readings = self.selected(in: source)
        var figures = Figures()
        for reading in readings { figures.add(reading.value) }
        return figures.value(of: self.field)
    }

    /// The readings with the threshold's labels.
    private func selected(in source: some MetricSource) -> [MetricReading] {
        let chosen = self.readings(of: self.name, in: source)
        return chosen.filter { $0.labels.isWhole { self.labels[$0] != nil } }
    }

    /// Readings of the stage in the labels, or of the whole run, which is not the sum of its stages.
    private func readings(of name: String, in source: some MetricSource) -> [MetricReading] {
        source.readings(of: name, stage: self.labels[Labels.stage]).filter { $0.labels.contains(self.labels) }
    }

    /// Errors divided by operations: first connects begun, clients that came back, publishes and stanzas offered,
    /// subscribes answered.
    private func errorRate(in source: some MetricSource) -> Double? {
        func total(_ name: String) -> Double {
            var figures = Figures()
            for reading in self.readings(of: name, in: source) { figures.add(reading.value) }
            return figures.count
        }
        let names = ["connect_lag", "reconnects", "publish_offered", "stanza_offered", "subscribe_duration"]
        let operations = names.reduce(0) { $0 + total($1) }
        return operations > 0 ? total("errors") / operations : nil
    }
}

extension Labels {
    /// Whether a series is one of a whole operation, so that it is merged with the others of its metric.
    ///
    /// The phases of a connect and the legs of a flow are parts of one operation: the phase `total` and the last leg are
    /// whole. A label that `isGiven` is selected by its value instead.
    package func isWhole(unless isGiven: (_ key: String) -> Bool = { _ in false }) -> Bool {
        if let phase = self["phase"], phase != "total", !isGiven("phase") { return false }
        // PUBREC is the middle of a flow: PUBACK at QoS 1 and PUBCOMP at QoS 2 are the last packets.
        return self["leg"] != "pubrec" || isGiven("leg")
    }
}

/// The merged figures of several readings.
private struct Figures {
    var count = 0.0
    private var rate: Double?
    private var histogram: Histogram?
    private var last: Double?
    private var lowest: Double?
    private var average: Double?
    private var median: Double?
    private var highest: Double?

    mutating func add(_ value: MetricReading.Value) {
        switch value {
        case .duration(let histogram):
            self.count += Double(histogram.count)
            if self.histogram == nil { self.histogram = histogram } else { self.histogram?.merge(histogram) }
        case .counter(let counter):
            self.count += counter.value
            if let rate = counter.rate { self.rate = (self.rate ?? 0) + rate }
        case .gauge(let gauge):
            // Gauges of several things add up; a gauge of one thing is taken as it is.
            self.count += gauge.value
            self.last = (self.last ?? 0) + gauge.value
            self.lowest = gauge.min.map { (self.lowest ?? 0) + $0 }
            self.average = gauge.mean.map { (self.average ?? 0) + $0 }
            self.median = gauge.median.map { (self.median ?? 0) + $0 }
            self.highest = gauge.max.map { (self.highest ?? 0) + $0 }
        }
    }

    func value(of field: Threshold.Field?) -> Double? {
        switch field {
        case nil: self.histogram == nil ? (self.last ?? self.count) : nil
        case .count: self.count
        case .rate: self.rate
        case .min: self.histogram?.min.map { Double($0) / 1e9 } ?? self.lowest
        case .mean: self.histogram?.mean.map { $0 / 1e9 } ?? self.average
        case .max: self.histogram?.max.map { Double($0) / 1e9 } ?? self.highest
        case .percentile(let percent):
            self.histogram?.percentile(percent).map { Double($0) / 1e9 } ?? (percent == 50 ? self.median : nil)
        }
    }
}
