package import Ledger
package import LoadEngine
package import Measurement
package import RunResult
import NIOCore
package import Transport

/// The results of one loop of XMPP clients at the end of a run.
package struct XMPPResult: Sendable {
    package var fates: [PublisherFate]
    package var ledger: LedgerExport
    package var book: MessageBook
    /// How the deliveries of the loop's clients ended, by the monotonic clock.
    package var end: DeliveryEnd
    /// The clients' tallies, by number in the run.
    package var tallies: [(number: Int, tally: ClientTally)]
    package var groups: Groups?

    /// Additional results of rooms and circles of contacts.
    package struct Groups: Sendable {
        package var ledger: LedgerExport
        /// The messages sent while a client was not in its group, by ledger ids.
        package var missed: [UInt32: [UInt32: SequenceRanges]] = [:]
        package var unfinished: UInt64 = 0

        init(ledger: LedgerExport) { self.ledger = ledger }
    }

    var ledgers: [LedgerExport] { [self.groups?.ledger ?? self.ledger] }
    /// The accounts of a run that registers or removes them.
    package var accounts: [AccountResult] = []
}

package struct XMPPWorkload: Workload {
    package let load: XMPPLoad
    package let metrics: XMPPMetrics
    let tls: TLSContext?

    /// - Parameters:
    ///   - load: the clients' settings.
    ///   - metrics: the metrics made for the load.
    ///   - tls: the TLS settings for STARTTLS, if any.
    package init(_ load: XMPPLoad, metrics: XMPPMetrics, tls: TLSContext? = nil) {
        self.load = load
        self.metrics = metrics
        self.tls = tls
    }

    package var protocolName: String { "xmpp" }
    package var catalog: MetricCatalog { self.metrics.catalog }
    package var known: MetricCatalog { self.metrics.known(for: self.load) }
    package var answerMetric: MetricDefinition { self.isAnswered ? .iq : .smResponse }
    /// Whether each operation has an answer of its own.
    private var isAnswered: Bool { self.load.work == .ping || self.isOfAccounts }
    package var isOfAccounts: Bool { self.load.work.isOfAccounts }
    package var realtimeOffset: Int64 { self.load.realtimeOffset }
    package var comesBack: Bool { self.load.comesBack }
    package var completion: DeliveryCompletion {
        guard self.load.stanza != nil else { return .nothing }
        return self.load.hasLedger ? .balance : .silence
    }

    package var ledger: LedgerRecord {
        switch self.load.work {
        case .login: return LedgerRecord(on: false, reason: "nothing is sent in this run: clients log in and stay")
        case .ping: return LedgerRecord(on: false, reason: "no messages in this run: pings are in the books")
        case .register, .unregister:
            return LedgerRecord(on: false, reason: "no messages in this run: accounts are in the books")
        case .message, .muc, .presence: break
        }
        return self.load.hasLedger
            ? LedgerRecord(on: true)
            : LedgerRecord(
                on: false,
                reason: "\(self.load.stanza ?? "message")s carry no header: their text has no %{ledger}, or they have "
                    + "fewer than \(XMPPBody.headerSize) bytes"
            )
    }

    package func makeWork(on shard: Shard<XMPPShardWork>, connector: any ClientConnector) -> XMPPShardWork {
        XMPPShardWork(self, shard: shard, connector: connector)
    }

    package func prepare(_ shards: [ShardHandle<XMPPShardWork>], plan: LoadPlan) {}
    package func result(of work: XMPPShardWork) -> XMPPResult { work.takeResult() }
    package func clientID(_ number: Int) -> String { self.load.user(number).full }

    package func sender(_ number: UInt32) -> (group: String?, client: String)? {
        Int(number) < self.load.clients ? (nil, self.clientID(Int(number))) : nil
    }

    package func makeWatch() -> (any RunWatch)? {
        guard self.load.work == .message || self.load.work == .ping else { return nil }
        return ThrottleWatch(isOpenLoop: self.load.isOpenLoop, window: self.load.window)
    }

    package func account(_ results: [XMPPResult], delivery: RunDelivery?, record: RunRecord) -> LoadAccount {
        var account = LoadAccount()
        if let stanza = self.load.stanza, let delivery = self.reconciliation(results) {
            account.metrics = delivery.rows.flatMap { $0.metrics(labels: ["stanza": stanza]) }
            let stages = self.load.stages.map { LedgerPlaces.Stage(name: $0.name, isMeasured: $0.measured) }
            account.absent = delivery.absent(stages) { _, _ in ["stanza": stanza] }
            account.unreconciled = delivery.problems.map(\.reason)
            account.books = [self.messageBooks(stanza, results, record, delivery.rows.first)]
            account.ledger = self.ledgerRecord(results, delivery)
            if let ids = self.metrics.fanOut {
                account.metrics.append(ids.unfinished(results.reduce(0) { $0 + ($1.groups?.unfinished ?? 0) }))
            }
        } else if let stanza = self.load.stanza {
            account.books = [self.messageBooks(stanza, results, record, nil)]
        } else if self.isAnswered {
            account.books = [self.requestBooks(results, record)]
        }
        account.metrics += account.books.unansweredMetrics
        account.clients = results.flatMap(\.tallies).sorted { $0.number < $1.number }.map { number, tally in
            ClientAccount(
                number: number,
                group: "clients",
                qos: nil,
                tally: tally,
                sends: self.load.work != .login,
                acknowledged: self.isAnswered,
                receives: self.load.stanza != nil
            )
        }
        return account
    }

    // MARK: - Delivery and books

    private func reconciliation(_ results: [XMPPResult]) -> Reconciliation? {
        guard self.load.hasLedger else { return nil }
        let missed = results.reduce(into: [:]) { sum, result in
            sum.merge(result.groups?.missed ?? [:]) { one, _ in one }
        }
        let feeds = (0..<self.load.clients).flatMap { number in
            let id = self.load.ledgerID(number)
            return self.load.publishers(heardBy: number).filter { !$0.isEmpty }.map {
                SubscriptionFeed(subscription: id, publishers: $0, missed: missed[id] ?? [:])
            }
        }
        return Reconciliation(
            ledgers: results.flatMap(\.ledgers),
            fates: results.flatMap(\.fates),
            feeds: feeds,
            end: results.reduce(into: DeliveryEnd()) { $0 += $1.end }
        )
    }

    private func messageBooks(
        _ stanza: String,
        _ results: [XMPPResult],
        _ record: RunRecord,
        _ row: Reconciliation.Row?
    ) -> Books {
        var books = Books(stanza: stanza)
        books.fill(record)
        books.fill(row)
        books.confirmed = record.count(.stanzaConfirmed, ["stanza": stanza])
        books.fill(results.map(\.book), areAnswered: false)
        return books
    }

    private func requestBooks(_ results: [XMPPResult], _ record: RunRecord) -> Books {
        var books = Books(stanza: "iq")
        books.fill(record)
        books.acked = record.count(.stanzaAnswered, ["stanza": "iq"])
        books.fill(results.map(\.book), areAnswered: true)
        return books
    }

    private func ledgerRecord(_ results: [XMPPResult], _ delivery: Reconciliation) -> LedgerRecord {
        var ledger = self.ledger
        let clients = results.reduce(0) { $0 + $1.tallies.count }
        ledger.publishers = clients
        ledger.subscriptions = clients
        ledger.countStreams(results.flatMap(\.ledgers))
        ledger.take(delivery, ofReceivers: nil, in: LedgerPlaces()) { found in
            LedgerExample(
                found,
                publisher: self.sender(found.key.publisher)?.client,
                subscriber: self.sender(found.key.subscription)?.client
            )
        }
        return ledger
    }
}

extension XMPPShardWork {
    package func takeResult() -> XMPPResult {
        let fates =
            self.load.stanza != nil
            ? (0..<self.places.count).map { place -> PublisherFate in
                var fate = PublisherFate(publisher: self.load.ledgerID(self.number(place)), qos: 0, assigned: 0)
                self.complete(&fate, place)
                return fate
            } : []
        var end = self.deliveryEnd
        end.ended = self.shard.drainEnded.map { Int64($0.uptimeNanoseconds) }
        for place in 0..<self.places.count where !self.clients[place].own.isProved {
            end.unproved.insert(self.load.ledgerID(self.number(place)))
        }
        return XMPPResult(
            fates: fates,
            ledger: self.ledger.pointee.export(),
            book: self.books,
            end: end,
            tallies: self.numberedTallies,
            groups: self.groups.map(self.takeGroups),
            accounts: self.takeAccounts()
        )
    }
}
