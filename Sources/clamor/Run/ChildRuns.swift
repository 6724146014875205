import Foundation
import Measurement
import Report
import RunResult

/// Runs of this program in child processes, one after the other.
///
/// Each has new loops, ports and memory, and leaves its results like any run.
actor ChildRuns {
    private var process: SelfProcess?
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

    /// Runs a command line to its end, and shows it at the endpoint.
    ///
    /// - Parameters:
    ///   - arguments: of a run.
    ///   - directory: of its results.
    ///   - run: before its first interval.
    ///   - endpoint: shows the run until another one begins.
    /// - Returns: its exit status and standard error.
    func perform(
        _ arguments: [String],
        in directory: String,
        showing run: LiveRun,
        at endpoint: LiveEndpoint
    ) async -> (status: Int32, errors: String) {
        let view = LiveView(nil, run, endpoint: endpoint)
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
