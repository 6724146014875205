import HostFit
import Ledger
import LoadEngine
import LoopContext
import Measurement
import NIOCore
import RunResult
import Transport
import Workloads

/// One part of a run as the run handles it, whatever protocol its clients speak.
///
/// The run asks in the order of the declarations.
protocol RunGroup: AnyObject {
    /// `nil` in a run of one command.
    var name: String? { get }
    var options: LoadOptions { get }
    /// Those of this process.
    var clients: Int { get }
    var deliveries: Double { get }
    var descriptors: Int { get }
    var clientBytes: UInt64 { get }
    /// How it is to be divided so that no process has more clients than that; `nil`: it cannot be.
    var split: @Sendable (_ most: Int) -> LoadSplit? { get }
    func planRecord(seed: UInt64) -> [String: JSONValue]

    /// Reads and checks what the clients need, and where they connect from.
    func prepare(seed: UInt64, loops: Int, limits: HostLimits) throws(RunRefusal)
    /// Opens it, before results may be written.
    func open() async throws(RunRefusal)
    /// What the run knows of it from now on.
    var facts: GroupFacts { get }
    func start() throws(RunRefusal) -> [String]

    /// Before the first client: what they need on servers that is not the load's.
    func begin(threads: Int, signals: SignalRoute) async
    /// Makes its shards, one on each loop; they report as group number `number` of the run.
    func makeShards(
        on loops: [any EventLoop],
        seed: UInt64,
        number: Int,
        events: AsyncStream<RunEvent>.Continuation
    ) async -> LoadGroup<LoadSample>
    /// By shard: takes back what a sample held.
    var recyclers: [@Sendable (LoopSample) -> Void] { get }
    /// Every client has ended.
    ///
    /// - Returns: lines for standard error.
    func end() async -> [String]
    /// CPU of this process that was not the run's, nanoseconds.
    var cpuBeside: Int64 { get }
    /// What became of it all, by the record of what was measured.
    func result(_ record: RunRecord, shares: LedgerExport) -> GroupResult
    func remarks(_ record: RunRecord) -> [String]
    func close()
}

/// What a run has to know of a group beside its plan.
struct GroupFacts: Sendable {
    var name: String?
    var clients: Int
    var isOpenLoop: Bool
    var connectRate: Double?
    var protocolName: String
    var answerMetric: String
    var realtimeOffset: Int64
    var completion: DeliveryCompletion
    var catalog: MetricCatalog
    /// Beside what is recorded, what is settled at the end.
    var known: MetricCatalog
    var ledger: LedgerRecord
    /// Its clients are accounts, which are made one by one and gone after that.
    var isOfAccounts: Bool
    /// By the publisher's QoS, of share groups.
    var shareDurations: [DurationID]
    var watch: (any RunWatch)?
}

/// A part with its workload and shards.
final class PartGroup<Part: RunPart>: RunGroup {
    private struct Prepared {
        var load: Part.Load
        var sources: SourceAddresses
    }

    let name: String?
    private let part: Part
    private var prepared: Prepared?
    private var handles: [ShardHandle<Part.Load.Work>] = []
    private var results: [Part.Load.Result] = []

    init(_ name: String?, _ part: Part) {
        self.name = name
        self.part = part
    }

    var options: LoadOptions { self.part.options }
    var clients: Int { self.options.segment.part == nil ? self.options.clients : self.ownClients }
    private lazy var ownClients = self.plan(seed: 0).ownClients
    var deliveries: Double { self.part.deliveries }
    var descriptors: Int { self.part.descriptors }
    var clientBytes: UInt64 { self.part.clientBytes }

    var split: @Sendable (Int) -> LoadSplit? {
        // How many parts of a scenario would each have clients of all groups is not known here.
        guard self.name == nil else { return { _ in nil } }
        let (plan, segments, isDivisible) = (self.plan(seed: 0), self.options.segment, self.part.isDivisible)
        return { segments.split(plan, of: $0, where: isDivisible) }
    }

    private var load: Part.Load {
        guard let load = self.prepared?.load else { preconditionFailure("a group is prepared before it is asked") }
        return load
    }

    func planRecord(seed: UInt64) -> [String: JSONValue] { self.part.planRecord(seed: seed) }

    func prepare(seed: UInt64, loops: Int, limits: HostLimits) throws(RunRefusal) {
        let sources: SourceAddresses
        do {
            sources = try self.options.sources(clients: self.options.clients, limits: limits)
        } catch {
            throw RunRefusal("\(error)")
        }
        self.prepared = Prepared(load: try self.part.prepare(seed: seed, loops: loops), sources: sources)
    }

    func open() async throws(RunRefusal) {
        let load = try await self.part.open(self.load)
        self.prepared?.load = load
    }

    var facts: GroupFacts {
        GroupFacts(
            name: self.name,
            clients: self.clients,
            // Clients without operations may have turns, which are due whatever comes back.
            isOpenLoop: self.options.isOpenLoop || !self.options.operates && self.plan(seed: 0).turns != nil,
            connectRate: self.options.connectRate.map { $0 / Double(self.options.part.count) },
            protocolName: self.load.protocolName,
            answerMetric: self.load.answerMetric,
            realtimeOffset: self.load.realtimeOffset,
            completion: self.load.completion,
            catalog: self.load.catalog,
            known: self.load.known,
            ledger: self.load.ledger,
            isOfAccounts: self.load.isOfAccounts,
            shareDurations: self.load.shareDurations,
            watch: self.load.makeWatch()
        )
    }

    func start() throws(RunRefusal) -> [String] { try self.part.start() }

    func begin(threads: Int, signals: SignalRoute) async {
        guard let prepared = self.prepared else { return }
        let setting = RunSetting(sources: prepared.sources, threads: threads, signals: signals)
        self.prepared?.load = await self.part.begin(prepared.load, beside: setting)
    }

    func makeShards(
        on loops: [any EventLoop],
        seed: UInt64,
        number: Int,
        events: AsyncStream<RunEvent>.Continuation
    ) async -> LoadGroup<LoadSample> {
        let load = self.load
        let plan = self.plan(seed: seed)
        self.handles = await Shards.make(
            load,
            on: loops,
            plan: plan,
            readSize: self.options.readSize,
            connectors: self.part.connectors(from: self.prepared?.sources ?? .any),
            group: number,
            events: events
        )
        load.prepare(self.handles, plan: plan)
        return LoadGroup(plan: plan, shards: self.handles, reconnects: load.comesBack)
    }

    private func plan(seed: UInt64) -> LoadPlan {
        var plan = self.options.plan(targets: self.part.targets.count, seed: seed)
        self.part.complete(&plan)
        return plan
    }

    var recyclers: [@Sendable (LoopSample) -> Void] {
        self.handles.map { handle in { sample in handle.tell { $0.work?.recycle(sample) } } }
    }

    func end() async -> [String] {
        let load = self.load
        for handle in self.handles {
            if let result = await handle.ask({ $0.work.map { load.result(of: $0) } }) ?? nil {
                self.results.append(result)
            }
        }
        return await self.part.clientsEnded(self.results)
    }

    var cpuBeside: Int64 { self.part.cpuBeside }

    func result(_ record: RunRecord, shares: LedgerExport) -> GroupResult {
        let account = self.load.account(self.results, shares: shares, record: record.part(self.name))
        return GroupResult(
            self.name,
            account,
            mismatches: self.part.mismatches(account.books),
            notes: self.part.notes,
            clock: self.part.clock,
            nothingCameUp: self.part.nothingCameUp,
            clientID: { [load = self.load] in load.clientID($0) }
        )
    }

    func remarks(_ record: RunRecord) -> [String] { self.part.remarks(record) }
    func close() { self.part.close() }
}
