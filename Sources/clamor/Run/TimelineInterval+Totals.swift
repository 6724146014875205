import Measurement

extension TimelineInterval {
    /// The increase of a counter over all its labels.
    func total(_ name: String) -> Double {
        self.metrics.filter { $0.name == name }.reduce(0) { $0 + ($1.counter?.value ?? 0) }
    }

    /// Accounts that were created, removed or refused.
    var accountsDone: Double { self.total("stanza_answered") + self.total("stanza_refused") }

    /// The highest p99 of a duration in this interval over all its labels, in nanoseconds.
    func worst(_ name: String) -> Int64? {
        self.metrics.filter { $0.name == name }.compactMap { $0.duration?.p99 }.max().map { Int64(bounded: $0 * 1e9) }
    }
}
