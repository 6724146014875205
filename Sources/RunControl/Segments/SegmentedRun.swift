import Coordination
import Foundation
package import Measurement
package import Report
package import RunResult
package import Scenario

/// A run in several segments as one: shown while it goes on, and merged at its end.
final class SegmentedRun {
    let options: LoadOptions
    let groups: [any RunGroup]
    private let plan: RunPlan
    let screen: ProgressScreen
    private let count: Int
    private var join: IntervalJoin
    private var watched = WatchedServers()
    /// By kind and group.
    private var errors: [Labels: UInt64] = [:]
    private var view: LiveView?
    private let thresholds: [Threshold]
    /// The threshold with `abort` that was broken on the whole.
    private(set) var broken: String?
    /// The intervals of the whole go there as well.
    var above: (any RunLeader)?

    /// - Parameters:
    ///   - plan: the whole run.
    ///   - count: the number of segments.
    init(_ plan: RunPlan, count: Int) {
        let options = plan.scenario.common
        self.plan = plan
        self.options = options
        // As if this process ran all of them.
        self.groups = plan.scenario.runGroups(plan.names)
        self.count = count
        self.join = IntervalJoin(0..<count)
        // A part of a run is judged by the process that has the whole.
        self.thresholds = options.segment.part == nil ? options.thresholds.compactMap { try? Threshold.parse($0) } : []
        self.screen = ProgressScreen(options)
    }

    /// The clients of this host; of a coordinator those of all.
    var clients: Int { self.groups.reduce(0) { $0 + $1.clients } }

    func open(_ seed: UInt64) async {
        var plan = self.plan.scenario.isFile ? [:] : self.plan.record(seed)
        if let title = self.options.title { plan["name"] = .string(title) }
        var record = RunRecord.begun(self.options.redactedCommand, plan: plan)
        record.thresholds = self.thresholds.map { ThresholdResult(expression: $0.expression, ok: false, value: nil) }
        self.view = LiveView(
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

    // MARK: - During the run

    /// Adds the next interval of a segment.
    ///
    /// - Returns: the threshold with `abort` that it broke on the whole, once.
    func add(_ interval: TimelineInterval, of index: Int) -> String? {
        guard index < self.count else {
            self.watched.add(interval, of: index)
            return nil
        }
        for metric in interval.metrics where metric.isOf(.errors) {
            // A segment that makes up kinds without end must not slow the others.
            guard self.errors.count < 1_000 || self.errors[metric.labels] != nil else { continue }
            self.errors[metric.labels, default: 0] &+= UInt64(bounded: max(0, metric.counter?.value ?? 0))
        }
        return self.show(self.join.add(interval, of: index))
    }

    /// No more intervals come from the segment.
    func end(of index: Int) -> String? { self.show(self.join.end(index)) }

    private func show(_ intervals: [TimelineInterval]) -> String? {
        for interval in intervals.map({ self.watched.showing($0) }) {
            self.view?.add(interval, self.standing)
            self.above?.tell(.interval(interval))
        }
        guard self.broken == nil, !intervals.isEmpty else { return nil }
        self.broken = self.view?.broken(of: self.thresholds)
        return self.broken
    }

    /// The state of the whole before the segments are merged.
    private var standing: LiveStanding {
        let errors = self.errors.sorted { $0.key < $1.key }.map { labels, count in
            ErrorRecord(kind: labels["kind"] ?? "", count: count, firstAt: "", example: "", group: labels[Labels.group])
        }
        return LiveStanding(thresholds: self.view?.results(of: self.thresholds) ?? [], errors: errors)
    }

    // MARK: - The end

    /// Merges the results of the segments, and writes and shows them; `nil` if they cannot be merged.
    ///
    /// `lost`: the segments without results.
    func finish(
        _ segments: [String],
        without lost: [LostSegment] = [],
        in directory: ResultDirectory
    ) async -> ExitStatus? {
        var options = MergeOptions()
        options.directories = segments
        options.results = self.options.results
        let session = MergeSession(options)
        let part = self.options.segment.part
        let merged = session.merged(without: lost, as: part, broken: self.broken, watched: self.watched)
        guard let merged else { return nil }
        let status = session.finish(merged, in: directory, clock: self.above?.clock)
        await self.view?.finish(merged.record, files: directory.path)
        return status
    }
}

/// Runs of this program in child processes, one after the other.
///
/// Each has new loops, ports and memory, and leaves its results like any run.
package actor ChildRuns {
    private var process: SelfProcess?
    /// Shows each run until another one begins.
    private var endpoint: LiveEndpoint?
    package private(set) var isStopped = false

    package init() {}

    /// Runs a command line to its end; returns its exit status and standard error.
    ///
    /// `each` is called with every interval of the run; without it the child sends none.
    package func perform(
        _ arguments: [String],
        each: (@Sendable (TimelineInterval) -> Void)? = nil
    ) async -> (status: Int32, errors: String) {
        guard !self.isStopped else { return (ExitStatus.interrupted.rawValue, "") }
        let process: SelfProcess
        do {
            process = try SelfProcess(
                arguments,
                input: each == nil ? .nowhere : .messages,
                errors: .piped,
                environment: each == nil ? [:] : ParentLink.tellsIntervals
            )
        } catch {
            return (ExitStatus.usage.rawValue, "it did not start: \(error.localizedDescription)")
        }
        self.process = process
        if let each {
            Thread.detachNewThread {
                while let report: SegmentReport = process.messages?.receive() {
                    if case .interval(let interval) = report { each(interval) }
                }
            }
        }
        let result = await SelfProcess.onThread {
            let errors = (try? process.errors?.readToEnd()) ?? Data()
            return (process.wait().status, String(decoding: errors, as: UTF8.self))
        }
        self.process = nil
        return result
    }

    /// Does the work of a session: signals stop its runs, and an endpoint shows them.
    package nonisolated func session(
        _ live: LiveOptions,
        _ screen: ProgressScreen,
        _ work: () async -> ExitStatus
    ) async -> ExitStatus {
        let signals = Task { for await _ in Signals.stream() { await self.stop() } }
        defer { signals.cancel() }
        let endpoint = await LiveEndpoint.start(live, screen)
        await self.show(at: endpoint)
        let status = await work()
        await endpoint?.finish(files: nil)
        return status
    }

    private func show(at endpoint: LiveEndpoint?) { self.endpoint = endpoint }

    /// Runs a command line to its end, and shows it at the session's endpoint.
    ///
    /// - Parameters:
    ///   - arguments: of a run.
    ///   - directory: of its results.
    ///   - run: before its first interval.
    /// - Returns: its exit status and standard error.
    package func perform(
        _ arguments: [String],
        in directory: String,
        showing run: @Sendable () -> LiveRun
    ) async -> (status: Int32, errors: String) {
        guard let endpoint = self.endpoint else { return await self.perform(arguments) }
        let view = LiveView(nil, run(), endpoint: endpoint)
        let result = await self.perform(arguments) { view.add($0, LiveStanding()) }
        if let record = try? RunJSON.read(directory: directory) { view.complete(record) }
        return result
    }

    /// Sends SIGINT to the current run, and starts no other one.
    package func stop() {
        self.isStopped = true
        self.process?.interrupt()
    }
}
