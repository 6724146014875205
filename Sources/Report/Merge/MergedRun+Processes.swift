import Measurement

// The clients, and what is of the processes.
extension MergedRun {
    /// In the order of their numbers: client k of a kind is in segment k mod their count.
    static func clients(_ segments: [SegmentResult]) -> [ClientRow] {
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

    static func population(_ segments: [SegmentResult]) -> ClientCounts? {
        let parts = segments.compactMap(\.record.population)
        guard parts.count == segments.count else { return nil }
        let up = parts.compactMap(\.up)
        return ClientCounts(
            planned: parts.reduce(0) { $0 &+ $1.planned },
            up: up.count == parts.count ? up.reduce(0, &+) : nil
        )
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
