import CPosix
import Foundation
import HostFit
import Ledger
import LoadEngine
import LoopContext
import Measurement
import NIOCore
import NIOPosix
import Report
import RunResult
import Transport
import Workloads

/// One run, from its options to its files and its exit status.
struct RunSession {
    let groups: [any RunGroup]
    let options: LoadOptions
    private let plan: @Sendable (_ seed: UInt64) -> [String: JSONValue]?
    /// The servers of all groups forward messages to each other.
    private let isBridged: Bool
    let screen: ProgressScreen
    private let thresholds: [Threshold]
    private let segment: RunSegment
    private let seed: UInt64
    private let host: HostFacts
    private let startedAt: Int64

    /// A run of groups on one timeline.
    ///
    /// - Parameters:
    ///   - groups: groups with the same phases as `options`; those of a scenario have names.
    ///   - options: the options of the whole run: phases, generator, results.
    ///   - isBridged: the servers of all groups forward messages to each other.
    ///   - leader: begins the run, if a coordinator does.
    ///   - plan: the run's part of the plan in `run.json`; `nil` if the only group's plan is complete.
    init(
        _ groups: [any RunGroup],
        _ options: LoadOptions,
        isBridged: Bool = false,
        leader: (any RunLeader)? = nil,
        plan: @escaping @Sendable (_ seed: UInt64) -> [String: JSONValue]? = { _ in nil }
    ) {
        self.groups = groups
        self.options = options
        self.isBridged = isBridged
        self.plan = plan
        self.segment = RunSegment(options.segment, leader: leader)
        self.screen = ProgressScreen(options)
        self.thresholds = options.thresholds.compactMap { try? Threshold.parse($0) }
        self.seed = options.seed ?? UInt64.random(in: 1...(1 << 53))
        self.host = HostFacts.read()
        self.startedAt = clamor_realtime_nanoseconds()
    }

    func perform() async -> SessionEnd {
        defer { for group in self.groups { group.close() } }
        do throws(RunRefusal) {
            return try await self.prepare()
        } catch {
            return SessionEnd(status: self.screen.refuse(error), words: error.line)
        }
    }

    private func prepare() async throws(RunRefusal) -> SessionEnd {
        try self.options.files.check()
        Descriptors.raiseLimit()
        let limits = HostLimits.read(clients: self.clients)
        let fit = HostQuestion(self.groups, limits: limits, threads: self.threads)
        if let problem = fit.problem { throw RunRefusal(problem) }
        // The kernel's socket table may take megabytes, which the event loops' heaps could not reuse.
        clamor_return_free_memory()
        try MQTTGroup.join(self.groups, seed: self.seed, isBridged: self.isBridged)
        for group in self.groups {
            do throws(RunRefusal) {
                try group.prepare(seed: self.seed, loops: self.threads, limits: limits)
            } catch {
                throw error.of(group: group.name)
            }
        }
        let known = MetricCatalog.joined(self.groups.map { GroupCatalog($0.name, $0.facts.load.known) })
        if let problem = self.thresholds.lazy.compactMap({ $0.problem(in: known) }).first {
            throw RunRefusal("--\(problem)")
        }
        for group in self.groups { try await group.open() }
        // A segment starts its servers before its leader sends the start.
        if self.options.segment.isLed { try self.startServers() }
        let watch = try await self.openWatch()
        let start = try await self.segment.start()
        let startedAt = start.map { Int64($0.uptimeNanoseconds) + self.segment.clockOffset } ?? self.startedAt
        let record = self.firstRecord(startedAt: startedAt)
        let name = self.options.directoryName
        let writer = try RunWriter.open(self.options.outputDirectory, name: name, record, startedAt: startedAt)
        if !self.options.segment.isLed { try self.startServers() }
        return await self.perform(record, writer, start: start, watch)
    }

    private func startServers() throws(RunRefusal) {
        for group in self.groups {
            for line in try group.start() { self.screen.warn(line) }
        }
    }

    /// The thresholds that this process checks: none in a segment, which has only a part of the data.
    private var judged: [Threshold] { self.options.segment.part == nil ? self.thresholds : [] }

    private func perform(
        _ record: RunRecord,
        _ writer: sending RunWriter,
        start: NIODeadline?,
        _ watch: ServerMonitor?
    ) async -> SessionEnd {
        // Times of the record are by the clock of the start, as those of its ledger.
        let clockOffset = self.segment.clockOffset
        let view = await self.openView(record)
        let monitor = RunMonitor(
            self.groups.map(\.facts),
            thresholds: self.judged,
            writer: writer,
            record: record,
            screen: self.screen,
            view: view,
            leader: self.segment.leader ?? ParentLink.telling(ProcessInfo.processInfo.environment),
            watch: watch
        )
        let terminal = self.screen.followTerminal()
        defer { terminal?.cancel() }
        let threads = MultiThreadedEventLoopGroup(numberOfThreads: self.threads)
        let loops = Array(threads.makeIterator())
        let events = AsyncStream<RunEvent>.makeStream()
        let isRegularEnd = self.groups.contains { $0.options.endsBySignal }
        let signals = SignalRoute(isRegularEnd: isRegularEnd)
        signals.add(events.continuation)
        let listening = signals.listen()
        for group in self.groups {
            await group.begin(threads: self.threads, signals: signals, leader: self.segment.leader)
        }
        signals.begins()
        var shards: [LoadGroup<LoadSample>] = []
        for (number, group) in self.groups.enumerated() {
            shards.append(
                await group.makeShards(on: loops, seed: self.seed, number: number, events: events.continuation)
            )
        }
        await monitor.watch(self.groups.map(\.recyclers))
        let corrections = self.groups.flatMap(\.clockCorrections)
        let waiting = self.segment.listen(monitor, events.continuation, isRegularEnd: isRegularEnd) { offset in
            for correct in corrections { correct(offset) }
        }
        let run = LoadRun(
            groups: shards,
            events: events,
            startAt: start,
            awaitOthers: self.segment.tellSettled,
            observer: monitor
        )
        let outcome = await run.perform()
        self.screen.endProgress()
        let cpu = ProcessFacts.read(countingDescriptors: false).cpuNanoseconds
        let observed = outcome.wasAborted ? nil : await watch?.end()
        if let observed { await monitor.add(observed.last) }
        // Before the groups end: they may remove accounts.
        let servers = outcome.stop == .planned ? await self.servers(known: observed?.server) : []
        let cpuBehind = (ProcessFacts.read(countingDescriptors: false).cpuNanoseconds ?? 0) - (cpu ?? 0)
        for group in self.groups {
            for line in await group.end() { self.screen.warn(line) }
        }
        listening.cancel()
        waiting?.cancel()
        let terms = RunTerms(
            thresholds: self.judged,
            stages: self.options.stages.map { RunTerms.Stage(name: $0.name, isWarmup: $0.isWarmup) }
        )
        let samples = await monitor.finish(
            outcome,
            terms,
            cpuBeside: self.groups.reduce(cpuBehind) { $0 + $1.cpuBeside }
        )
        var begun = record
        begun.servers = servers.isEmpty ? nil : servers
        if start != nil { begun.startedAt = WallClock.rfc3339(Int64(outcome.began.uptimeNanoseconds) + clockOffset) }
        let measured = begun.measured(samples)
        let delivery = MQTTGroup.delivery(of: self.groups, samples)
        let results = self.groups.map { $0.result(measured, delivery: delivery) }
        let account = delivery?.account ?? DeliveryAccount()
        var finished = begun.finished(samples, outcome, results, delivery: account, by: terms)
        await monitor.end(without: account.absent + results.flatMap(\.account.absent))
        if let observed { observed.complete(&finished) }
        let status = await self.save(finished, outcome, results, account.segment, monitor, view)
        try? await threads.shutdownGracefully()
        withExtendedLifetime(shards) {}
        return status
    }

    private func save(
        _ record: RunRecord,
        _ outcome: RunOutcome,
        _ results: [GroupResult],
        _ ledger: SegmentLedger?,
        _ monitor: RunMonitor,
        _ view: LiveView?
    ) async -> SessionEnd {
        // A merge of segments needs every client of each.
        let isListed = self.options.perClient || self.options.segment.part != nil
        let rows = isListed ? results.flatMap { $0.rows(outcome, record) } : nil
        var record = record
        record.take(await monitor.findings(of: record))
        var files: String?
        do throws(ResultError) {
            files = try await monitor.save(record, clients: rows, ledger: ledger)
        } catch {
            self.screen.warn("\(error)")
        }
        let remarks = self.groups.flatMap { $0.remarks(record.part($0.name)) }
        let status = self.screen.show(
            record,
            files,
            self.options.files,
            isStrict: self.options.strict,
            remarks: remarks
        )
        await view?.finish(record, files: files)
        return SessionEnd(status: status, directory: files)
    }

    // MARK: - Before the first socket

    var clients: Int { self.groups.reduce(0) { $0 + $1.clients } }

    private var threads: Int {
        self.options.threads
            ?? LoadOptions.defaultThreads(
                cores: self.host.cores ?? System.coreCount,
                loopback: self.groups.contains { $0.options.isLoopback }
            )
    }

    private func firstRecord(startedAt: Int64) -> RunRecord {
        let facts = self.groups.map(\.facts)
        var generator = GeneratorRecord()
        generator.eventLoops = self.threads
        var record = RunRecord(
            command: self.options.redactedCommand,
            tool: .own,
            host: self.host,
            plan: self.planRecord,
            startedAt: WallClock.rfc3339(startedAt),
            segment: self.segment.record(
                plan: self.planRecord,
                seed: self.seed,
                thresholds: self.thresholds.map(\.expression)
            ),
            generator: generator,
            ledger: facts.first?.load.ledger ?? LedgerRecord(on: false)
        )
        let named = facts.compactMap { facts in
            facts.name.map {
                GroupRecord(
                    name: $0,
                    protocolName: facts.load.protocolName,
                    clients: facts.clients,
                    ledger: facts.load.ledger
                )
            }
        }
        if named.isEmpty {
            record.population = ClientCounts(planned: self.clients)
        } else {
            record.groups = named
            record.ledger = .joined(named)
        }
        // Written as failed first, so that the thresholds are in the record even if the run is killed.
        record.thresholds = self.judged.map { ThresholdResult(expression: $0.expression, ok: false, value: nil) }
        return record
    }

    private var planRecord: [String: JSONValue] {
        let plans = self.groups.map { ($0.name ?? "", $0.planRecord(seed: self.seed)) }
        guard var plan = self.plan(self.seed) else { return plans.first?.1 ?? [:] }
        plan["groups"] = .object(Dictionary(plans, uniquingKeysWith: { $1 }).mapValues { .object($0) })
        return plan
    }
}
