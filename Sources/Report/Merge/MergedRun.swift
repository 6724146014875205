package import Measurement

/// All segments of a run as one: its record, its time line and its clients.
package struct MergedRun: Sendable {
    package let record: RunRecord
    package let startedAt: Int64
    package let intervals: [TimelineInterval]
    package let clients: [ClientRow]

    /// - Parameters:
    ///   - set: all segments.
    ///   - command: the merging command line, with secrets replaced.
    ///   - thresholds: in addition to those of the segments.
    package init(_ set: SegmentSet, command: [String], thresholds: [String] = []) {
        let segments = set.segments
        let first = segments[0].record
        self.startedAt = segments.map(\.startedAt).min() ?? 0
        self.intervals = segments.joinedIntervals
        self.clients = Self.clients(segments)
        var segment = SegmentRecord()
        segment.run = first.segment.run
        segment.plan = first.segment.plan
        segment.merged = segments.count
        var record = RunRecord(
            command: command,
            tool: first.tool,
            host: Self.host(segments),
            plan: Self.plan(segments),
            startedAt: WallClock.rfc3339(self.startedAt),
            segment: segment,
            generator: Self.generator(segments),
            ledger: Self.ledger(segments.map(\.record.ledger))
        )
        let ended = segments.map(\.endedAt).max() ?? self.startedAt
        record.durationSeconds = Double(ended - self.startedAt) / 1e9
        record.stages = Self.stages(segments, from: self.startedAt)
        let ledgers = JoinedLedgers(segments)
        let metrics = Self.metrics(segments, without: ledgers.isSettled).withoutEmptyKinds
        record.metrics = ledgers.marking(metrics) + ledgers.metrics
        // Those of a segment are of its own messages and clients alone.
        record.metrics.removeAll { RunRecord.serverUseNames.contains($0.name) }
        record.metrics += record.serverUse
        record.servers = segments.lazy.compactMap(\.record.servers).first
        record.books = ledgers.completing(Self.books(segments))
        record.clients = Self.spreads(segments, self.clients)
        record.errors = Self.errors(segments)
        record.groups = Self.groups(segments)
        record.slowest = Self.slowest(segments, from: self.startedAt)
        record.tlsVersions = Self.tlsVersions(segments)
        ledgers.complete(&record)
        let notes = segments.flatMap { segment in (segment.record.notes ?? []).map { $0.of(segment: segment.index) } }
        record.notes = notes.isEmpty && ledgers.notes.isEmpty ? nil : notes + ledgers.notes
        let sentences = (first.segment.thresholds ?? []) + thresholds
        record.thresholds = sentences.compactMap { try? Threshold.parse($0) }.map { $0.evaluate(in: record) }
        var verdict = Self.verdict(segments, record)
        verdict.add(.unreconciled, ledgers.problems)
        record.verdict = verdict
        self.record = record
    }
}

// MARK: - What was measured

extension MergedRun {
    private static func metrics(_ segments: [SegmentResult], without isSettled: (Metric) -> Bool) -> [Metric] {
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
            case .counter: return Metric.joining(metrics, histogram: nil)
            case .gauge: return self.gauge(key, metrics, segments)
            }
        }
    }

    /// By the counts of its buckets, as if one process had recorded them all.
    private static func duration(_ metrics: [Metric]) -> Metric? {
        var histogram = Histogram()
        for metric in metrics {
            guard let own = metric.duration?.decodedHistogram() else { return nil }
            histogram.merge(own)
        }
        guard let first = metrics.first else { return nil }
        return Metric(
            duration: first.name,
            labels: first.labels,
            histogram: histogram,
            encoded: histogram.encodedV2()
        )
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
            let levels = segments.levels(of: series)
            (reading.min, reading.max) = (levels.min(), levels.max())
        } else {
            (reading.min, reading.max) = (all(\.min)?.min(), all(\.max)?.max())
        }
        joined.reading = .gauge(reading)
        return joined
    }

    private static func books(_ segments: [SegmentResult]) -> [Books] {
        Books.sums(segments.flatMap(\.record.books))
    }

    private static func errors(_ segments: [SegmentResult]) -> [ErrorRecord] {
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
    private static func slowest(_ segments: [SegmentResult], from start: Int64) -> [SlowMessage]? {
        let all = segments.flatMap { segment in
            let offset = Double(segment.startedAt - start) / 1e9
            return (segment.record.slowest ?? []).map { $0.later(by: offset) }
        }
        return all.isEmpty ? nil : all.slowest
    }

    private static func tlsVersions(_ segments: [SegmentResult]) -> [String: UInt64]? {
        var all: [String: UInt64] = [:]
        for segment in segments { all.merge(segment.record.tlsVersions ?? [:], uniquingKeysWith: +) }
        return all.isEmpty ? nil : all
    }

    private static func stages(_ segments: [SegmentResult], from start: Int64) -> [StageRecord] {
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

    // MARK: - Clients

    /// In the order of their numbers: client k of a kind is in segment k mod their count.
    private static func clients(_ segments: [SegmentResult]) -> [ClientRow] {
        var kinds: [String] = []
        var lists: [String: [[ClientRow]]] = [:]
        for (place, segment) in segments.enumerated() {
            for client in segment.clients {
                let kind = self.kind(of: client, in: segment.record)
                if lists[kind] == nil {
                    kinds.append(kind)
                    lists[kind] = Array(repeating: [], count: segments.count)
                }
                lists[kind]?[place].append(client)
            }
        }
        return kinds.flatMap { kind in
            let lists = lists[kind] ?? []
            return (0..<(lists.map(\.count).max() ?? 0)).flatMap { row in
                lists.compactMap { row < $0.count ? $0[row] : nil }
            }
        }
    }

    /// The key of `clients` in the record of its segment.
    private static func kind(of client: ClientRow, in record: RunRecord) -> String {
        let prefix = client.group.map { "\($0) " } ?? ""
        let words = client.publishes && !client.subscribes ? "publishers" : client.publishes ? "clients" : "subscribers"
        let own = record.clients.keys.filter { $0.hasPrefix(prefix) }
        if own.count == 1, let only = own.first { return only }
        return prefix + words
    }

    private static func spreads(_ segments: [SegmentResult], _ clients: [ClientRow]) -> [String: ClientGroup] {
        guard let record = segments.first?.record else { return [:] }
        return Dictionary(grouping: clients) { self.kind(of: $0, in: record) }.mapValues { members in
            ClientGroup(
                members.map(\.tally),
                publishes: members.contains(where: \.publishes),
                acknowledged: members.contains(where: \.acknowledged),
                subscribes: members.contains(where: \.subscribes),
                id: { members[$0].id }
            )
        }
    }

    // MARK: - What is of the processes

    /// The facts that their hosts share.
    private static func host(_ segments: [SegmentResult]) -> HostFacts {
        var host = segments[0].record.host
        for other in segments.dropFirst().map(\.record.host) { host = host.common(with: other) }
        return host
    }

    /// Servers may be different ones; all else is the same.
    private static func plan(_ segments: [SegmentResult]) -> [String: JSONValue] {
        var plan = segments[0].record.plan
        var targets: [JSONValue] = []
        for case .array(let own)? in segments.map(\.record.plan["targets"]) {
            for target in own where !targets.contains(target) { targets.append(target) }
        }
        if !targets.isEmpty { plan["targets"] = .array(targets) }
        for key in RunTitle.keys { plan[key] = RunTitle.shared(segments.map { $0.record.plan[key] }) }
        return plan
    }

    private static func generator(_ segments: [SegmentResult]) -> GeneratorRecord {
        let parts = segments.map(\.record.generator)
        func all<Value>(_ part: KeyPath<GeneratorRecord, Value?>) -> [Value]? {
            let known = parts.compactMap { $0[keyPath: part] }
            return known.count == parts.count ? known : nil
        }
        var generator = GeneratorRecord()
        generator.eventLoops = all(\.eventLoops)?.reduce(0, +)
        generator.cpuSeconds = all(\.cpuSeconds)?.reduce(0, +)
        generator.loopCPUShares = all(\.loopCPUShares)?.flatMap { $0 }
        generator.peakMemoryBytes = all(\.peakMemoryBytes)?.reduce(0, +)
        generator.hostSteal = all(\.hostSteal)?.max()
        return generator
    }

    private static func groups(_ segments: [SegmentResult]) -> [GroupRecord]? {
        guard let names = segments[0].record.groups else { return nil }
        return names.map { first in
            let parts = segments.compactMap { $0.record.groups?.first { $0.name == first.name } }
            var group = first
            group.clients = parts.reduce(0) { $0 + $1.clients }
            let up = parts.compactMap(\.up)
            group.up = up.count == segments.count ? up.reduce(0, +) : nil
            group.ledger = self.ledger(parts.map(\.ledger))
            return group
        }
    }
}

// MARK: - The verdict

extension MergedRun {
    /// Under this share of its length a measured phase is not one that the segments have in common.
    private static let commonShare = 0.9

    /// The worst verdict of all segments, with reasons that apply to the whole.
    private static func verdict(_ segments: [SegmentResult], _ record: RunRecord) -> Verdict {
        var verdict = Verdict()
        for segment in segments {
            guard let own = segment.record.verdict else { continue }
            verdict.add(own.state, own.reasons.map { $0.of(segment: segment.index) })
            // A state without a word for it counts all the same.
            if own.state != .valid, own.reasons.isEmpty {
                let reason = Verdict.Reason(code: own.state.rawValue, text: "it is \(own.state.rawValue)")
                verdict.add(own.state, reason.of(segment: segment.index))
            }
        }
        for imbalance in record.books.flatMap(\.imbalances) {
            verdict.add(.unreconciled, Verdict.Reason(code: "books", text: imbalance))
        }
        if let reason = self.apart(segments) { verdict.add(.generatorLimited, reason) }
        return verdict
    }

    /// Rates that were not at one time are no rate of the whole.
    private static func apart(_ segments: [SegmentResult]) -> Verdict.Reason? {
        let phases = segments.compactMap { segment -> (start: Double, end: Double)? in
            let measured = segment.record.stages.filter(\.measured)
            guard let start = measured.map(\.start).min(),
                let end = measured.map({ $0.start + $0.durationSeconds }).max()
            else { return nil }
            let began = Double(segment.startedAt - segments[0].startedAt) / 1e9
            return (began + start, began + end)
        }
        guard let start = phases.map(\.start).max(), let end = phases.map(\.end).min(),
            let length = phases.map({ $0.end - $0.start }).max(), length > 0
        else { return nil }
        let common = max(0, end - start)
        guard common < length * self.commonShare else { return nil }
        return Verdict.Reason(
            code: "segments-apart",
            text: "the measured phases of the segments had \(PlainNumber.fixed(common, digits: 1)) s in common of "
                + "\(PlainNumber.fixed(length, digits: 1)) s, under 90 %, so their rates were not at one time",
            measured: common / length,
            limit: self.commonShare
        )
    }
}

extension Verdict.Reason {
    fileprivate func of(segment: Int) -> Verdict.Reason {
        var reason = self
        reason.text = "segment \(segment): \(self.text)"
        return reason
    }
}

extension HostFacts {
    /// The equal facts; facts that differ are absent.
    fileprivate func common(with other: HostFacts) -> HostFacts {
        var host = HostFacts()
        func keep<Value: Equatable>(_ fact: WritableKeyPath<HostFacts, Value?>) {
            if self[keyPath: fact] == other[keyPath: fact] { host[keyPath: fact] = self[keyPath: fact] }
        }
        keep(\.cpuModel)
        keep(\.cores)
        keep(\.kernel)
        keep(\.machine)
        keep(\.operatingSystem)
        keep(\.memoryBytes)
        keep(\.descriptorLimitSoft)
        keep(\.descriptorLimitHard)
        keep(\.localPortFirst)
        keep(\.localPortLast)
        keep(\.clockSource)
        keep(\.isVirtual)
        keep(\.hypervisor)
        return host
    }
}
