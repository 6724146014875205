import Measurement

/// The totals of a run's streamed files.
struct RunHistory {
    /// Phases whose operations count only towards the whole run.
    static let unmeasuredPhases: Set<String> = ["connect", "warm-up", "warmup", "drain"]

    private let rows: [TimelineRow]
    private let log: HistogramLog.Contents
    /// One after the other; a second in which the phase changed may be two.
    private let intervals: [Interval]

    private struct Interval {
        var second: Int
        var phase: String
        var seconds: Double
    }

    init(rows: [TimelineRow], log: HistogramLog.Contents) {
        self.rows = rows
        self.log = log
        let timed = Dictionary(log.entries.map { (Int(bounded: $0.start), $0.length) }, uniquingKeysWith: { $1 })
        var intervals: [Interval] = []
        for row in rows {
            if intervals.last?.second != row.second || intervals.last?.phase != row.phase {
                let seconds = timed[row.second] ?? 1
                intervals.append(Interval(second: row.second, phase: row.phase, seconds: seconds))
            }
            if let length = row.length { intervals[intervals.count - 1].seconds = length }
        }
        self.intervals = intervals
    }

    /// Seconds from the start to the end of the last interval; nothing without any.
    var end: Double? {
        let logged = self.log.entries.map { $0.start + $0.length }
        let last = self.intervals.last.map { Double($0.second) + $0.seconds }
        let lasted = self.intervals.map(\.seconds).reduce(0, +)
        return (logged + [last, lasted].compactMap { $0 }.filter { $0 > 0 }).max()
    }

    /// The phases, one after the other.
    var stages: [StageRecord] {
        self.intervals.reduce(into: []) { stages, interval in
            if let place = stages.indices.last, stages[place].name == interval.phase {
                stages[place].durationSeconds += interval.seconds
            } else {
                let stage = StageRecord(
                    name: interval.phase,
                    start: Double(interval.second),
                    durationSeconds: interval.seconds,
                    measured: !Self.unmeasuredPhases.contains(interval.phase)
                )
                stages.append(stage)
            }
        }
    }

    /// Durations, then counters, then gauges: the order of a run that ended by itself.
    var metrics: [Metric] {
        let levels = self.levels
        return self.durations + levels.filter { $0.kind == .counter } + levels.filter { $0.kind == .gauge }
    }

    /// The errors by group and kind; their words are those of the last checkpoint.
    func errors(startedAt: String, known: [ErrorRecord]) -> [ErrorRecord] {
        var errors: [Labels: ErrorRecord] = [:]
        for row in self.rows where row.series.isOf(.errors) {
            guard case .counter(let value, _) = row.reading, value > 0, let kind = row.series.labels["kind"] else {
                continue
            }
            let group = row.series.labels[Labels.group]
            let old = known.first { $0.kind == kind && $0.group == group }
            errors[
                row.series.labels,
                default: ErrorRecord(
                    kind: kind,
                    count: 0,
                    firstAt: old?.firstAt ?? WallClock.adding(seconds: row.second, to: startedAt),
                    example: old?.example ?? "",
                    group: group
                )
            ].count.add(bounded: UInt64(bounded: value))
        }
        return errors.sorted { $0.key < $1.key }.map(\.value)
    }

    private var durations: [Metric] {
        var totals = OrderedMap<Series, Histogram>()
        var isPartlyMeasured: Set<Series> = []
        for entry in self.log.entries {
            guard let (series, isMeasured) = HistogramLog.parse(tag: entry.tag) else { continue }
            if !isMeasured {
                isPartlyMeasured.insert(series)
            } else if let histogram = try? Histogram(decodingV2: entry.encoded) {
                totals[series, default: Histogram()].merge(histogram)
            }
        }
        let (extremes, unanswered) = (self.extremes, self.unanswered)
        return totals.all.compactMap { series, histogram in
            let values = unanswered[series]?.atMost(histogram.count).values(of: histogram)
            guard var reading = DurationReading(values ?? DurationValues(answered: histogram), isEncoded: true) else {
                return nil
            }
            reading.unanswered?.histogram = nil
            // The time line has the extremes exactly, but over all phases.
            if !isPartlyMeasured.contains(series), let exact = extremes[series] {
                reading.bound(min: exact.0, max: exact.1)
            }
            return Metric(duration: series.name, labels: series.labels, reading: reading)
        }
    }

    /// Over all phases, and without the ages, which are not in the files.
    private var unanswered: [Series: UnansweredReading] {
        self.rows.reduce(into: [:]) { all, row in
            guard case .duration(_, _, let unanswered?, _) = row.reading else { return }
            all[row.series, default: UnansweredReading(failed: 0, outstanding: 0)].failed.add(
                bounded: unanswered.failed
            )
            all[row.series]?.outstanding.add(bounded: unanswered.outstanding)
        }
    }

    private var extremes: [Series: (Double, Double)] {
        self.rows.reduce(into: [:]) { all, row in
            guard case .duration(let min, let max, _, _) = row.reading else { return }
            let old = all[row.series] ?? (min, max)
            all[row.series] = (Swift.min(old.0, min), Swift.max(old.1, max))
        }
    }

    /// Counters and gauges, in the order in which they appeared.
    private var levels: [Metric] {
        var totals = MetricTotals()
        for row in self.rows {
            guard let metric = row.level, GaugeLevel.counts(metric.name, in: row.phase) else { continue }
            totals.add([metric], isMeasured: !Self.unmeasuredPhases.contains(row.phase))
        }
        let seconds = self.stages.filter(\.measured).map(\.durationSeconds).reduce(0, +)
        return totals.metrics(measuredSeconds: 1).map { metric in
            guard var reading = metric.counter else { return metric }
            // The lanes of a benchmark are measured one after the other, each with its own time.
            let seconds = metric.labels["form"] == nil ? seconds : self.measuredSeconds(of: metric.series)
            reading.rate = seconds > 0 ? reading.rate.map { $0 / seconds } : nil
            var metric = metric
            metric.reading = .counter(reading)
            return metric
        }
    }

    /// The length of the measured intervals that have a row of it.
    private func measuredSeconds(of series: Series) -> Double {
        let own = Set(self.rows.filter { $0.series == series }.map(\.place))
        return self.intervals.reduce(0) { sum, interval in
            let isOwn = own.contains(IntervalPlace(second: interval.second, phase: interval.phase))
            return isOwn && !Self.unmeasuredPhases.contains(interval.phase) ? sum + interval.seconds : sum
        }
    }
}

extension UnansweredReading {
    /// So many of them at most, as many of them outstanding as there are.
    fileprivate func atMost(_ count: UInt64) -> UnansweredReading {
        let outstanding = min(self.outstanding, count)
        return UnansweredReading(failed: min(self.failed, count - outstanding), outstanding: outstanding)
    }
}

extension DurationReading {
    /// Sets the exact extremes; a decoded histogram has them, and the percentiles, to three digits only.
    mutating func bound(min: Double, max: Double) {
        (self.min, self.max) = (min, max)
        for (_, _, field) in Self.percentiles {
            self[keyPath: field] = Swift.min(Swift.max(self[keyPath: field], min), max)
        }
    }
}

extension TimelineRow {
    fileprivate var place: IntervalPlace { IntervalPlace(second: self.second, phase: self.phase) }
}
