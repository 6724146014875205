package import Measurement

/// The servers that watches on their own hosts saw, beside the segments of a run.
///
/// A process that a segment watches under the same name counts once: what the watch saw stands.
package struct WatchedServers: Sendable {
    private struct Watch {
        /// By their first second: single seconds of the first hour, and tens after it, as the load has them.
        var kept: [Int: TimelineInterval] = [:]
        /// Those that were not shown yet.
        var fresh: [TimelineInterval] = []
        /// It has not seen the servers before the first client.
        var isLate = false
    }

    /// A watch that makes up series without end must not slow the run.
    private static let mostSeries = 2_000

    /// In the order in which they came.
    private var watches: [(number: Int, watch: Watch)] = []
    /// The watch that reports a process, or a page, under its name.
    private var owners: [String: Int] = [:]
    private var series: Set<Series> = []

    package init() {}

    /// Adds a second that a watch has seen; its seconds count from the begin of the run.
    package mutating func add(_ interval: TimelineInterval, of number: Int) {
        let place = self.watches.firstIndex { $0.number == number } ?? self.watches.count
        if place == self.watches.count { self.watches.append((number, Watch(isLate: interval.second > 0))) }
        let isLate = self.watches[place].watch.isLate
        var interval = interval
        interval.metrics = interval.metrics.compactMap { metric in
            guard metric.definition?.role == .server, !(isLate && metric.isOf(.serverMemoryIdle)) else { return nil }
            let own = self.named(metric, at: place)
            guard self.series.contains(own.series) || self.series.count < Self.mostSeries else { return nil }
            self.series.insert(own.series)
            return own
        }
        let coarse = IntervalMerger.coarseSeconds
        let second = interval.second
        let key = second < IntervalMerger.fineSeconds ? second : second / coarse * coarse
        let known = self.watches[place].watch.kept[key]
        self.watches[place].watch.kept[key] = JoinedInterval.following([known, interval].compactMap(\.self))
        self.watches[place].watch.fresh.append(interval)
    }

    /// Two hosts of a cluster have servers of one name.
    private mutating func named(_ metric: Metric, at place: Int) -> Metric {
        guard let key = ["process", "page"].first(where: { metric.labels[$0] != nil }), let name = metric.labels[key]
        else { return metric }
        let owner = self.owners[name, default: place]
        if self.owners.count < Self.mostSeries { self.owners[name] = owner }
        guard owner != place else { return metric }
        var metric = metric
        metric.labels = metric.labels.removing(key).adding(key, "\(name) (host \(place + 1))")
        return metric
    }

    /// An interval of the load as it is shown, with what was seen since the last one: a second may come later.
    package mutating func showing(_ interval: TimelineInterval) -> TimelineInterval {
        var seen: [Metric] = []
        for place in self.watches.indices {
            let fresh = self.watches[place].watch.fresh
            let ready = fresh.filter { $0.second <= interval.second }
            self.watches[place].watch.fresh = fresh.filter { $0.second > interval.second }.suffix(60)
            seen += JoinedInterval.following(ready)?.metrics ?? []
        }
        return Self.joined(interval, seen)
    }

    private static func joined(_ interval: TimelineInterval, _ seen: [Metric]) -> TimelineInterval {
        let series = Set(seen.map(\.series))
        var interval = interval
        interval.metrics.removeAll { series.contains($0.series) }
        interval.metrics += seen
        return interval
    }

    /// The intervals of the load, each with what was seen in its seconds.
    ///
    /// Of two phases in one second the longer one has it.
    package func adding(to intervals: [TimelineInterval]) -> [TimelineInterval] {
        guard !self.watches.isEmpty else { return intervals }
        var longest: [Int: Int] = [:]
        for (place, interval) in intervals.enumerated() {
            let known = longest[interval.second].map { intervals[$0].seconds } ?? -1
            if interval.seconds > known { longest[interval.second] = place }
        }
        var all = intervals
        for (second, place) in longest {
            let seen = self.watches.flatMap { $0.watch.kept[second]?.metrics ?? [] }
            all[place] = Self.joined(all[place], seen)
        }
        return all
    }

    /// The metrics of a run with what was seen over its whole time.
    package func adding(to metrics: [Metric], of intervals: [TimelineInterval]) -> [Metric] {
        guard !self.series.isEmpty else { return metrics }
        var totals = MetricTotals()
        var slopes = SlopeMeter()
        var measured = 0.0
        for interval in intervals {
            let seen = interval.metrics.filter { self.series.contains($0.series) }
            let isMeasured = interval.phase == "measure"
            totals.add(seen, isMeasured: isMeasured)
            // A watch that came late has rates of its own time.
            guard isMeasured, !seen.isEmpty else { continue }
            measured += interval.seconds
            slopes.add(seen, seconds: interval.seconds)
        }
        return metrics.filter { !self.series.contains($0.series) }
            + slopes.adding(to: totals.metrics(measuredSeconds: measured))
    }
}
