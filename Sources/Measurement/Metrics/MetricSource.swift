/// One metric as thresholds read it.
package struct MetricReading: Sendable {
    package enum Value: Sendable {
        case duration(Histogram)
        case counter(CounterReading)
        case gauge(GaugeReading)
    }

    package var labels: Labels
    package var value: Value

    package init(labels: Labels, value: Value) {
        self.labels = labels
        self.value = value
    }
}

/// A source of metrics for thresholds: the current run, or a record.
package protocol MetricSource {
    /// Every metric of that name, one per set of labels, for one stage or, without one, for the whole run.
    func readings(of name: String, stage: String?) -> [MetricReading]
}

extension RunRecord: MetricSource {
    package func readings(of name: String, stage: String?) -> [MetricReading] {
        self.metrics.filter { $0.name == name && $0.labels[Labels.stage] == stage }.compactMap { metric in
            switch metric.reading {
            case .duration(let reading):
                reading.decodedHistogram().map { MetricReading(labels: metric.labels, value: .duration($0)) }
            case .counter(let reading): MetricReading(labels: metric.labels, value: .counter(reading))
            case .gauge(let reading): MetricReading(labels: metric.labels, value: .gauge(reading))
            }
        }
    }
}

/// The metrics of the current run.
package struct LiveMetrics: MetricSource {
    let accumulator: RunAccumulator
    let measuredSeconds: Double?

    package func readings(of name: String, stage: String?) -> [MetricReading] {
        self.accumulator.readings(of: name, stage: stage, measuredSeconds: self.measuredSeconds)
    }
}
