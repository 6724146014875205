package import Measurement

/// Joins the intervals of several processes as they come, each exactly once.
///
/// A second is complete when every process that goes on has reported it. A process that is further behind than
/// ``patience`` is not waited for; its intervals then come alone.
package struct IntervalJoin: Sendable {
    /// Intervals that one process may be ahead of another.
    private static let patience = 4

    private struct Part {
        var interval: TimelineInterval
        /// The process that measured it.
        var process: Int
    }

    /// By process that goes on, in the order of time.
    private var pending: [Int: [Part]]
    /// Of ended processes, each in the order of time.
    private var left: [Part] = []

    /// - Parameter processes: their numbers.
    package init(_ processes: some Sequence<Int>) {
        self.pending = Dictionary(uniqueKeysWithValues: processes.map { ($0, []) })
    }

    /// Adds the next interval of a process.
    ///
    /// - Returns: the intervals that are complete now.
    package mutating func add(_ interval: TimelineInterval, of process: Int) -> [TimelineInterval] {
        self.pending[process, default: []].append(Part(interval: interval, process: process))
        return self.complete()
    }

    /// A process has ended.
    ///
    /// - Returns: the intervals that are complete now; behind the last process all that are left.
    package mutating func end(_ process: Int) -> [TimelineInterval] {
        self.left += self.pending.removeValue(forKey: process) ?? []
        return self.complete()
    }

    /// Whether the first of the pending intervals is complete.
    private var isComplete: Bool {
        self.pending.values.allSatisfy { !$0.isEmpty }
            || self.pending.values.contains { $0.count > Self.patience }
    }

    private mutating func complete() -> [TimelineInterval] {
        var joined: [TimelineInterval] = []
        while self.isComplete {
            let heads = (self.pending.values.compactMap(\.first) + self.left).map { Key($0.interval) }
            guard let first = heads.min() else { break }
            var parts: [Int: [TimelineInterval]] = [:]
            for process in self.pending.keys.sorted() {
                while let head = self.pending[process]?.first, Key(head.interval) == first {
                    parts[head.process, default: []].append(head.interval)
                    self.pending[process]?.removeFirst()
                }
            }
            for part in self.left where Key(part.interval) == first {
                parts[part.process, default: []].append(part.interval)
            }
            self.left.removeAll { Key($0.interval) == first }
            // Intervals of one process follow each other, those of several are at the same time.
            let own = parts.sorted { $0.key < $1.key }.compactMap { TimelineInterval.merging($0.value) }
            joined += [TimelineInterval.joining(own)].compactMap(\.self)
        }
        return joined
    }

    private struct Key: Comparable {
        var second: Int
        var rank: Int

        init(_ interval: TimelineInterval) {
            self.second = interval.second
            self.rank = TimelineInterval.rank(ofPhase: interval.phase)
        }

        static func < (left: Key, right: Key) -> Bool { (left.second, left.rank) < (right.second, right.rank) }
    }
}

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
