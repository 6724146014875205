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
                notes += found.map { $0.of(group.name) }
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
                if let reason { verdict.add(.aborted, reason.of(name)) }
            }
        }
        verdict.add(.unreconciled, delivery.unreconciled + groups.flatMap(\.account.unreconciled))
        for imbalance in self.books.flatMap(\.imbalances) {
            verdict.add(.unreconciled, Verdict.Reason(code: "books", text: imbalance))
        }
        for wrong in self.errors where wrong.kind == ErrorRecord.liveConnections {
            let reason = Verdict.Reason(code: "live-connections", text: wrong.example)
            verdict.add(.unreconciled, reason.of(wrong.group))
        }
        verdict.add(.unreconciled, groups.flatMap(\.mismatches))
        verdict.add(.generatorLimited, limits)
        return verdict
    }

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

    /// The operations that did not come: `4,211 of 8,000 messages were not answered`; `nil` if all of it came.
    ///
    /// From the books, so a run that was cut has none.
    var outstandingWords: String? {
        func sum(_ column: (Books) -> UInt64?) -> UInt64 { self.books.reduce(0) { $0 + (column($1) ?? 0) } }
        let unsent = sum(\.notSent)
        let unanswered = sum { $0.outstanding ?? $0.notSent }
        if unanswered > 0 {
            let end = unsent == unanswered ? "sent" : "answered"
            return Self.words(unanswered, of: sum(\.offered), "messages", singular: "was not \(end)", "were not \(end)")
        }
        let owed = sum(\.deliveryOutstanding)
        if owed > 0 {
            let end = "not come when the drain ended"
            return Self.words(owed, of: sum(\.expected), "deliveries", singular: "had \(end)", "had \(end)")
        }
        func count(_ metric: MetricDefinition) -> UInt64 {
            self.whole(metric).reduce(0) { $0 + UInt64(bounded: $1.counter?.value ?? 0) }
        }
        let copies = count(.retainedOutstanding)
        if copies > 0 {
            let end = "not come when the drain or their connection ended"
            return Self.words(
                copies,
                of: count(.retainedExpected),
                "retained messages",
                singular: "had \(end)",
                "had \(end)"
            )
        }
        let turns = self.turns
        guard turns.outstanding > 0 else { return nil }
        let noun = "changes of subscriptions"
        return Self.words(turns.outstanding, of: turns.due, noun, singular: "was not answered", "were not answered")
    }

    /// The SUBSCRIBE and UNSUBSCRIBE packets of a subscription churn, with the turns that were not begun; and the
    /// UNSUBSCRIBE packets of clients that leave.
    var turns: (due: UInt64, outstanding: UInt64) {
        self.whole(.subscriptionChurn, .unsubscribe).compactMap(\.duration).reduce((0, 0)) { sum, leg in
            (sum.0 &+ leg.count, sum.1 &+ (leg.unanswered?.outstanding ?? 0))
        }
    }

    private static func words(
        _ count: UInt64,
        of all: UInt64,
        _ noun: String,
        singular: String,
        _ plural: String
    ) -> String {
        "\(Words.count(count)) of \(Words.count(all)) \(noun) \(count == 1 ? singular : plural)"
    }

    /// The verdict of a search step, from its own record.
    ///
    /// - Parameter status: the exit status of its process.
    /// - Returns: the verdict on the load, and the reason if it is not "held"; `nil` if the step did not run.
    package func step(status: Int32) -> (verdict: CapacitySearch.Verdict, reason: String?)? {
        guard let verdict = self.verdict else { return nil }
        // Without a server a smaller load would fail too.
        let isAlone = verdict.reasons.contains { $0.code == Verdict.Reason.noConnectionCode }
        if status == ExitStatus.unavailable.rawValue, isAlone { return nil }
        // Messages that were not answered are beyond every objective.
        let unanswered = [self.outstandingWords].compactMap(\.self)
        let step = verdict.ofStep(broken: self.thresholds.filter { !$0.ok }.map(\.expression) + unanswered)
        guard step == .held, let late = verdict.reasons.first else { return (step, step.reason) }
        return (step, "\(late.limited), and the objectives were met all the same: \(late.text)")
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

extension Verdict {
    /// Reasons that delay a generator whose loops have CPU time left in most seconds.
    ///
    /// Otherwise "generator-cpu" is among the reasons too.
    private static let disturbances: Set<String> = ["schedule-lag", "cpu-steal", "host-full"]

    /// The result of a search step for the load that it offered.
    ///
    /// A late generator that sent everything sent bursts instead of an even load, and response times count from the due
    /// time. The delay can break an objective that the server meets. It cannot make an objective pass that the server
    /// breaks.
    ///
    /// - Parameter broken: the objectives that failed.
    /// - Returns: whether the load held, broke, or gave no result.
    func ofStep(broken: [String]) -> CapacitySearch.Verdict {
        let words = self.reasons.first?.text ?? self.state.rawValue
        switch self.state {
        case .aborted where !broken.isEmpty: return .broken(broken.joined(separator: ", "))
        case .aborted, .unreconciled: return .broken(words)
        case .generatorLimited:
            let disturbances = Self.disturbances.union([Reason.silentCode])
            guard self.reasons.allSatisfy({ disturbances.contains($0.code) }) else { return .generatorLimited(words) }
            return broken.isEmpty ? .held : .disturbed(words)
        case .valid: return broken.isEmpty ? .held : .broken(broken.joined(separator: ", "))
        }
    }
}
