import HostFit
import Ledger
import LoadEngine
import LoopContext
import Measurement
import NIOCore
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

/// One group of a run, whatever protocol its clients speak: its workload, how its clients get to their servers, and the
/// servers and files of its own.
///
/// The run asks in the order of the declarations.
protocol RunGroup: AnyObject, SendableMetatype {
    associatedtype Load: Workload

    /// `nil` in a run of one command.
    var name: String? { get }
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

    /// The group's state in the run; `nil` before it is prepared.
    var prepared: PreparedGroup<Load>? { get set }
    /// Reads and checks what the clients need.
    func makeLoad(seed: UInt64, loops: Int) throws(RunRefusal) -> Load
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
    /// Lines for standard error after the summary.
    func remarks(_ record: RunRecord) -> [String]
    /// The run is over, or does not take place.
    func close()
}

/// The state of a group in a run.
struct PreparedGroup<Load: Workload> {
    var load: Load
    let sources: SourceAddresses
    /// One on each event loop.
    var handles: [ShardHandle<Load.Work>] = []
    /// The results of each loop at the end.
    var results: [Load.Result] = []
}

/// What a run has to know of a group beside its plan.
struct GroupFacts: Sendable {
    var name: String?
    var clients: Int
    var isOpenLoop: Bool
    var connectRate: Double?
    var load: any Workload
}

extension RunGroup {
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

// MARK: - What the run does with each group

extension RunGroup {
    /// Those of this process.
    var clients: Int { self.options.segment.part == nil ? self.options.clients : self.plan(seed: 0).ownClients }

    /// The remedy that divides the group so that no process has more than `most` clients; `nil` if there is none.
    var split: @Sendable (_ most: Int) -> LoadSplit? {
        // How many parts of a scenario would each have clients of all groups is not known here.
        guard self.name == nil else { return { _ in nil } }
        let (plan, segments, isDivisible) = (self.plan(seed: 0), self.options.segment, self.isDivisible)
        return { segments.split(plan, of: $0, where: isDivisible) }
    }

    private var load: Load {
        guard let load = self.prepared?.load else { preconditionFailure("a group is prepared before it is asked") }
        return load
    }

    /// Reads and checks what the clients need, and where they connect from.
    func prepare(seed: UInt64, loops: Int, limits: HostLimits) throws(RunRefusal) {
        let sources: SourceAddresses
        do {
            sources = try self.options.sources(clients: self.options.clients, limits: limits)
        } catch {
            throw RunRefusal("\(error)")
        }
        self.prepared = PreparedGroup(load: try self.makeLoad(seed: seed, loops: loops), sources: sources)
    }

    func open() async throws(RunRefusal) {
        let load = try await self.open(self.load)
        self.prepared?.load = load
    }

    /// The group's facts, once it is prepared.
    var facts: GroupFacts {
        GroupFacts(
            name: self.name,
            clients: self.clients,
            // Clients without operations may have turns, which are due whatever comes back.
            isOpenLoop: self.options.isOpenLoop || !self.options.operates && self.plan(seed: 0).turns != nil,
            connectRate: self.options.connectRate.map { $0 / Double(self.options.part.count) },
            load: self.load
        )
    }

    func begin(threads: Int, signals: SignalRoute) async {
        guard let prepared = self.prepared else { return }
        let setting = RunSetting(sources: prepared.sources, threads: threads, signals: signals)
        let load = await self.begin(prepared.load, beside: setting)
        self.prepared?.load = load
    }

    /// Makes its shards, one on each loop; they report as group number `number` of the run.
    func makeShards(
        on loops: [any EventLoop],
        seed: UInt64,
        number: Int,
        events: AsyncStream<RunEvent>.Continuation
    ) async -> LoadGroup<LoadSample> {
        let (load, plan) = (self.load, self.plan(seed: seed))
        let handles = await Shards.make(
            load,
            on: loops,
            plan: plan,
            readSize: self.options.readSize,
            connectors: self.connectors(from: self.prepared?.sources ?? .any),
            group: number,
            events: events
        )
        load.prepare(handles, plan: plan)
        self.prepared?.handles = handles
        return LoadGroup(plan: plan, shards: handles, reconnects: load.comesBack)
    }

    private func plan(seed: UInt64) -> LoadPlan {
        var plan = self.options.plan(targets: self.targets.count, seed: seed)
        self.complete(&plan)
        return plan
    }

    /// By shard: takes back what a sample held.
    var recyclers: [@Sendable (LoopSample) -> Void] {
        (self.prepared?.handles ?? []).map { handle in { sample in handle.tell { $0.work?.recycle(sample) } } }
    }

    /// Every client has ended.
    ///
    /// - Returns: lines for standard error.
    func end() async -> [String] {
        let load = self.load
        var results: [Load.Result] = []
        for handle in self.prepared?.handles ?? [] {
            if let result = await handle.ask({ $0.work.map { load.result(of: $0) } }) ?? nil { results.append(result) }
        }
        self.prepared?.results = results
        return await self.clientsEnded(results)
    }

    /// The group's result; `record` has the metrics and errors of the run.
    func result(_ record: RunRecord, shares: LedgerExport) -> GroupResult {
        let load = self.load
        let account = load.account(self.prepared?.results ?? [], shares: shares, record: record.part(self.name))
        return GroupResult(
            self.name,
            account,
            mismatches: self.mismatches(account.books),
            notes: self.notes,
            clock: self.clock,
            nothingCameUp: self.nothingCameUp,
            clientID: { load.clientID($0) }
        )
    }
}
