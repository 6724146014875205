import Measurement

extension MergedRun {
    /// Under this share of its length a measured phase is not one that the segments have in common.
    private static let commonShare = 0.9

    /// The worst verdict of all segments, with reasons that apply to the whole.
    static func verdict(_ set: SegmentSet, _ record: RunRecord, broken: String?) -> Verdict {
        var verdict = Verdict()
        if broken != nil { verdict.add(.aborted, .threshold(broken)) }
        // A broken threshold of the whole ended the segments too; whether the server fell silent is judged anew.
        let ended = broken == nil ? [] : [Verdict.Reason.thresholdCode, Verdict.Reason.signalCode]
        let followed = ended + [Verdict.Reason.silentCode]
        for segment in set.segments {
            guard let own = segment.record.verdict else { continue }
            let reasons = own.reasons.filter { !followed.contains($0.code) }
            verdict.add(own.state, reasons.map { $0.of(set.name(of: segment)) })
            // A state without a word for it counts all the same.
            if own.state != .valid, own.reasons.isEmpty {
                let reason = Verdict.Reason(code: own.state.rawValue, text: "it is \(own.state.rawValue)")
                verdict.add(own.state, reason.of(set.name(of: segment)))
            }
        }
        if let reason = self.lost(set) { verdict.add(.unreconciled, reason) }
        // A reason that all segments share is judged once, for the whole.
        guard set.host == nil else { return verdict }
        let imbalances = record.books.flatMap(\.imbalances)
        for imbalance in imbalances { verdict.add(.unreconciled, Verdict.Reason(code: "books", text: imbalance)) }
        // Books may balance and still be others than those of the metrics.
        for segment in imbalances.isEmpty ? set.segments : [] {
            guard let wrong = RunLaws.faultOfBooks(in: segment.record) else { continue }
            verdict.add(.unreconciled, Verdict.Reason(code: "books", text: wrong).of(set.name(of: segment)))
        }
        if let reason = self.apart(set.segments) { verdict.add(.generatorLimited, reason) }
        return verdict
    }

    private static func lost(_ set: SegmentSet) -> Verdict.Reason? {
        guard !set.lost.isEmpty, let count = set.segments.first?.count else { return nil }
        let named = set.lost.prefix(10).map { "\($0.index) (\($0.words))" }.joined(separator: ", ")
        let names = named + (set.lost.count > 10 ? ", ..." : "")
        return Verdict.Reason(
            code: "segment-lost",
            text: "the figures are of \(set.segments.count) of \(count) segments, without "
                + "\(set.lost.count == 1 ? "segment" : "segments") \(names)",
            measured: Double(set.lost.count),
            limit: 0
        )
    }

    /// Rates that were not at one time are no rate of the whole.
    private static func apart(_ segments: [SegmentResult]) -> Verdict.Reason? {
        let phases = segments.flatMap { $0.processes(from: segments[0].startedAt) }.compactMap(\.measured)
        guard let start = phases.map(\.start).max(), let end = phases.map(\.end).min(),
            let length = phases.map({ $0.end - $0.start }).max(), length > 0
        else { return nil }
        let common = max(0, end - start)
        guard common < length * self.commonShare else { return nil }
        return Verdict.Reason(
            code: "segments-apart",
            text: "the measured phases of the segments had \(Words.plainFixed(common, digits: 1)) s in common of "
                + "\(Words.plainFixed(length, digits: 1)) s, under 90 %, so their rates were not at one time",
            measured: common / length,
            limit: self.commonShare
        )
    }

    /// The clients in the order of their numbers: client k of a kind is in segment k mod their count.
    static func clients(_ segments: [SegmentResult]) -> [ClientRow] {
        var kinds = OrderedMap<String, [[ClientRow]]>()
        for (place, segment) in segments.enumerated() {
            for client in segment.clients {
                let kind = self.kind(of: client, in: segment.record)
                kinds[kind, default: Array(repeating: [], count: segments.count)][place].append(client)
            }
        }
        return kinds.all.flatMap { _, lists in
            (0..<(lists.map(\.count).max() ?? 0)).flatMap { row in
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

    static func spreads(_ segments: [SegmentResult], _ clients: [ClientRow]) -> [String: ClientGroup] {
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
    static func host(_ segments: [SegmentResult]) -> HostFacts {
        var host = segments[0].record.host
        for other in segments.dropFirst().map(\.record.host) { host = host.common(with: other) }
        return host
    }

    /// Servers may be different ones; all else is the same.
    static func plan(_ segments: [SegmentResult]) -> [String: JSONValue] {
        var plan = segments[0].record.plan
        var targets: [JSONValue] = []
        for case .array(let own)? in segments.map(\.record.plan["targets"]) {
            for target in own where !targets.contains(target) { targets.append(target) }
        }
        if !targets.isEmpty { plan["targets"] = .array(targets) }
        for key in RunTitle.keys { plan[key] = RunTitle.shared(segments.map { $0.record.plan[key] }) }
        return plan
    }

    static func generator(_ segments: [SegmentResult]) -> GeneratorRecord {
        let parts = segments.map(\.record.generator)
        var generator = GeneratorRecord()
        generator.eventLoops = parts.all(\.eventLoops)?.reduce(0, +)
        generator.transport = parts.all(\.transport).flatMap { Set($0).count == 1 ? $0[0] : nil }
        generator.cpuSeconds = parts.all(\.cpuSeconds)?.reduce(0, +)
        generator.loopCPUShares = parts.all(\.loopCPUShares)?.flatMap { $0 }
        generator.peakMemoryBytes = parts.all(\.peakMemoryBytes)?.reduce(0, +)
        generator.hostSteal = parts.all(\.hostSteal)?.max()
        return generator
    }

    static func population(_ segments: [SegmentResult]) -> ClientCounts? {
        guard let parts = segments.all(\.record.population) else { return nil }
        return ClientCounts(planned: parts.reduce(0) { $0 &+ $1.planned }, up: parts.all(\.up)?.reduce(0, &+))
    }

    static func groups(_ segments: [SegmentResult]) -> [GroupRecord]? {
        guard let names = segments[0].record.groups else { return nil }
        return names.map { first in
            let parts = segments.compactMap { $0.record.groups?.first { $0.name == first.name } }
            var group = first
            group.clients = parts.reduce(0) { $0 &+ $1.clients }
            let up = parts.compactMap(\.up)
            group.up = up.count == segments.count ? up.reduce(0, &+) : nil
            group.ledger = self.ledger(parts.map(\.ledger))
            return group
        }
    }
}

extension SegmentResult {
    /// Its processes, with times from this moment.
    func processes(from start: Int64) -> [ProcessRecord] {
        let offset = Double(self.startedAt - start) / 1e9
        return (self.record.segment.processes ?? [self.process]).map { process in
            var process = process
            process.measured = process.measured.map {
                ProcessRecord.Span(start: offset + $0.start, end: offset + $0.end)
            }
            return process
        }
    }

    private var process: ProcessRecord {
        let measured = self.record.stages.filter(\.measured)
        let start = measured.map(\.start).min()
        let end = measured.map { $0.start + $0.durationSeconds }.max()
        return ProcessRecord(
            clock: self.record.segment.clock,
            measured: start.flatMap { start in end.map { ProcessRecord.Span(start: start, end: $0) } }
        )
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
