package import Measurement

/// Makes metrics of the scrapes of one exporter.
///
/// A value is in one interval alone: without a scrape in an interval it is absent, and never repeated. The first
/// ``PrometheusText/mostKept`` series of a run are kept, and later ones are dropped.
package struct PrometheusValues: Sendable {
    private struct Counter {
        var value: Double
        /// The time of the scrape with this value.
        var time: Int64
        /// The time of the last scrape before the interval.
        var since: Int64
        /// `nil` without a second scrape.
        var increase: Double?
    }

    private struct Key: Hashable {
        var name: String
        var labels: String
    }

    private var counters: [Key: Counter] = [:]
    private var gauges: [Key: Double] = [:]
    /// The series in the order of their first appearance.
    private var order: [Key] = []
    private var known: Set<Key> = []
    /// Whether a series had no room.
    package private(set) var hasDropped = false
    private let page: String?

    /// - Parameter page: the label of the exporter, where a run has several.
    package init(page: String? = nil) { self.page = page }

    /// Takes a scrape.
    ///
    /// - Parameters:
    ///   - samples: all that the exporter had.
    ///   - nanoseconds: monotonic.
    package mutating func take(_ samples: [PrometheusSample], at nanoseconds: Int64) {
        for sample in samples {
            let key = Key(name: sample.name, labels: sample.labels)
            guard self.keeps(key) else { continue }
            guard sample.kind == .counter else {
                self.gauges[key] = sample.value
                continue
            }
            guard var counter = self.counters[key] else {
                self.counters[key] = Counter(value: sample.value, time: nanoseconds, since: nanoseconds)
                continue
            }
            // A counter falls only when its program was started again, and then counts from 0.
            let increase = sample.value >= counter.value ? sample.value - counter.value : sample.value
            counter.increase = (counter.increase ?? 0) + max(0, increase)
            counter.value = sample.value
            counter.time = nanoseconds
            self.counters[key] = counter
        }
    }

    /// Whether the series is known or has room.
    private mutating func keeps(_ key: Key) -> Bool {
        if self.known.contains(key) { return true }
        guard self.known.count < PrometheusText.mostKept else {
            self.hasDropped = true
            return false
        }
        self.known.insert(key)
        self.order.append(key)
        return true
    }

    /// Ends an interval.
    ///
    /// - Returns: the metrics of the scrapes since the last call.
    package mutating func look() -> [Metric] {
        var metrics: [Metric] = []
        for key in self.order {
            if let value = self.gauges[key] {
                metrics.append(self.metric(key, .gauge(GaugeReading(value: value))))
            } else if let counter = self.counters[key], let increase = counter.increase, increase.isFinite {
                let seconds = Double(counter.time - counter.since) / 1e9
                let rate = seconds > 0 ? increase / seconds : nil
                metrics.append(self.metric(key, .counter(CounterReading(value: increase, rate: rate))))
            }
            self.counters[key]?.increase = nil
            self.counters[key].map { self.counters[key]?.since = $0.time }
        }
        self.gauges = [:]
        return metrics
    }

    private func metric(_ key: Key, _ reading: Metric.Reading) -> Metric {
        var labels: Labels = ["series": key.name]
        if !key.labels.isEmpty { labels = labels.adding("of", key.labels) }
        if let page = self.page { labels = labels.adding("page", page) }
        return Metric(.serverMetric, labels: labels, reading: reading)
    }
}
