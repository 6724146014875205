import Measurement

// The measurements of all segments.
extension MergedRun {
    static func metrics(_ segments: [SegmentResult], without isSettled: (Metric) -> Bool) -> [Metric] {
        var series = OrderedMap<Series, [Metric]>()
        for metric in segments.lazy.flatMap(\.record.metrics) where !isSettled(metric) {
            series[metric.series, default: []].append(metric)
        }
        return series.all.compactMap { series, metrics in
            switch metrics[0].reading {
            case .duration: self.duration(metrics)
            case .counter: JoinedInterval.metric(metrics)
            case .gauge: self.gauge(series, metrics, segments)
            }
        }
    }

    /// The duration by the counts of its buckets, as if one process had recorded them all.
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
        guard readings.count > 1, MetricDefinition.of(series.name)?.role != .server else { return joined }
        var reading = GaugeReading(value: value)
        reading.mean = readings.all(\.mean).flatMap(rule.joined)
        if rule == .sum {
            let levels = segments.levels(of: series).map(\.value)
            (reading.min, reading.max) = (levels.min(), levels.max())
        } else {
            (reading.min, reading.max) = (readings.all(\.min)?.min(), readings.all(\.max)?.max())
        }
        joined.reading = .gauge(reading)
        return joined
    }

    static func books(_ segments: [SegmentResult]) -> [Books] { Books.sums(segments.flatMap(\.record.books)) }

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

    /// The slowest messages, with times from the start of the joint run.
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
        var spans = OrderedMap<String, (start: Double, end: Double, measured: Bool)>()
        for segment in segments {
            let offset = Double(segment.startedAt - start) / 1e9
            for stage in segment.record.stages {
                let own = (start: offset + stage.start, end: offset + stage.start + stage.durationSeconds)
                let known = spans[stage.name, default: (own.start, own.end, stage.measured)]
                let both = (min(known.start, own.start), max(known.end, own.end), stage.measured)
                spans[stage.name, default: known] = both
            }
        }
        return spans.all.map { name, span in
            StageRecord(name: name, start: span.start, durationSeconds: span.end - span.start, measured: span.measured)
        }
    }

    /// Joins the findings of segments that each balanced a ledger of their own.
    static func ledger(_ ledgers: [LedgerRecord]) -> LedgerRecord {
        var ledger = LedgerRecord(on: ledgers.allSatisfy(\.on), reason: ledgers.lazy.compactMap(\.reason).first)
        ledger.publishers = ledgers.all(\.publishers)?.reduce(0, +)
        ledger.subscriptions = ledgers.all(\.subscriptions)?.reduce(0, +)
        ledger.streams = ledgers.all(\.streams)?.reduce(0, +)
        ledger.overflowed = ledgers.all(\.overflowed)?.reduce(0, +)
        ledger.lost = ledgers.all(\.lost).map { .joining($0) }
        ledger.missing = ledgers.all(\.missing)?.reduce(0, +)
        let examples = ledgers.compactMap(\.examples)
        // The first one of each finding, cause and QoS.
        var known: Set<LedgerExample> = []
        let first = examples.flatMap { $0 }.filter {
            known.insert(LedgerExample(finding: $0.finding, cause: $0.cause, qos: $0.qos)).inserted
        }
        ledger.examples = examples.isEmpty ? nil : first
        return ledger
    }
}

extension [Metric] {
    /// The metrics without the zeros of segments that lost or repeated nothing, where another one did: its rows have a label more.
    var withoutEmptyKinds: [Metric] {
        let kinds = [Labels.cause, Labels.permitted]
        var named: Set<Series> = []
        for metric in self {
            for kind in kinds where metric.labels[kind] != nil {
                named.insert(Series(name: metric.name, labels: metric.labels.removing(kind)))
            }
        }
        return named.isEmpty ? self : self.filter { !named.contains($0.series) }
    }
}
