import Measurement

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
        return TimelineInterval.merging(self.pending).map { [$0] } ?? []
    }
}

extension TimelineInterval {
    /// Consecutive intervals of one phase as one; nothing for none.
    static func merging(_ intervals: [TimelineInterval]) -> TimelineInterval? {
        guard let first = intervals.first, intervals.count > 1 else { return intervals.first }
        let seconds = intervals.reduce(0) { $0 + $1.seconds }
        var series: [Series: [Metric]] = [:]
        var order: [Series] = []
        for metric in intervals.lazy.flatMap(\.metrics) {
            let key = Series(name: metric.name, labels: metric.labels)
            if series[key] == nil { order.append(key) }
            series[key, default: []].append(metric)
        }
        let lanes = Self.merging(lanes: intervals.flatMap(\.lanes))
        let histograms = lanes.reduce(into: [Series: Histogram]()) { all, lane in
            all[Series(name: lane.lane.name, labels: lane.lane.labels), default: Histogram()].merge(lane.histogram)
        }
        return TimelineInterval(
            second: first.second,
            phase: first.phase,
            seconds: seconds,
            metrics: order.compactMap { key in
                series[key].flatMap { Metric.merging($0, over: seconds, histogram: histograms[key]) }
            }.durationsFirst,
            lanes: lanes.map(\.lane)
        )
    }

    private struct LaneKey: Hashable {
        var series: Series
        var measured: Bool
    }

    static func merging(lanes: [Lane]) -> [(lane: Lane, histogram: Histogram)] {
        var merged: [(lane: Lane, histogram: Histogram)] = []
        var places: [LaneKey: Int] = [:]
        for lane in lanes {
            guard let histogram = try? Histogram(decodingV2: lane.histogram) else { continue }
            let key = LaneKey(series: Series(name: lane.name, labels: lane.labels), measured: lane.measured)
            if let place = places[key] {
                merged[place].histogram.merge(histogram)
                merged[place].lane.max = Swift.max(merged[place].lane.max, lane.max)
            } else {
                places[key] = merged.count
                merged.append((lane, histogram))
            }
        }
        for place in merged.indices {
            merged[place].lane.count = merged[place].histogram.count
            merged[place].lane.histogram = merged[place].histogram.encodedV2()
        }
        return merged
    }
}

extension [Metric] {
    /// In their order otherwise: an interval begins with its durations, as the time line is read back.
    var durationsFirst: [Metric] { self.filter { $0.duration != nil } + self.filter { $0.duration == nil } }
}

extension Metric {
    /// The same metric of several intervals as of one; nothing for none.
    fileprivate static func merging(_ metrics: [Metric], over seconds: Double, histogram: Histogram?) -> Metric? {
        guard var merged = metrics.last else { return nil }
        switch merged.reading {
        case .duration:
            guard let histogram, var reading = DurationReading(histogram) else { return nil }
            reading.bound(
                min: metrics.compactMap(\.duration?.min).min() ?? reading.min,
                max: metrics.compactMap(\.duration?.max).max() ?? reading.max
            )
            merged.reading = .duration(reading)
        case .counter:
            let value = metrics.compactMap(\.counter?.value).reduce(0, +)
            merged.reading = .counter(CounterReading(value: value, rate: seconds > 0 ? value / seconds : nil))
        case .gauge:
            break
        }
        return merged
    }
}
