import Foundation

/// The built program, as a user starts it.
enum ClamorBinary {
    struct Result {
        var status: Int32
        var output: String
        var errors: String

        /// The lines on stderr.
        var errorLines: [String] { self.errors.split(separator: "\n").map(String.init) }
    }

    /// `CLAMOR_BINARY`, or the one beside the test bundle.
    static var path: String {
        if let path = ProcessInfo.processInfo.environment["CLAMOR_BINARY"] { return path }
        return URL(filePath: CommandLine.arguments[0]).resolvingSymlinksInPath().deletingLastPathComponent()
            .appending(path: "clamor").path
    }

    /// Runs it to its end.
    static func run(_ arguments: [String]) throws -> Result {
        let process = Process()
        let output = Pipe()
        let errors = Pipe()
        process.executableURL = URL(filePath: self.path)
        process.arguments = arguments
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = output
        process.standardError = errors
        try process.run()
        // Neither stream is long enough to fill its pipe while the other is read.
        let text = try output.fileHandleForReading.readToEnd() ?? Data()
        let errorText = try errors.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        return Result(
            status: process.terminationStatus,
            output: String(decoding: text, as: UTF8.self),
            errors: String(decoding: errorText, as: UTF8.self)
        )
    }
}
