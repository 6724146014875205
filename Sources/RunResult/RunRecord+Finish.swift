package import LoadEngine
package import Measurement
import NIOCore

extension RunRecord {
    /// The record with the measurements, before the outcome and the verdict are added.
    package func measured(_ samples: RunSamples) -> RunRecord {
        var record = self
        record.metrics = samples.metrics
        record.errors = samples.errors
        record.slowest = samples.slowest
        record.tlsVersions = samples.tlsVersions
        return record
    }

    /// Completes the record of a run.
    ///
    /// - Parameters:
    ///   - samples: the samples of the whole run.
    ///   - outcome: the times of its phases, and the reason for its end.
    ///   - groups: one result for each group of `samples` and `outcome`.
    ///   - delivery: the ledger over the groups.
    ///   - terms: the thresholds and rules for the verdict.
    /// - Returns: the record with measurements, outcome and verdict.
    package func finished(
        _ samples: RunSamples,
        _ outcome: RunOutcome,
        _ groups: [GroupResult],
        delivery: DeliveryAccount = DeliveryAccount(),
        by terms: RunTerms
    ) -> RunRecord {
        var record = self.measured(samples)
        let accounts = groups.map(\.account)
        record.metrics += delivery.metrics + accounts.flatMap(\.metrics) + samples.stageMetrics
        record.metrics.add(delivery.absent + accounts.flatMap(\.absent))
        record.metrics += record.serverUse
        record.books = accounts.flatMap(\.books)
        record.clients = Self.spreads(groups)
        record.durationSeconds = (outcome.ended - outcome.began).seconds
        record.stages = terms.stageRecords(outcome)
        record.segment.clock = groups.lazy.compactMap(\.clock).first
        record.generator = samples.generator
        record.generator.hostSteal = samples.audit.stealShare
        record.closeLedgers(accounts, outcome)
        record.thresholds = terms.thresholds.results(in: record, broken: samples.brokenThreshold)
        let limits = samples.limits(outcome, groups)
        record.verdict = record.verdict(outcome, groups, delivery, limits, broken: samples.brokenThreshold)
        var notes = delivery.notes + groups.flatMap(\.notes)
        // Notes on the server are left out if the generator was the limit.
        if limits.isEmpty {
            for (group, own) in zip(groups, samples.groups) {
                let found = own.watch?.notes(record.part(group.name), group.account.clients) ?? []
                notes += found.map { $0.of(group: group.name) }
            }
        }
        if !notes.isEmpty { record.notes = notes }
        return record
    }

    private mutating func closeLedgers(_ accounts: [LoadAccount], _ outcome: RunOutcome) {
        guard var groups = self.groups else {
            self.population?.up = outcome.groups.first?.up
            if self.ledger.on, let account = accounts.first { self.ledger = account.ledger }
            return
        }
        for (index, account) in accounts.enumerated() where index < groups.count {
            if groups[index].ledger.on { groups[index].ledger = account.ledger }
            groups[index].up = outcome.groups[index].up
        }
        self.groups = groups
        self.ledger = .joined(groups)
    }

    private func verdict(
        _ outcome: RunOutcome,
        _ groups: [GroupResult],
        _ delivery: DeliveryAccount,
        _ limits: [Verdict.Reason],
        broken: String?
    ) -> Verdict {
        var verdict = Verdict()
        switch outcome.stop {
        case .planned: break
        case .interrupted: verdict.add(.aborted, .signal)
        case .ordered: verdict.add(.aborted, .ordered)
        case .thresholdBroken: verdict.add(.aborted, .threshold(broken))
        case .everyConnectFailed, .everyOperatorFailed, .everyListenerFailed, .everyConnectionLost:
            let words = self.nothingCameUp(groups.count == 1 ? groups[0].nothingCameUp : GroupResult.unconnected)
            let reason = Verdict.Reason.loss(outcome.stop, words, example: self.errors.example)
            if let reason { verdict.add(.aborted, reason) }
        }
        // Groups without a connection left, in a run that continued without them.
        if outcome.groups.contains(where: { $0.loss == nil }) {
            for (group, own) in zip(groups, outcome.groups) {
                guard let loss = own.loss, let name = group.name else { continue }
                let example = self.errors.filter { $0.group == name }.example
                let words = self.part(name).nothingCameUp(group.nothingCameUp)
                let reason = Verdict.Reason.loss(loss, words, example: example)
                if let reason { verdict.add(.aborted, reason.of(group: name)) }
            }
        }
        verdict.add(.unreconciled, delivery.unreconciled + groups.flatMap(\.account.unreconciled))
        for imbalance in self.books.flatMap(\.imbalances) {
            verdict.add(.unreconciled, Verdict.Reason(code: "books", text: imbalance))
        }
        for wrong in self.errors where wrong.kind == "live connections" {
            let reason = Verdict.Reason(code: "live-connections", text: wrong.example)
            verdict.add(.unreconciled, reason.of(group: wrong.group))
        }
        verdict.add(.generatorLimited, groups.flatMap(\.account.limited))
        verdict.add(.unreconciled, groups.flatMap(\.mismatches))
        verdict.add(.generatorLimited, limits)
        return verdict
    }
}

extension RunSamples {
    /// Every rule of the audit that the generator broke.
    fileprivate func limits(_ outcome: RunOutcome, _ groups: [GroupResult]) -> [Verdict.Reason] {
        var audit = self.audit
        for (group, own) in zip(groups, self.groups) {
            guard let pace = own.connects, pace.begun > 0 else { continue }
            let elapsed = (pace.lastBegun - outcome.began).nanoseconds
            audit.connects(rate: pace.rate, begun: pace.begun, elapsed: elapsed, of: group.name)
            audit.returns(rate: pace.rate, share: pace.returnShare, of: group.name)
        }
        func count(_ kind: String) -> UInt64 { self.errors.filter { $0.kind == kind }.reduce(0) { $0 + $1.count } }
        audit.exhausted(ports: count("ports"), descriptors: count("descriptors"))
        return audit.reasons
    }
}

extension RunRecord {
    /// Spreads by kind of client; in a run of several groups with the group's name as prefix.
    private static func spreads(_ groups: [GroupResult]) -> [String: ClientGroup] {
        var spreads: [String: ClientGroup] = [:]
        for group in groups {
            for (kind, members) in Dictionary(grouping: group.account.clients, by: \.group) {
                spreads[group.name.map { "\($0) \(kind)" } ?? kind] = ClientGroup(
                    members.map(\.tally),
                    publishes: members.contains(where: \.sends),
                    acknowledged: members.contains(where: \.acknowledged),
                    subscribes: members.contains(where: \.receives),
                    id: { group.clientID(members[$0].number) }
                )
            }
        }
        return spreads
    }
}
