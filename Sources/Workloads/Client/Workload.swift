package import Ledger
package import LoadEngine
package import Measurement
package import Transport

/// What the clients of one protocol bring to a run: all that the run itself does not know.
///
/// One value for all event loops. The run makes a shard's work of it on each, swaps their samples once a second, and at
/// the end has what they hold turned into an account.
package protocol Workload: Sendable {
    associatedtype Work: LoopWork
    /// What one loop holds at the end.
    associatedtype Result: Sendable

    /// As `protocol` labels have it.
    var protocolName: String { get }
    /// What the loops record.
    var catalog: MetricCatalog { get }
    /// The metrics of the finished run: beside the recorded ones those that are settled at its end.
    var known: MetricCatalog { get }
    /// The duration that a late generator is judged beside: of an answer to what was sent.
    var answerMetric: String { get }
    /// CLOCK_REALTIME less the monotonic clock.
    var realtimeOffset: Int64 { get }
    /// Whether clients connect more than once.
    var comesBack: Bool { get }
    /// When everything has come that was to come.
    var completion: DeliveryCompletion { get }
    /// Whether the messages of the run are accounted for one by one; if not, why.
    var ledger: LedgerRecord { get }

    /// On the shard's event loop.
    func makeWork(on shard: Shard<Work>, connector: any ClientConnector) -> Work
    /// All shards are there, and nothing has begun.
    func prepare(_ shards: [ShardHandle<Work>], plan: LoadPlan)
    /// On the work's event loop, when all its clients have ended.
    func result(of work: Work) -> Result
    /// What became of everything, by the results of all loops and by what share groups received.
    ///
    /// The record has metrics and errors, as far as they are known without this.
    func account(_ results: [Result], shares: LedgerExport, record: RunRecord) -> LoadAccount
    /// Each client is an account that is made or removed, and gone after that: what is done with is the progress.
    var isOfAccounts: Bool { get }
    /// By the publisher's QoS: the durations of messages to share groups, recorded off the loops; empty where there are none.
    var shareDurations: [DurationID] { get }
    /// What a client is called in the results, by its number in the run.
    func clientID(_ number: Int) -> String
    /// Somebody who looks at the seconds of a run, if there is something to find.
    func makeWatch() -> (any RunWatch)?
}

extension Workload {
    package var isOfAccounts: Bool { false }
    package var shareDurations: [DurationID] { [] }
    package func makeWatch() -> (any RunWatch)? { nil }
}

/// Looks at each second of the warm-up and of the measured phase, and may have something to say at the end.
package protocol RunWatch: Sendable {
    mutating func second(_ interval: TimelineInterval)

    /// What is to be known beside the figures, by the finished record.
    func notes(_ record: RunRecord, _ clients: [ClientAccount]) -> [Verdict.Reason]
}

/// The clients of one event loop, as a run samples them.
package protocol LoopWork: ShardWork where Sample == LoadSample {
    /// Takes back what a sample held, emptied, for the next one.
    func recycle(_ sample: LoopSample)
}

/// How a run knows that everything has come to those who receive.
package enum DeliveryCompletion: Hashable, Sendable {
    /// Nobody receives.
    case nothing
    /// The balance of all loops says so.
    case balance
    /// The balance, with what the merged ledger of the share groups holds for what was received.
    case shares
    /// Nobody knows: a second without any is awaited.
    case silence
    /// Part of it comes from other segments, or goes to them: all balances together say so, else the drain's end does.
    ///
    /// `shares` as for ``shares``.
    case joint(shares: Bool)
}

/// What became of a run's operations: plain values for record and files.
package struct LoadAccount: Sendable {
    /// Settled at the end.
    package var metrics: [Metric] = []
    package var books: [Books] = []
    /// Why the books are not exact.
    package var unreconciled: [Verdict.Reason] = []
    /// What this process, and not the server, held back.
    package var limited: [Verdict.Reason] = []
    /// Notes for the reader of the figures.
    package var notes: [Verdict.Reason] = []
    package var ledger = LedgerRecord(on: false)
    /// What a merge makes the ledger of all segments of, where one of them alone has none.
    package var segment: SegmentLedger?
    /// In the order of their numbers.
    package var clients: [ClientAccount] = []

    package init() {}
}

/// One client of a run, for the spread over clients and for `clients.csv`.
package struct ClientAccount: Hashable, Sendable {
    /// In the run.
    package var number: Int
    /// The word for its kind in `run.json`.
    package var group: String
    package var qos: Int?
    package var tally: ClientTally
    /// Whether it sends; else what it sent and had acknowledged is unknown.
    package var sends: Bool
    /// Whether what it sends is answered.
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
