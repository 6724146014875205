import Foundation
import TestSupport

/// Another implementation of HdrHistogram: PyPI `hdrhistogram`, in the Python that `CLAMOR_PYTHON` names, or `python3`.
enum Python {
    static let command = ProcessInfo.processInfo.environment["CLAMOR_PYTHON"] ?? "python3"

    static let hasHdrHistogram = (try? run("import hdrh.log")) != nil

    struct Failure: Error { var status: Int32 }

    /// Runs a program and gives back what it printed.
    static func run(_ program: String, _ arguments: String...) throws -> String {
        let ending = try RunningProgram.run("/usr/bin/env", [self.command, "-c", program] + arguments)
        guard ending.status == 0 else { throw Failure(status: ending.status) }
        return ending.output
    }
}
