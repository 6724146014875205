/// The slopes of levels, and of the p99 of latencies, over the measured phase: whether a long run leaks or slows down.
///
/// By least squares over the intervals; of latencies each interval counts alike.
package struct SlopeMeter: Sendable {
    private struct Sums {
        var count = 0.0
        /// The first time and value: differences from them keep their digits.
        private let first: (time: Double, value: Double)
        private var (time, value, square, product) = (0.0, 0.0, 0.0, 0.0)

        init(_ time: Double, _ value: Double) { self.first = (time, value) }

        mutating func add(_ time: Double, _ value: Double) {
            let (time, value) = (time - self.first.time, value - self.first.value)
            self.count += 1
            self.time += time
            self.value += value
            self.square += time * time
            self.product += time * value
        }

        var perSecond: Double? {
            let spread = self.count * self.square - self.time * self.time
            return spread > 0 ? (self.count * self.product - self.time * self.value) / spread : nil
        }
    }

    /// Fewer intervals have no slope: it would be noise.
    package static let intervals = 60.0

    private var sums: [Series: Sums] = [:]
    private var seconds = 0.0

    package init() {}

    /// Adds an interval of the measured phase.
    package mutating func add(_ metrics: [Metric], seconds: Double) {
        for metric in metrics {
            let value: Double
            switch metric.reading {
            case .gauge(let reading) where [.server, .process].contains(metric.definition?.role): value = reading.value
            case .duration(let reading) where !reading.isBound(\.p99): value = reading.p99
            default: continue
            }
            self.sums[metric.series, default: Sums(self.seconds, value)].add(self.seconds, value)
        }
        self.seconds += seconds
    }

    /// The metrics with their slopes, per hour.
    package func adding(to metrics: [Metric]) -> [Metric] {
        metrics.map { metric in
            guard let sums = self.sums[metric.series], sums.count >= Self.intervals, let slope = sums.perSecond else {
                return metric
            }
            var metric = metric
            metric.slope = slope * 3_600
            return metric
        }
    }
}

extension Metric {
    /// Of a level, or of the p99 of a duration, per hour of the measured phase; `nil` if it is unknown.
    package var slope: Double? {
        get {
            switch self.reading {
            case .duration(let reading): reading.slope
            case .counter: nil
            case .gauge(let reading): reading.slope
            }
        }
        set {
            switch self.reading {
            case .duration(var reading):
                reading.slope = newValue
                self.reading = .duration(reading)
            case .counter: break
            case .gauge(var reading):
                reading.slope = newValue
                self.reading = .gauge(reading)
            }
        }
    }
}
