import CPosix
import Coordination
import Foundation
import HostFit
import Measurement
import Report
import RunResult
import Scenario

/// One run over several processes on this host: starts them together, shows their progress, and merges their results.
///
/// Under a coordinator they are one segment of its run.
final class ProcessesSession {
    private let options: LoadOptions
    private let run: SegmentedRun
    private var screen: ProgressScreen { self.run.screen }
    private let leader: (any RunLeader)?
    private let count: Int
    private let world: RunWorld
    /// By their index.
    private var processes: [any SegmentPeer] = []
    private var conductor: Conductor
    private var hasBegun = false
    /// A begin of the load that came with the start.
    private var earlyLoad: SegmentOrder?
    private var signals = 0
    /// Warnings already printed: segments often report the same ones.
    private var told: Set<String> = []
    private var lastLine: [Int: String] = [:]
    /// Lines from segments before the start.
    private var early: [(index: Int, words: String)] = []
    /// Status of the first segment that ended without results.
    private var failure: ExitStatus?

    /// - Parameters:
    ///   - plan: the whole run, or the segment that the processes share.
    ///   - leader: the coordinator, if there is one.
    ///   - world: where the segments run.
    init(_ plan: RunPlan, leader: (any RunLeader)? = nil, in world: RunWorld) {
        self.world = world
        let options = plan.scenario.common
        self.options = options
        self.leader = leader
        self.count = options.segment.processes?.count ?? 1
        self.conductor = Conductor(segments: self.count)
        self.run = SegmentedRun(plan, count: self.count)
        self.run.above = leader ?? ParentLink.telling(ProcessInfo.processInfo.environment)
    }

    func perform() async -> SessionEnd {
        let directory: ResultDirectory
        do throws(RunRefusal) {
            try self.options.files.check()
            if self.world.isHost, let problem = self.hostProblem { throw RunRefusal(problem) }
            directory = try .open(self.options.outputDirectory, name: self.options.directoryName)
        } catch {
            return SessionEnd(status: self.screen.refuse(error), words: error.line)
        }
        let segments = (1...self.count).map { "\(directory.partial)/segments/\($0)" }
        await self.run(segments)
        self.screen.endProgress()
        return await self.end(directory, segments)
    }

    /// The reason why this host cannot carry all segments; each process checks its own limits.
    private var hostProblem: String? {
        var limits = HostLimits.read(clients: self.run.clients)
        limits.descriptorsSoft = nil
        return HostQuestion(groups: self.run.groups, limits: limits, threads: self.threads * self.count).problem
    }

    /// Event loops of each process.
    private var threads: Int {
        if let given = self.options.threads { return given }
        return max(1, LoadOptions.defaultThreads(self.run.groups, cores: HostFacts.read().cores) / self.count)
    }

    // MARK: - During the run

    private func run(_ directories: [String]) async {
        let (events, continuation) = AsyncStream<SegmentEvent>.makeStream()
        let listening = self.world.makeTask { for await _ in Signals.stream() { continuation.yield(.signal) } }
        defer { listening.cancel() }
        let seed = self.options.seed ?? UInt64.random(in: 1...(1 << 53))
        await self.run.open(seed)
        let terminal = self.screen.followTerminal()
        defer { terminal?.cancel() }
        var running = self.start(directories, seed: seed, continuation)
        guard running > 0 else { return }
        let obeying = self.leader.map { leader in
            self.world.makeTask { for await order in leader.orders { continuation.yield(.order(order)) } }
        }
        defer { obeying?.cancel() }
        for await event in events {
            switch event {
            case .report(let index, let report): self.take(report, of: index, continuation)
            case .start(let time): if let time { self.begin(at: time) } else { self.fail(.interrupted) }
            case .order(let order): self.obey(order)
            case .ended(let index, let status, let isSignal):
                running -= 1
                self.ended(index, status, isSignal, directories[index])
                self.act(self.conductor.ended(index))
            case .signal: self.signal()
            }
            if running == 0 { break }
        }
    }

    /// Starts the processes; returns how many there are.
    private func start(_ directories: [String], seed: UInt64, _ events: AsyncStream<SegmentEvent>.Continuation) -> Int {
        let offset = self.leader?.clockOffset ?? HostClock.realtimeOffset()
        let name = self.leader == nil ? String(UInt64.random(in: 1...UInt64.max), radix: 16) : self.options.segment.run
        for (index, directory) in directories.enumerated() {
            let arguments = self.options.segment.processes?.arguments(
                of: index,
                in: self.options.segment.part,
                seed: seed,
                threads: self.threads,
                directory: directory
            )
            let start = SegmentStart(
                index: index,
                arguments: arguments ?? [],
                run: name,
                realtimeOffset: offset,
                events: { events.yield($0) }
            )
            do {
                self.processes.append(try self.world.startSegment?(start) ?? SegmentProcess(start))
            } catch {
                self.screen.warn("segment \(index + 1) did not start: \(error.localizedDescription)")
                self.fail(.usage)
                break
            }
        }
        return self.processes.count
    }

    private func take(_ report: SegmentReport, of index: Int, _ events: AsyncStream<SegmentEvent>.Continuation) {
        switch report {
        case .ready:
            guard self.conductor.ready(index) == .start, self.failure == nil, self.signals == 0 else { return }
            guard let leader = self.leader else { return self.begin(at: self.soon) }
            _ = self.world.makeTask { events.yield(.start(await leader.start())) }
        case .interval(let interval): self.broke(self.run.add(interval, of: index))
        case .settled: self.act(self.conductor.settled(index))
        case .balance(let balance, let group):
            let decision = self.conductor.balance(balance, of: group, in: index)
            guard let leader = self.leader else { return self.act(decision) }
            if let sum = self.conductor.balance(of: group) { leader.tell(.balance(sum, group: group)) }
        case .line(let line): self.tell(line, of: index)
        case .hello, .echo, .ended, .lost: break
        }
    }

    /// A start time late enough that every process knows it in time; a late process begins after the others.
    private var soon: Int64 { self.world.realtime() + 500_000_000 }

    private func begin(at start: Int64) {
        guard self.failure == nil, !self.hasBegun else { return }
        self.hasBegun = true
        for (index, words) in self.early { self.warn(words, of: index) }
        for process in self.processes { process.tell(.start(at: start)) }
        if let earlyLoad { self.tellPresent(earlyLoad) }
    }

    private func act(_ decision: Conductor.Decision?) {
        switch decision {
        case .load:
            if let leader = self.leader { leader.tell(.settled) } else { self.tellPresent(.load(at: self.soon)) }
        case .complete(let group): self.tellPresent(.complete(group: group))
        case .start, nil: break
        }
    }

    private func tellPresent(_ order: SegmentOrder) { for process in self.present { process.tell(order) } }

    private var present: [any SegmentPeer] {
        self.processes.enumerated().filter { !self.conductor.hasEnded($0.offset) }.map(\.element)
    }

    private func obey(_ order: SegmentOrder) {
        switch order {
        case .load where !self.hasBegun: self.earlyLoad = order
        case .stop where !self.hasBegun: self.fail(.interrupted)
        default: self.tellPresent(order)
        }
    }

    private func broke(_ threshold: String?) {
        if let threshold { self.tellPresent(.stop(.threshold(threshold))) }
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
        self.broke(self.run.end(of: index))
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
        let line = "segment \(index + 1) \(how)\(left)\(last)"
        self.screen.warn(line)
        // A host without one of its processes has no result: the coordinator decides what that means for the others.
        guard let leader = self.leader, self.hasBegun else { return }
        leader.tell(.line(line))
        for (other, process) in self.processes.enumerated() where other != index && !self.conductor.hasEnded(other) {
            process.tell(.stop(.lost))
        }
    }

    // MARK: - The end

    private func end(_ directory: ResultDirectory, _ segments: [String]) async -> SessionEnd {
        guard self.hasBegun else {
            // Nothing was measured: removes the created directories if they are empty.
            directory.removeIfEmpty("segments")
            let words = "the run was given up before it began"
            if self.failure == .interrupted { self.screen.warn(words) }
            return SessionEnd(status: self.failure ?? .usage, words: words)
        }
        let merged = self.failure == nil ? await self.run.finish(segments, in: directory) : nil
        guard let merged else {
            let words = "\(directory.partial): the segments are not merged; those that ended are in segments/"
            self.screen.warn(words)
            return SessionEnd(status: self.failure ?? .dataError, words: words)
        }
        return SessionEnd(status: merged, directory: directory.path)
    }
}
