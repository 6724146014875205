import EmbeddedBroker
import LoadEngine
import MQTTCodec
import Measurement
import NIOCore
import Report
import Workloads

/// What is made of a run once everything has stopped: delivery books, verdict, spreads, thresholds, exit status.
struct RunEnding: Sendable {
    let options: RunOptions
    let load: MQTTLoad
    let outcome: RunOutcome
    let results: [MQTTResult]
    /// What the embedded broker counted, where there was one.
    let broker: BrokerCounters?
    let thresholds: [Threshold]
    /// The threshold that ended the run.
    var brokenThreshold: String?

    /// Completes the record with all that needs the whole run.
    func complete(_ record: inout RunRecord, shares: LedgerExport, audit: GeneratorAudit) {
        let delivery = self.reconciliation(shares)
        self.addDelivery(delivery, to: &record)
        record.books = self.books(record, delivery)
        record.clients = self.clientGroups
        record.stages = self.stages
        if record.ledger.on { self.describeLedger(shares, &record.ledger) }
        record.thresholds = self.thresholds.map { threshold in
            var result = threshold.evaluate(in: record)
            // It was broken when it ended the run; that it would hold again now does not mend it.
            if threshold.expression == self.brokenThreshold { result.ok = false }
            return result
        }
        record.verdict = self.verdict(record, delivery, audit)
    }

    // MARK: - Delivery and books

    private func reconciliation(_ shares: LedgerExport) -> Reconciliation? {
        guard self.load.hasLedger, self.load.subscribers > 0 else { return nil }
        let ledgers = self.load.topology == .shared ? [shares] : self.results.map(\.ledger)
        let fates = self.load.publishers > 0 ? self.results.flatMap(\.fates) : nil
        return Reconciliation(ledgers: ledgers, fates: fates, feeds: fates == nil ? [] : self.load.feeds(self.results))
    }

    private func addDelivery(_ delivery: Reconciliation?, to record: inout RunRecord) {
        for row in delivery?.rows ?? [] {
            func add(_ name: String, _ value: UInt64?) {
                guard let value else { return }
                let reading = CounterReading(value: Double(value), rate: nil)
                record.metrics.append(Metric(name: name, labels: ["qos": "\(row.qos)"], reading: .counter(reading)))
            }
            add("delivery_expected", row.expected)
            add("delivery_lost", row.lost)
            add("delivery_duplicated", row.duplicated)
            add("delivery_reordered", row.reordered)
            if row.expected == nil { add("delivery_gaps", row.gaps) }
        }
    }

    private func books(_ record: RunRecord, _ delivery: Reconciliation?) -> [Books] {
        let rows = delivery?.rows ?? []
        let levels = Set(self.load.qualities.map(\.rawValue)).union(rows.map(\.qos)).sorted()
        return levels.map { level in
            var books = Books(qos: Int(level))
            if self.load.qualities.contains(where: { $0.rawValue == level }) {
                self.fillPublishing(&books, record)
            }
            if let row = rows.first(where: { $0.qos == level }) {
                books.expected = row.expected
                books.received = row.received
                books.lost = row.lost
                books.duplicated = row.duplicated
            }
            return books
        }
    }

    private func fillPublishing(_ books: inout Books, _ record: RunRecord) {
        let labels: Labels = ["qos": "\(books.qos)"]
        func counter(_ name: String) -> UInt64? {
            record.metrics.first { $0.name == name && $0.labels == labels }?.counter.map { UInt64($0.value) }
        }
        guard let qos = QoS(rawValue: UInt8(books.qos)) else { return }
        let parts = self.results.compactMap { $0.books[qos] }
        func sum(_ part: KeyPath<PublishBook, UInt64>) -> UInt64 { parts.reduce(0) { $0 + $1[keyPath: part] } }
        books.offered = counter("publish_offered")
        books.sent = counter("publish_sent")
        books.notSent = counter("publish_not_sent")
        if qos == .atMostOnce {
            books.confirmed = counter("publish_confirmed")
            books.unconfirmed = sum(\.unconfirmed)
        } else {
            books.acked = counter("publish_acked")
            books.inFlight = sum(\.inFlight)
            books.timedOut = sum(\.timedOut)
            books.failed = sum(\.failed)
        }
    }

    private func describeLedger(_ shares: LedgerExport, _ ledger: inout LedgerRecord) {
        let exports = self.load.topology == .shared ? [shares] : self.results.map(\.ledger)
        ledger.publishers = self.load.publishers > 0 ? self.load.publishers : nil
        ledger.subscriptions = self.load.topology == .shared ? 1 : self.load.subscribers
        ledger.streams = exports.reduce(0) { $0 + $1.streams.count }
        ledger.overflowed = exports.reduce(0) { $0 + $1.streams.count { $0.overflowed } }
    }

    // MARK: - Verdict

    private func verdict(_ record: RunRecord, _ delivery: Reconciliation?, _ audit: GeneratorAudit) -> Verdict {
        var verdict = Verdict()
        if let reason = self.abortReason(record) { verdict.add(.aborted, reason) }
        verdict.add(.unreconciled, delivery?.problems ?? [])
        for imbalance in record.books.flatMap(\.imbalances) {
            verdict.add(.unreconciled, Verdict.Reason(code: "books", text: imbalance))
        }
        if let wrong = record.errors.first(where: { $0.kind == "live connections" }) {
            verdict.add(.unreconciled, Verdict.Reason(code: "live-connections", text: wrong.example))
        }
        verdict.add(.unreconciled, self.brokerMismatches(record))
        verdict.add(.generatorLimited, audit.reasons)
        return verdict
    }

    private func abortReason(_ record: RunRecord) -> Verdict.Reason? {
        let example = record.errors.max { $0.count < $1.count }?.example
        switch self.outcome.stop {
        case .planned: return nil
        case .interrupted:
            return Verdict.Reason(code: "interrupted", text: "a signal ended the run before its time")
        case .thresholdBroken:
            let words = self.brokenThreshold.map { ": \($0)" } ?? ""
            return Verdict.Reason(code: "threshold", text: "a threshold that aborts was broken\(words)")
        case .everyConnectFailed:
            let words = example.map { ": \($0)" } ?? ""
            return Verdict.Reason(code: "no-connection", text: "every connect attempt failed\(words)")
        case .everyConnectionLost:
            let words = example.map { ": \($0)" } ?? ""
            return Verdict.Reason(
                code: "connections-lost",
                text: "all connections were lost and none came back\(words)"
            )
        }
    }

    /// The embedded broker's own counts against ours, where nothing happened that lets them differ.
    private func brokerMismatches(_ record: RunRecord) -> [Verdict.Reason] {
        guard let broker = self.broker else { return [] }
        var reasons: [Verdict.Reason] = []
        for books in record.books {
            guard let sent = books.sent, books.unconfirmed ?? 0 == 0, books.failed ?? 0 == 0,
                books.timedOut ?? 0 == 0, books.inFlight ?? 0 == 0
            else { continue }
            let seen = broker.received[UInt8(books.qos)]
            if seen != sent {
                reasons.append(
                    Verdict.Reason(
                        code: "broker-books",
                        text: "QoS \(books.qos): \(sent) sent, but the broker received \(seen)",
                        measured: Double(seen),
                        limit: Double(sent)
                    )
                )
            }
        }
        return reasons
    }

    // MARK: - Clients and stages

    private var tallies: [(number: Int, tally: ClientTally)] {
        self.results.flatMap(\.tallies).sorted { $0.number < $1.number }
    }

    private func id(_ number: Int) -> String {
        String(decoding: self.load.values(of: number).clientID, as: UTF8.self)
    }

    private var clientGroups: [String: ClientGroup] {
        let all = self.tallies
        var groups: [String: ClientGroup] = [:]
        func add(_ name: String, _ members: [(number: Int, tally: ClientTally)], publishes: Bool, subscribes: Bool) {
            guard !members.isEmpty else { return }
            groups[name] = ClientGroup(
                members.map(\.tally),
                publishes: publishes,
                acknowledged: publishes && self.load.qualities.contains { $0 > .atMostOnce },
                subscribes: subscribes,
                id: { self.id(members[$0].number) }
            )
        }
        let publishers = all.filter { self.load.isPublisher($0.number) }
        let publishes = !self.load.qualities.isEmpty
        add(publishes ? "publishers" : "clients", publishers, publishes: publishes, subscribes: false)
        add("subscribers", all.filter { !self.load.isPublisher($0.number) }, publishes: false, subscribes: true)
        return groups
    }

    /// A row per client, for `clients.csv`.
    func clientRows(_ record: RunRecord) -> [ClientRow] {
        let decodeTime = record.metrics.first { $0.name == "decode_time" }?.counter?.value
        let bytes = record.metrics.first { $0.name == "decode_bytes" }?.counter?.value
        return self.tallies.map { number, tally in
            let publishes = self.load.isPublisher(number) && !self.load.qualities.isEmpty
            let qos =
                publishes
                ? self.load.qos(ofPublisher: number)
                : self.load.isPublisher(number) ? nil : self.load.qos(ofSubscriber: number - self.load.publishers)
            var decodeSeconds: Double?
            if let decodeTime, let bytes, bytes > 0 { decodeSeconds = decodeTime * Double(tally.bytes) / bytes }
            return ClientRow(
                id: self.id(number),
                qos: qos.map { Int($0.rawValue) },
                tally: tally,
                publishes: publishes,
                acknowledged: publishes && qos != .atMostOnce,
                subscribes: !self.load.isPublisher(number),
                seconds: self.outcome.loadBegan.map { Double((self.outcome.ended - $0).nanoseconds) / 1e9 },
                decodeSeconds: decodeSeconds
            )
        }
    }

    private var stages: [StageRecord] {
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
        if let measured = self.outcome.measured {
            add("warmup", load, measured.lowerBound, measured: false)
            add("measure", measured.lowerBound, measured.upperBound, measured: true)
            add("drain", measured.upperBound, self.outcome.ended, measured: false)
        }
        return stages
    }

    // MARK: - Exit status

    /// The first status that applies, in the order of the design.
    func status(_ record: RunRecord) -> ExitStatus {
        switch self.outcome.stop {
        case .everyConnectFailed, .everyConnectionLost: return .unavailable
        case .interrupted: return .interrupted
        case .planned, .thresholdBroken: break
        }
        if self.options.strict {
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
