package import LoadEngine
package import Measurement
package import RunResult
package import Transport

/// The parts of a run that depend on the protocol of its clients.
///
/// One value serves all event loops. The run makes a shard's work from it on each loop, and swaps samples once a second.
/// At the end it turns the loops' results into an account.
package protocol Workload: Sendable {
    associatedtype Work: LoopWork
    /// The results of one loop at the end.
    associatedtype Result: Sendable

    /// The protocol's name in `protocol` labels.
    var protocolName: String { get }
    /// The metrics that the loops record.
    var catalog: MetricCatalog { get }
    /// The metrics of the finished run: the recorded ones and those settled at the end.
    var known: MetricCatalog { get }
    /// The latency metric that the audit compares the generator's lag with: the time to an answer.
    var answerMetric: MetricDefinition { get }
    /// CLOCK_REALTIME minus the monotonic clock.
    var realtimeOffset: Int64 { get }
    /// Whether clients connect more than once.
    var comesBack: Bool { get }
    /// How the run knows that all messages have arrived.
    var completion: DeliveryCompletion { get }
    /// Whether the messages of the run are accounted for one by one; if not, the reason.
    var ledger: LedgerRecord { get }

    /// Called on the shard's event loop.
    func makeWork(on shard: Shard<Work>, connector: any ClientConnector) -> Work
    /// Called once all shards exist, before the load begins.
    func prepare(_ shards: [ShardHandle<Work>], plan: LoadPlan)
    /// Called on the work's event loop after all its clients have ended.
    func result(of work: Work) -> Result
    /// The account of all operations, from the loops' results and the ledger over all groups.
    ///
    /// The record holds the metrics and errors known without them.
    func account(_ results: [Result], delivery: RunDelivery?, record: RunRecord) -> LoadAccount
    /// Each client registers or removes one account and then ends, so progress is the number of finished clients.
    var isOfAccounts: Bool { get }
    /// A client's name in the results, by its number in the run.
    func clientID(_ number: Int) -> String
    /// The sender of a message, by its number in ``SlowEntry``; `nil` if it is no client of this run.
    ///
    /// `group`: the name of its group if that may be another one.
    func sender(_ number: UInt32) -> (group: String?, client: String)?
    /// An observer of the run's seconds, if there is something to detect.
    func makeWatch() -> (any RunWatch)?
}

extension Workload {
    package var isOfAccounts: Bool { false }
    package func makeWatch() -> (any RunWatch)? { nil }
}

/// The clients of one event loop, as a run samples them.
package protocol LoopWork: ShardWork where Sample == LoadSample {
    /// Takes back a sample's emptied buffers for reuse.
    func recycle(_ sample: LoopSample)
}
