import Ledger
import MQTTCodec
package import Measurement
package import RunResult

// The outcome of a run's messages and clients.
extension MQTTWorkload {
    package func account(_ results: [MQTTResult], delivery: RunDelivery?, record: RunRecord) -> LoadAccount {
        var account = LoadAccount()
        let books = self.books(results, record, delivery)
        account.metrics = books.flatMap(self.requestMetrics) + books.unansweredMetrics
        if self.metrics.retained != nil {
            let isQuiet = (delivery?.end).map { $0.isQuiet(since: $0.lastArrival ?? .min) } ?? false
            account.metrics += RetainedAccount.metrics(results.map(\.retained), isQuiet: isQuiet)
        }
        let replies = self.outstandingReplies(results, delivery)
        account.metrics += replies.metrics
        account.absent = replies.absent
        account.books = books
        account.ledger = self.ledgerRecord(results, delivery)
        account.clients = results.flatMap(\.tallies).sorted { $0.number < $1.number }.map(self.client)
        return account
    }

    private var name: String { self.plan.groups[self.group].name }

    /// The rows of the group's receivers at one QoS of the publishers, added up.
    private func row(_ delivery: RunDelivery?, qos: UInt8) -> Reconciliation.Row? {
        delivery?.reconciliation?.row(ofReceivers: self.name.isEmpty ? nil : self.name, qos: qos, in: self.plan.places)
    }

    /// A level without deliveries, in a group that receives: in another segment it may have some, and sums need both.
    private func emptyRow(_ delivery: RunDelivery?, qos: UInt8) -> Reconciliation.Row? {
        guard delivery?.reconciliation != nil, self.load.bond != .ledger, self.plan.hears(self.group) else {
            return nil
        }
        return Reconciliation.Row(qos: qos, expected: 0, received: 0, lost: 0, outstanding: 0)
    }

    /// The answer to a request is its delivery.
    private func requestMetrics(_ books: Books) -> [Metric] {
        guard self.load.topology == .request, let lost = books.lost, let qos = books.qos else { return [] }
        // The answers to requests that the server has not acknowledged are owed with them.
        let owed = (books.deliveryOutstanding ?? 0) - min(books.deliveryOutstanding ?? 0, books.outstanding ?? 0)
        return [(MetricDefinition.requestsLost, lost), (.requestsOutstanding, owed)].map { kind, count in
            let reading = CounterReading(value: Double(count), rate: nil)
            return Metric(kind, labels: ["qos": "\(qos)"], reading: .counter(reading))
        }
    }

    private func books(_ results: [MQTTResult], _ record: RunRecord, _ delivery: RunDelivery?) -> [Books] {
        let published = self.load.publishes ? Set(self.load.streams.flatMap(\.qualities).map(\.rawValue)) : []
        let heard = (0...2).filter { self.row(delivery, qos: $0) != nil }
        return published.union(heard).sorted().map { level in
            var books = Books(qos: Int(level))
            if published.contains(level), let qos = QoS(rawValue: level) {
                Self.fillPublishing(&books, qos, results, record)
            }
            books.fill(self.row(delivery, qos: level) ?? self.emptyRow(delivery, qos: level))
            return books
        }
    }

    private static func fillPublishing(_ books: inout Books, _ qos: QoS, _ results: [MQTTResult], _ record: RunRecord) {
        let labels: Labels = ["qos": "\(qos.rawValue)"]
        books.fill(record)
        books.fill(results.compactMap { $0.books[qos] }, areAnswered: qos != .atMostOnce)
        if qos == .atMostOnce {
            books.confirmed = record.count(.publishConfirmed, labels)
        } else {
            books.acked = record.count(.publishAcked, labels)
        }
    }

    private func ledgerRecord(_ results: [MQTTResult], _ delivery: RunDelivery?) -> LedgerRecord {
        var ledger = self.ledger
        guard ledger.on else { return ledger }
        // Clients of this process, which may be one segment of several.
        let numbers = results.flatMap { $0.tallies.map(\.number) }
        let publishers = numbers.count(where: self.load.isPublisher)
        ledger.publishers = self.load.publishes ? publishers * self.load.streams.count : nil
        ledger.subscriptions = self.subscriptions(results)
        if let delivery, !delivery.stripped.isEmpty, delivery.reconciliation?.rows.isEmpty ?? false {
            ledger.on = false
            ledger.reason = "messages arrived without their user property '\(LedgerCarrier.propertyName)'"
            return ledger
        }
        ledger.countStreams(results.map(\.ledger) + (delivery.map { [$0.shares(of: self.name)] } ?? []))
        if self.load.bond != .ledger, let delivery, let reconciliation = delivery.reconciliation {
            let group = self.name.isEmpty ? nil : self.name
            ledger.take(reconciliation, ofReceivers: group, in: self.plan.places) { delivery.example($0) }
        }
        return ledger
    }

    /// Receivers of the group: clients with ordinary subscriptions, and share groups.
    private func subscriptions(_ results: [MQTTResult]) -> Int {
        results.reduce(into: Set<UInt32>()) { $0.formUnion($1.receivers) }.count { receiver in
            !self.plan.isOnlyMember(receiver, of: self.group)
        }
    }

    // MARK: - Clients

    package func clientID(_ number: Int) -> String {
        String(decoding: self.load.values(of: number).clientID, as: UTF8.self)
    }

    package func sender(_ number: UInt32) -> (group: String?, client: String)? {
        guard let sender = self.plan.sender(number) else { return nil }
        let group = self.plan.groups[sender.group]
        let id = String(decoding: group.load.values(of: sender.client).clientID, as: UTF8.self)
        return (group.name.isEmpty ? nil : group.name, id)
    }

    private func client(_ number: Int, _ tally: ClientTally) -> ClientAccount {
        let isPublisher = self.load.isPublisher(number)
        let publishes = isPublisher && !self.load.qualities.isEmpty
        let subscribes = self.load.subscribingClients.contains(number)
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
            acknowledged: publishes && self.load.awaitsAcknowledgement(publisher: number),
            receives: subscribes || self.plan.hasP2P
        )
    }
}
