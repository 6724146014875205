/// Adds up the values of the event loops: per interval for the timeline, and for the whole run.
///
/// It works off the loops, on one second's samples at a time.
package struct RunAccumulator: Sendable {
    /// The latest sample of one loop, without its histograms.
    struct LoopState {
        var counters: [UInt64]
        var measured: [UInt64]?
        var stageMarks: [[UInt64]]
        var stageEnd: [UInt64]?
        var gauges: [Double?]
        var errors: [String: ErrorTally]
        var rare: [Series: ErrorTally]
        var tlsVersions: [String: UInt64]
        var slow: [SlowEntry]
    }

    struct LoopKey: Hashable {
        let group: Int
        let loop: Int
    }

    let groups: [String?]
    let joined: JoinedCatalog
    var catalog: MetricCatalog { self.joined.catalog }
    /// CLOCK_REALTIME minus the monotonic clock, in nanoseconds.
    private let realtimeOffset: Int64
    /// One per duration: the totals.
    private var totals: [DurationValues]
    /// By stage, one per duration.
    private(set) var stageTotals: [[StageDuration]]
    /// For a metric of the measured phase, and for one of the whole run.
    private let ways: (measured: MetricLane.Ways, wholeRun: MetricLane.Ways)
    private var levels: [GaugeLevel]
    private(set) var loops: [LoopKey: LoopState] = [:]
    // Reused for each metric of each interval.
    private var measuredLane = Histogram()
    private var unmeasuredLane = Histogram()
    private var measuredUnanswered = Unanswered()
    private var unmeasuredUnanswered = Unanswered()

    /// An accumulator for loops whose meters use the same catalog.
    ///
    /// `realtimeOffset`: CLOCK_REALTIME minus the monotonic clock in nanoseconds, read at the start of the run. It
    /// dates the errors.
    package init(catalog: MetricCatalog, realtimeOffset: Int64 = 0) {
        self.init(groups: [GroupCatalog(nil, catalog)], realtimeOffset: realtimeOffset)
    }

    /// An accumulator for several groups of clients, each with a meter of its own on every loop.
    package init(groups: [GroupCatalog], realtimeOffset: Int64 = 0) {
        self.groups = groups.map(\.name)
        self.joined = JoinedCatalog(groups)
        self.realtimeOffset = realtimeOffset
        self.totals = Array(repeating: DurationValues(), count: self.joined.durations.count)
        self.stageTotals = Array(
            repeating: Array(repeating: StageDuration(), count: self.joined.durations.count),
            count: self.joined.catalog.stages.count
        )
        let catalog = self.joined.catalog
        self.ways = (catalog.lanes(wholeRun: false), catalog.lanes(wholeRun: true))
        self.levels = Array(repeating: GaugeLevel(), count: self.joined.gauges.count)
    }

    /// Adds one interval.
    ///
    /// - `second`: full seconds from the start of the run to the start of the interval.
    /// - `phase`: the phase's name.
    /// - `seconds`: the interval's length.
    /// - `samples`: one per loop, or more if a loop was swapped more often. They can be cleared and passed back
    ///   afterwards.
    package mutating func add(
        second: Int,
        phase: String,
        seconds: Double = 1,
        samples: [LoopSample]
    ) -> TimelineInterval {
        self.add(second: second, phase: phase, seconds: seconds, groups: [samples])
    }

    /// Adds one interval of several groups, in their order.
    package mutating func add(second: Int, phase: String, seconds: Double, groups: [[LoopSample]]) -> TimelineInterval {
        var metrics: [Metric] = []
        var lanes: [TimelineInterval.Lane] = []
        for index in self.catalog.durations.indices { self.addDuration(index, groups, &metrics, &lanes) }
        let counters = self.counterTotals()
        let rare = self.rareCounters()
        for (group, samples) in groups.enumerated() {
            for sample in samples {
                let key = LoopKey(group: group, loop: sample.loop)
                self.loops[key] = LoopState(
                    counters: sample.counters,
                    measured: sample.measured,
                    stageMarks: sample.stageMarks,
                    stageEnd: sample.stageEnd,
                    gauges: sample.gauges,
                    errors: sample.errors,
                    rare: sample.rare,
                    tlsVersions: sample.tlsVersions,
                    slow: sample.slow ?? self.loops[key]?.slow ?? []
                )
            }
        }
        for stage in 0..<self.endedStages {
            for index in self.stageTotals[stage].indices { self.stageTotals[stage][index].close() }
        }
        for (index, total) in self.counterTotals().enumerated() {
            let gained = total - counters[index]
            metrics.append(self.counter(index, gained, rate: Self.rate(gained, seconds)))
        }
        for counter in self.rareCounters() {
            let before = rare.first { $0.series == counter.series && $0.group == counter.group }
            let gained = counter.tally.count - (before?.tally.count ?? 0)
            metrics.append(counter.metric(gained, rate: Self.rate(gained, seconds)))
        }
        for index in self.catalog.gauges.indices {
            guard let value = self.level(of: index) else { continue }
            if GaugeLevel.counts(self.catalog.gauges[index].name, in: phase) { self.levels[index].add(value) }
            metrics.append(self.gauge(index, GaugeReading(value: value)))
        }
        return TimelineInterval(second: second, phase: phase, seconds: seconds, metrics: metrics, lanes: lanes)
    }

    /// Merges one duration over the loops, lane by lane.
    private mutating func addDuration(
        _ index: Int,
        _ groups: [[LoopSample]],
        _ metrics: inout [Metric],
        _ lanes: inout [TimelineInterval.Lane]
    ) {
        self.measuredLane.clear()
        self.unmeasuredLane.clear()
        self.measuredUnanswered = Unanswered()
        self.unmeasuredUnanswered = Unanswered()
        let definition = self.catalog.durations[index]
        let ways = definition.wholeRun ? self.ways.wholeRun : self.ways.measured
        for place in self.joined.durations[index] {
            for sample in groups[place.group] {
                let first = place.index * sample.lanes
                for lane in ways.counting { self.measuredLane.merge(sample.histograms[first + lane]) }
                for lane in ways.others { self.unmeasuredLane.merge(sample.histograms[first + lane]) }
                for stage in self.stageTotals.indices {
                    self.stageTotals[stage][index].merge(sample.histograms[first + MetricLane.stage(stage)])
                }
                if !sample.unanswered.isEmpty { self.addUnanswered(index, sample, from: first, ways) }
            }
        }
        self.totals[index].answered.merge(self.measuredLane)
        self.totals[index].unanswered.merge(self.measuredUnanswered)
        // An interval shows all values; the extra memory is that of the last interval alone.
        self.measuredLane.merge(self.measuredUnanswered.ages)
        self.unmeasuredLane.merge(self.unmeasuredUnanswered.ages)
        func lane(_ histogram: borrowing Histogram, _ unanswered: Unanswered, measured: Bool) {
            guard let max = histogram.max else { return }
            lanes.append(
                TimelineInterval.Lane(
                    name: definition.name,
                    labels: definition.labels,
                    measured: measured,
                    count: histogram.count,
                    max: Double(max) / 1e9,
                    histogram: histogram.encodedV2(),
                    unanswered: unanswered.isEmpty ? nil : UnansweredReading(unanswered)
                )
            )
        }
        lane(self.measuredLane, self.measuredUnanswered, measured: true)
        lane(self.unmeasuredLane, self.unmeasuredUnanswered, measured: false)
        self.measuredLane.merge(self.unmeasuredLane)
        self.measuredUnanswered.merge(self.unmeasuredUnanswered)
        let values = DurationValues(all: self.measuredLane, unanswered: self.measuredUnanswered)
        if let reading = DurationReading(values) {
            metrics.append(Metric(duration: definition.name, labels: definition.labels, reading: reading))
        }
    }

    private mutating func addUnanswered(_ index: Int, _ sample: LoopSample, from first: Int, _ ways: MetricLane.Ways) {
        func of(_ lane: Int) -> Unanswered { sample.unanswered[first + lane] ?? Unanswered() }
        for lane in ways.counting { self.measuredUnanswered.merge(of(lane)) }
        for lane in ways.others { self.unmeasuredUnanswered.merge(of(lane)) }
        for stage in self.stageTotals.indices { self.stageTotals[stage][index].merge(of(MetricLane.stage(stage))) }
    }

    /// The metrics of the run so far, in the form of `run.json`.
    ///
    /// `measuredSeconds`: the length of the measured phase so far; without it there are no rates.
    package func metrics(measuredSeconds: Double?) -> [Metric] {
        let durations = self.catalog.durations.enumerated().compactMap { index, definition -> Metric? in
            DurationReading(self.totals[index], isEncoded: true).map {
                Metric(duration: definition.name, labels: definition.labels, reading: $0)
            }
        }
        return durations + self.levelsAndCounts(measuredSeconds)
    }

    /// All metrics except durations.
    private func levelsAndCounts(_ measuredSeconds: Double?) -> [Metric] {
        let measured = self.measuredCounters()
        let counters = self.counterTotals().enumerated().map { index, total in
            self.counter(index, total, rate: Self.rate(measured?[index], measuredSeconds))
        }
        let rare = self.rareCounters().map { counter in
            counter.metric(
                counter.tally.count,
                rate: Self.rate(measured == nil ? nil : counter.tally.measured, measuredSeconds)
            )
        }
        let gauges = self.levels.enumerated().compactMap { index, level in
            level.reading.map { self.gauge(index, $0) }
        }
        return counters + rare + gauges
    }

    /// The errors so far, by kind, each with its first time and example.
    package var errors: [ErrorRecord] {
        self.rareCounters().filter { $0.series.isOf(.errors) }.map { error in
            ErrorRecord(
                kind: error.series.labels["kind"] ?? "",
                count: error.tally.count,
                firstAt: WallClock.rfc3339(error.tally.firstAt + self.realtimeOffset),
                example: error.tally.example,
                group: error.group
            )
        }
    }

    /// A counter's value over all loops.
    package func value(of id: CounterID) -> UInt64 {
        self.joined.counters[id.index].reduce(0) { sum, place in
            self.loops(of: place.group).reduce(sum) { $0 + $1.counters[place.index] }
        }
    }

    /// A duration's answered values over all loops.
    package func histogram(of id: DurationID) -> Histogram { self.totals[id.index].answered }

    /// The run so far, as thresholds read it.
    package func source(measuredSeconds: Double?) -> LiveMetrics {
        LiveMetrics(accumulator: self, measuredSeconds: measuredSeconds)
    }

    func readings(of name: String, stage: String?, measuredSeconds: Double?) -> [MetricReading] {
        if let stage { return self.readings(of: name, stage: stage) }
        let durations = self.catalog.durations.enumerated().compactMap { index, definition -> MetricReading? in
            guard definition.name == name, !self.totals[index].isEmpty else { return nil }
            return MetricReading(labels: definition.labels, value: .duration(self.totals[index]))
        }
        let levels = self.levelsAndCounts(measuredSeconds).filter { $0.name == name }
        return durations + levels.compactMap(\.levelReading)
    }

    private func counterTotals() -> [UInt64] {
        self.catalog.counters.indices.map { self.value(of: CounterID(index: $0)) }
    }

    /// The increase of the counters in the measured phase; nil before it begins on every loop.
    private func measuredCounters() -> [UInt64]? {
        guard !self.loops.isEmpty, self.loops.values.allSatisfy({ $0.measured != nil }) else { return nil }
        return self.joined.counters.map { places in
            places.reduce(0) { sum, place in
                self.loops(of: place.group).reduce(sum) { $0 + ($1.measured?[place.index] ?? 0) }
            }
        }
    }

    func loops(of group: Int) -> some Sequence<LoopState> {
        self.loops.lazy.filter { $0.key.group == group }.map(\.value)
    }

    /// A gauge over all loops that have set it; nil if none has.
    private func level(of index: Int) -> Double? {
        let values = self.joined.gauges[index].flatMap { place in
            self.loops(of: place.group).compactMap { $0.gauges[place.index] }
        }
        switch self.catalog.gauges[index].merge {
        case .sum: return values.isEmpty ? nil : values.reduce(0, +)
        case .highest, .none: return values.max()
        }
    }

    func counter(_ index: Int, _ value: UInt64, rate: Double?) -> Metric {
        let definition = self.catalog.counters[index]
        // Time is counted in nanoseconds and reported in seconds.
        let scale = definition.unit == "seconds" ? 1e9 : 1
        return Metric(
            name: definition.name,
            labels: definition.labels,
            unit: definition.unit.isEmpty ? nil : definition.unit,
            reading: .counter(CounterReading(value: Double(value) / scale, rate: rate.map { $0 / scale }))
        )
    }

    private func gauge(_ index: Int, _ reading: GaugeReading) -> Metric {
        let definition = self.catalog.gauges[index]
        return Metric(
            name: definition.name,
            labels: definition.labels,
            unit: definition.unit.isEmpty ? nil : definition.unit,
            reading: .gauge(reading)
        )
    }

    /// Events per second; nil if the events are unknown or no time has passed.
    static func rate(_ events: UInt64?, _ seconds: Double?) -> Double? {
        guard let events, let seconds, seconds > 0 else { return nil }
        return Double(events) / seconds
    }
}
