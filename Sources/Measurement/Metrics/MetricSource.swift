package struct MetricReading: Sendable {
    package enum Value: Sendable {
        case duration(DurationValues)
        case counter(CounterReading)
        case gauge(GaugeReading)
    }

    package var labels: Labels
    package var value: Value
    /// Per hour, known when the run has ended; of a duration that of its p99.
    package var slope: Double?

    package init(labels: Labels, value: Value, slope: Double? = nil) {
        self.labels = labels
        self.value = value
        self.slope = slope
    }
}

extension Metric {
    /// The reading of a counter or gauge; `nil` for a duration, whose histogram is elsewhere.
    package var levelReading: MetricReading? {
        switch self.reading {
        case .duration: nil
        case .counter(let reading): MetricReading(labels: self.labels, value: .counter(reading))
        case .gauge(let reading): MetricReading(labels: self.labels, value: .gauge(reading), slope: reading.slope)
        }
    }
}

/// A source of metrics for thresholds: the current run, or a record.
package protocol MetricSource {
    /// Every metric of that name, one per set of labels, for one stage or, without one, for the whole run.
    func readings(of name: String, stage: String?) -> [MetricReading]
    /// Whether the ledger's counts are counts: without a ledger no loss is not known to be none.
    var followsMessages: Bool { get }
}

extension MetricSource {
    package var followsMessages: Bool { true }
}

extension RunRecord: MetricSource {
    package var followsMessages: Bool {
        self.ledger.on || !(self.notes ?? []).contains { $0.code == LedgerRecord.strippedCode }
    }

    package func readings(of name: String, stage: String?) -> [MetricReading] {
        self.metrics.filter { $0.name == name && $0.labels[Labels.stage] == stage }.compactMap { metric in
            guard case .duration(let reading) = metric.reading else { return metric.levelReading }
            return reading.decodedValues().map {
                MetricReading(labels: metric.labels, value: .duration($0), slope: reading.slope)
            }
        }
    }
}

package struct LiveMetrics: MetricSource {
    let accumulator: RunAccumulator
    let measuredSeconds: Double?

    package func readings(of name: String, stage: String?) -> [MetricReading] {
        self.accumulator.readings(of: name, stage: stage, measuredSeconds: self.measuredSeconds)
    }
}
