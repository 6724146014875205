import CPosix
import Coordination
import Foundation
import HostFit
import Ledger
import LoadEngine
import Measurement
import NIOCore
import NIOPosix
import Report
import RunResult
import Scenario
import Transport
import Workloads

/// One run, from its options to its files and its exit status.
package struct RunSession {
    let run: RunGroups
    var groups: [any RunGroup] { self.run.all }
    let options: LoadOptions
    private let plan: RunPlan
    private let world: RunWorld
    let screen: ProgressScreen
    private let thresholds: [Threshold]
    private let segment: RunSegment
    private let seed: UInt64
    private let host: HostFacts
    private let startedAt: Int64

    /// - Parameters:
    ///   - plan: what runs.
    ///   - leader: begins the run, if a coordinator does.
    ///   - world: where it runs.
    package init(_ plan: RunPlan, leader: (any RunLeader)? = nil, in world: RunWorld = .host) {
        self.world = world
        let options = plan.scenario.common
        self.run = RunGroups(plan.scenario, plan.names)
        self.options = options
        self.plan = plan
        self.segment = RunSegment(options.segment, leader: leader)
        self.screen = ProgressScreen(options, hears: plan.hears)
        self.thresholds = options.thresholds.compactMap { try? Threshold.parse($0) }
        self.seed = options.seed ?? UInt64.random(in: 1...(1 << 53))
        self.host = HostFacts.read()
        self.startedAt = world.realtime()
    }

    /// Runs it, and gives the results to their places.
    package func perform() async -> SessionEnd {
        do throws(RunRefusal) {
            let (run, view) = try await self.run()
            let status = self.screen.end(run, self.options.results)
            await view?.finish(run.record, files: run.directory)
            return SessionEnd(status: status, directory: run.directory)
        } catch {
            return SessionEnd(status: self.screen.refuse(error), words: error.line)
        }
    }

    /// Runs it, and leaves its result directory.
    package func finished() async throws(RunRefusal) -> FinishedRun { try await self.run().finished }

    private func run() async throws(RunRefusal) -> (finished: FinishedRun, view: LiveView?) {
        defer { for group in self.groups { group.close() } }
        try self.options.files.check()
        if !self.world.isProgram { try self.checkBroker() }
        let limits = HostLimits.read(clients: self.clients)
        if self.world.isHost {
            Descriptors.raiseLimit()
            let fit = HostQuestion(groups: self.groups, limits: limits, threads: self.threads)
            if let problem = fit.problem { throw RunRefusal(problem) }
        }
        // The kernel's socket table may take megabytes, which the event loops' heaps could not reuse.
        clamor_return_free_memory()
        try self.run.join(self.plan.scenario, seed: self.seed)
        for group in self.groups {
            do throws(RunRefusal) {
                try group.prepare(seed: self.seed, loops: self.threads, limits: limits)
            } catch {
                throw error.of(group: group.name)
            }
        }
        if self.sockets == .socket, !SocketLoop.isAvailable || !self.groups.allSatisfy(\.options.isPlain) {
            throw RunRefusal("--transport socket is for plain TCP on Linux 5.11 or later; leave it out, or take nio")
        }
        let known = MetricCatalog.joined(self.groups.map { GroupCatalog($0.name, $0.facts.load.known) })
        if let problem = self.thresholds.lazy.compactMap({ $0.problem(in: known) }).first {
            throw RunRefusal("--\(problem)")
        }
        // A segment starts its servers before its leader sends the start.
        if self.options.segment.isLed { try self.startServers() }
        // The watched servers as they are before the first client.
        let isAlone = self.options.segment.part == nil
        let watch =
            self.options.live.watches
            ? try await ServerMonitor(self.options.live, self.run.mqtt, isAlone: isAlone, self.screen) : nil
        let start = try await self.segment.start()
        let startedAt = start.map { Int64($0.uptimeNanoseconds) + self.segment.clockOffset } ?? self.startedAt
        let record = self.firstRecord(startedAt: startedAt)
        let name = self.options.directoryName
        let writer = try RunWriter.open(self.options.outputDirectory, name: name, record, startedAt: startedAt)
        if !self.options.segment.isLed { try self.startServers() }
        return await self.run(record, writer, start: start, watch)
    }

    /// Another program than `clamor` cannot start itself as a broker.
    private func checkBroker() throws(RunRefusal) {
        let names = self.plan.names
        if self.groups.contains(where: \.options.isEmbedded) {
            throw RunRefusal(
                "\(names.text("\(\.host)")): embedded is a process of clamor; start clamor broker and name it"
            )
        }
    }

    private func startServers() throws(RunRefusal) {
        for group in self.groups {
            for line in try group.start(in: self.world) { self.screen.warn(line) }
        }
    }

    /// The thresholds that this process checks: none in a segment, which has only a part of the data.
    private var judged: [Threshold] { self.options.segment.part == nil ? self.thresholds : [] }

    private func run(
        _ record: RunRecord,
        _ writer: sending RunWriter,
        start: NIODeadline?,
        _ watch: ServerMonitor?
    ) async -> (finished: FinishedRun, view: LiveView?) {
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
            watch: watch,
            // With another shape equal times have not equally many operations.
            decidesWithin: self.options.endsDecided && self.options.shape == .level && self.options.arrivals == .even
                ? self.options.duration.map { Double($0) / 1e9 } : nil,
            observesHost: self.world.isHost
        )
        let terminal = self.screen.followTerminal()
        defer { terminal?.cancel() }
        let (loops, sockets, endLoops) = self.world.makeLoops(self.threads, self.sockets)
        let events = AsyncStream<RunEvent>.makeStream()
        let isRegularEnd = self.groups.contains { $0.options.endsBySignal }
        let signals = SignalRoute(isRegularEnd: isRegularEnd)
        signals.add(events.continuation)
        let listening = signals.listen(in: self.world)
        for group in self.groups {
            await group.begin(threads: self.threads, signals: signals, leader: self.segment.leader)
        }
        signals.begins()
        var shards: [LoadGroup<LoadSample>] = []
        for (number, group) in self.groups.enumerated() {
            shards.append(
                await group.makeShards(on: loops, in: self.world, seed: self.seed, number, events.continuation)
            )
        }
        await monitor.watch(self.groups.map(\.recyclers))
        let corrections = self.groups.flatMap(\.clockCorrections)
        let waiting = self.segment.listen(monitor, events.continuation, isRegularEnd, in: self.world) { offset in
            for correct in corrections { correct(offset) }
        }
        let run = LoadRun(
            groups: shards,
            events: events,
            startAt: start,
            awaitOthers: self.segment.leader.map { leader in { @Sendable in leader.tell(.settled) } },
            clock: self.world.clock,
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
        begun.generator.transport = sockets
        if start != nil { begun.startedAt = WallClock.rfc3339(Int64(outcome.began.uptimeNanoseconds) + clockOffset) }
        let measured = begun.measured(samples)
        let delivery = self.run.delivery(samples)
        let results = self.groups.map { $0.result(measured, delivery: delivery) }
        let account = delivery?.account ?? DeliveryAccount()
        var finished = begun.finished(samples, outcome, results, delivery: account, by: terms)
        await monitor.end(without: account.absent + results.flatMap(\.account.absent))
        if let observed { observed.complete(&finished) }
        let over = await self.save(finished, outcome, results, account.segment, monitor)
        await endLoops()
        withExtendedLifetime(shards) {}
        return (over, view)
    }

    private func save(
        _ record: RunRecord,
        _ outcome: RunOutcome,
        _ results: [GroupResult],
        _ ledger: SegmentLedger?,
        _ monitor: RunMonitor
    ) async -> FinishedRun {
        // A merge of segments needs every client of each.
        let isListed = self.options.perClient || self.options.segment.part != nil
        var run = FinishedRun(record, directory: nil)
        run.rows = isListed ? results.flatMap { $0.rows(outcome, record) } : nil
        run.ledger = ledger
        run.record.take(await monitor.findings(of: record))
        run.remarks = self.groups.flatMap { $0.remarks(run.record.part($0.name)) }
        do throws(ResultError) {
            run.directory = try await monitor.save(run)
        } catch {
            self.screen.warn("\(error)")
        }
        return run
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

    private var sockets: SocketKind { LoadOptions.sockets(of: self.groups.map(\.options)) }

    private func firstRecord(startedAt: Int64) -> RunRecord {
        let facts = self.groups.map(\.facts)
        let plan = self.plan.record(self.seed)
        var generator = GeneratorRecord()
        generator.eventLoops = self.threads
        generator.transport = self.sockets
        var record = RunRecord(
            command: self.options.redactedCommand,
            tool: Version.tool,
            host: self.host,
            plan: plan,
            startedAt: WallClock.rfc3339(startedAt),
            segment: self.segment.record(plan: plan, seed: self.seed, thresholds: self.thresholds.map(\.expression)),
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
}
