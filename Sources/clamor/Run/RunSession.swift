import ArgumentParser
import CPosix
import EmbeddedBroker
import Foundation
import LoadEngine
import LoopContext
import Measurement
import NIOCore
import NIOPosix
import Report
import Transport
import Workloads

/// One run from its options to its files and its exit status.
struct RunSession {
    private let options: RunOptions
    private let screen: ProgressScreen
    private let thresholds: [Threshold]
    private let seed: UInt64
    private let host: HostFacts
    private let startedAt: Int64

    init(_ options: RunOptions) {
        self.options = options
        self.screen = ProgressScreen(quiet: options.quiet, json: options.json)
        self.thresholds = options.thresholds.compactMap { try? Threshold.parse($0) }
        self.seed = options.seed ?? UInt64.random(in: 1...(1 << 53))
        self.host = HostFacts.read()
        self.startedAt = clamor_realtime_nanoseconds()
    }

    func perform() async -> ExitStatus {
        let clients = self.options.publishers + self.options.subscribers
        Descriptors.raiseLimit()
        let limits = HostLimits.read(clients: clients)
        if let problem = self.unfit(limits) { return self.refuse(problem, .usage) }
        let sources: SourceAddresses
        do {
            sources = try self.options.sources(clients: clients, limits: limits)
        } catch {
            return self.refuse("\(error)", .usage)
        }
        // The kernel's table of sockets may be megabytes, which the event loops' heaps would never get.
        clamor_return_free_memory()
        let run = UInt32.random(in: 1...UInt32.max)
        let load = self.options.load(run: run, seed: self.seed)
        if self.options.validates, let problem = load.problem() {
            return self.refuse("\(problem); correct it, or send it as it is with --validate off", .usage)
        }
        let metrics = MQTTMetrics(for: load, loops: self.threads)
        let known = metrics.known(for: load)
        if let problem = self.thresholds.lazy.compactMap({ $0.problem(in: known) }).first {
            return self.refuse("--\(problem)", .usage)
        }
        var record = self.firstRecord(load)
        let writer: RunWriter
        do throws(ResultError) {
            writer = try self.openResults(record)
        } catch {
            return self.refuse("--out \(error)", .cannotCreate)
        }
        var broker: EmbeddedProcess?
        if case .embedded(let faults) = self.options.target {
            do {
                broker = try EmbeddedProcess(faults: faults)
            } catch {
                return self.refuse("\(error)", .unavailable)
            }
        }
        defer { broker?.stop() }
        record.generator.eventLoops = self.threads
        return await self.perform(load, metrics, sources, record, writer, broker)
    }

    private func perform(
        _ load: MQTTLoad,
        _ metrics: MQTTMetrics,
        _ sources: SourceAddresses,
        _ record: RunRecord,
        _ writer: sending RunWriter,
        _ broker: EmbeddedProcess?
    ) async -> ExitStatus {
        let targets = self.options.targets(brokerPort: broker?.port ?? 0)
        let monitor = RunMonitor(
            options: self.options,
            thresholds: self.thresholds,
            metrics: metrics,
            load: load,
            writer: writer,
            record: record,
            screen: self.screen
        )
        let group = MultiThreadedEventLoopGroup(numberOfThreads: self.threads)
        let events = AsyncStream<RunEvent>.makeStream()
        let plan = self.options.plan(targets: targets.count)
        let handles = await self.makeShards(group, plan, load, metrics, targets, sources, events.continuation)
        await monitor.watch(handles)
        if !plan.waitsForConnects, plan.listeners > 0 { self.noteEarlySubscriptions(handles) }
        let run = LoadRun(
            plan: plan,
            shards: handles,
            events: events,
            reconnects: self.options.reconnects > 0,
            observer: monitor
        )
        let signals = self.forwardSignals(to: events.continuation)
        let outcome = await run.perform()
        signals.cancel()
        self.screen.endProgress()
        var results: [MQTTResult] = []
        for handle in handles {
            if let result = await handle.ask({ $0.work?.takeResult() }) ?? nil { results.append(result) }
        }
        let counters = broker?.counters()
        let ending = RunEnding(
            options: self.options,
            load: load,
            outcome: outcome,
            results: results,
            broker: counters,
            thresholds: self.thresholds
        )
        let complete = await monitor.finish(ending)
        let status = await self.save(complete, ending, monitor)
        try? await group.shutdownGracefully()
        withExtendedLifetime(handles) {}
        return status
    }

    private func save(_ record: RunRecord, _ ending: RunEnding, _ monitor: RunMonitor) async -> ExitStatus {
        var files: String?
        do throws(ResultError) {
            files = try await monitor.save(record, clients: self.options.perClient ? ending.clientRows(record) : nil)
        } catch {
            self.screen.warn("\(error)")
        }
        if self.options.json {
            if let text = try? RunJSON.text(record) { self.screen.write(text) }
        } else {
            self.screen.show(Summary(record, files: files, style: self.screen.style).text)
        }
        if files == nil { return .cannotCreate }
        let status = ending.status(record)
        if let line = ending.lastWord(status, record) { self.screen.warn(line) }
        return status
    }

    private func refuse(_ line: String, _ status: ExitStatus) -> ExitStatus {
        self.screen.warn(line)
        return status
    }

    // MARK: - Before the first socket

    var threads: Int {
        self.options.threads
            ?? RunOptions.defaultThreads(
                cores: self.host.cores ?? System.coreCount,
                loopback: self.options.isLoopback
            )
    }

    /// Why this host cannot carry the load.
    private func unfit(_ limits: HostLimits) -> String? {
        let fit = self.options.fit(
            clients: self.options.publishers + self.options.subscribers,
            limits: limits,
            threads: self.threads,
            descriptorsBeside: Descriptors.beside(self.options, threads: self.threads)
        )
        let problems = fit.problems
        return problems.isEmpty ? nil : problems.joined(separator: "; ")
    }

    private func openResults(_ record: RunRecord) throws(ResultError) -> RunWriter {
        let directory: ResultDirectory
        if let path = self.options.outputDirectory {
            directory = try ResultDirectory.create(path)
        } else {
            directory = try ResultDirectory.createDefault(name: self.options.kind.rawValue, startedAt: self.startedAt)
        }
        return try RunWriter(directory, record: record, startedAt: self.startedAt)
    }

    private func firstRecord(_ load: MQTTLoad) -> RunRecord {
        var ledger = LedgerRecord(on: load.hasLedger && self.options.subscribers > 0)
        if !ledger.on {
            ledger.reason =
                self.options.subscribers == 0
                ? "no subscriber in this run" : "messages carry no header: -m was given, or -s below 32"
        }
        var record = RunRecord(
            command: self.options.redactedCommand,
            tool: ToolRecord(name: "clamor", version: Clamor.configuration.version),
            host: self.host,
            plan: self.options.planRecord(seed: self.seed),
            startedAt: WallClock.rfc3339(self.startedAt),
            ledger: ledger
        )
        // Not yet held: so that they can be judged even if the run is killed.
        record.thresholds = self.thresholds.map { ThresholdResult(expression: $0.expression, ok: false, value: nil) }
        return record
    }

    // MARK: - Shards and signals

    private func makeShards(
        _ group: MultiThreadedEventLoopGroup,
        _ plan: LoadPlan,
        _ load: MQTTLoad,
        _ metrics: MQTTMetrics,
        _ targets: [Target],
        _ sources: SourceAddresses,
        _ events: AsyncStream<RunEvent>.Continuation
    ) async -> [ShardHandle<MQTTShardWork>] {
        var handles: [ShardHandle<MQTTShardWork>] = []
        let readSize = self.options.readSize
        let loops = Array(group.makeIterator())
        for (index, loop) in loops.enumerated() {
            let handle = try? await loop.submit {
                let context = LoopContext(eventLoop: loop, readSize: readSize)
                let shard = Shard<MQTTShardWork>(context: context, plan: plan, index: index, of: loops.count) {
                    events.yield(.shard($0))
                }
                let connector = TCPConnector(context: context, targets: targets, sources: sources)
                shard.work = MQTTShardWork(load, metrics: metrics, shard: shard, connector: connector)
                let handle = ShardHandle(shard)
                return Doorbell.install(on: context).map { handle }
            }.flatMap { $0 }.get()
            if let handle { handles.append(handle) }
        }
        return handles
    }

    /// Has every shard note how far its publishers are when a subscription anywhere comes into effect.
    private func noteEarlySubscriptions(_ handles: [ShardHandle<MQTTShardWork>]) {
        for handle in handles {
            handle.tell { shard in
                shard.work?.subscriptionBegan = { subscription in
                    for other in handles { other.tell { $0.work?.noteEarly(subscription) } }
                }
            }
        }
    }

    /// The first signal ends the load in good order, the second closes everything.
    private func forwardSignals(to events: AsyncStream<RunEvent>.Continuation) -> Task<Void, Never> {
        let isRegularEnd = self.options.endsBySignal
        return Task {
            var count = 0
            for await _ in Signals.stream() {
                count += 1
                events.yield(count == 1 ? .stop(isRegularEnd ? .planned : .interrupted) : .abort)
            }
        }
    }
}
