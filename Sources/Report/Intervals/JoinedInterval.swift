package import Measurement

/// Several intervals as one: of one process one after the other, or of several processes at the same time.
package enum JoinedInterval {
    /// Joins consecutive intervals of one process; `nil` without any.
    static func following(_ intervals: [TimelineInterval]) -> TimelineInterval? {
        let seconds = intervals.reduce(0) { $0 + $1.seconds }
        return self.of(intervals, seconds: seconds) { self.metric($0, $1, over: seconds) }
    }

    /// Joins the same interval of several processes; `nil` without any.
    package static func parallel(_ intervals: [TimelineInterval]) -> TimelineInterval? {
        self.of(intervals, seconds: intervals.map(\.seconds).max() ?? 0) { self.metric($0, $1) }
    }

    /// Joins what several processes have at one place: each may have several consecutive intervals there.
    static func ofProcesses(_ parts: [Int: [TimelineInterval]]) -> TimelineInterval? {
        self.parallel(parts.sorted { $0.key < $1.key }.compactMap { self.following($0.value) })
    }

    /// The same metric of several intervals as of one; `nil` without any.
    ///
    /// A duration needs the `values` of all of them. `seconds` is the length of consecutive intervals, and `nil` for
    /// intervals at the same time.
    static func metric(_ metrics: [Metric], _ values: DurationValues? = nil, over seconds: Double? = nil) -> Metric? {
        guard var joined = seconds == nil ? metrics.first : metrics.last else { return nil }
        // Two processes that watch one server see the same.
        if seconds == nil, MetricDefinition.of(joined.name)?.role == .server { return joined }
        switch joined.reading {
        case .duration:
            guard let values, let reading = DurationReading(joining: metrics.compactMap(\.duration), values) else {
                return nil
            }
            joined.reading = .duration(reading)
        case .counter:
            let readings = metrics.compactMap(\.counter)
            let value = readings.reduce(0) { $0 + $1.value }
            // Counters over the same time have a sum of rates; one that is not known makes it unknown.
            let rate: Double? =
                if let seconds { seconds > 0 ? value / seconds : nil } else { readings.all(\.rate)?.reduce(0, +) }
            joined.reading = .counter(CounterReading(value: value, rate: rate))
        case .gauge:
            // Of consecutive levels the last one counts.
            guard seconds == nil else { break }
            let levels = metrics.compactMap(\.gauge?.value)
            guard let value = LevelRule.of(joined.name).joined(levels) else { return nil }
            joined.reading = .gauge(GaugeReading(value: value))
        }
        return joined
    }

    private static func of(
        _ intervals: [TimelineInterval],
        seconds: Double,
        metric: ([Metric], DurationValues?) -> Metric?
    ) -> TimelineInterval? {
        guard let first = intervals.first, intervals.count > 1 else { return intervals.first }
        var series = OrderedMap<Series, [Metric]>()
        for metric in intervals.lazy.flatMap(\.metrics) { series[metric.series, default: []].append(metric) }
        let (lanes, values) = self.lanes(intervals.flatMap(\.lanes))
        let metrics = series.all.compactMap { metric($0.value, values[$0.key]) }
        return TimelineInterval(
            second: first.second,
            phase: first.phase,
            seconds: seconds,
            // An interval begins with its durations, as the time line is read back.
            metrics: metrics.filter { $0.duration != nil } + metrics.filter { $0.duration == nil },
            lanes: lanes
        )
    }

    private struct LaneKey: Hashable {
        var series: Series
        var measured: Bool
    }

    /// One lane for each series and part, and the values of each series, measured or not.
    private static func lanes(
        _ lanes: [TimelineInterval.Lane]
    ) -> (lanes: [TimelineInterval.Lane], values: [Series: DurationValues]) {
        var joined: [TimelineInterval.Lane] = []
        var values: [DurationValues] = []
        var places: [LaneKey: Int] = [:]
        for lane in lanes {
            guard let histogram = try? Histogram(decodingV2: lane.histogram), let own = lane.values(of: histogram)
            else { continue }
            let key = LaneKey(series: lane.series, measured: lane.measured)
            if let place = places[key] {
                values[place].merge(own)
                joined[place].max = max(joined[place].max, lane.max)
            } else {
                places[key] = joined.count
                joined.append(lane)
                values.append(own)
            }
        }
        var bySeries: [Series: DurationValues] = [:]
        for place in joined.indices {
            let (all, unanswered) = (values[place].all, values[place].unanswered)
            joined[place].count = all.count
            joined[place].histogram = all.encodedV2()
            joined[place].unanswered = unanswered.isEmpty ? nil : UnansweredReading(unanswered)
            bySeries[joined[place].series, default: DurationValues()].merge(values[place])
        }
        return (joined, bySeries)
    }
}

extension TimelineInterval {
    /// The interval with deliveries that did not come, which are known at the end of a run.
    package func adding(_ absent: [AbsentValues]) -> TimelineInterval {
        var last = TimelineInterval(second: self.second, phase: self.phase, seconds: 0, metrics: [], lanes: [])
        for own in absent {
            let (metric, unanswered) = (own.metric ?? self.metrics.delivery(own.labels), own.values)
            var values = DurationValues()
            values.unanswered = unanswered
            guard let reading = DurationReading(values) else { continue }
            last.metrics.append(Metric(metric, labels: own.labels, reading: .duration(reading)))
            last.lanes.append(
                Lane(
                    name: metric.name,
                    labels: own.labels,
                    measured: own.isMeasured,
                    count: reading.count,
                    max: reading.max,
                    histogram: unanswered.ages.encodedV2(),
                    unanswered: UnansweredReading(unanswered)
                )
            )
        }
        return last.lanes.isEmpty ? self : JoinedInterval.following([self, last]) ?? self
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
    fileprivate init?(joining readings: [DurationReading], _ values: DurationValues) {
        self.init(values)
        self.bound(min: readings.map(\.min).min() ?? self.min, max: readings.map(\.max).max() ?? self.max)
        let unanswered = readings.compactMap(\.unanswered)
        // The lanes of a time line that was read back have no ages: then its rows say which figures are bounds.
        guard self.unanswered == nil, !unanswered.isEmpty else { return }
        self.unanswered = UnansweredReading(
            failed: unanswered.reduce(into: 0) { $0.add(bounded: $1.failed) },
            outstanding: unanswered.reduce(into: 0) { $0.add(bounded: $1.outstanding) }
        )
        let bounds = Set(readings.flatMap(\.bounds))
        self.bounds = Self.figures.filter(bounds.contains)
    }
}
