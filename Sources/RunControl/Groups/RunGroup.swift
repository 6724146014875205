import HostFit
package import LoadEngine
package import LoopContext
package import Measurement
import NIOCore
import RunResult
package import Scenario
package import Transport
package import Workloads

/// Run settings shared with helper tasks.
package struct RunSetting: Sendable {
    let sources: SourceAddresses
    let threads: Int
    let signals: SignalRoute
    /// The process that begins the run, if another one does.
    let leader: (any RunLeader)?
}

/// One group of a run, for any protocol: its workload, its routes to the servers, and its own servers and files.
///
/// A run calls the members in the order of their declaration.
package protocol RunGroup: AnyObject, SendableMetatype {
    associatedtype Load: Workload

    /// `nil` in a run of one command.
    var name: String? { get }
    /// How its messages name settings.
    var names: OptionNames { get }
    var options: LoadOptions { get }
    /// Operations per second of all clients; `nil` in closed loop.
    var messageRate: Double? { get }
    /// Deliveries per message.
    var deliveries: Double { get }
    /// Additional memory per client, above that of every client.
    var clientBytes: UInt64 { get }
    /// Whether this many segments can share it; each gets its segment in its options.
    var isDivisible: @Sendable (_ segments: SegmentOptions) -> Bool { get }

    /// The run's state for the group; `nil` before it is prepared.
    var prepared: PreparedGroup<Load>? { get set }
    /// Reads and checks the clients' inputs.
    func makeLoad(seed: UInt64, loops: Int) throws(RunRefusal) -> Load
    /// Starts the group's own servers.
    ///
    /// - Returns: lines for standard error.
    func start(in world: RunWorld) throws(RunRefusal) -> [String]
    /// Groups with the same number receive each other's messages; `nil`: the group receives only its own.
    var exchange: Int? { get }
    /// The servers that clients connect to, once the group's own have started.
    var targets: [Target] { get }
    /// Adds settings that only this protocol has.
    func complete(_ plan: inout LoadPlan)
    /// Creates the connector of an event loop; called on the loop.
    func connectors(from sources: SourceAddresses) -> @Sendable (LoopContext) -> any ClientConnector
    /// Prepares servers before the first client connects; its time and CPU do not count for the run.
    func begin(_ load: Load, beside setting: RunSetting) async -> Load
    /// Called when every client has ended, with the results of all loops.
    ///
    /// - Returns: lines for standard error.
    func clientsEnded(_ results: [Load.Result]) async -> [String]
    /// Notes for the record, after the clients have ended.
    var notes: [Verdict.Reason] { get }
    /// The clock of the messages' time stamps, if other segments receive them.
    var clock: ClockRecord? { get }
    /// By loop: set the clock of time stamps, as nanoseconds above CLOCK_MONOTONIC; once the shards are made.
    var clockCorrections: [@Sendable (Int64) -> Void] { get }
    /// CPU of this process for work that is not the run's, in nanoseconds.
    var cpuBeside: Int64 { get }
    /// The reason to print if no client connected.
    var nothingCameUp: String { get }
    /// The server as it names itself, asked after the run; `nil` if it does not say.
    var server: ServerRecord? { get async }
    /// Counts of the run's own servers that differ from the books.
    ///
    /// `record`: of this group alone.
    func mismatches(_ books: [Books], _ record: RunRecord) -> [Verdict.Reason]
    /// Lines for standard error after the summary.
    func remarks(_ record: RunRecord) -> [String]
    /// Called when the run is over, or does not start.
    func close()
}

/// The run's state for a group.
package struct PreparedGroup<Load: Workload> {
    var load: Load
    let sources: SourceAddresses
    /// One on each event loop.
    var handles: [ShardHandle<Load.Work>] = []
    var results: [Load.Result] = []
}

/// Facts of a group that the run needs in addition to its plan.
package struct GroupFacts: Sendable {
    var name: String?
    var clients: Int
    var isOpenLoop: Bool
    var connectRate: Double?
    var load: any Workload
    /// Groups with the same number receive each other's messages.
    var exchange: Int?
}

extension RunGroup {
    package var messageRate: Double? { self.options.messageRate }
    package var deliveries: Double { 0 }
    var clientBytes: UInt64 { 0 }
    func start(in world: RunWorld) throws(RunRefusal) -> [String] { [] }
    var targets: [Target] { self.options.targets() }
    func complete(_ plan: inout LoadPlan) {}
    func begin(_ load: Load, beside setting: RunSetting) async -> Load { load }
    func clientsEnded(_ results: [Load.Result]) async -> [String] { [] }
    var notes: [Verdict.Reason] { [] }
    var clock: ClockRecord? { nil }
    var clockCorrections: [@Sendable (Int64) -> Void] { [] }
    var cpuBeside: Int64 { 0 }
    var nothingCameUp: String { GroupResult.unconnected }
    func mismatches(_ books: [Books], _ record: RunRecord) -> [Verdict.Reason] { [] }
    func remarks(_ record: RunRecord) -> [String] { [] }
    func close() {}
    var exchange: Int? { nil }
    var server: ServerRecord? { get async { nil } }
    func named(_ words: OptionWords) -> String { self.names.text(words) }

    // MARK: - The run's steps for each group

    package var clients: Int { self.options.segment.part == nil ? self.options.clients : self.plan(seed: 0).ownClients }

    /// The division into processes of at most `most` clients; `nil` if the group cannot be divided.
    var split: @Sendable (_ most: Int) -> LoadSplit? {
        // Unknown: the split of a scenario into parts with clients of all groups.
        guard self.name == nil else { return { _ in nil } }
        let (plan, segments, isDivisible) = (self.plan(seed: 0), self.options.segment, self.isDivisible)
        return { segments.split(plan, of: $0, where: isDivisible) }
    }

    private var load: Load {
        guard let load = self.prepared?.load else { preconditionFailure("a group is prepared before it is asked") }
        return load
    }

    /// Reads and checks the clients' inputs, and their source addresses.
    func prepare(seed: UInt64, loops: Int, limits: HostLimits) throws(RunRefusal) {
        let sources = try RunRefusal.unless {
            try self.options.sources(clients: self.options.clients, limits: limits)
        }
        self.prepared = PreparedGroup(load: try self.makeLoad(seed: seed, loops: loops), sources: sources)
    }

    /// The group's facts, known once it is prepared.
    package var facts: GroupFacts {
        GroupFacts(
            name: self.name,
            clients: self.clients,
            // Clients without operations may have turns, which have due times in any case.
            isOpenLoop: self.options.isOpenLoop || !self.options.operates && self.plan(seed: 0).turns != nil,
            connectRate: self.options.connectRate.map { $0 / Double(self.options.part.count) },
            load: self.load,
            exchange: self.exchange
        )
    }

    func begin(threads: Int, signals: SignalRoute, leader: (any RunLeader)?) async {
        guard let prepared = self.prepared else { return }
        let setting = RunSetting(sources: prepared.sources, threads: threads, signals: signals, leader: leader)
        let load = await self.begin(prepared.load, beside: setting)
        self.prepared?.load = load
    }

    /// Creates its shards, one on each loop; they report as group number `number` of the run.
    func makeShards(
        on loops: [any EventLoop],
        in world: RunWorld,
        seed: UInt64,
        _ number: Int,
        _ events: AsyncStream<RunEvent>.Continuation
    ) async -> LoadGroup<LoadSample> {
        let (load, plan) = (self.load, self.plan(seed: seed))
        let handles = await Shards.make(
            load,
            on: loops,
            plan: plan,
            readSize: self.options.readSize,
            connectors: world.connector ?? self.connectors(from: self.prepared?.sources ?? .any),
            hasSockets: world.isHost,
            group: number,
            events: events
        )
        load.prepare(handles, plan: plan)
        self.prepared?.handles = handles
        var group = LoadGroup(plan: plan, shards: handles, reconnects: load.comesBack, exchange: self.exchange)
        let waits = self.options.backoff.longest(of: self.options.reconnects)
        group.returnTime = .nanoseconds(Int64(bounded: waits))
        return group
    }

    private func plan(seed: UInt64) -> LoadPlan {
        var plan = self.options.plan(targets: self.targets.count, seed: seed)
        self.complete(&plan)
        return plan
    }

    /// By shard: take back the memory of a sample.
    var recyclers: [@Sendable (LoopSample) -> Void] {
        (self.prepared?.handles ?? []).map { handle in { sample in handle.tell { $0.work?.recycle(sample) } } }
    }

    /// Called when every client has ended.
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

    /// Where each answer lets the next message go, the window makes the latency, and not the server alone.
    private func closedLoopNote(_ books: [Books]) -> [Verdict.Reason] {
        guard self.messageRate == nil, self.options.segment.part == nil, !self.load.isOfAccounts,
            books.contains(where: { $0.isAnswered && $0.offered ?? 0 > 0 })
        else { return [] }
        let text = "closed loop: the latency is that of the clients' own queue; give a rate for a response time"
        return [Verdict.Reason(code: "closed-loop", text: text)]
    }

    /// The outcome of the group, from the record of the measurements.
    func result(_ record: RunRecord, delivery: RunDelivery?) -> GroupResult {
        let (load, part) = (self.load, record.part(self.name))
        let account = load.account(self.prepared?.results ?? [], delivery: delivery, record: part)
        return GroupResult(
            self.name,
            account,
            mismatches: self.mismatches(account.books, part),
            notes: self.notes + self.closedLoopNote(account.books),
            clock: self.clock,
            nothingCameUp: self.nothingCameUp,
            clientID: { load.clientID($0) }
        )
    }
}

/// Creates the shards of a group, one on each event loop; they report as group number `group` of the run.
enum Shards {
    static func make<Load: Workload>(
        _ load: Load,
        on loops: [any EventLoop],
        plan: LoadPlan,
        readSize: Int,
        connectors: @escaping @Sendable (LoopContext) -> any ClientConnector,
        hasSockets: Bool = true,
        group: Int = 0,
        events: AsyncStream<RunEvent>.Continuation
    ) async -> [ShardHandle<Load.Work>] {
        var handles: [ShardHandle<Load.Work>] = []
        for (index, loop) in loops.enumerated() {
            let handle = try? await loop.submit {
                // Own timers and buffers: two groups on a loop share only its thread.
                let context = LoopContext(eventLoop: loop, readSize: readSize, tick: hasSockets ? .adaptive : .exact)
                let shard = Shard<Load.Work>(context: context, plan: plan, index: index, of: loops.count) {
                    events.yield(.shard($0, group: group))
                }
                shard.work = load.makeWork(on: shard, connector: connectors(context))
                let handle = ShardHandle(shard)
                if let loop = loop as? SocketLoop {
                    loop.adopt(context)
                    return loop.makeSucceededFuture(handle)
                }
                return hasSockets ? Doorbell.install(on: context).map { handle } : loop.makeSucceededFuture(handle)
            }.flatMap { $0 }.get()
            if let handle { handles.append(handle) }
        }
        return handles
    }
}
