package import Measurement

/// Makes ten seconds one beyond the first hour, so that the time line of a long run stays readable.
struct IntervalMerger {
    /// Seconds of a run that are kept one by one.
    static let fineSeconds = 3600
    static let coarseSeconds = 10

    private var pending: [TimelineInterval] = []

    /// Takes one interval and returns what is complete: itself, or ten of them as one, or what a new phase ended.
    mutating func add(_ interval: TimelineInterval) -> [TimelineInterval] {
        guard interval.second >= Self.fineSeconds else { return [interval] }
        var complete: [TimelineInterval] = []
        if let last = self.pending.last, last.phase != interval.phase || Self.block(last) != Self.block(interval) {
            complete += self.flush()
        }
        self.pending.append(interval)
        // At once, without waiting for the next: a kill is to lose as little as can be.
        if interval.second % Self.coarseSeconds == Self.coarseSeconds - 1 { complete += self.flush() }
        return complete
    }

    private static func block(_ interval: TimelineInterval) -> Int { interval.second / self.coarseSeconds }

    mutating func flush() -> [TimelineInterval] {
        defer { self.pending.removeAll(keepingCapacity: true) }
        return JoinedInterval.following(self.pending).map { [$0] } ?? []
    }
}

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

        var place: IntervalPlace { IntervalPlace(self.interval) }
    }

    /// The intervals of each process that goes on, in the order of time.
    private var pending: [Int: [Part]]
    /// The intervals of ended processes, each in the order of time.
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
            let heads = (self.pending.values.compactMap(\.first) + self.left).map(\.place)
            guard let first = heads.min() else { break }
            var parts: [Int: [TimelineInterval]] = [:]
            for process in self.pending.keys.sorted() {
                while let head = self.pending[process]?.first, head.place == first {
                    parts[head.process, default: []].append(head.interval)
                    self.pending[process]?.removeFirst()
                }
            }
            for part in self.left where part.place == first { parts[part.process, default: []].append(part.interval) }
            self.left.removeAll { $0.place == first }
            joined += [JoinedInterval.ofProcesses(parts)].compactMap(\.self)
        }
        return joined
    }
}

/// The place of an interval in the order of a run: its second, and its phase within that.
struct IntervalPlace: Hashable, Comparable {
    private static let phases = ["connect", "warmup", "measure", "drain"]

    let second: Int
    let phase: String

    private var rank: Int { Self.phases.firstIndex(of: self.phase) ?? Self.phases.count }

    static func < (left: Self, right: Self) -> Bool {
        (left.second, left.rank, left.phase) < (right.second, right.rank, right.phase)
    }
}

extension IntervalPlace {
    init(_ interval: TimelineInterval) { self.init(second: interval.second, phase: interval.phase) }
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
        guard self.pending.count >= self.every, let merged = JoinedInterval.following(self.pending) else { return rest }
        self.pending = []
        rest.metrics = merged.metrics + rest.metrics
        rest.lanes = merged.lanes
        return rest
    }
}
