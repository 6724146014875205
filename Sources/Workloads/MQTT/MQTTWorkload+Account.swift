package import Ledger
import MQTT
import MQTTCodec
package import Measurement
import Report
package import RunResult

// The outcome of a run's messages and clients.
extension MQTTWorkload {
    package func account(_ results: [MQTTResult], shares: LedgerExport, record: RunRecord) -> LoadAccount {
        let delivery = self.reconciliation(results, shares)
        var account = LoadAccount()
        account.metrics =
            delivery?.rows.flatMap { row in
                // Messages missing here may have reached another segment.
                row.metrics(hasGaps: self.load.joint == nil) + self.requestMetrics(row)
            } ?? []
        account.books = self.books(results, record, delivery)
        // For a part of a ledger, the merge reports what does not add up.
        account.unreconciled = self.load.joint == nil ? delivery?.problems.map(\.reason) ?? [] : []
        account.notes = self.targetNotes(results, shares)
        account.segment = self.segmentLedger(results, shares)
        account.limited = Self.storeReasons(record)
        account.ledger = self.ledgerRecord(results, shares)
        account.clients = results.flatMap(\.tallies).sorted { $0.number < $1.number }.map(self.client)
        return account
    }

    private func reconciliation(_ results: [MQTTResult], _ shares: LedgerExport) -> Reconciliation? {
        guard self.load.hasLedger, self.load.subscribers > 0 else { return nil }
        let ledgers = self.load.topology == .shared ? [shares] : results.map(\.ledger)
        let fates = self.load.publishers > 0 && self.load.joint == nil ? results.flatMap(\.fates) : nil
        return Reconciliation(ledgers: ledgers, fates: fates, feeds: fates == nil ? [] : self.load.feeds(results))
    }

    /// Whether the targets look like unconnected servers although the load treats them as one.
    ///
    /// That is so if no acknowledged message arrived at another target, and none is missing at the publisher's own
    /// target.
    private func targetNotes(_ results: [MQTTResult], _ shares: LedgerExport) -> [Verdict.Reason] {
        let targets = self.load.targets
        guard targets > 1, self.load.servers == 1, self.load.joint == nil, self.load.publishers > 0,
            self.load.subscribers > 0, self.load.hasLedger, self.load.topology != .request
        else { return [] }
        let exports = self.load.topology == .shared ? [shares] : results.map(\.ledger)
        var came: [StreamKey: UInt64] = [:]
        for export in exports {
            for (key, stream) in zip(export.keys, export.streams) { came[key] = stream.distinct }
        }
        let known = Dictionary(
            results.lazy.flatMap(\.fates).map { ($0.publisher, $0.assigned - min($0.assigned, $0.unknown.count)) },
            uniquingKeysWith: max
        )
        var missing: UInt64 = 0
        for feed in self.load.feeds(results) {
            let holders = self.targets(of: feed.subscription)
            for publisher in feed.publishers {
                // Some messages of a late subscription are not expected.
                let sent = (known[publisher] ?? 0) - min(known[publisher] ?? 0, feed.expectedFrom[publisher] ?? 0)
                let arrived = came[StreamKey(subscription: feed.subscription, publisher: publisher)] ?? 0
                if holders.contains(Int(publisher) % targets) {
                    guard arrived >= sent else { return [] }
                } else {
                    guard arrived == 0 else { return [] }
                    missing += sent
                }
            }
        }
        guard missing > 0 else { return [] }
        return [
            Verdict.Reason(
                code: "targets-apart",
                text: "no message arrived from one target at another, so the targets look like separate servers: the "
                    + "\(Words.count(missing)) messages between them count as lost",
                measured: Double(missing),
                limit: 0
            )
        ]
    }

    /// The targets of a subscription's clients; a share group may have several.
    private func targets(of subscription: UInt32) -> Set<Int> {
        let subscribers = self.load.publishers..<self.load.publishers + self.load.subscribers
        let clients = self.load.topology == .shared ? subscribers : subscribers.dropFirst(Int(subscription)).prefix(1)
        return Set(clients.map { $0 % self.load.targets })
    }

    /// Of a request, the delivery is its answer.
    private func requestMetrics(_ row: Reconciliation.Row) -> [Metric] {
        guard self.load.topology == .request, let lost = row.lost else { return [] }
        return [row.metric("requests_lost", lost)]
    }

    private func books(_ results: [MQTTResult], _ record: RunRecord, _ delivery: Reconciliation?) -> [Books] {
        let rows = delivery?.rows ?? []
        let levels = Set(self.load.qualities.map(\.rawValue)).union(rows.map(\.qos)).sorted()
        return levels.map { level in
            var books = Books(qos: Int(level))
            if let qos = self.load.qualities.first(where: { $0.rawValue == level }) {
                Self.fillPublishing(&books, qos, results, record)
            }
            books.fill(rows.first { $0.qos == level })
            return books
        }
    }

    private static func fillPublishing(
        _ books: inout Books,
        _ qos: QoS,
        _ results: [MQTTResult],
        _ record: RunRecord
    ) {
        let labels: Labels = ["qos": "\(qos.rawValue)"]
        let parts = results.compactMap { $0.books[qos] }
        func sum(_ part: KeyPath<PublishBook, UInt64>) -> UInt64 { parts.reduce(0) { $0 + $1[keyPath: part] } }
        books.fill(record, "publish", labels)
        if qos == .atMostOnce {
            books.confirmed = record.count("publish_confirmed", labels)
            books.unconfirmed = sum(\.unconfirmed)
        } else {
            books.acked = record.count("publish_acked", labels)
            books.inFlight = sum(\.inFlight)
            books.timedOut = sum(\.timedOut)
            books.failed = sum(\.failed)
        }
    }

    private func ledgerRecord(_ results: [MQTTResult], _ shares: LedgerExport) -> LedgerRecord {
        var ledger = self.ledger
        guard ledger.on else { return ledger }
        let exports = self.load.topology == .shared ? [shares] : results.map(\.ledger)
        // Clients of this process, which may be one segment of several.
        let numbers = results.flatMap { $0.tallies.map(\.number) }
        let publishers = numbers.count(where: self.load.isPublisher)
        ledger.publishers = self.load.publishers > 0 ? publishers : nil
        ledger.subscriptions =
            switch self.load.topology {
            case .shared: self.load.servers
            case .request: publishers
            case .pair, .fanIn, .fanOut: numbers.count - publishers
            }
        ledger.countStreams(exports)
        return ledger
    }

    private static func storeReasons(_ record: RunRecord) -> [Verdict.Reason] {
        let ways = [
            (StoreFailure.kind, "ended early"),
            (StoreFailure.lateKind, "ended with changes that may not be stored"),
        ]
        return ways.compactMap { kind, way in
            guard let failed = record.errors.first(where: { $0.kind == kind }) else { return nil }
            let words = "\(failed.count) client\(failed.count == 1 ? "" : "s") \(way): \(failed.example)"
            return Verdict.Reason(code: "store-failed", text: words)
        }
    }

    // MARK: - Clients

    package func clientID(_ number: Int) -> String {
        String(decoding: self.load.values(of: number).clientID, as: UTF8.self)
    }

    private func client(_ number: Int, _ tally: ClientTally) -> ClientAccount {
        let isPublisher = self.load.isPublisher(number)
        let publishes = isPublisher && !self.load.qualities.isEmpty
        let qos =
            publishes
            ? self.load.qos(ofPublisher: number)
            : isPublisher ? nil : self.load.qos(ofSubscriber: number - self.load.publishers)
        return ClientAccount(
            number: number,
            group: !isPublisher ? "subscribers" : publishes ? "publishers" : "clients",
            qos: qos.map { Int($0.rawValue) },
            tally: tally,
            sends: publishes,
            acknowledged: publishes && qos != .atMostOnce,
            receives: !isPublisher || self.load.topology == .request
        )
    }
}
