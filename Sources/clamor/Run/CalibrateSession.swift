import EmbeddedBroker
import FaultInjection
import Foundation
import HostFit
import Measurement
import Report
import RunControl
import RunResult
import Scenario

/// One calibration, from its runs to its file and its exit status.
struct CalibrateSession {
    /// A finished run with other measurements of it.
    private struct Measured {
        var record: RunRecord
        var broker: BrokerCounters
        /// CPU seconds of its process, as counted by the kernel.
        var cpu: Double
    }

    let options: CalibrateOptions
    private var screen: ProgressScreen { ProgressScreen(self.options) }
    private let runs = ChildRuns()
    /// The temporary directory of the runs' results.
    private let folder = FileManager.default.temporaryDirectory.appending(path: "clamor-calibrate-\(UUID().uuidString)")

    func perform() async -> ExitStatus {
        let path = self.options.output
        // The default path may be in a directory that does not exist yet.
        let parent = URL(filePath: path).deletingLastPathComponent()
        try? FileManager.default.createDirectory(at: parent, withIntermediateDirectories: true)
        if let problem = ReportFile.problem(path) {
            self.screen.warn("--out \(path): \(problem)")
            return .cannotCreate
        }
        let runs = self.runs
        let signals = Task { for await _ in Signals.stream() { await runs.stop() } }
        defer { signals.cancel() }
        defer { try? FileManager.default.removeItem(at: self.folder) }
        var calibration = Calibration(
            tool: Version.tool,
            host: HostFacts.read(),
            startedAt: WallClock.rfc3339(Int64(Date().timeIntervalSince1970 * 1e9)),
            quick: self.options.quick
        )
        do throws(RunRefusal) {
            try await self.checkFaults(&calibration)
            try await self.checkPace(&calibration)
            try await self.search(&calibration)
        } catch {
            // An earlier calibration file stays in place.
            let partial = path + ".partial"
            let isKept = (try? ReportFile.write(calibration.text, to: partial)) != nil
            self.screen.warn(error.line + (isKept ? "; what was measured until then is in \(partial)" : ""))
            return error.status
        }
        return self.end(calibration, path)
    }

    private func end(_ calibration: Calibration, _ path: String) -> ExitStatus {
        guard self.screen.attempt({ try ReportFile.write(calibration.text, to: path) }) != nil else {
            return .cannotCreate
        }
        self.screen.show("\n\(CalibrationText.headline(calibration)) · \(path)\n")
        if self.options.json { self.screen.write(calibration.text) }
        let wrong = calibration.checks.filter { !$0.ok }.map(\.name)
        if !calibration.ok { self.screen.warn("not ok: \(wrong.joined(separator: ", ")); \(path) says why") }
        return ExitStatus(isCalibrated: calibration.ok)
    }

    private func add(_ checks: [CalibrationCheck], to calibration: inout Calibration) {
        calibration.add(checks)
        for check in checks { self.screen.show(CalibrationText.line(check)) }
    }

    // MARK: - Parts

    /// Compares the faults that the broker injects and counts with the reports of the runs.
    private func checkFaults(_ calibration: inout Calibration) async throws(RunRefusal) {
        let isQuick = self.options.quick
        self.screen.show("Faults of the embedded broker against reports\n")
        var delayed: [CalibrationCheck.Delayed] = []
        for _ in 0..<(isQuick ? 1 : 5) {
            let run = try await self.measure(
                "pubsub -c 1 -q 0 -s 64 --rate 500/s --duration \(isQuick ? 2 : 4)s",
                broker: "--delay 20ms --delay-every 2"
            )
            let held = run.broker.delayHolds.p50.map { Double($0) / 1e9 }
            delayed.append(.init(record: run.record, held: held, count: run.broker.delayed.total))
        }
        self.add(CalibrationCheck.delay(delayed), to: &calibration)

        let stalled = try await self.measure(
            "pub -c 4 -q 1 -s 64 --rate 500/s -F 16 --duration \(isQuick ? 3 : 10)s",
            broker: "--stall \(isQuick ? "500ms@1s" : "2s@5s")"
        )
        let seconds = stalled.broker.stalls.first.map { Double($0.end - $0.begin) / 1e9 }
        self.add(
            CalibrationCheck.stall(stalled.record, seconds: seconds, rate: 500, inFlight: 4 * 16),
            to: &calibration
        )

        let run = try await self.measure(
            "pubsub -c 6 -q 0,1,2 -s 64 --rate 900/s --duration \(isQuick ? 1 : 5)s --drain 2s",
            broker: "--drop 5% --duplicate 40 --reorder 30"
        )
        self.add(
            [
                .count("lost", .deliveryLost, run.record, injected: run.broker.dropped.total),
                .count("duplicated", .deliveryDuplicated, run.record, injected: run.broker.duplicated.total),
                .count("reordered", .deliveryReordered, run.record, injected: run.broker.reordered.total),
                .count("received", .received, run.record, injected: run.broker.delivered.total),
            ],
            to: &calibration
        )
    }

    /// Measures the accuracy of the rate, and the cost of a message.
    private func checkPace(_ calibration: inout Calibration) async throws(RunRefusal) {
        let isQuick = self.options.quick
        self.screen.show("\nPace and cost of the generator\n")
        let seconds = isQuick ? 2 : 10
        let paced = try await self.measure("pub -c 20 -q 0 -s 64 --rate 5000/s --duration \(seconds)s")
        self.add(
            CalibrationCheck.pacing(paced.record, due: 5_000 * Double(seconds), arrived: paced.broker.received.total),
            to: &calibration
        )
        for qos in [0, 1] {
            let run = try await self.measure("pub -c 20 -q \(qos) -s 64 --duration \(isQuick ? 1 : 5)s")
            self.add([.cpu(run.record, kernel: run.cpu, name: "QoS \(qos)")], to: &calibration)
            guard let sent = run.record.sum(of: .publishSent), sent > 0, let cpu = run.record.generator.cpuSeconds
            else { continue }
            let rate = run.record.metrics.first { $0.isOf(.publishSent) }?.counter?.rate
            let cost = Calibration.Cost(qos: qos, cpuSecondsPerMessage: cpu / sent, messagesPerSecond: rate)
            calibration.costs.append(cost)
            self.screen.show(CalibrationText.line(cost))
        }
    }

    /// Finds the largest rate and number of clients before the generator is the limit.
    private func search(_ calibration: inout Calibration) async throws(RunRefusal) {
        let isQuick = self.options.quick
        self.screen.show("\nLimits of the generator\n")
        let rate = [
            "--slo", "publish_ack_duration p99 < 1s", "--hold", isQuick ? "1s" : "3s",
            "--first", isQuick ? "500/s" : "2000/s",
        ]
        try await self.search(
            "rate",
            flags: rate + (isQuick ? ["--max-rate", "1000/s"] : []),
            load: "pub -h embedded -c 50 -q 1 -s 64",
            into: &calibration
        ) { $0.sum(of: .publishSent).map { $0 / (isQuick ? 1 : 3) } }
        let most = min(self.mostClients ?? 100, isQuick ? 200 : 50_000)
        try await self.search(
            "clients",
            flags: [
                "--slo", "connect_duration p99 < 10s", "--hold", "1s", "--first", "\(min(100, most))",
                "--max-clients", "\(most)",
            ],
            load: "conn -h embedded",
            into: &calibration
        ) { record in
            record.metrics.first { $0.isOf(.connect) && $0.labels["phase"] == "total" }?.duration.map {
                Double($0.answered)
            }
        }
    }

    /// Runs one search, and checks that its result was really reached, with `done` computed from the run.
    private func search(
        _ varies: String,
        flags: [String],
        load: String,
        into calibration: inout Calibration,
        done: (RunRecord) -> Double?
    ) async throws(RunRefusal) {
        let directory = self.folder.appending(path: varies).path
        let words = load.split(separator: " ").map(String.init)
        let (status, errors) = await self.runs.perform(
            ["capacity"] + flags + ["--out", directory, "--quiet", "--no-page"] + words
        )
        try await self.refuse(status, errors, "capacity " + load, but: [.success, .thresholdFailed])
        guard let data = FileManager.default.contents(atPath: directory + "/capacity.json"),
            let record = try? JSONDecoder().decode(CapacityRecord.self, from: data), let answer = record.answer
        else { throw RunRefusal("capacity \(load) left no answer") }
        let limit = Calibration.Limit(
            varies: varies,
            command: load,
            kind: answer.kind,
            load: answer.load,
            reason: answer.reason
        )
        calibration.limits.append(limit)
        self.screen.show(CalibrationText.line(limit))
        let step = record.steps.last { $0.verdict == "held" && $0.load == answer.load }
        let run = step.flatMap { try? RunJSON.read(directory: "\(directory)/\($0.directory)") }
        self.add(
            [
                CalibrationCheck(
                    "largest \(varies)",
                    varies == "rate"
                        ? "publish_sent per second of the largest rate that held, against that rate"
                        : "connects of the largest number of clients that held, against that number",
                    injected: answer.load ?? 0,
                    reported: run.flatMap(done),
                    tolerance: varies == "rate" ? max(1, (answer.load ?? 0) * 0.01) : 0,
                    problem: answer.load == nil ? answer.reason ?? "nothing held" : nil
                )
            ],
            to: &calibration
        )
    }

    /// The number of clients that this host allows with the embedded broker.
    private var mostClients: Int? {
        var load = MQTTOptions(kind: .conn)
        load.common.target = .embedded(arguments: [])
        let limits = HostLimits.read()
        let threads = LoadOptions.defaultThreads(cores: limits.cores ?? 1, loopback: true)
        return load.common.fit(
            clients: nil,
            deliveries: load.deliveries,
            limits: limits,
            threads: threads,
            descriptorsBeside: Descriptors.beside([load.common], threads: threads)
        ).largest?.clients
    }

    // MARK: - One run

    /// Runs a command against its own broker with these faults.
    private func measure(_ line: String, broker faults: String = "") async throws(RunRefusal) -> Measured {
        let broker = try RunRefusal.unless {
            try EmbeddedProcess(arguments: faults.split(separator: " ").map(String.init))
        }
        defer { broker.stop() }
        let directory = self.folder.appending(path: UUID().uuidString).path
        let words = line.split(separator: " ").map(String.init)
        let before = Self.childCPU
        let (status, errors) = await self.runs.perform(
            words + ["-h", "127.0.0.1", "-p", "\(broker.port)", "--out", directory, "--quiet", "--no-page"]
        )
        let cpu = Self.childCPU - before
        try await self.refuse(status, errors, line, but: [.success])
        let record = try RunRefusal.unless { try RunJSON.read(directory: directory) }
        guard let counters = broker.counters() else { throw RunRefusal("\(line): the embedded broker is gone") }
        return Measured(record: record, broker: counters, cpu: cpu)
    }

    /// Throws if the run did not end as it should, with the reason.
    private func refuse(
        _ code: Int32,
        _ errors: String,
        _ line: String,
        but expected: Set<ExitStatus>
    ) async throws(RunRefusal) {
        if await self.runs.isStopped {
            throw RunRefusal("a signal ended the calibration before its time", .interrupted)
        }
        let status = ExitStatus(rawValue: code)
        guard status.map(expected.contains) != true else { return }
        let reason = errors.split(separator: "\n").last.map { $0.trimmingPrefix("clamor: ") }
        throw RunRefusal("clamor \(line): \(reason ?? "it ended with status \(code)")", status ?? .usage)
    }

    /// CPU seconds of all child processes that have ended.
    private static var childCPU: Double {
        var usage = rusage()
        guard getrusage(__rusage_who_t(RUSAGE_CHILDREN.rawValue), &usage) == 0 else { return 0 }
        let times = [usage.ru_utime, usage.ru_stime]
        return times.reduce(0) { $0 + Double($1.tv_sec) + Double($1.tv_usec) / 1e6 }
    }
}
