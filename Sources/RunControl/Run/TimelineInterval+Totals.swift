import Measurement

extension TimelineInterval {
    /// The increase of a counter over all its labels.
    func total(_ kind: MetricDefinition) -> Double {
        self.metrics.filter { $0.isOf(kind) }.reduce(0) { $0 + ($1.counter?.value ?? 0) }
    }

    /// Accounts that were created, removed or refused.
    var accountsDone: Double { self.total(.stanzaAnswered) + self.total(.stanzaRefused) }

    /// The highest p99 of a duration in this interval over all its labels, in nanoseconds.
    func worst(_ kind: MetricDefinition) -> Int64? {
        self.metrics.filter { $0.isOf(kind) }.compactMap { $0.duration?.p99 }.max().map { Int64(bounded: $0 * 1e9) }
    }
}
