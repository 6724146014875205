import Foundation

/// The built program, as a user starts it.
package enum ClamorBinary {
    /// `CLAMOR_BINARY`, or the one beside the test bundle.
    package static var path: String {
        if let path = ProcessInfo.processInfo.environment["CLAMOR_BINARY"] { return path }
        return URL(filePath: CommandLine.arguments[0]).resolvingSymlinksInPath().deletingLastPathComponent()
            .appending(path: "clamor").path
    }

    /// On GitHub each run of the tests would add itself to the job's summary.
    private static let hasNoSummary: Void = { unsetenv("GITHUB_STEP_SUMMARY") }()

    /// Starts it.
    ///
    /// - Parameters:
    ///   - arguments: of the program.
    ///   - environment: variables as `NAME=VALUE`, beside those of the tests.
    /// - Returns: the program, which runs.
    /// - Throws: the reason why it did not start.
    package static func start(_ arguments: [String], environment: [String] = []) throws -> RunningProgram {
        _ = self.hasNoSummary
        guard !environment.isEmpty else { return try RunningProgram(self.path, arguments) }
        return try RunningProgram("/usr/bin/env", environment + [self.path] + arguments)
    }

    /// Runs it to its end.
    package static func run(_ arguments: [String]) async throws -> RunningProgram.Ending {
        try await self.start(arguments).ended()
    }

    /// Runs `body` beside it, and kills it after that if it has not ended.
    package static func with<Result>(
        _ arguments: [String],
        _ body: (RunningProgram) async throws -> Result
    ) async throws -> Result {
        let program = try self.start(arguments)
        defer { program.send(SIGKILL) }
        return try await body(program)
    }
}
