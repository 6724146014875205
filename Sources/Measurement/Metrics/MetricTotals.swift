/// Counters and gauges added up interval by interval; durations are left out.
///
/// The series keep the order in which they appeared.
package struct MetricTotals: Sendable {
    private enum Total {
        /// `measured` is the part of the measured phase; absent where an increase has no rate, as it came late.
        case counter(value: Double, measured: Double?)
        case gauge(GaugeLevel)
    }

    private var totals = OrderedMap<Series, Total>()
    private var units: [Series: String] = [:]

    package init() {}

    package mutating func add(_ metrics: some Sequence<Metric>, isMeasured: Bool) {
        for metric in metrics {
            let series = metric.series
            switch metric.reading {
            case .duration: continue
            case .counter(let reading):
                var (value, measured): (Double, Double?) = (0, 0)
                if case .counter(let known, let part) = self.totals[series] { (value, measured) = (known, part) }
                value += reading.value
                if reading.rate == nil, reading.value > 0 { measured = nil }
                if isMeasured { measured = measured.map { $0 + reading.value } }
                self.set(.counter(value: value, measured: measured), series, metric.unit)
            case .gauge(let reading):
                var level = GaugeLevel()
                if case .gauge(let known) = self.totals[series] { level = known }
                level.add(reading.value)
                self.set(.gauge(level), series, metric.unit)
            }
        }
    }

    private mutating func set(_ total: Total, _ series: Series, _ unit: String?) {
        if self.totals[series] == nil { self.units[series] = unit }
        self.totals[series, default: total] = total
    }

    /// The totals of the run so far.
    ///
    /// `measuredSeconds`: the length of the measured phase so far; without it there are no rates.
    package func metrics(measuredSeconds: Double?) -> [Metric] {
        self.totals.all.compactMap { self.metric($0.key, $0.value, measuredSeconds) }
    }

    private func metric(_ series: Series, _ total: Total, _ seconds: Double?) -> Metric? {
        let reading: Metric.Reading
        switch total {
        case .counter(let value, let measured):
            let rate = seconds.flatMap { seconds in seconds > 0 ? measured.map { $0 / seconds } : nil }
            reading = .counter(CounterReading(value: value, rate: rate))
        case .gauge(let level):
            guard let known = level.reading else { return nil }
            reading = .gauge(known)
        }
        return Metric(name: series.name, labels: series.labels, unit: self.units[series], reading: reading)
    }
}
