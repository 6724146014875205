package import Measurement

/// Leaves the histograms out of most intervals, which many segments send to one coordinator: every n-th interval has
/// those of all intervals since the last.
package struct IntervalThinner: Sendable {
    private let every: Int
    private var pending: [TimelineInterval] = []

    /// - Parameter every: 1 leaves nothing out.
    package init(every: Int) { self.every = every }

    package mutating func next(_ interval: TimelineInterval) -> TimelineInterval {
        guard self.every > 1 else { return interval }
        var (durations, rest) = (interval, interval)
        durations.metrics.removeAll { $0.duration == nil }
        rest.metrics.removeAll { $0.duration != nil }
        rest.lanes = []
        self.pending.append(durations)
        guard self.pending.count >= self.every, let merged = TimelineInterval.merging(self.pending) else { return rest }
        self.pending = []
        rest.metrics = merged.metrics + rest.metrics
        rest.lanes = merged.lanes
        return rest
    }
}
