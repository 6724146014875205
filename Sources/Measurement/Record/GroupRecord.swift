/// One group of a run with several groups.
package struct GroupRecord: Codable, Hashable, Sendable {
    package var name: String
    /// The protocol's name in `protocol` labels.
    package var protocolName: String
    package var clients: Int
    /// The number of clients that came up at first; absent until all have come up or failed.
    package var up: Int?
    package var ledger: LedgerRecord

    package init(name: String, protocolName: String, clients: Int, ledger: LedgerRecord) {
        self.name = name
        self.protocolName = protocolName
        self.clients = clients
        self.ledger = ledger
    }

    private enum CodingKeys: String, CodingKey {
        case name
        case protocolName = "protocol"
        case clients, up, ledger
    }
}

/// Clients of one command.
package struct ClientCounts: Codable, Hashable, Sendable {
    /// Those of this process, in a run of several.
    package var planned: Int
    /// The number that came up at first, able to do their work; absent until all have come up or failed.
    package var up: Int?

    package init(planned: Int, up: Int? = nil) {
        self.planned = planned
        self.up = up
    }
}

extension RunRecord {
    /// The plan of each group; of a run of one command its own.
    package var plans: [[String: JSONValue]] {
        guard case .object(let groups)? = self.plan["groups"] else { return [self.plan] }
        return groups.sorted { $0.key < $1.key }.compactMap {
            if case .object(let plan) = $0.value { plan } else { nil }
        }
    }

    /// The record as if this were the only group: without other groups' data, and without the group's own name.
    ///
    /// It keeps the data of the process, and omits the stages.
    package func part(_ group: String?) -> RunRecord {
        guard let group else { return self }
        var part = self
        part.groups = nil
        part.metrics = self.metrics.part(group)
        part.errors = self.errors.filter { $0.group == group }
        part.books = self.books.filter { $0.group == group }
        for index in part.errors.indices { part.errors[index].group = nil }
        for index in part.books.indices { part.books[index].group = nil }
        let prefix = "\(group) "
        part.clients = [:]
        for (name, clients) in self.clients where name.hasPrefix(prefix) {
            part.clients[String(name.dropFirst(prefix.count))] = clients
        }
        part.ledger = self.groups?.first { $0.name == group }?.ledger ?? self.ledger
        return part
    }

    package var withoutStages: RunRecord {
        var whole = self
        whole.metrics.removeAll { $0.labels[Labels.stage] != nil }
        return whole
    }
}

extension TimelineInterval {
    /// The interval as if this were the only group; it keeps the data of the process.
    package func part(_ group: String?) -> TimelineInterval {
        guard let group else { return self }
        var part = self
        part.metrics = self.metrics.part(group)
        return part
    }
}

extension [Metric] {
    fileprivate func part(_ group: String) -> [Metric] {
        self.compactMap { metric in
            guard metric.labels[Labels.stage] == nil else { return nil }
            guard let name = metric.labels[Labels.group] else { return metric }
            guard Labels.firstGroup(of: name) == group else { return nil }
            var metric = metric
            metric.labels = metric.labels.removing(Labels.group)
            return metric
        }
    }
}

extension LedgerRecord {
    /// The ledgers of several groups as one.
    ///
    /// It is on if any of them is, with the total counts of those that are.
    package static func joined(_ groups: [GroupRecord]) -> LedgerRecord {
        let kept = groups.map(\.ledger).filter(\.on)
        let left = groups.compactMap { group in
            group.ledger.on ? nil : group.ledger.reason.map { "\(group.name): \($0)" }
        }
        var all = LedgerRecord(on: !kept.isEmpty, reason: left.isEmpty ? nil : left.joined(separator: "; "))
        let unfollowed = groups.flatMap { group in
            (group.ledger.unfollowed ?? []).map { $0.isEmpty ? group.name : "\(group.name) \($0)" }
        }
        all.unfollowed = all.on && !unfollowed.isEmpty ? unfollowed : nil
        func sum(_ count: KeyPath<LedgerRecord, Int?>) -> Int? {
            let known = kept.compactMap { $0[keyPath: count] }
            return known.isEmpty ? nil : known.reduce(0, +)
        }
        all.publishers = sum(\.publishers)
        all.subscriptions = sum(\.subscriptions)
        all.streams = sum(\.streams)
        all.overflowed = sum(\.overflowed)
        let lost = kept.compactMap(\.lost)
        all.lost = lost.isEmpty ? nil : .joining(lost)
        let missing = kept.compactMap(\.missing)
        all.missing = missing.isEmpty ? nil : missing.reduce(0, +)
        let examples = kept.compactMap(\.examples)
        all.examples = examples.isEmpty ? nil : examples.flatMap { $0 }
        if kept.contains(where: { $0.pending == true }) { all.pending = true }
        return all
    }
}
