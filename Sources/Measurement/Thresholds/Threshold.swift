/// A condition that a run must meet: `publish_ack_duration{qos=1} p99.9 < 50ms abort`.
///
///     threshold := name [ "{" label "=" value { "," label "=" value } "}" ] [ field ] op value [ "abort" ]
///     field     := count | rate | min | mean | max | p0 ... p100 | slope
///     op        := < | <= | > | >= | == | !=
///     value     := number [ ns | us | µs | ms | s | % | kB | MB | GB | KiB | MiB | GiB ] [ /s | /h ]
///
/// Labels that are not given are merged, except that `phase` is then `total`, and `leg` the last. `error_rate` is the
/// share of operations that failed or are outstanding.
package struct Threshold: Hashable, Sendable {
    package enum Field: Hashable, Sendable {
        case count, rate, min, mean, max
        /// Of a level, or of the p99 of a duration, per hour.
        case slope
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
        case plain, time, share, perSecond, perHour, timePerHour
    }

    /// The original text, for reports.
    package let expression: String
    package let name: String
    package internal(set) var labels: Labels
    /// Absent if omitted: a counter's count, a gauge's last value.
    package internal(set) var field: Field?
    package let comparison: Comparison
    /// The limit in seconds, events, events per second, or as a fraction.
    package let limit: Double
    package let unit: Unit
    /// Whether the run ends as soon as the threshold is broken.
    package let aborts: Bool
    /// It does so in the third second of the measured phase at the earliest: a part of a second has no rate.
    package static let abortsAfter = 2.0

    package static let errorRate = "error_rate"
}

/// The reason why a text is not a threshold, in one line: the error and the remedy.
public struct ThresholdError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The text.
    public let expression: String
    /// The error, and the remedy.
    public let problem: String

    /// Both in one line.
    public var description: String { "threshold '\(self.expression)': \(self.problem)" }

    package init(_ expression: String, _ problem: String) {
        self.expression = expression
        self.problem = problem
    }
}

package struct ThresholdResult: Hashable, Sendable {
    package enum State: String, Codable, Hashable, Sendable {
        /// It holds wherever in its interval the figure lies.
        case met
        /// It holds nowhere in the interval, or there is no sample.
        case broken
        /// The answers that did not come decide it.
        case undecided
    }

    package var expression: String
    package var state: State
    /// The measured figure in the limit's base unit, or its lower limit; absent without a sample.
    package var value: Double?
    /// The upper limit of a figure that is known only from below; absent for an exact figure and without a limit.
    package var high: Double?
    /// Whether ``value`` is a lower limit.
    package var isBound = false

    package init(expression: String, state: State, value: Double?) {
        self.expression = expression
        self.state = state
        self.value = value
    }

    package init(expression: String, ok: Bool, value: Double?) {
        self.init(expression: expression, state: ok ? .met : .broken, value: value)
    }

    /// A threshold that is undecided is not met.
    package var ok: Bool { self.state == .met }
}

/// `value` is the figure, or its lower limit; then `low` is there, and `high` if there is an upper limit. Files of
/// `clamor.run/1` have `ok` in place of `state`.
extension ThresholdResult: Codable {
    private enum CodingKeys: String, CodingKey {
        case expression, state, ok, value, low, high
    }

    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        self.expression = try container.decode(String.self, forKey: .expression)
        let wasOK = try container.decodeIfPresent(Bool.self, forKey: .ok)
        self.state =
            try container.decodeIfPresent(State.self, forKey: .state) ?? (wasOK == true ? State.met : State.broken)
        self.value = try container.decodeIfPresent(Double.self, forKey: .value)
        self.high = try container.decodeIfPresent(Double.self, forKey: .high)
        self.isBound = container.contains(.low)
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(self.expression, forKey: .expression)
        try container.encode(self.state, forKey: .state)
        try container.encodeIfPresent(self.value, forKey: .value)
        guard self.isBound else { return }
        try container.encodeIfPresent(self.value, forKey: .low)
        try container.encodeIfPresent(self.high, forKey: .high)
    }
}

extension [Threshold] {
    /// The result of each threshold; `broken` ended the run, and counts as broken even if it would hold now.
    package func results(in record: some MetricSource, broken: String?) -> [ThresholdResult] {
        self.map { threshold in
            var result = threshold.evaluate(in: record)
            if threshold.expression == broken { result.state = .broken }
            return result
        }
    }
}

extension Threshold.Comparison {
    /// Whether a figure in this interval satisfies the limit: always, never, or in a part of it.
    func state(_ figure: Bounded<Double>, _ limit: Double) -> ThresholdResult.State {
        let atLow = self.holds(figure.low, limit)
        guard !figure.isExact else { return atLow ? .met : .broken }
        let atHigh = self.holds(figure.high ?? .infinity, limit)
        switch self {
        case .less, .atMost, .greater, .atLeast:
            return atLow == atHigh ? (atLow ? .met : .broken) : .undecided
        // The limit may lie inside, so the ends alone do not tell.
        case .equal, .notEqual:
            let isInside = figure.low <= limit && limit <= figure.high ?? .infinity
            return isInside ? .undecided : (self == .notEqual ? .met : .broken)
        }
    }
}

extension Threshold {
    /// Judges the threshold.
    ///
    /// Without a sample every field except `count` is broken.
    package func evaluate(in source: some MetricSource) -> ThresholdResult {
        guard let figure = self.measured(in: source) else {
            return ThresholdResult(expression: self.expression, state: .broken, value: nil)
        }
        let state = self.comparison.state(figure, self.limit)
        var result = ThresholdResult(expression: self.expression, state: state, value: figure.low)
        if !figure.isExact { (result.isBound, result.high) = (true, figure.high) }
        return result
    }

    /// Whether the current run has definitely broken it.
    ///
    /// An unknown value is not broken, nor is a count that can still reach its limit.
    package func isBroken(in source: some MetricSource) -> Bool {
        guard let figure = self.measured(in: source), self.comparison.state(figure, self.limit) == .broken else {
            return false
        }
        guard self.isCount(in: source) else { return true }
        return switch self.comparison {
        case .less, .atMost: true
        case .equal: figure.low > self.limit
        case .greater, .atLeast, .notEqual: false
        }
    }

    /// Whether nothing that is still to come can mend it.
    ///
    /// In open loop equal times have equally many operations, and those that were too slow stay so: of all at the end
    /// the part 1 - p may be, which is a larger part of those so far.
    ///
    /// - Parameters:
    ///   - source: the run so far.
    ///   - share: the part of its measured phase that is over, 0 to 1.
    /// - Returns: whether it is broken for good.
    package func isDecided(in source: some MetricSource, share: Double) -> Bool {
        guard case .percentile(let percent)? = self.field, [.less, .atMost].contains(self.comparison) else {
            return self.isCount(in: source) && self.isBroken(in: source)
        }
        let allowed = (1 - percent / 100) / share
        guard allowed < 1 else { return false }
        var sofar = self
        sofar.field = .percentile(100 * (1 - allowed))
        return sofar.isBroken(in: source)
    }

    private func isCount(in source: some MetricSource) -> Bool {
        if self.field == .count { return true }
        guard self.field == nil, self.name != Self.errorRate else { return false }
        return !self.selected(in: source).contains { if case .gauge = $0.value { true } else { false } }
    }

    private func measured(in source: some MetricSource) -> Bounded<Double>? {
        if self.name == Self.errorRate { return self.errorRate(in: source).map { Bounded($0) } }
        let counts: [MetricDefinition] = [.deliveryLost, .deliveryMissing, .deliveryDuplicated, .deliveryReordered]
        if self.isOf(counts), !source.followsMessages { return nil }
        let readings = self.selected(in: source)
        var figures = Figures(joinsAges: self.definition?.role == .backlog)
        for reading in readings {
            figures.add(reading.value)
            figures.add(slope: reading.slope)
        }
        // Without such an event there is no such metric.
        if readings.isEmpty, self.definition?.isRare == true, self.field == .rate { return Bounded(0) }
        guard let figure = figures.value(of: self.field) else { return nil }
        guard self.isOf([.deliveryLost, .requestsLost, .retainedLost]), self.field != .rate else { return figure }
        // Outstanding deliveries and copies may be lost.
        let labels = self.labels.removing(Labels.cause)
        let owed = self.isOf([.retainedLost]) ? MetricDefinition.retainedOutstanding : .deliveryOutstanding
        let outstanding = source.readings(of: owed.name, stage: nil)
            .filter { $0.labels.contains(labels) }
            .reduce(0) { sum, reading in
                if case .counter(let counter) = reading.value { sum + counter.value } else { sum }
            }
        return outstanding > 0 ? Bounded(low: figure.low, high: figure.low + outstanding) : figure
    }

    private func selected(in source: some MetricSource) -> [MetricReading] {
        let chosen = self.readings(of: self.name, in: source)
        return chosen.filter { $0.labels.isWhole { self.labels[$0] != nil } }
    }

    /// Readings of the stage in the labels, or of the whole run, which is not the sum of its stages.
    private func readings(of name: String, in source: some MetricSource) -> [MetricReading] {
        source.readings(of: name, stage: self.labels[Labels.stage]).filter { $0.labels.contains(self.labels) }
    }

    /// Operations that failed or are outstanding, divided by operations: connects, publishes, stanzas, subscribes, joins
    /// and the answers to requests.
    ///
    /// An operation that is tried again counts once, and one that the plan cut off does not. Publishes and stanzas are in
    /// the books, whose failures are known at the end; until then those of durations, and stanzas that came back, are the
    /// least.
    private func errorRate(in source: some MetricSource) -> Double? {
        func total(_ metrics: MetricDefinition...) -> Double {
            var figures = Figures()
            for metric in metrics {
                for reading in self.readings(of: metric.name, in: source) { figures.add(reading.value) }
            }
            return figures.count
        }
        func durations(_ metrics: [MetricDefinition]) -> DurationValues {
            var sum = DurationValues()
            for reading in metrics.flatMap({ self.readings(of: $0.name, in: source) }) where reading.labels.isWhole() {
                if case .duration(let values) = reading.value { sum.merge(values) }
            }
            return sum
        }
        let single = durations(Self.singleOperations)
        let unanswered = total(.publishOutstanding, .stanzaOutstanding, .requestsLost, .requestsOutstanding)
        // A refused request is among the values of its duration.
        var returned = Figures()
        for reading in self.readings(of: MetricDefinition.stanzaRefused.name, in: source)
        where reading.labels["stanza"] != "iq" {
            returned.add(reading.value)
        }
        let known = Double(durations([.publishAck, .iq]).unanswered.failed) + returned.count
        let failed = max(total(.publishFailed, .stanzaFailed), known)
        let messages = total(.publishOffered, .stanzaOffered) - total(.publishExcused, .stanzaExcused)
        let requests = total(.requestsAnswered, .requestsLost, .requestsOutstanding)
        let operations = Double(single.count) + messages + requests
        return operations > 0 ? (Double(single.unanswered.ages.count) + unanswered + failed) / operations : nil
    }

    /// Durations of operations that have no books.
    private static let singleOperations: [MetricDefinition] = [
        .connect, .reconnect, .subscribe, .unsubscribe, .subscriptionChurn, .mucJoin, .presenceSetup,
    ]
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
    private let joinsAges: Bool
    var count = 0.0
    private var rate: Double?
    private var values: DurationValues?
    private var last: Double?
    private var lowest: Double?
    private var average: Double?
    private var median: Double?
    private var highest: Double?
    private var slope: Double?
    private var hasSlopes = true

    init(joinsAges: Bool = false) { self.joinsAges = joinsAges }

    mutating func add(_ value: MetricReading.Value) {
        switch value {
        case .duration(let values):
            // An operation without an answer is no success, and is not counted.
            self.count += Double(values.answered.count)
            if self.values == nil { self.values = values } else { self.values?.merge(values) }
        case .counter(let counter):
            self.count += counter.value
            if let rate = counter.rate { self.rate = (self.rate ?? 0) + rate }
        case .gauge(let gauge) where self.joinsAges:
            // The oldest of several ages is their highest.
            self.count = max(self.count, gauge.value)
            self.last = self.count
            self.lowest = gauge.min.map { max(self.lowest ?? 0, $0) }
            self.average = gauge.mean.map { max(self.average ?? 0, $0) }
            self.highest = gauge.max.map { max(self.highest ?? 0, $0) }
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

    /// Levels of several things add up, if each is known; of several durations the steepest counts.
    mutating func add(slope: Double?) {
        guard let slope else { return self.hasSlopes = false }
        self.slope = self.values == nil ? (self.slope ?? 0) + slope : max(self.slope ?? slope, slope)
    }

    func value(of field: Threshold.Field?) -> Bounded<Double>? {
        func exact(_ value: Double?) -> Bounded<Double>? { value.map { Bounded($0) } }
        if field == .slope { return exact(self.hasSlopes ? self.slope : nil) }
        guard let values = self.values else {
            return switch field {
            case nil: exact(self.last ?? self.count)
            case .count: exact(self.count)
            case .rate: exact(self.rate)
            case .min: exact(self.lowest)
            case .mean: exact(self.average)
            case .max: exact(self.highest)
            case .slope: nil
            case .percentile(let percent): exact(percent == 50 ? self.median : nil)
            }
        }
        return switch field {
        case nil, .slope: nil
        case .count: exact(self.count)
        case .rate: exact(self.rate)
        case .mean:
            values.all.mean.map { Bounded(low: $0 / 1e9, high: values.unanswered.isEmpty ? $0 / 1e9 : nil) }
        case .min: values.percentile(0)?.map { Double($0) / 1e9 }
        case .max: values.percentile(100)?.map { Double($0) / 1e9 }
        case .percentile(let percent): values.percentile(percent)?.map { Double($0) / 1e9 }
        }
    }
}
