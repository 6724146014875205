import Foundation
import Measurement
import Report
import RunResult

/// Runs of this program in child processes, one after the other.
///
/// Each has new loops, ports and memory, and leaves its results like any run.
actor ChildRuns {
    private var process: SelfProcess?
    /// Shows each run until another one begins.
    private var endpoint: LiveEndpoint?
    private(set) var isStopped = false

    /// Runs a command line to its end; returns its exit status and standard error.
    ///
    /// `each` is called with every interval of the run; without it the child sends none.
    func perform(
        _ arguments: [String],
        each: (@Sendable (TimelineInterval) -> Void)? = nil
    ) async -> (status: Int32, errors: String) {
        guard !self.isStopped else { return (ExitStatus.interrupted.rawValue, "") }
        let process: SelfProcess
        do {
            process = try SelfProcess(
                arguments,
                output: each == nil ? .nowhere : .piped,
                errors: .piped,
                environment: each == nil ? [:] : ParentLink.tellsIntervals
            )
        } catch {
            return (ExitStatus.usage.rawValue, "it did not start: \(error.localizedDescription)")
        }
        self.process = process
        if let each {
            Thread.detachNewThread {
                for line in SelfProcess.Lines(of: process.output) {
                    if let interval = ParentLink.interval(line) { each(interval) }
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
    nonisolated func session(
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
    func perform(
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
    func stop() {
        self.isStopped = true
        self.process?.interrupt()
    }
}
