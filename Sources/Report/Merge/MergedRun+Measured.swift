import Measurement

// The measurements of all segments.
extension MergedRun {
    static func metrics(_ segments: [SegmentResult], without isSettled: (Metric) -> Bool) -> [Metric] {
        var series: [Series: [Metric]] = [:]
        var order: [Series] = []
        for metric in segments.lazy.flatMap(\.record.metrics) where !isSettled(metric) {
            let key = Series(name: metric.name, labels: metric.labels)
            if series[key] == nil { order.append(key) }
            series[key, default: []].append(metric)
        }
        return order.compactMap { key in
            guard let metrics = series[key], let first = metrics.first else { return nil }
            switch first.reading {
            case .duration: return self.duration(metrics)
            case .counter: return Metric.joining(metrics, nil)
            case .gauge: return self.gauge(key, metrics, segments)
            }
        }
    }

    /// By the counts of its buckets, as if one process had recorded them all.
    private static func duration(_ metrics: [Metric]) -> Metric? {
        var values = DurationValues()
        for metric in metrics {
            guard let own = metric.duration?.decodedValues() else { return nil }
            values.merge(own)
        }
        guard let first = metrics.first, let reading = DurationReading(values, isEncoded: true) else { return nil }
        return Metric(duration: first.name, labels: first.labels, reading: reading)
    }

    /// The lowest and the highest of a sum are no sums: they are looked for in the time line.
    private static func gauge(_ series: Series, _ metrics: [Metric], _ segments: [SegmentResult]) -> Metric? {
        let readings = metrics.compactMap(\.gauge)
        let rule = LevelRule.of(series.name)
        guard var joined = metrics.first, let value = rule.joined(readings.map(\.value)) else { return nil }
        guard readings.count > 1, ObservedMetrics.labels[series.name] == nil else { return joined }
        func all(_ part: KeyPath<GaugeReading, Double?>) -> [Double]? {
            let known = readings.compactMap { $0[keyPath: part] }
            return known.count == readings.count ? known : nil
        }
        var reading = GaugeReading(value: value)
        reading.mean = all(\.mean).flatMap(rule.joined)
        if rule == .sum {
            let levels = segments.levels(of: series).map(\.value)
            (reading.min, reading.max) = (levels.min(), levels.max())
        } else {
            (reading.min, reading.max) = (all(\.min)?.min(), all(\.max)?.max())
        }
        joined.reading = .gauge(reading)
        return joined
    }

    static func books(_ segments: [SegmentResult]) -> [Books] {
        Books.sums(segments.flatMap(\.record.books))
    }

    static func errors(_ segments: [SegmentResult]) -> [ErrorRecord] {
        var errors: [[String]: ErrorRecord] = [:]
        for error in segments.lazy.flatMap(\.record.errors) {
            let key = [error.group ?? "", error.kind]
            guard let known = errors[key] else {
                errors[key] = error
                continue
            }
            // The first example stays; all moments have one form.
            var sum = error.firstAt < known.firstAt ? error : known
            sum.count = known.count + error.count
            errors[key] = sum
        }
        return errors.sorted { $0.key.lexicographicallyPrecedes($1.key) }.map(\.value)
    }

    /// With times from the start of the joint run.
    static func slowest(_ segments: [SegmentResult], from start: Int64) -> [SlowMessage]? {
        let all = segments.flatMap { segment in
            let offset = Double(segment.startedAt - start) / 1e9
            return (segment.record.slowest ?? []).map { $0.later(by: offset) }
        }
        return all.isEmpty ? nil : all.slowest
    }

    static func tlsVersions(_ segments: [SegmentResult]) -> [String: UInt64]? {
        var all: [String: UInt64] = [:]
        for segment in segments { all.merge(segment.record.tlsVersions ?? [:], uniquingKeysWith: +) }
        return all.isEmpty ? nil : all
    }

    static func stages(_ segments: [SegmentResult], from start: Int64) -> [StageRecord] {
        var order: [String] = []
        var spans: [String: (start: Double, end: Double, measured: Bool)] = [:]
        for segment in segments {
            let offset = Double(segment.startedAt - start) / 1e9
            for stage in segment.record.stages {
                if spans[stage.name] == nil { order.append(stage.name) }
                let own = (start: offset + stage.start, end: offset + stage.start + stage.durationSeconds)
                let known = spans[stage.name] ?? (own.start, own.end, stage.measured)
                spans[stage.name] = (min(known.start, own.start), max(known.end, own.end), stage.measured)
            }
        }
        return order.compactMap { name in
            spans[name].map {
                StageRecord(name: name, start: $0.start, durationSeconds: $0.end - $0.start, measured: $0.measured)
            }
        }
    }

    /// Joins the findings of segments that each balanced a ledger of their own.
    static func ledger(_ ledgers: [LedgerRecord]) -> LedgerRecord {
        var ledger = LedgerRecord(on: ledgers.allSatisfy(\.on), reason: ledgers.lazy.compactMap(\.reason).first)
        func sum(_ part: KeyPath<LedgerRecord, Int?>) -> Int? {
            let known = ledgers.compactMap { $0[keyPath: part] }
            return known.count == ledgers.count ? known.reduce(0, +) : nil
        }
        ledger.publishers = sum(\.publishers)
        ledger.subscriptions = sum(\.subscriptions)
        ledger.streams = sum(\.streams)
        ledger.overflowed = sum(\.overflowed)
        let lost = ledgers.compactMap(\.lost)
        if lost.count == ledgers.count { ledger.lost = .joining(lost) }
        let missing = ledgers.compactMap(\.missing)
        if missing.count == ledgers.count { ledger.missing = missing.reduce(0, +) }
        let examples = ledgers.compactMap(\.examples)
        ledger.examples = examples.isEmpty ? nil : examples.flatMap { $0 }.firstOfEachFinding
        return ledger
    }
}

extension [LedgerExample] {
    /// The first one of each finding, cause and QoS.
    fileprivate var firstOfEachFinding: [LedgerExample] {
        var known: Set<LedgerExample> = []
        return self.filter { known.insert(LedgerExample(finding: $0.finding, cause: $0.cause, qos: $0.qos)).inserted }
    }
}

extension [Metric] {
    /// Without the zeros of segments that lost or repeated nothing, where another one did: its rows have a label more.
    var withoutEmptyKinds: [Metric] {
        let kinds = [Labels.cause, Labels.permitted]
        var named: Set<Series> = []
        for metric in self {
            for kind in kinds where metric.labels[kind] != nil {
                named.insert(Series(name: metric.name, labels: metric.labels.removing(kind)))
            }
        }
        return named.isEmpty ? self : self.filter { !named.contains(Series(name: $0.name, labels: $0.labels)) }
    }
}
