import Foundation

/// Another implementation of HdrHistogram: PyPI `hdrhistogram`, in the Python that `CLAMOR_PYTHON` names, or `python3`.
enum Python {
    static let command = ProcessInfo.processInfo.environment["CLAMOR_PYTHON"] ?? "python3"

    static let hasHdrHistogram = (try? run("import hdrh.log")) != nil

    struct Failure: Error { var status: Int32 }

    /// Runs a program and gives back what it printed.
    static func run(_ program: String, _ arguments: String...) throws -> String {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = [self.command, "-c", program] + arguments
        let output = Pipe()
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        try process.run()
        let data = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw Failure(status: process.terminationStatus) }
        return String(decoding: data, as: UTF8.self)
    }
}
