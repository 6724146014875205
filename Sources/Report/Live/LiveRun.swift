package import Measurement

/// A run while it goes on: the board, the endpoint and the live page show it.
///
/// It is made from the intervals of the run alone, so it is the same for one process, for several on this host, and for
/// several hosts.
package struct LiveRun: Sendable {
    /// Plan and host, as written at the start; it has no metrics.
    package let first: RunRecord
    package let course: LiveCourse
    package let clientsPlanned: Int
    /// Whether durations are added up, which ``record`` and thresholds on durations need: 248 KiB each.
    package let keepsDurations: Bool
    /// Whether ``timeline`` is kept, which grows with the run; the live page needs it.
    package let keepsTimeline: Bool

    /// The interval of the highest second, and of those the one added last.
    package private(set) var latest: TimelineInterval?
    /// Seconds from the start of the run to the latest end of an interval.
    package private(set) var elapsed = 0.0
    /// When the load began, in seconds from the start of the run.
    package private(set) var loadBegin: Double?
    /// The stages in the order of their begin; two of them overlap where processes do not wait for each other.
    package private(set) var stages: [StageRecord] = []
    /// Every interval so far, beyond an hour ten of them as one; empty unless it is kept.
    package private(set) var timeline = Timeline()
    /// The figures of the last minute's intervals, in the order of their seconds.
    package private(set) var recent: [IntervalFigures] = []
    /// The result so far, as far as it is known.
    package private(set) var standing = LiveStanding()
    package private(set) var final: RunRecord?

    package static let recentSeconds = 60

    private var totals = MetricTotals()
    private var durations = OrderedMap<Series, DurationValues>()
    private var merger = IntervalMerger()
    private var columns: [Series: Int] = [:]
    private let isJoined: Bool
    /// The end of the interval added last.
    private var end = 0.0
    private var measured = CoveredTime()
    private var stageTimes: [CoveredTime] = []

    /// - Parameters:
    ///   - first: the record at the start.
    ///   - course: the planned course of the load.
    ///   - clients: the planned number of clients.
    ///   - processes: the number of processes whose intervals are joined.
    ///   - keepsDurations: whether durations are added up.
    ///   - keepsTimeline: whether the time line is kept.
    package init(
        _ first: RunRecord,
        course: LiveCourse,
        clients: Int,
        processes: Int = 1,
        keepsDurations: Bool = false,
        keepsTimeline: Bool = false
    ) {
        self.first = first
        self.course = course
        self.clientsPlanned = clients
        self.isJoined = processes > 1
        self.keepsDurations = keepsDurations
        self.keepsTimeline = keepsTimeline
    }

    /// Seconds of the measured phase so far; time that several intervals cover counts once.
    package var measuredSeconds: Double { self.measured.seconds }

    /// Adds the next interval, and the state of the result at its end.
    package mutating func add(_ interval: TimelineInterval, _ standing: LiveStanding = LiveStanding()) {
        let isLoad = interval.phase == "warmup" || interval.phase == "measure"
        let begin = self.begin(of: interval)
        if isLoad, self.loadBegin == nil { self.loadBegin = begin }
        let isMeasured = interval.phase == "measure"
        self.addStage(interval, from: begin, isMeasured: isMeasured)
        self.end = begin + interval.seconds
        self.elapsed = max(self.elapsed, self.end)
        if isMeasured { self.measured.add(interval.seconds, from: begin) }
        if interval.second >= self.latest?.second ?? .min { self.latest = interval }
        self.addRecent(IntervalFigures(interval))
        self.standing = standing
        let counting = interval.metrics.lazy.filter { GaugeLevel.counts($0.name, in: interval.phase) }
        self.totals.add(counting, isMeasured: isMeasured)
        if self.keepsDurations { self.addDurations(interval.lanes) }
        if self.keepsTimeline { for complete in self.merger.add(interval) { self.addColumns(complete) } }
    }

    package mutating func finish(_ record: RunRecord) {
        for interval in self.merger.flush() { self.addColumns(interval) }
        self.final = record
    }

    /// The place in the planned course; absent before and behind the load.
    package var place: LiveCourse.Place? {
        guard let begin = self.loadBegin, self.latest?.phase != "drain" else { return nil }
        return self.course.place(at: self.elapsed - begin)
    }

    /// The planned operations per second of the latest interval.
    package var plannedRate: Double? {
        guard let begin = self.loadBegin, let latest = self.latest, self.place != nil else { return nil }
        return self.course.rate(at: max(0, self.elapsed - begin - latest.seconds / 2))
    }

    /// Seconds from the start of the run to the begin of an interval, of which only the full seconds are known.
    ///
    /// Intervals of one process follow each other, so one begins at the end of the one before, if that is in its
    /// second. Before a joined interval there may be one of another process at the same time. It begins no later than
    /// one that ends with its second, as all do that no end of a phase cuts.
    private func begin(of interval: TimelineInterval) -> Double {
        let second = Double(interval.second)
        let next = max(second, self.end)
        if self.isJoined { return min(next, max(second, second + 1 - interval.seconds)) }
        return next < second + 1 ? next : second
    }

    private mutating func addRecent(_ figures: IntervalFigures) {
        // The interval of a late process comes behind those of later seconds.
        let place = self.recent.lastIndex { $0.second <= figures.second }.map { $0 + 1 } ?? 0
        self.recent.insert(figures, at: place)
        guard let newest = self.recent.last?.second else { return }
        let oldest = newest &- (Self.recentSeconds - 1)
        self.recent.removeAll { $0.second < oldest }
    }

    private mutating func addStage(_ interval: TimelineInterval, from begin: Double, isMeasured: Bool) {
        // Phases of the load have the names of its stages, where it has any.
        let place = self.loadBegin.flatMap { self.course.place(at: begin - $0 + interval.seconds / 2) }
        let isLoad = interval.phase == "warmup" || interval.phase == "measure"
        let name = isLoad && self.course.stages.count > 1 ? place?.stage.name ?? interval.phase : interval.phase
        // Processes that do not wait for each other are in several stages at the same time.
        let candidates = self.isJoined ? self.stages.indices : self.stages.indices.suffix(1)
        let known = candidates.last { self.stages[$0].name == name }
        let index = known ?? self.stages.count
        if known == nil {
            self.stages.append(StageRecord(name: name, start: begin, durationSeconds: 0, measured: isMeasured))
            self.stageTimes.append(CoveredTime())
        }
        self.stageTimes[index].add(interval.seconds, from: begin)
        self.stages[index].durationSeconds = self.stageTimes[index].seconds
    }

    private mutating func addDurations(_ lanes: [TimelineInterval.Lane]) {
        for lane in lanes where lane.measured {
            guard var histogram = try? Histogram(decodingV2: lane.histogram) else { continue }
            // Percentiles end at the exact maximum, which an encoding has by its bucket.
            histogram.restoreExtremes(
                min: histogram.min ?? 0,
                max: Int64(bounded: (lane.max * 1e9).rounded()),
                clamped: histogram.clamped
            )
            guard let values = lane.values(of: histogram) else { continue }
            self.durations[lane.series, default: DurationValues()].merge(values)
        }
    }

    // MARK: - As a record

    /// Durations added up so far, in the order of their appearance; only those of the measured phase, as in `run.json`.
    package var values: [(key: Series, value: DurationValues)] { self.durations.all }

    /// Counters and gauges so far.
    package var levels: [Metric] {
        self.totals.metrics(measuredSeconds: self.measuredSeconds > 0 ? self.measuredSeconds : nil)
    }

    /// The final record, or the record as if the run ended now.
    ///
    /// Durations are in it only where they are kept.
    package var record: RunRecord {
        if let final = self.final { return final }
        var record = self.first
        record.durationSeconds = self.elapsed
        record.stages = self.stages
        let durations = self.values.compactMap { series, values in
            DurationReading(values, isEncoded: true).map {
                Metric(duration: series.name, labels: series.labels, reading: $0)
            }
        }
        record.metrics = durations + self.levels
        record.thresholds = self.standing.thresholds
        record.errors = self.standing.errors
        return record
    }

    // MARK: - As a time line

    private mutating func addColumns(_ interval: TimelineInterval) {
        let count = self.timeline.seconds.count
        self.timeline.seconds.append(interval.second)
        self.timeline.phases.append(interval.phase)
        self.timeline.lengths.append(interval.seconds)
        for metric in interval.metrics {
            let series = metric.series
            let known = self.columns[series]
            let place = known ?? self.timeline.columns.count
            if known == nil {
                self.columns[series] = place
                self.timeline.columns.append(
                    Timeline.Column(name: metric.name, labels: metric.labels, unit: metric.unit, kind: metric.kind)
                )
            }
            self.timeline.columns[place].fill(upTo: count)
            // A row has one value of a series.
            guard self.timeline.columns[place].values.count == count else { continue }
            self.timeline.columns[place].add(metric.reading)
        }
        for place in self.timeline.columns.indices { self.timeline.columns[place].fill(upTo: count + 1) }
    }
}

extension LiveRun: MetricSource {
    /// Metrics of single stages are unknown before the end.
    package func readings(of name: String, stage: String?) -> [MetricReading] {
        guard stage == nil else { return [] }
        let durations = self.values.filter { $0.key.name == name }.map { series, values in
            MetricReading(labels: series.labels, value: .duration(values))
        }
        return durations
            + self.levels.filter { $0.name == name }.compactMap(\.levelReading)
    }
}

extension Timeline.Column {
    fileprivate mutating func add(_ reading: Metric.Reading) {
        switch reading {
        case .counter(let reading): self.values.append(reading.value)
        case .gauge(let reading): self.values.append(reading.value)
        case .duration(let reading):
            if reading.isBound(\.p99) { self.bounds.insert(self.values.count) }
            self.values.append(Double(reading.count))
            self.p50.append(reading.p50)
            self.p99.append(reading.p99)
            self.max.append(reading.max)
        }
    }
}

/// Time that counts once, however many intervals cover it.
///
/// Intervals come nearly in the order of time: behind the latest end all of one counts, and otherwise its part there.
private struct CoveredTime: Sendable {
    private(set) var seconds = 0.0
    private var end = -Double.infinity

    mutating func add(_ length: Double, from begin: Double) {
        let end = begin + length
        self.seconds += begin >= self.end ? length : max(0, end - self.end)
        self.end = max(self.end, end)
    }
}

/// The state of the result of a run while it goes on.
package struct LiveStanding: Hashable, Sendable {
    /// The verdict has every reason against the figures so far.
    package var verdict: Verdict
    /// The results are as if the run ended now; a threshold without a sample is absent.
    package var thresholds: [ThresholdResult]
    package var errors: [ErrorRecord]
    /// Messages that the receivers shall have by now, and those that they have; absent without a ledger.
    package var expected: UInt64?
    package var delivered: UInt64?

    package init(verdict: Verdict = .valid, thresholds: [ThresholdResult] = [], errors: [ErrorRecord] = []) {
        self.verdict = verdict
        self.thresholds = thresholds
        self.errors = errors
    }
}
