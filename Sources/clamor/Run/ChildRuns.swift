import Foundation

/// Runs of this program, each a process of its own, one after the other.
///
/// Each has fresh loops, ports and memory, and leaves its results as any run does.
actor ChildRuns {
    private var process: pid_t?
    private(set) var isStopped = false

    /// Runs a command line to its end; returns its exit status and what it said to standard error.
    func perform(_ arguments: [String]) async -> (status: Int32, errors: String) {
        guard !self.isStopped else { return (ExitStatus.interrupted.rawValue, "") }
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        process.arguments = arguments
        var environment = ProcessInfo.processInfo.environment
        // One summary of the whole, not one for each.
        environment["GITHUB_STEP_SUMMARY"] = nil
        process.environment = environment
        let errors = Pipe()
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = FileHandle.nullDevice
        process.standardError = errors
        do {
            try process.run()
        } catch {
            return (ExitStatus.usage.rawValue, "it did not start: \(error.localizedDescription)")
        }
        self.process = process.processIdentifier
        let output = errors.fileHandleForReading
        let text = await withCheckedContinuation { (continuation: CheckedContinuation<String, Never>) in
            // Waiting for a child blocks.
            Thread.detachNewThread {
                let data = (try? output.readToEnd()) ?? Data()
                continuation.resume(returning: String(decoding: data, as: UTF8.self))
            }
        }
        process.waitUntilExit()
        self.process = nil
        return (process.terminationStatus, text)
    }

    /// Ends the run that goes on as SIGINT would, and lets no further one begin.
    func stop() {
        self.isStopped = true
        if let process = self.process { kill(process, SIGINT) }
    }
}
