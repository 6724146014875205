/// One metric of a result file, over the whole run or over one interval of the timeline.
package struct Metric: Hashable, Sendable {
    package enum Reading: Hashable, Sendable {
        case duration(DurationReading)
        case counter(CounterReading)
        case gauge(GaugeReading)
    }

    package var name: String
    package var labels: Labels
    /// "seconds" for durations; absent if the metric counts things.
    package var unit: String?
    package var reading: Reading

    package init(name: String, labels: Labels = [:], unit: String? = nil, reading: Reading) {
        self.name = name
        self.labels = labels
        self.unit = unit
        self.reading = reading
    }

    /// A metric of the table, with its unit.
    package init(_ definition: MetricDefinition, labels: Labels = [:], reading: Reading) {
        self.init(name: definition.name, labels: labels, unit: definition.unit, reading: reading)
    }

    package init(duration name: String, labels: Labels, reading: DurationReading) {
        self.init(name: name, labels: labels, unit: "seconds", reading: .duration(reading))
    }

    /// "duration", "counter" or "gauge".
    package var type: String { self.kind.rawValue }

    package var duration: DurationReading? {
        if case .duration(let reading) = self.reading { reading } else { nil }
    }

    package var counter: CounterReading? {
        if case .counter(let reading) = self.reading { reading } else { nil }
    }

    package var gauge: GaugeReading? {
        if case .gauge(let reading) = self.reading { reading } else { nil }
    }
}

/// The operations of a duration without an answer, in the form of files.
package struct UnansweredReading: Codable, Hashable, Sendable {
    package var failed: UInt64
    package var outstanding: UInt64
    /// HdrHistogram V2 of their ages in nanoseconds; absent in the timeline.
    package var histogram: String?

    package init(failed: UInt64, outstanding: UInt64, histogram: String? = nil) {
        self.failed = failed
        self.outstanding = outstanding
        self.histogram = histogram
    }

    package init(_ unanswered: Unanswered, isEncoded: Bool = true) {
        self.init(
            failed: unanswered.failed,
            outstanding: unanswered.outstanding,
            histogram: isEncoded ? unanswered.ages.encodedV2() : nil
        )
    }

    package var count: UInt64 { self.failed &+ self.outstanding }

    /// The values of a duration, these among them.
    ///
    /// Without a histogram they count as the lowest of all, which makes limits weaker and never false.
    ///
    /// - Returns: `nil` if the histogram is damaged, or if there are not so many values.
    package func values(of all: Histogram) -> DurationValues? {
        let (count, overflows) = self.failed.addingReportingOverflow(self.outstanding)
        guard !overflows, count <= all.count else { return nil }
        let ages: Histogram
        if let text = self.histogram {
            guard let decoded = try? Histogram(decodingV2: text), decoded.count == count else { return nil }
            ages = decoded
        } else {
            ages = all.lowest(count)
        }
        return DurationValues(
            all: all,
            unanswered: Unanswered(ages: ages, failed: self.failed, outstanding: self.outstanding)
        )
    }
}

/// The figures of a duration, in seconds.
///
/// Operations without an answer are among the values at their age. So a figure may be a lower bound: ``bounds`` names
/// those.
package struct DurationReading: Hashable, Sendable {
    package var count: UInt64
    package var min = 0.0
    package var mean = 0.0
    package var stddev = 0.0
    package var p50 = 0.0
    package var p90 = 0.0
    package var p95 = 0.0
    package var p99 = 0.0
    package var p999 = 0.0
    package var p9999 = 0.0
    package var max = 0.0
    /// The operations without an answer; absent if there are none.
    package var unanswered: UnansweredReading?
    /// The figures that are only known to be at least so much: `p99`, `mean`, `max` and the like.
    package var bounds: [String] = []
    /// The number of values above 10 minutes, recorded as 10 minutes; absent if there were none.
    package var clamped: UInt64?
    /// HdrHistogram V2 of nanoseconds; absent in the timeline.
    package var histogram: String?
    /// Between clocks of several hosts: the possible error of every value; absent with a single clock.
    package var clockError: Double?
    /// Of p99, in seconds per hour of the measured phase; absent where it is unknown.
    package var slope: Double?
}

extension DurationReading {
    package typealias Field = any WritableKeyPath<DurationReading, Double> & Sendable

    /// The percentiles by their names in files, ascending.
    package static let percentiles: [(name: String, percent: Double, field: Field)] = [
        ("p50", 50, \.p50), ("p90", 90, \.p90), ("p95", 95, \.p95), ("p99", 99, \.p99), ("p999", 99.9, \.p999),
        ("p9999", 99.99, \.p9999),
    ]
    private static let percents = percentiles.map(\.percent)

    /// All figures by their names in files, in their order.
    package static let named: [(name: String, field: Field)] =
        [("min", \.min), ("mean", \.mean), ("stddev", \.stddev)] + percentiles.map { ($0.name, $0.field) }
        + [("max", \.max)]
    /// All that ``bounds`` may have, in their order.
    package static let figures = ["mean"] + percentiles.map(\.name) + ["max"]

    /// Whether a figure is only known to be at least so much.
    package func isBound(_ field: KeyPath<DurationReading, Double>) -> Bool {
        !self.bounds.isEmpty && Self.named.contains { $0.field == field && self.bounds.contains($0.name) }
    }

    /// The figures below the clocks' error, which say no more than that.
    package var belowClockError: [String] {
        guard let error = self.clockError else { return [] }
        return Self.named.filter { $0.name != "stddev" && self[keyPath: $0.field] < error }.map(\.name)
    }

    /// The operations that were answered, in time or not.
    ///
    /// 0 in a damaged reading that has more unanswered ones than values.
    package var answered: UInt64 { self.count - Swift.min(self.count, self.unanswered?.count ?? 0) }

    /// Nil without a value.
    ///
    /// `isEncoded`: whether it has the histograms too, as files need them.
    package init?(_ values: DurationValues, isEncoded: Bool = false) {
        let all = values.all
        self.init(all, encoded: isEncoded && !all.isEmpty ? all.encodedV2() : nil)
        guard !values.unanswered.isEmpty else { return }
        self.unanswered = UnansweredReading(values.unanswered, isEncoded: isEncoded)
        // An age is no value but a bound of one, so the mean is a bound of the mean.
        self.bounds = zip(Self.figures.dropFirst(), Self.percents + [100]).reduce(into: ["mean"]) { bounds, figure in
            if values.percentile(figure.1, among: all)?.isExact == false { bounds.append(figure.0) }
        }
    }

    package init?(_ histogram: Histogram, encoded: String? = nil) {
        guard
            let min = histogram.min, let max = histogram.max,
            let mean = histogram.mean, let deviation = histogram.standardDeviation
        else { return nil }
        self.init(
            count: histogram.count,
            min: Double(min) / 1e9,
            mean: mean / 1e9,
            stddev: deviation / 1e9,
            max: Double(max) / 1e9,
            clamped: histogram.clamped > 0 ? histogram.clamped : nil,
            histogram: encoded
        )
        for (figure, value) in zip(Self.percentiles, histogram.percentiles(Self.percents)) {
            self[keyPath: figure.field] = Double(value) / 1e9
        }
    }

    /// The histogram itself, with the exact minimum and maximum; nil if it is absent or damaged.
    package func decodedHistogram() -> Histogram? {
        guard let text = self.histogram, var decoded = try? Histogram(decodingV2: text) else { return nil }
        decoded.restoreExtremes(
            min: Int64(bounded: (self.min * 1e9).rounded()),
            max: Int64(bounded: (self.max * 1e9).rounded()),
            clamped: self.clamped ?? 0
        )
        return decoded
    }

    /// The values themselves; nil if a histogram is absent or damaged, or the unanswered ones are not among all.
    package func decodedValues() -> DurationValues? {
        guard let all = self.decodedHistogram() else { return nil }
        guard let unanswered = self.unanswered else { return DurationValues(answered: all) }
        return unanswered.values(of: all)
    }
}

/// The value of a counter.
///
/// Exact up to 2^53.
package struct CounterReading: Hashable, Sendable {
    /// Over the whole run, or in the interval.
    package var value: Double
    /// Per second of the measured phase or of the interval; absent without a measured phase.
    package var rate: Double?

    package init(value: Double, rate: Double?) {
        self.value = value
        self.rate = rate
    }
}

/// The value of a gauge.
///
/// The lowest, mean, median and highest value are those at the intervals' ends, or of a benchmark's rounds. They are
/// absent in the timeline.
package struct GaugeReading: Hashable, Sendable {
    package var value: Double
    package var min: Double?
    package var mean: Double?
    /// Only for rounds.
    package var median: Double?
    package var max: Double?
    /// Per hour of the measured phase; absent where it is unknown.
    package var slope: Double?

    package init(value: Double, min: Double? = nil, mean: Double? = nil, median: Double? = nil, max: Double? = nil) {
        self.value = value
        self.min = min
        self.mean = mean
        self.median = median
        self.max = max
    }
}

/// The flat object of DESIGN.md section 4, whose `type` gives its kind.
extension Metric: Codable {
    package enum Kind: String, Codable, Sendable {
        case duration, counter, gauge
    }

    private enum Key: String, CodingKey {
        case name, labels, type, unit, value, rate, count, min, mean, stddev
        case p50, p90, p95, p99, p999, p9999, max, clamped, answered, failed, outstanding, bounds, histogram
        case histogramUnanswered = "histogram_unanswered"
        case clockError = "clock_error"
        case slope = "slope_per_hour"
        case belowClockError = "below_clock_error"

        /// The keys of a duration's figures.
        static let figures: [(key: Key, field: DurationReading.Field)] =
            DurationReading.named.compactMap { figure in Key(rawValue: figure.name).map { ($0, figure.field) } }
    }

    package var kind: Kind {
        switch self.reading {
        case .duration: .duration
        case .counter: .counter
        case .gauge: .gauge
        }
    }

    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        self.name = try container.decode(String.self, forKey: .name)
        self.labels = try container.decode(Labels.self, forKey: .labels)
        self.unit = try container.decodeIfPresent(String.self, forKey: .unit)
        func number(_ key: Key) throws -> Double { try container.decode(Double.self, forKey: key) }
        func numberIfPresent(_ key: Key) throws -> Double? { try container.decodeIfPresent(Double.self, forKey: key) }
        switch try container.decode(Kind.self, forKey: .type) {
        case .duration:
            var duration = DurationReading(
                count: try container.decode(UInt64.self, forKey: .count),
                clamped: try container.decodeIfPresent(UInt64.self, forKey: .clamped),
                histogram: try container.decodeIfPresent(String.self, forKey: .histogram),
                clockError: try numberIfPresent(.clockError)
            )
            for figure in Key.figures { duration[keyPath: figure.field] = try number(figure.key) }
            duration.bounds = try container.decodeIfPresent([String].self, forKey: .bounds) ?? []
            duration.unanswered = try Self.unanswered(in: container, of: duration.count)
            self.reading = .duration(duration)
        case .counter:
            self.reading = .counter(CounterReading(value: try number(.value), rate: try numberIfPresent(.rate)))
        case .gauge:
            self.reading = .gauge(
                GaugeReading(
                    value: try number(.value),
                    min: try numberIfPresent(.min),
                    mean: try numberIfPresent(.mean),
                    median: try numberIfPresent(.p50),
                    max: try numberIfPresent(.max)
                )
            )
        }
        self.slope = try container.decodeIfPresent(Double.self, forKey: .slope)
    }

    /// Those of a duration; `nil` for none, and in files of `clamor.run/1`, which do not know them.
    private static func unanswered(
        in container: KeyedDecodingContainer<Key>,
        of count: UInt64
    ) throws -> UnansweredReading? {
        let failed = try container.decodeIfPresent(UInt64.self, forKey: .failed) ?? 0
        let outstanding = try container.decodeIfPresent(UInt64.self, forKey: .outstanding) ?? 0
        guard failed > 0 || outstanding > 0 else { return nil }
        let (sum, overflows) = failed.addingReportingOverflow(outstanding)
        guard !overflows, sum <= count else {
            throw DecodingError.dataCorruptedError(
                forKey: .outstanding,
                in: container,
                debugDescription: "more operations are without an answer than there are"
            )
        }
        return UnansweredReading(
            failed: failed,
            outstanding: outstanding,
            histogram: try container.decodeIfPresent(String.self, forKey: .histogramUnanswered)
        )
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        try container.encode(self.name, forKey: .name)
        try container.encode(self.labels, forKey: .labels)
        try container.encode(self.kind, forKey: .type)
        try container.encodeIfPresent(self.unit, forKey: .unit)
        try container.encodeIfPresent(self.slope, forKey: .slope)
        switch self.reading {
        case .duration(let reading):
            try container.encode(reading.count, forKey: .count)
            for figure in Key.figures { try container.encode(reading[keyPath: figure.field], forKey: figure.key) }
            try container.encodeIfPresent(reading.clamped, forKey: .clamped)
            try container.encode(reading.answered, forKey: .answered)
            try container.encode(reading.unanswered?.failed ?? 0, forKey: .failed)
            try container.encode(reading.unanswered?.outstanding ?? 0, forKey: .outstanding)
            if !reading.bounds.isEmpty { try container.encode(reading.bounds, forKey: .bounds) }
            try container.encodeIfPresent(reading.histogram, forKey: .histogram)
            try container.encodeIfPresent(reading.unanswered?.histogram, forKey: .histogramUnanswered)
            if let error = reading.clockError {
                try container.encode(error, forKey: .clockError)
                try container.encode(reading.belowClockError, forKey: .belowClockError)
            }
        case .counter(let reading):
            // Whole numbers stay integers, so that no writer turns a large count into an exponent.
            if let whole = Int64(exactly: reading.value) {
                try container.encode(whole, forKey: .value)
            } else {
                try container.encode(reading.value, forKey: .value)
            }
            try container.encodeIfPresent(reading.rate, forKey: .rate)
        case .gauge(let reading):
            try container.encode(reading.value, forKey: .value)
            try container.encodeIfPresent(reading.min, forKey: .min)
            try container.encodeIfPresent(reading.mean, forKey: .mean)
            try container.encodeIfPresent(reading.median, forKey: .p50)
            try container.encodeIfPresent(reading.max, forKey: .max)
        }
    }
}
