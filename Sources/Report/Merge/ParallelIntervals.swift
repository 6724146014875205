package import Measurement

/// How levels of several processes become one.
package enum LevelRule: Hashable, Sendable {
    /// Of what each process has its own: clients, memory.
    case sum
    /// Of what is worst where it is low: the CPU that a host has left.
    case lowest
    case highest

    package static func of(_ name: String) -> LevelRule {
        switch name {
        case "host_cpu_idle": .lowest
        case "host_cpu_pressure": .highest
        default: .sum
        }
    }

    func joined(_ values: [Double]) -> Double? {
        switch self {
        case .sum: values.isEmpty ? nil : values.reduce(0, +)
        case .lowest: values.min()
        case .highest: values.max()
        }
    }
}

extension TimelineInterval {
    /// The place of a phase in the order in which a run has them.
    static func rank(ofPhase phase: String) -> Int {
        let phases = ["connect", "warmup", "measure", "drain"]
        return phases.firstIndex(of: phase) ?? phases.count
    }

    /// Joins the same interval of several processes; `nil` without any.
    package static func joining(_ intervals: [TimelineInterval]) -> TimelineInterval? {
        Self.one(of: intervals, seconds: intervals.map(\.seconds).max() ?? 0, metric: Metric.joining)
    }
}

extension Metric {
    /// The same metric of several processes as of one; nothing for none.
    ///
    /// `values` are those of all of them, where it is a duration.
    static func joining(_ metrics: [Metric], _ values: DurationValues?) -> Metric? {
        guard var joined = metrics.first else { return nil }
        // Two processes that watch one server see the same.
        if ObservedMetrics.labels[joined.name] != nil { return joined }
        switch joined.reading {
        case .duration:
            guard let values, let reading = DurationReading(joining: metrics.compactMap(\.duration), values) else {
                return nil
            }
            joined.reading = .duration(reading)
        case .counter:
            let readings = metrics.compactMap(\.counter)
            // They count at the same time, so their rates add up; one that is not known makes the sum unknown.
            let rates = readings.compactMap(\.rate)
            joined.reading = .counter(
                CounterReading(
                    value: readings.reduce(0) { $0 + $1.value },
                    rate: rates.count == readings.count ? rates.reduce(0, +) : nil
                )
            )
        case .gauge:
            let values = metrics.compactMap(\.gauge?.value)
            guard let value = LevelRule.of(joined.name).joined(values) else { return nil }
            joined.reading = .gauge(GaugeReading(value: value))
        }
        return joined
    }
}

extension [SegmentResult] {
    /// The intervals of all, second by second of their common time, and phase by phase within one.
    var joinedIntervals: [TimelineInterval] {
        guard let start = self.map(\.startedAt).min() else { return [] }
        var order: [IntervalKey] = []
        var parts: [IntervalKey: [Int: [TimelineInterval]]] = [:]
        for (place, segment) in self.enumerated() {
            let offset = Int(bounded: (Double(segment.startedAt - start) / 1e9).rounded())
            for interval in segment.intervals {
                var interval = interval
                interval.second += offset
                let key = IntervalKey(second: interval.second, phase: interval.phase)
                if parts[key] == nil { order.append(key) }
                parts[key, default: [:]][place, default: []].append(interval)
            }
        }
        func rank(_ key: IntervalKey) -> Int { TimelineInterval.rank(ofPhase: key.phase) }
        return order.sorted { ($0.second, rank($0)) < ($1.second, rank($1)) }.compactMap { key in
            let own = (parts[key] ?? [:]).sorted { $0.key < $1.key }.compactMap { TimelineInterval.merging($0.value) }
            return TimelineInterval.joining(own)
        }
    }

    /// A gauge over all segments, second by second from the time when all have reported it; an ended segment keeps its
    /// last value.
    func levels(of series: Series) -> [(second: Int, value: Double)] {
        let start = self.map(\.startedAt).min() ?? 0
        let rule = LevelRule.of(series.name)
        var looks: [Int: [Int: Double]] = [:]
        var owners: Set<Int> = []
        for (place, segment) in self.enumerated() {
            let offset = Int(bounded: (Double(segment.startedAt - start) / 1e9).rounded())
            for (second, value) in segment.looks(at: series) {
                looks[second + offset, default: [:]][place] = value
                owners.insert(place)
            }
        }
        var latest: [Int: Double] = [:]
        return looks.keys.sorted().compactMap { second in
            latest.merge(looks[second] ?? [:]) { $1 }
            guard latest.count == owners.count else { return nil }
            return rule.joined(latest.sorted { $0.key < $1.key }.map(\.value)).map { (second, $0) }
        }
    }

    /// The levels of these metrics that the joined intervals do not show: seconds that some have no interval in.
    func heldLevels(_ metrics: [Metric], in intervals: [TimelineInterval]) -> [HeldLevel]? {
        var held: [HeldLevel] = []
        for metric in metrics where metric.gauge != nil && ObservedMetrics.labels[metric.name] == nil {
            let series = Series(name: metric.name, labels: metric.labels)
            guard LevelRule.of(metric.name) == .sum else { continue }
            let levels = Dictionary(self.levels(of: series).map { ($0.second, $0.value) }) { $1 }
            for (second, value) in intervals.looks(at: series).sorted(by: { $0.key < $1.key })
            where levels[second] != value {
                held.append(
                    HeldLevel(name: series.name, labels: series.labels, second: second, value: levels[second])
                )
            }
        }
        return held.isEmpty ? nil : held
    }
}

extension [TimelineInterval] {
    /// The last value of a gauge in each second.
    fileprivate func looks(at series: Series) -> [Int: Double] {
        var looks: [Int: Double] = [:]
        for interval in self where GaugeLevel.counts(series.name, in: interval.phase) {
            let metric = interval.metrics.first { $0.name == series.name && $0.labels == series.labels }
            if let value = metric?.gauge?.value { looks[interval.second] = value }
        }
        return looks
    }
}

extension SegmentResult {
    /// The held levels of all processes of the segment.
    fileprivate func looks(at series: Series) -> [Int: Double] {
        var looks = self.intervals.looks(at: series)
        for held in self.record.segment.levels ?? [] where held.name == series.name && held.labels == series.labels {
            looks[held.second] = held.value
        }
        return looks
    }
}

private struct IntervalKey: Hashable {
    var second: Int
    var phase: String
}
