import ArgumentParser
import CPosix
import Measurement
import NIOCore
import NIOPosix
import Report
import Workloads

/// `clamor decode` from its options to its files and its exit status.
struct DecodeSession {
    private let options: DecodeOptions
    private let screen: ProgressScreen
    private let thresholds: [Threshold]
    private let seed: UInt64
    private let startedAt: Int64

    init(_ options: DecodeOptions) {
        self.options = options
        self.screen = ProgressScreen(quiet: options.quiet, json: options.json, plain: options.isPlain)
        self.thresholds = options.thresholds.compactMap { try? Threshold.parse($0) }
        self.seed = options.seed ?? UInt64.random(in: 1...(1 << 53))
        self.startedAt = clamor_realtime_nanoseconds()
    }

    func perform() async -> ExitStatus {
        let known = DecodeMetrics.known(self.options.lanes)
        if let problem = self.thresholds.lazy.compactMap({ $0.problem(in: known) }).first {
            return self.refuse("--\(problem)", .usage)
        }
        if let problem = self.options.files.problem { return self.refuse(problem, .cannotCreate) }
        let record = self.firstRecord
        let writer: RunWriter
        do throws(ResultError) {
            writer = try self.openResults(record)
        } catch {
            return self.refuse("--out \(error)", .cannotCreate)
        }
        let monitor = DecodeMonitor(
            thresholds: self.thresholds,
            writer: writer,
            record: record,
            screen: self.screen
        )
        let stop = StopFlag()
        let work = Task { await self.measure(monitor, stop) }
        let signals = Task {
            for await _ in Signals.stream() {
                stop.set()
                work.cancel()
            }
        }
        let outcome = await work.value
        signals.cancel()
        self.screen.endProgress()
        if outcome == .planned, await monitor.hasUnknownAllocations,
            let allocations = await AllocationPass.ask(self.options.arguments(seed: self.seed))
        {
            await monitor.add(allocations: allocations)
        }
        let complete = await monitor.finish(outcome)
        return await self.save(complete, outcome, monitor)
    }

    /// Lane after lane.
    private func measure(_ monitor: DecodeMonitor, _ stop: StopFlag) async -> DecodeOutcome {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let streams = DecodeStreams(self.options, seed: self.seed)
        var outcome = DecodeOutcome.planned
        for lane in self.options.lanes where outcome == .planned {
            await monitor.begin(lane)
            let run = DecodeLaneRun(
                lane: lane,
                options: self.options,
                seed: self.seed,
                loop: group.next(),
                stop: stop
            )
            do {
                try await run.perform(streams) { await monitor.add($0) }
                if let broken = await monitor.brokenThreshold { outcome = .thresholdBroken(broken) }
                if stop.isSet { outcome = .interrupted }
            } catch {
                outcome = .fault(lane, error as? DecodeFault ?? .connection("\(error)"))
            }
        }
        try? await group.shutdownGracefully()
        return outcome
    }

    // MARK: - Records and the exit status

    private var firstRecord: RunRecord {
        var record = RunRecord(
            command: self.options.redactedCommand,
            tool: ToolRecord(name: "clamor", version: Clamor.configuration.version),
            host: HostFacts.read(),
            plan: self.options.planRecord(seed: self.seed),
            startedAt: WallClock.rfc3339(self.startedAt)
        )
        record.generator.eventLoops = 1
        // Not yet held: so that they can be judged even if the run is killed.
        record.thresholds = self.thresholds.map { ThresholdResult(expression: $0.expression, ok: false, value: nil) }
        return record
    }

    private func openResults(_ record: RunRecord) throws(ResultError) -> RunWriter {
        let directory: ResultDirectory
        if let path = self.options.outputDirectory {
            directory = try ResultDirectory.create(path)
        } else {
            directory = try ResultDirectory.createDefault(name: "decode", startedAt: self.startedAt)
        }
        return try RunWriter(directory, record: record, startedAt: self.startedAt)
    }

    private func save(_ record: RunRecord, _ outcome: DecodeOutcome, _ monitor: DecodeMonitor) async -> ExitStatus {
        var files: String?
        do throws(ResultError) {
            files = try await monitor.save(record)
        } catch {
            self.screen.warn("\(error)")
        }
        if self.options.json {
            if let text = try? RunJSON.text(record) { self.screen.write(text) }
        } else {
            self.screen.show(Summary(record, files: files, style: self.screen.style).text)
        }
        if let problem = self.options.files.write(record, isStrict: self.options.strict) {
            self.screen.warn(problem)
            files = nil
        }
        if files == nil { return .cannotCreate }
        let status = self.status(record, outcome)
        switch status {
        case .success, .usage, .dataError, .cannotCreate: break
        case .unavailable, .interrupted, .unreconciled, .generatorLimited:
            if let words = record.verdict?.reasons.first?.text { self.screen.warn(words) }
        case .thresholdFailed:
            let failed = record.thresholds.filter { !$0.ok }.map { "'\($0.expression)'" }
            self.screen.warn("threshold failed: " + failed.joined(separator: ", "))
        }
        return status
    }

    /// The first status that applies, in the order of the design.
    private func status(_ record: RunRecord, _ outcome: DecodeOutcome) -> ExitStatus {
        switch outcome {
        case .fault(_, .connection): return .unavailable
        case .interrupted: return .interrupted
        // The speed of a decoder that loses packets is worth nothing, so this needs no --strict.
        case .fault: return .unreconciled
        case .planned, .thresholdBroken: break
        }
        if self.options.strict, record.verdict?.state == .generatorLimited { return .generatorLimited }
        return record.thresholds.allSatisfy(\.ok) ? .success : .thresholdFailed
    }

    private func refuse(_ line: String, _ status: ExitStatus) -> ExitStatus {
        self.screen.warn(line)
        return status
    }
}

extension DecodeOptions {
    /// The plan as `run.json` holds it.
    fileprivate func planRecord(seed: UInt64) -> [String: JSONValue] {
        var plan: [String: JSONValue] = [
            "command": "decode",
            "protocol": .string(self.protocolName),
            "sizes_bytes": .array(self.sizes.map { .integer(Int64($0)) }),
            "mix": .bool(self.isMix),
            "forms": .array(self.forms.map { .string($0.rawValue) }),
            "paths": .array(self.paths.map { .string($0.rawValue) }),
            "sink": self.copies ? "copy" : "view",
            "read_size": .integer(Int64(self.readSize)),
            "warmup_seconds": .number(Double(self.warmup) / 1e9),
            "duration_seconds": .number(Double(self.duration) / 1e9),
            "seed": .integer(Int64(clamping: seed)),
        ]
        if self.isXMPP { return plan }
        plan["protocol_level"] = .integer(Int64(self.protocolLevel))
        plan["topic"] = .string(self.topic)
        plan["qos"] = .array(self.qualities.map { .integer(Int64($0)) })
        return plan
    }
}
