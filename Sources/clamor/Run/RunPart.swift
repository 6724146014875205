import LoadEngine
import LoopContext
import Measurement
import RunResult
import Transport
import Workloads

/// Why a run does not take place: one line, and how the program ends.
struct RunRefusal: Error {
    let line: String
    let status: ExitStatus

    init(_ line: String, _ status: ExitStatus = .usage) {
        self.line = line
        self.status = status
    }

    /// The same with the group's name in front, in a run that has several.
    func of(group: String?) -> RunRefusal {
        group.map { RunRefusal("\($0): \(self.line)", self.status) } ?? self
    }
}

/// What a run has that what is beside it needs too.
struct RunSetting: Sendable {
    let sources: SourceAddresses
    let threads: Int
    let signals: SignalRoute
}

/// What a command brings to a run beside the options that all commands share: its workload, how its clients get to
/// their servers, and the servers and files of its own.
///
/// The run asks in the order of the declarations.
protocol RunPart: AnyObject, SendableMetatype {
    associatedtype Load: Workload

    var options: LoadOptions { get }
    /// How often each message comes back.
    var deliveries: Double { get }
    /// Open descriptors beside one for each client, and those of every run.
    var descriptors: Int { get }
    /// Memory of a client beside what every client takes.
    var clientBytes: UInt64 { get }
    /// Whether so many segments can share it, each of which is told that in its options.
    var isDivisible: @Sendable (_ segments: SegmentOptions) -> Bool { get }
    /// The plan as `run.json` holds it: what decides the outcome, and no secret.
    func planRecord(seed: UInt64) -> [String: JSONValue]

    /// Reads and checks what the clients need.
    func prepare(seed: UInt64, loops: Int) throws(RunRefusal) -> Load
    /// Opens it, before results may be written.
    func open(_ load: Load) async throws(RunRefusal) -> Load
    /// Starts the servers of the run's own.
    ///
    /// - Returns: lines for standard error.
    func start() throws(RunRefusal) -> [String]
    /// Where the clients go, when the servers are there.
    var targets: [Target] { get }
    /// What only this protocol's plans have.
    func complete(_ plan: inout LoadPlan)
    /// Makes the connector of an event loop, on it.
    func connectors(from sources: SourceAddresses) -> @Sendable (LoopContext) -> any ClientConnector
    /// Before the first client: what they need that is not the load's, on servers; it costs nothing of the run.
    func begin(_ load: Load, beside setting: RunSetting) async -> Load
    /// Every client has ended, with these results of all loops.
    ///
    /// - Returns: lines for standard error.
    func clientsEnded(_ results: [Load.Result]) async -> [String]
    /// What the record says beside its figures, when the clients have ended.
    var notes: [Verdict.Reason] { get }
    /// By which clock messages were stamped, where other segments hear them.
    var clock: ClockRecord? { get }
    /// CPU of this process that went into what is beside the run, nanoseconds.
    var cpuBeside: Int64 { get }
    /// The words for a run of which no client came up.
    var nothingCameUp: String { get }
    /// Where the counts of the run's own servers differ from the books.
    func mismatches(_ books: [Books]) -> [Verdict.Reason]
    /// Lines for standard error behind the summary.
    func remarks(_ record: RunRecord) -> [String]
    /// The run is over, or does not take place.
    func close()
}

extension RunPart {
    var deliveries: Double { 0 }
    var descriptors: Int { 0 }
    var clientBytes: UInt64 { 0 }
    func open(_ load: Load) async throws(RunRefusal) -> Load { load }
    func start() throws(RunRefusal) -> [String] { [] }
    var targets: [Target] { self.options.targets() }
    func complete(_ plan: inout LoadPlan) {}
    func begin(_ load: Load, beside setting: RunSetting) async -> Load { load }
    func clientsEnded(_ results: [Load.Result]) async -> [String] { [] }
    var notes: [Verdict.Reason] { [] }
    var clock: ClockRecord? { nil }
    var cpuBeside: Int64 { 0 }
    var nothingCameUp: String { "every connect attempt failed" }
    func mismatches(_ books: [Books]) -> [Verdict.Reason] { [] }
    func remarks(_ record: RunRecord) -> [String] { [] }
    func close() {}
}
