package import Ledger
package import Measurement

/// How a run knows that receivers have all their messages.
package enum DeliveryCompletion: Hashable, Sendable {
    /// There are no receivers.
    case nothing
    /// The balance of all loops shows it, with the merged ledger of the share groups.
    case balance
    /// The balance is unknown: the run waits for a second without a message.
    case silence
    /// Messages cross segments. The balances of all segments show completion, or else the drain ends.
    case joint
}

/// The account of a run's operations: plain values for record and files.
package struct LoadAccount: Sendable {
    /// Metrics settled at the end.
    package var metrics: [Metric] = []
    /// Deliveries that did not come, of a load with a ledger of its own.
    package var absent: [AbsentValues] = []
    package var books: [Books] = []
    /// Reasons why the books are not exact.
    package var unreconciled: [Verdict.Reason] = []
    package var notes: [Verdict.Reason] = []
    package var ledger = LedgerRecord(on: false)
    /// Ordered by number.
    package var clients: [ClientAccount] = []

    package init() {}
}

/// One client of a run, for the spread over clients and for `clients.csv`.
package struct ClientAccount: Hashable, Sendable {
    /// Its number in the run.
    package var number: Int
    /// The name of its kind in `run.json`.
    package var group: String
    package var qos: Int?
    package var tally: ClientTally
    /// Whether it sends; otherwise its sent and acknowledged counts are unknown.
    package var sends: Bool
    /// Whether its operations are answered.
    package var acknowledged: Bool
    package var receives: Bool

    package init(
        number: Int,
        group: String,
        qos: Int?,
        tally: ClientTally,
        sends: Bool,
        acknowledged: Bool,
        receives: Bool
    ) {
        self.number = number
        self.group = group
        self.qos = qos
        self.tally = tally
        self.sends = sends
        self.acknowledged = acknowledged
        self.receives = receives
    }
}

/// Observes each second of the warm-up and the measured phase, and may add notes at the end.
package protocol RunWatch: Sendable {
    mutating func second(_ interval: TimelineInterval)

    /// Notes on the figures, from the finished record.
    func notes(_ record: RunRecord, _ clients: [ClientAccount]) -> [Verdict.Reason]
}

/// The ledger's part of a run's record, for all groups whose messages it follows.
package struct DeliveryAccount: Sendable {
    /// Metrics settled at the end, with the labels of their groups.
    package var metrics: [Metric] = []
    /// Deliveries that did not come.
    package var absent: [AbsentValues] = []
    /// Reasons why the books are not exact.
    package var unreconciled: [Verdict.Reason] = []
    package var notes: [Verdict.Reason] = []
    /// Input for the ledger that a merge builds from all segments, where one segment alone has none.
    package var segment: SegmentLedger?

    package init() {}
}

/// The outcome of a group, after all its clients have stopped.
package struct GroupResult: Sendable {
    /// `nil` in a run of one command.
    package let name: String?
    /// Its metrics, books and reasons contain the group's name.
    package let account: LoadAccount
    let mismatches: [Verdict.Reason]
    let notes: [Verdict.Reason]
    let clock: ClockRecord?
    let nothingCameUp: String
    package static let unconnected = "every connect attempt failed"
    /// The client id for a client's number.
    package let clientID: @Sendable (_ number: Int) -> String

    /// - Parameters:
    ///   - name: the name of the group, in a run of several.
    ///   - account: the account as if the group were alone.
    ///   - mismatches: counts of the run's own server that differ from the books.
    ///   - notes: notes in addition to those of the account.
    ///   - clock: the clock of the messages' time stamps, if other segments receive them.
    ///   - nothingCameUp: the reason to print if no client of the group connected.
    ///   - clientID: the client id for a client's number.
    package init(
        _ name: String?,
        _ account: LoadAccount,
        mismatches: [Verdict.Reason] = [],
        notes: [Verdict.Reason] = [],
        clock: ClockRecord? = nil,
        nothingCameUp: String = Self.unconnected,
        clientID: @escaping @Sendable (Int) -> String
    ) {
        self.name = name
        self.account = name.map { account.of(group: $0) } ?? account
        self.mismatches = mismatches.map { $0.of(name) }
        self.notes = (notes + account.notes).map { $0.of(name) }
        self.clock = clock
        self.nothingCameUp = nothingCameUp
        self.clientID = clientID
    }
}

extension LoadAccount {
    /// The account with the group's name, for a run of several groups.
    fileprivate func of(group: String) -> LoadAccount {
        var account = self
        for index in account.metrics.indices {
            let metric = account.metrics[index]
            account.metrics[index].labels = metric.labels.of(group: group, metric: metric.name)
        }
        for index in account.absent.indices {
            account.absent[index].labels = account.absent[index].labels.adding(Labels.group, group)
        }
        for index in account.books.indices { account.books[index].group = group }
        account.unreconciled = account.unreconciled.map { $0.of(group) }
        return account
    }
}
