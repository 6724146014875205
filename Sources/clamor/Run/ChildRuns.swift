import Foundation
import RunResult

/// Runs of this program in child processes, one after the other.
///
/// Each has new loops, ports and memory, and leaves its results like any run.
actor ChildRuns {
    private var process: SelfProcess?
    private(set) var isStopped = false

    /// Runs a command line to its end; returns its exit status and standard error.
    func perform(_ arguments: [String]) async -> (status: Int32, errors: String) {
        guard !self.isStopped else { return (ExitStatus.interrupted.rawValue, "") }
        let process: SelfProcess
        do {
            process = try SelfProcess(arguments, errors: .piped)
        } catch {
            return (ExitStatus.usage.rawValue, "it did not start: \(error.localizedDescription)")
        }
        self.process = process
        let result = await SelfProcess.onThread {
            let errors = (try? process.errors?.readToEnd()) ?? Data()
            return (process.wait().status, String(decoding: errors, as: UTF8.self))
        }
        self.process = nil
        return result
    }

    /// Sends SIGINT to the current run, and starts no other one.
    func stop() {
        self.isStopped = true
        self.process?.interrupt()
    }
}
