import CPosix
import Foundation
import Glibc
import HostFit
import LoadEngine
import Measurement
import NIOCore
import Report
import RunResult

/// One run over several processes on this host: starts them together, shows their progress, and merges their results.
final class ProcessesSession {
    private let options: LoadOptions
    private let groups: [any RunGroup]
    private let screen: ProgressScreen
    private let count: Int
    private var processes: [SegmentProcess] = []
    private var ready: Set<Int> = []
    /// Segments that have all clients up, or have ended.
    private var settled: Set<Int> = []
    private var ended: Set<Int> = []
    private var hasLoad = false
    private var balances: [Int: [Int: DeliveryBalance]] = [:]
    private var complete: Set<Int> = []
    private var join: IntervalJoin
    /// By kind and group.
    private var errors: [Labels: UInt64] = [:]
    private var view: LiveView?
    private let thresholds: [Threshold]
    private var hasBegun = false
    private var signals = 0
    /// Warnings already printed: segments often report the same ones.
    private var told: Set<String> = []
    private var lastLine: [Int: String] = [:]
    /// Lines from segments before the start.
    private var early: [(index: Int, words: String)] = []
    /// Status of the first segment that ended without results.
    private var failure: ExitStatus?

    /// - Parameters:
    ///   - options: the options of the whole run.
    ///   - groups: the groups as if this process ran all of them.
    init(_ options: LoadOptions, _ groups: [any RunGroup]) {
        self.options = options
        self.groups = groups
        self.count = options.segment.processes?.count ?? 1
        self.join = IntervalJoin(0..<self.count)
        self.thresholds = options.thresholds.compactMap { try? Threshold.parse($0) }
        self.screen = ProgressScreen(options)
    }

    func perform() async -> ExitStatus {
        let directory: ResultDirectory
        do throws(RunRefusal) {
            try self.options.files.check()
            if let problem = self.hostProblem { throw RunRefusal(problem) }
            directory = try .open(self.options.outputDirectory, name: self.options.directoryName)
        } catch {
            return self.screen.refuse(error)
        }
        let segments = (1...self.count).map { "\(directory.partial)/segments/\($0)" }
        await self.run(segments)
        self.screen.endProgress()
        return await self.end(directory, segments)
    }

    /// The whole run as it is shown.
    private func openView(_ seed: UInt64) async -> LiveView {
        var plan = self.groups.count == 1 && self.groups[0].name == nil ? self.groups[0].planRecord(seed: seed) : [:]
        if let title = self.options.title { plan["name"] = .string(title) }
        var record = RunRecord.begun(self.options.redactedCommand, plan: plan)
        record.thresholds = self.thresholds.map { ThresholdResult(expression: $0.expression, ok: false, value: nil) }
        return LiveView(
            self.screen,
            LiveRun(
                record,
                course: LiveCourse(self.options, self.groups),
                clients: self.clients,
                processes: self.count,
                keepsDurations: self.options.live.endpoint != nil || !self.thresholds.isEmpty,
                keepsTimeline: self.options.live.endpoint != nil
            ),
            endpoint: await LiveEndpoint.start(self.options.live, self.screen)
        )
    }

    /// The reason why this host cannot carry all segments; each process checks its own limits.
    private var hostProblem: String? {
        var limits = HostLimits.read(clients: self.clients)
        limits.descriptorsSoft = nil
        return HostQuestion(self.groups, limits: limits, threads: self.threads * self.count).problem
    }

    private var clients: Int { self.groups.reduce(0) { $0 + $1.options.clients } }

    /// Event loops of each process.
    private var threads: Int {
        if let given = self.options.threads { return given }
        let all = LoadOptions.defaultThreads(
            cores: HostFacts.read().cores ?? System.coreCount,
            loopback: self.groups.contains { $0.options.isLoopback }
        )
        return max(1, all / self.count)
    }

    // MARK: - During the run

    private func run(_ directories: [String]) async {
        let (events, continuation) = AsyncStream<SegmentEvent>.makeStream()
        let listening = Task { for await _ in Signals.stream() { continuation.yield(.signal) } }
        defer { listening.cancel() }
        let seed = self.options.seed ?? UInt64.random(in: 1...(1 << 53))
        self.view = await self.openView(seed)
        let terminal = self.screen.followTerminal()
        defer { terminal?.cancel() }
        let offset = HostClock.realtimeOffset()
        let name = String(UInt64.random(in: 1...UInt64.max), radix: 16)
        var running = 0
        for (index, directory) in directories.enumerated() {
            let arguments = self.options.segment.processes?
                .arguments(of: index, seed: seed, threads: self.threads, directory: directory)
            do {
                self.processes.append(
                    try SegmentProcess(
                        index,
                        arguments ?? [],
                        run: name,
                        realtimeOffset: offset,
                        events: continuation
                    )
                )
                running += 1
            } catch {
                self.screen.warn("segment \(index + 1) did not start: \(error.localizedDescription)")
                self.fail(.usage)
                break
            }
        }
        guard running > 0 else { return }
        for await event in events {
            switch event {
            case .ready(let index):
                self.ready.insert(index)
                if self.ready.count == self.count, self.failure == nil, self.signals == 0 { self.begin() }
            case .interval(let index, let interval): self.show(interval, of: index)
            case .settled(let index):
                self.settled.insert(index)
                self.beginLoad()
            case .balance(let index, let balance, let group):
                self.balances[group, default: [:]][index] = balance
                self.checkComplete(group)
            case .line(let index, let line): self.tell(line, of: index)
            case .ended(let index, let status, let isSignal):
                running -= 1
                self.ended(index, status, isSignal, directories[index])
                self.ended.insert(index)
                self.beginLoad()
            case .signal: self.signal()
            }
            if running == 0 { break }
        }
    }

    /// A start time late enough that every process knows it in time; a late process begins after the others.
    private var soon: Int64 { clamor_realtime_nanoseconds() + 500_000_000 }

    private func begin() {
        self.hasBegun = true
        for (index, words) in self.early { self.warn(words, of: index) }
        let start = self.soon
        for process in self.processes { process.begin(at: start) }
    }

    /// Starts the load of waiting segments when all remaining ones have their clients up.
    private func beginLoad() {
        guard !self.hasLoad, !self.settled.isEmpty else { return }
        guard self.settled.union(self.ended).count == self.count else { return }
        self.hasLoad = true
        let start = self.soon
        for process in self.processes where !self.ended.contains(process.index) { process.begin(at: start) }
    }

    /// Ends the drain when all messages from publishers of all segments have arrived.
    private func checkComplete(_ group: Int) {
        guard !self.complete.contains(group), let parts = self.balances[group], parts.count == self.count,
            parts.values.reduce(into: DeliveryBalance(), { $0 += $1 }).isComplete
        else { return }
        self.complete.insert(group)
        for process in self.processes where !self.ended.contains(process.index) { process.complete(group) }
    }

    private func signal() {
        self.signals += 1
        if self.hasBegun {
            for process in self.processes { process.interrupt() }
        } else {
            self.fail(.interrupted)
        }
    }

    /// Ends all segments before the start.
    private func fail(_ status: ExitStatus) {
        if self.failure == nil { self.failure = status }
        guard !self.hasBegun else { return }
        for process in self.processes { process.giveUp() }
    }

    private func show(_ interval: TimelineInterval, of index: Int) {
        for metric in interval.metrics where metric.name == "errors" {
            self.errors[metric.labels, default: 0] += UInt64(max(0, metric.counter?.value ?? 0))
        }
        self.show(self.join.add(interval, of: index))
    }

    private func show(_ intervals: [TimelineInterval]) {
        for interval in intervals { self.view?.add(interval, self.standing) }
    }

    /// The state of the whole before the segments are merged.
    private var standing: LiveStanding {
        let errors = self.errors.sorted { $0.key < $1.key }.map { labels, count in
            ErrorRecord(
                kind: labels["kind"] ?? "",
                count: count,
                firstAt: "",
                example: "",
                group: labels[Labels.group]
            )
        }
        return LiveStanding(thresholds: self.view?.results(of: self.thresholds) ?? [], errors: errors)
    }

    private func tell(_ line: String, of index: Int) {
        let prefix = "clamor: "
        let words = line.hasPrefix(prefix) ? String(line.dropFirst(prefix.count)) : line
        self.lastLine[index] = words
        if self.hasBegun { self.warn(words, of: index) } else { self.early.append((index, words)) }
    }

    private func warn(_ words: String, of index: Int) {
        guard self.told.insert(words).inserted else { return }
        self.screen.warn("segment \(index + 1): \(words)")
    }

    private func ended(_ index: Int, _ status: Int32, _ isSignal: Bool, _ directory: String) {
        self.show(self.join.end(index))
        // A segment with complete results has ended regularly, with any status.
        guard isSignal || (try? RunJSON.read(directory: directory)) == nil else { return }
        let isFirst = self.failure == nil
        self.fail(ExitStatus(ofLostSegment: status, isSignal: isSignal))
        guard self.hasBegun || isFirst else { return }
        // Before the start all segments fail alike, and the first one's message is enough.
        let words = self.early.filter { $0.index == index }
        if !self.hasBegun, !words.isEmpty {
            for (index, words) in words { self.warn(words, of: index) }
            return
        }
        let how = isSignal ? "was ended by signal \(status)" : "ended with exit status \(status), without results"
        let last = self.lastLine[index].map { ": \($0)" } ?? ""
        let left = self.hasBegun ? "; what it had measured is in \(directory).partial" : ""
        self.screen.warn("segment \(index + 1) \(how)\(left)\(last)")
    }

    // MARK: - The end

    private func end(_ directory: ResultDirectory, _ segments: [String]) async -> ExitStatus {
        guard self.hasBegun else {
            // Nothing was measured: removes the created directories if they are empty.
            rmdir(directory.partial + "/segments")
            rmdir(directory.partial)
            if self.failure == .interrupted { self.screen.warn("the run was given up before it began") }
            return self.failure ?? .usage
        }
        var options = MergeOptions()
        options.directories = segments
        options.files = self.options.files
        (options.json, options.quiet, options.strict) = (self.options.json, self.options.quiet, self.options.strict)
        options.summary = self.options.summary
        options.redactedCommand = self.options.redactedCommand
        let session = MergeSession(options)
        guard self.failure == nil, let merged = session.merged() else {
            self.screen.warn("\(directory.partial): the segments are not merged; those that ended are in segments/")
            return self.failure ?? .dataError
        }
        let status = session.finish(merged, in: directory)
        await self.view?.finish(merged.record, files: directory.path)
        return status
    }
}
