import CPosix
import Foundation
import Measurement
import NIOCore
import NIOPosix
import Report
import RunControl
import RunResult
import Scenario
import Workloads

/// One `clamor decode`, from its options to its files and its exit status.
struct DecodeSession {
    private let options: DecodeOptions
    private let screen: ProgressScreen
    private let thresholds: [Threshold]
    private let seed: UInt64
    private let startedAt: Int64

    init(_ options: DecodeOptions) {
        self.options = options
        self.screen = ProgressScreen(options)
        self.thresholds = options.thresholds.compactMap { try? Threshold.parse($0) }
        self.seed = options.seed ?? UInt64.random(in: 1...(1 << 53))
        self.startedAt = clamor_realtime_nanoseconds()
    }

    func perform() async -> ExitStatus {
        do throws(RunRefusal) {
            let known = DecodeMetrics.known(self.options.lanes)
            if let problem = self.thresholds.lazy.compactMap({ $0.problem(in: known) }).first {
                throw RunRefusal("--\(problem)")
            }
            try self.options.files.check()
            let record = self.firstRecord
            let path = self.options.outputDirectory
            let writer = try RunWriter.open(path, name: "decode", record, startedAt: self.startedAt)
            return await self.perform(record, writer)
        } catch {
            return self.screen.refuse(error)
        }
    }

    private func perform(_ record: RunRecord, _ writer: sending RunWriter) async -> ExitStatus {
        let monitor = DecodeMonitor(thresholds: self.thresholds, writer: writer, record: record, screen: self.screen)
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
        let complete = await monitor.finish(outcome)
        return await self.save(complete, monitor)
    }

    /// Runs one lane after the other.
    private func measure(_ monitor: DecodeMonitor, _ stop: StopFlag) async -> DecodeEnd {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let streams = DecodeStreams(self.options, seed: self.seed)
        var outcome = DecodeEnd.planned
        for lane in self.options.lanes where outcome == .planned {
            await monitor.begin(lane)
            let run = DecodeLaneRun(lane: lane, options: self.options, seed: self.seed, loop: group.next(), stop: stop)
            do {
                try await run.perform(streams) { await monitor.add($0) }
                if await monitor.brokenThreshold != nil { outcome = .thresholdBroken }
                if stop.isSet { outcome = .interrupted }
            } catch DecodeFault.connection(let words) {
                outcome = .connection("\(lane.name): \(words)")
            } catch {
                let words = "\(lane.name): \(error)"
                outcome = error is DecodeFault ? .decoded(words) : .connection(words)
            }
        }
        try? await group.shutdownGracefully()
        return outcome
    }

    // MARK: - Records and the exit status

    private var firstRecord: RunRecord {
        var record = RunRecord(
            command: self.options.redactedCommand,
            tool: Version.tool,
            host: HostFacts.read(),
            plan: self.options.planRecord(seed: self.seed),
            startedAt: WallClock.rfc3339(self.startedAt)
        )
        record.generator.eventLoops = 1
        // Written as failed first, so that the thresholds are in the record even if the run is killed.
        record.thresholds = self.thresholds.map { ThresholdResult(expression: $0.expression, ok: false, value: nil) }
        return record
    }

    private func save(_ record: RunRecord, _ monitor: DecodeMonitor) async -> ExitStatus {
        var files: String?
        do throws(ResultError) {
            files = try await monitor.save(record)
        } catch {
            self.screen.warn("\(error)")
        }
        return self.screen.end(FinishedRun(record, directory: files), self.options.results)
    }
}

extension DecodeOptions {
    /// The plan in `run.json`.
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
