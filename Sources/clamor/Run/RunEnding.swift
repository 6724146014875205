import Ledger
import LoadEngine
import Measurement
import NIOCore
import Report
import Workloads

/// What is made of a run once everything has stopped: verdict, spreads, thresholds, exit status.
struct RunEnding: Sendable {
    let outcome: RunOutcome
    let thresholds: [Threshold]
    let groups: [GroupEnding]
    /// Of the plan.
    var stages: [StageOption] = []
    /// When the first connect was due, CLOCK_REALTIME nanoseconds; where that was not at once.
    var startedAt: Int64?

    /// Completes the record with all that needs the whole run, and returns the accounts, by group.
    ///
    /// `stageMetrics` are those that have a stage; `shares` are the ledgers of the share groups, by group;
    /// `brokenThreshold` is the one that ended the run.
    func complete(
        _ record: inout RunRecord,
        stageMetrics: [Metric],
        shares: [LedgerExport],
        audit: GeneratorAudit,
        brokenThreshold: String?
    ) -> [LoadAccount] {
        let accounts = zip(self.groups, shares).map { group, shares in
            let account = group.account(group.name.map { record.part($0) } ?? record, shares)
            return group.name.map { account.of(group: $0) } ?? account
        }
        record.metrics += accounts.flatMap(\.metrics) + stageMetrics
        record.books = accounts.flatMap(\.books)
        record.clients = self.spreads(accounts)
        record.stages = self.stageRecords
        record.segment.clock = self.groups.lazy.compactMap(\.clock).first
        let notes = zip(self.groups, accounts).flatMap { group, account in
            (group.notes + account.notes).map { $0.of(group: group.name) }
        }
        if !notes.isEmpty { record.notes = notes }
        self.closeLedgers(&record, accounts)
        record.thresholds = self.thresholds.map { threshold in
            var result = threshold.evaluate(in: record)
            // It was broken when it ended the run; that it would hold again now does not mend it.
            if threshold.expression == brokenThreshold { result.ok = false }
            return result
        }
        record.verdict = self.verdict(record, accounts, audit, brokenThreshold)
        return accounts
    }

    private func closeLedgers(_ record: inout RunRecord, _ accounts: [LoadAccount]) {
        guard var groups = record.groups else {
            if record.ledger.on, let account = accounts.first { record.ledger = account.ledger }
            return
        }
        for (index, account) in accounts.enumerated() where index < groups.count {
            if groups[index].ledger.on { groups[index].ledger = account.ledger }
            groups[index].up = self.outcome.groups[index].up
        }
        record.groups = groups
        record.ledger = .joined(groups)
    }

    /// CPU of this process that was not the run's, nanoseconds.
    var cpuBeside: Int64 { self.groups.reduce(0) { $0 + $1.cpuBeside } }

    // MARK: - Verdict

    private func verdict(
        _ record: RunRecord,
        _ accounts: [LoadAccount],
        _ audit: GeneratorAudit,
        _ brokenThreshold: String?
    ) -> Verdict {
        var verdict = Verdict()
        if let reason = self.abortReason(record, brokenThreshold) { verdict.add(.aborted, reason) }
        verdict.add(.aborted, self.lossReasons(record))
        verdict.add(.unreconciled, accounts.flatMap(\.unreconciled))
        for imbalance in record.books.flatMap(\.imbalances) {
            verdict.add(.unreconciled, Verdict.Reason(code: "books", text: imbalance))
        }
        for wrong in record.errors where wrong.kind == "live connections" {
            let reason = Verdict.Reason(code: "live-connections", text: wrong.example)
            verdict.add(.unreconciled, reason.of(group: wrong.group))
        }
        for reason in accounts.flatMap(\.limited) { verdict.add(.generatorLimited, reason) }
        for (group, account) in zip(self.groups, accounts) {
            verdict.add(.unreconciled, group.mismatches(account.books).map { $0.of(group: group.name) })
        }
        verdict.add(.generatorLimited, audit.reasons)
        return verdict
    }

    /// Groups that had nobody left, in a run that went on without them.
    private func lossReasons(_ record: RunRecord) -> [Verdict.Reason] {
        guard self.lostGroups else { return [] }
        return zip(self.groups, self.outcome.groups).compactMap { group, outcome in
            guard let loss = outcome.loss, let name = group.name else { return nil }
            let errors = record.part(name).errors
            return Self.reason(loss, group.nothingCameUp, example: errors.max { $0.count < $1.count }?.example)?
                .of(group: name)
        }
    }

    /// Whether some groups had nobody left, and others had.
    private var lostGroups: Bool {
        self.outcome.groups.contains { $0.loss != nil } && self.outcome.groups.contains { $0.loss == nil }
    }

    private static func reason(_ loss: StopReason, _ nothingCameUp: String, example: String?) -> Verdict.Reason? {
        let words = example.map { ": \($0)" } ?? ""
        switch loss {
        case .everyConnectFailed:
            return Verdict.Reason(code: "no-connection", text: nothingCameUp + words)
        case .everyConnectionLost:
            return Verdict.Reason(
                code: "connections-lost",
                text: "all connections were lost and none came back\(words)"
            )
        case .planned, .interrupted, .thresholdBroken: return nil
        }
    }

    private func abortReason(_ record: RunRecord, _ brokenThreshold: String?) -> Verdict.Reason? {
        let example = record.errors.max { $0.count < $1.count }?.example
        switch self.outcome.stop {
        case .planned: return nil
        case .interrupted:
            return Verdict.Reason(code: "interrupted", text: "a signal ended the run before its time")
        case .thresholdBroken:
            let words = brokenThreshold.map { ": \($0)" } ?? ""
            return Verdict.Reason(code: "threshold", text: "a threshold that aborts was broken\(words)")
        case .everyConnectFailed, .everyConnectionLost:
            let nothingCameUp = self.groups.count == 1 ? self.groups[0].nothingCameUp : "every connect attempt failed"
            return Self.reason(self.outcome.stop, nothingCameUp, example: example)
        }
    }

    // MARK: - Clients and stages

    private func spreads(_ accounts: [LoadAccount]) -> [String: ClientGroup] {
        var spreads: [String: ClientGroup] = [:]
        for (group, account) in zip(self.groups, accounts) {
            for (kind, members) in Dictionary(grouping: account.clients, by: \.group) {
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

    /// A row per client, for `clients.csv`.
    func rows(_ clients: [[ClientAccount]], _ record: RunRecord) -> [ClientRow] {
        zip(self.groups, clients).flatMap { group, clients in
            self.rows(clients, group, group.name.map { record.part($0) } ?? record)
        }
    }

    private func rows(_ clients: [ClientAccount], _ group: GroupEnding, _ record: RunRecord) -> [ClientRow] {
        let decodeTime = record.metrics.first { $0.name == "decode_time" }?.counter?.value
        let bytes = record.metrics.first { $0.name == "decode_bytes" }?.counter?.value
        return clients.map { client in
            var decodeSeconds: Double?
            if let decodeTime, let bytes, bytes > 0 { decodeSeconds = decodeTime * Double(client.tally.bytes) / bytes }
            var row = ClientRow(
                id: group.clientID(client.number),
                qos: client.qos,
                tally: client.tally,
                publishes: client.sends,
                acknowledged: client.acknowledged,
                subscribes: client.receives,
                seconds: self.outcome.loadBegan.map { Double((self.outcome.ended - $0).nanoseconds) / 1e9 },
                decodeSeconds: decodeSeconds
            )
            row.group = group.name
            return row
        }
    }

    /// How long each stage was, in seconds; 0 for what never began.
    var stageSeconds: [Double] {
        self.stages.indices.map { index in
            guard index < self.outcome.stages.count else { return 0 }
            let range = self.outcome.stages[index]
            return Double((range.upperBound - range.lowerBound).nanoseconds) / 1e9
        }
    }

    /// How long what counts took; `nil` if nothing did.
    var measuredSeconds: Double? {
        guard self.stages.isEmpty else {
            let measured = zip(self.stages, self.stageSeconds).filter { !$0.0.isWarmup }.reduce(0) { $0 + $1.1 }
            return measured > 0 ? measured : nil
        }
        return self.outcome.measured.map { Double(($0.upperBound - $0.lowerBound).nanoseconds) / 1e9 }
    }

    private var stageRecords: [StageRecord] {
        func seconds(_ from: NIODeadline, _ to: NIODeadline) -> Double { Double((to - from).nanoseconds) / 1e9 }
        var stages: [StageRecord] = []
        let began = self.outcome.began
        func add(_ name: String, _ from: NIODeadline, _ to: NIODeadline, measured: Bool) {
            guard to > from else { return }
            stages.append(
                StageRecord(
                    name: name,
                    start: seconds(began, from),
                    durationSeconds: seconds(from, to),
                    measured: measured
                )
            )
        }
        let load = self.outcome.loadBegan ?? self.outcome.ended
        add("connect", began, load, measured: false)
        for (stage, range) in zip(self.stages, self.outcome.stages) {
            add(stage.name, range.lowerBound, range.upperBound, measured: !stage.isWarmup)
        }
        if let last = self.outcome.stages.last { add("drain", last.upperBound, self.outcome.ended, measured: false) }
        if let measured = self.outcome.measured, self.stages.isEmpty {
            add("warmup", load, measured.lowerBound, measured: false)
            add("measure", measured.lowerBound, measured.upperBound, measured: true)
            add("drain", measured.upperBound, self.outcome.ended, measured: false)
        }
        return stages
    }

    // MARK: - Exit status

    /// The first status that applies, in the order of the design.
    func status(_ record: RunRecord, isStrict: Bool) -> ExitStatus {
        if self.lostGroups { return .unavailable }
        switch self.outcome.stop {
        case .everyConnectFailed, .everyConnectionLost: return .unavailable
        case .interrupted: return .interrupted
        case .planned, .thresholdBroken: break
        }
        if isStrict {
            let state = record.verdict?.state
            if state == .unreconciled { return .unreconciled }
            if state == .generatorLimited { return .generatorLimited }
        }
        return record.thresholds.allSatisfy(\.ok) ? .success : .thresholdFailed
    }

    /// One line for standard error, where the status is not success.
    func lastWord(_ status: ExitStatus, _ record: RunRecord) -> String? {
        switch status {
        case .success, .usage, .dataError, .cannotCreate: return nil
        case .unavailable, .interrupted, .unreconciled, .generatorLimited:
            return record.verdict?.reasons.first?.text
        case .thresholdFailed:
            let failed = record.thresholds.filter { !$0.ok }.map { "'\($0.expression)'" }
            return "threshold failed: " + failed.joined(separator: ", ")
        }
    }
}

extension LoadAccount {
    /// The account as it stands among those of other groups.
    fileprivate func of(group: String) -> LoadAccount {
        var account = self
        for index in account.metrics.indices {
            let metric = account.metrics[index]
            account.metrics[index].labels = metric.labels.of(group: group, metric: metric.name)
        }
        for index in account.books.indices { account.books[index].group = group }
        account.segment?.group = group
        account.unreconciled = account.unreconciled.map { $0.of(group: group) }
        account.limited = account.limited.map { $0.of(group: group) }
        return account
    }
}

extension Verdict.Reason {
    /// The same with the group's name in front.
    func of(group: String?) -> Verdict.Reason {
        guard let group else { return self }
        var reason = self
        reason.text = "\(group): \(self.text)"
        return reason
    }
}
