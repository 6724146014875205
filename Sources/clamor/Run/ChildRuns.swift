import Foundation
import RunResult

/// Runs of this program, each a process of its own, one after the other.
///
/// Each has fresh loops, ports and memory, and leaves its results as any run does.
actor ChildRuns {
    private var process: SelfProcess?
    private(set) var isStopped = false

    /// Runs a command line to its end; returns its exit status and what it said to standard error.
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

    /// Ends the run that goes on as SIGINT would, and lets no further one begin.
    func stop() {
        self.isStopped = true
        self.process?.interrupt()
    }
}
