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
        return TimelineInterval.merging(self.pending).map { [$0] } ?? []
    }
}

extension TimelineInterval {
    /// Consecutive intervals of one phase as one; nothing for none.
    static func merging(_ intervals: [TimelineInterval]) -> TimelineInterval? {
        let seconds = intervals.reduce(0) { $0 + $1.seconds }
        return Self.one(of: intervals, seconds: seconds) { Metric.merging($0, over: seconds, values: $1) }
    }

    /// The interval with deliveries that did not come, which are known at the end of a run.
    package func adding(_ absent: [AbsentValues]) -> TimelineInterval {
        var last = TimelineInterval(second: self.second, phase: self.phase, seconds: 0, metrics: [], lanes: [])
        for own in absent {
            let (name, unanswered) = (self.metrics.deliveryName(own.labels), own.values)
            var values = DurationValues()
            values.unanswered = unanswered
            guard let reading = DurationReading(values) else { continue }
            last.metrics.append(Metric(duration: name, labels: own.labels, reading: reading))
            last.lanes.append(
                Lane(
                    name: name,
                    labels: own.labels,
                    measured: own.isMeasured,
                    count: reading.count,
                    max: reading.max,
                    histogram: unanswered.ages.encodedV2(),
                    unanswered: UnansweredReading(unanswered)
                )
            )
        }
        return last.lanes.isEmpty ? self : Self.merging([self, last]) ?? self
    }

    /// Several intervals as one; `metric` makes one of those of a series, with the values of all if it is a duration.
    static func one(
        of intervals: [TimelineInterval],
        seconds: Double,
        metric: ([Metric], DurationValues?) -> Metric?
    ) -> TimelineInterval? {
        guard let first = intervals.first, intervals.count > 1 else { return intervals.first }
        var series: [Series: [Metric]] = [:]
        var order: [Series] = []
        for metric in intervals.lazy.flatMap(\.metrics) {
            let key = Series(name: metric.name, labels: metric.labels)
            if series[key] == nil { order.append(key) }
            series[key, default: []].append(metric)
        }
        let lanes = Self.merging(lanes: intervals.flatMap(\.lanes))
        let values = lanes.bySeries
        return TimelineInterval(
            second: first.second,
            phase: first.phase,
            seconds: seconds,
            metrics: order.compactMap { key in series[key].flatMap { metric($0, values[key]) } }.durationsFirst,
            lanes: lanes.map(\.lane)
        )
    }

    private struct LaneKey: Hashable {
        var series: Series
        var measured: Bool
    }

    static func merging(lanes: [Lane]) -> [MergedLane] {
        var merged: [MergedLane] = []
        var places: [LaneKey: Int] = [:]
        for lane in lanes {
            guard let histogram = try? Histogram(decodingV2: lane.histogram), let values = lane.values(of: histogram)
            else { continue }
            let key = LaneKey(series: Series(name: lane.name, labels: lane.labels), measured: lane.measured)
            if let place = places[key] {
                merged[place].values.merge(values)
                merged[place].lane.max = Swift.max(merged[place].lane.max, lane.max)
            } else {
                places[key] = merged.count
                merged.append(MergedLane(lane: lane, values: values))
            }
        }
        for place in merged.indices {
            let (all, unanswered) = (merged[place].values.all, merged[place].values.unanswered)
            merged[place].lane.count = all.count
            merged[place].lane.histogram = all.encodedV2()
            merged[place].lane.unanswered = unanswered.isEmpty ? nil : UnansweredReading(unanswered)
        }
        return merged
    }
}

/// A lane of several intervals, with its values.
struct MergedLane {
    var lane: TimelineInterval.Lane
    var values: DurationValues
}

extension [MergedLane] {
    /// The values of each duration, measured or not.
    var bySeries: [Series: DurationValues] {
        self.reduce(into: [:]) { all, lane in
            all[Series(name: lane.lane.name, labels: lane.lane.labels), default: DurationValues()].merge(lane.values)
        }
    }
}

extension TimelineInterval.Lane {
    /// The values of the lane, `all` being its histogram; `nil` if what is without an answer is not among them.
    func values(of all: Histogram) -> DurationValues? {
        self.unanswered.map { $0.values(of: all) } ?? DurationValues(answered: all)
    }
}

extension DurationReading {
    /// The same duration of several intervals as of one; `nil` without a value.
    ///
    /// - Parameters:
    ///   - readings: those of the intervals, which have the extremes exactly.
    ///   - values: those of all intervals.
    init?(joining readings: [DurationReading], _ values: DurationValues) {
        self.init(values)
        self.bound(min: readings.map(\.min).min() ?? self.min, max: readings.map(\.max).max() ?? self.max)
        let unanswered = readings.compactMap(\.unanswered)
        // The lanes of a time line that was read back have no ages: then its rows say which figures are bounds.
        guard self.unanswered == nil, !unanswered.isEmpty else { return }
        self.unanswered = UnansweredReading(
            failed: unanswered.reduce(0) { $0 + $1.failed },
            outstanding: unanswered.reduce(0) { $0 + $1.outstanding }
        )
        let bounds = Set(readings.flatMap(\.bounds))
        self.bounds = Self.figures.filter(bounds.contains)
    }
}

extension [Metric] {
    /// In their order otherwise: an interval begins with its durations, as the time line is read back.
    var durationsFirst: [Metric] { self.filter { $0.duration != nil } + self.filter { $0.duration == nil } }
}

extension Metric {
    /// The same metric of several intervals as of one; nothing for none.
    fileprivate static func merging(_ metrics: [Metric], over seconds: Double, values: DurationValues?) -> Metric? {
        guard var merged = metrics.last else { return nil }
        switch merged.reading {
        case .duration:
            guard let values, let reading = DurationReading(joining: metrics.compactMap(\.duration), values) else {
                return nil
            }
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
