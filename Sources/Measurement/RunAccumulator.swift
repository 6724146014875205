/// Adds up what the event loops recorded: interval by interval for the time line, and for the run as a whole.
///
/// Off the loops, a second's samples at a time.
package struct RunAccumulator: Sendable {
    /// The latest sample of one loop, without its histograms.
    private struct LoopState {
        var counters: [UInt64]
        var measured: [UInt64]?
        var gauges: [Double?]
        var errors: [String: ErrorTally]
    }

    private let catalog: MetricCatalog
    /// CLOCK_REALTIME less the monotonic clock, nanoseconds.
    private let realtimeOffset: Int64
    /// One per duration: what counts.
    private var totals: [Histogram]
    private var levels: [Level]
    private var loops: [Int: LoopState] = [:]
    // Used again for each metric of each interval.
    private var measuredLane = Histogram()
    private var unmeasuredLane = Histogram()

    /// An accumulator for loops whose meters were made with the same catalog.
    ///
    /// `realtimeOffset`: cLOCK_REALTIME less the monotonic clock in nanoseconds, taken at the start
    ///   of the run: it dates the errors.
    package init(catalog: MetricCatalog, realtimeOffset: Int64 = 0) {
        self.catalog = catalog
        self.realtimeOffset = realtimeOffset
        self.totals = Array(repeating: Histogram(), count: catalog.durations.count)
        self.levels = Array(repeating: Level(), count: catalog.gauges.count)
    }

    /// Takes in one interval.
    ///
    /// - `second`: Full seconds from the start of the run to the start of the interval.
    /// - `phase`: The phase's name.
    /// - `seconds`: The interval's length.
    /// - `samples`: One of each loop; more of a loop when it was swapped more often. They can be cleared and
    ///   handed back afterwards.
    package mutating func add(
        second: Int,
        phase: String,
        seconds: Double = 1,
        samples: [LoopSample]
    ) -> TimelineInterval {
        var metrics: [Metric] = []
        var lanes: [TimelineInterval.Lane] = []
        for index in self.catalog.durations.indices {
            self.addDuration(index, samples, &metrics, &lanes)
        }
        let counters = self.counterTotals()
        let errors = self.errorTallies()
        for sample in samples {
            self.loops[sample.loop] = LoopState(
                counters: sample.counters,
                measured: sample.measured,
                gauges: sample.gauges,
                errors: sample.errors
            )
        }
        for (index, total) in self.counterTotals().enumerated() {
            let gained = total - counters[index]
            metrics.append(self.counter(index, gained, rate: Self.rate(gained, seconds)))
        }
        for (kind, tally) in self.errorTallies() {
            let gained = tally.count - (errors.first { $0.kind == kind }?.tally.count ?? 0)
            metrics.append(Self.errorCounter(kind, gained, rate: Self.rate(gained, seconds)))
        }
        for index in self.catalog.gauges.indices {
            guard let value = self.level(of: index) else { continue }
            self.levels[index].add(value)
            metrics.append(self.gauge(index, GaugeReading(value: value)))
        }
        return TimelineInterval(second: second, phase: phase, seconds: seconds, metrics: metrics, lanes: lanes)
    }

    /// Merges one duration over the loops, lane by lane.
    private mutating func addDuration(
        _ index: Int,
        _ samples: [LoopSample],
        _ metrics: inout [Metric],
        _ lanes: inout [TimelineInterval.Lane]
    ) {
        self.measuredLane.clear()
        self.unmeasuredLane.clear()
        for sample in samples {
            self.measuredLane.merge(sample.histograms[index * 2])
            self.unmeasuredLane.merge(sample.histograms[index * 2 + 1])
        }
        let definition = self.catalog.durations[index]
        func lane(_ histogram: borrowing Histogram, measured: Bool) {
            guard let max = histogram.max else { return }
            lanes.append(
                TimelineInterval.Lane(
                    name: definition.name,
                    labels: definition.labels,
                    measured: measured,
                    count: histogram.count,
                    max: Double(max) / 1e9,
                    histogram: histogram.encodedV2()
                )
            )
        }
        lane(self.measuredLane, measured: true)
        lane(self.unmeasuredLane, measured: false)
        self.totals[index].merge(self.measuredLane)
        self.measuredLane.merge(self.unmeasuredLane)
        let metric = Metric(
            duration: definition.name,
            labels: definition.labels,
            histogram: self.measuredLane,
            encoded: nil
        )
        if let metric { metrics.append(metric) }
    }
}

extension RunAccumulator {
    /// The metrics of the run so far, as they stand in `run.json`.
    ///
    /// `measuredSeconds`: the length of the measured phase so far; without it there are no rates.
    package func metrics(measuredSeconds: Double?) -> [Metric] {
        let durations = self.catalog.durations.enumerated().compactMap { index, definition -> Metric? in
            guard !self.totals[index].isEmpty else { return nil }
            return Metric(
                duration: definition.name,
                labels: definition.labels,
                histogram: self.totals[index],
                encoded: self.totals[index].encodedV2()
            )
        }
        return durations + self.levelsAndCounts(measuredSeconds)
    }

    /// Everything but the durations.
    private func levelsAndCounts(_ measuredSeconds: Double?) -> [Metric] {
        let measured = self.measuredCounters()
        let counters = self.counterTotals().enumerated().map { index, total in
            self.counter(index, total, rate: Self.rate(measured?[index], measuredSeconds))
        }
        let errors = self.errorTallies().map { kind, tally in
            Self.errorCounter(
                kind,
                tally.count,
                rate: Self.rate(measured == nil ? nil : tally.measured, measuredSeconds)
            )
        }
        let gauges = self.levels.enumerated().compactMap { index, level in
            level.reading.map { self.gauge(index, $0) }
        }
        return counters + errors + gauges
    }

    /// The errors so far, by kind, each with the first time it came and that one's words.
    package var errors: [ErrorRecord] {
        self.errorTallies().map { kind, tally in
            ErrorRecord(
                kind: kind,
                count: tally.count,
                firstAt: WallClock.rfc3339(tally.firstAt + self.realtimeOffset),
                example: tally.example
            )
        }
    }

    /// What a counter holds over all loops.
    package func value(of id: CounterID) -> UInt64 {
        self.loops.values.reduce(0) { $0 + $1.counters[id.index] }
    }

    /// What counts of a duration, over all loops.
    package func histogram(of id: DurationID) -> Histogram { self.totals[id.index] }

    /// The run so far as thresholds see it.
    package func source(measuredSeconds: Double?) -> LiveMetrics {
        LiveMetrics(accumulator: self, measuredSeconds: measuredSeconds)
    }

    func readings(of name: String, measuredSeconds: Double?) -> [MetricReading] {
        let durations = self.catalog.durations.enumerated().compactMap { index, definition -> MetricReading? in
            guard definition.name == name, !self.totals[index].isEmpty else { return nil }
            return MetricReading(labels: definition.labels, value: .duration(self.totals[index]))
        }
        let levels = self.levelsAndCounts(measuredSeconds).filter { $0.name == name }
        return durations
            + levels.compactMap { metric in
                switch metric.reading {
                case .duration: nil
                case .counter(let reading): MetricReading(labels: metric.labels, value: .counter(reading))
                case .gauge(let reading): MetricReading(labels: metric.labels, value: .gauge(reading))
                }
            }
    }

    private func counterTotals() -> [UInt64] {
        self.catalog.counters.indices.map { self.value(of: CounterID(index: $0)) }
    }

    /// What the counters gained in the measured phase; nothing before it begins on every loop.
    private func measuredCounters() -> [UInt64]? {
        var sums = [UInt64](repeating: 0, count: self.catalog.counters.count)
        guard !self.loops.isEmpty else { return nil }
        for loop in self.loops.values {
            guard let measured = loop.measured else { return nil }
            for (index, value) in measured.enumerated() { sums[index] += value }
        }
        return sums
    }

    private func errorTallies() -> [(kind: String, tally: ErrorTally)] {
        var all: [String: ErrorTally] = [:]
        for loop in self.loops.values {
            all.merge(loop.errors) { $0.merged(with: $1) }
        }
        return all.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }

    /// A gauge over all loops that have set it; nothing when none has.
    private func level(of index: Int) -> Double? {
        let values = self.loops.values.compactMap { $0.gauges[index] }
        switch self.catalog.gauges[index].merge {
        case .sum: return values.isEmpty ? nil : values.reduce(0, +)
        case .highest, .none: return values.max()
        }
    }

    private func counter(_ index: Int, _ value: UInt64, rate: Double?) -> Metric {
        let definition = self.catalog.counters[index]
        // Time is counted in nanoseconds and stated in seconds.
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

    private static func errorCounter(_ kind: String, _ count: UInt64, rate: Double?) -> Metric {
        Metric(
            name: "errors",
            labels: ["kind": kind],
            reading: .counter(CounterReading(value: Double(count), rate: rate))
        )
    }

    /// Events per second; nothing without events known or time passed.
    private static func rate(_ events: UInt64?, _ seconds: Double?) -> Double? {
        guard let events, let seconds, seconds > 0 else { return nil }
        return Double(events) / seconds
    }
}

/// What a gauge was at the ends of the intervals so far.
private struct Level: Sendable {
    private var last = 0.0
    private var lowest = Double.infinity
    private var highest = -Double.infinity
    private var sum = 0.0
    private var intervals = 0

    mutating func add(_ value: Double) {
        self.last = value
        self.lowest = min(self.lowest, value)
        self.highest = max(self.highest, value)
        self.sum += value
        self.intervals += 1
    }

    var reading: GaugeReading? {
        guard self.intervals > 0 else { return nil }
        let mean = self.sum / Double(self.intervals)
        return GaugeReading(value: self.last, min: self.lowest, mean: mean, max: self.highest)
    }
}
