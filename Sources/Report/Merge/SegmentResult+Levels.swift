import Measurement

/// How levels of several processes become one.
package enum LevelRule: Hashable, Sendable {
    /// Each process has its own: clients, memory.
    case sum
    /// The worst value is the lowest one: the CPU that a host has left.
    case lowest
    case highest

    package static func of(_ name: String) -> LevelRule {
        switch MetricDefinition.named(name) {
        case .hostCPUIdle: .lowest
        case .hostCPUPressure, .oldestOutstanding: .highest
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

extension [SegmentResult] {
    /// Full seconds from the start of the first segment to that of each.
    private var offsets: [Int] {
        let start = self.map(\.startedAt).min() ?? 0
        return self.map { Int(bounded: (Double($0.startedAt - start) / 1e9).rounded()) }
    }

    /// The intervals of all, second by second of their common time, and phase by phase within one.
    var joinedIntervals: [TimelineInterval] {
        var parts: [IntervalPlace: [Int: [TimelineInterval]]] = [:]
        for (process, (segment, offset)) in zip(self, self.offsets).enumerated() {
            for var interval in segment.intervals {
                interval.second += offset
                parts[IntervalPlace(interval), default: [:]][process, default: []].append(interval)
            }
        }
        return parts.sorted { $0.key < $1.key }.compactMap { JoinedInterval.ofProcesses($0.value) }
    }

    /// A gauge over all segments, second by second from the time when all have reported it; an ended segment keeps its
    /// last value.
    func levels(of series: Series) -> [(second: Int, value: Double)] {
        let rule = LevelRule.of(series.name)
        var looks: [Int: [Int: Double]] = [:]
        var owners: Set<Int> = []
        for (place, (segment, offset)) in zip(self, self.offsets).enumerated() {
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
        for metric in metrics where metric.gauge != nil && metric.definition?.role != .server {
            let series = metric.series
            guard LevelRule.of(metric.name) == .sum else { continue }
            let levels = Dictionary(self.levels(of: series).map { ($0.second, $0.value) }) { $1 }
            for (second, value) in intervals.looks(at: series).sorted(by: { $0.key < $1.key })
            where levels[second] != value {
                held.append(HeldLevel(name: series.name, labels: series.labels, second: second, value: levels[second]))
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
            let metric = interval.metrics.first { $0.series == series }
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
