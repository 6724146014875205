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
    /// Operations that this process, and not the server, held back.
    package var limited: [Verdict.Reason] = []
    /// Notes for the reader of the figures.
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
