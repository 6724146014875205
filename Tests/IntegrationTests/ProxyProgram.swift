import Foundation
import TestSupport
import Testing

/// `clamor proxy` as a process of its own.
struct ProxyProgram {
    let port: Int
    let program: RunningProgram

    /// The counters that it prints at its end.
    struct Counters: Decodable {
        struct Bytes: Decodable {
            var read: Int
            var written: Int
            var discarded: Int
            var pauses: Int
        }

        struct Holds: Decodable {
            var count: Int
            /// Nanoseconds.
            var min: Int64?
        }

        struct Stall: Decodable {
            /// Nanoseconds since 1970.
            var begin: Int64
            var end: Int64
        }

        var connections: Int
        var clientsMaximum: Int
        var turnedAway: [String: Int]
        var ends: [String: Int]
        var up: Bytes
        var down: Bytes
        var delayHolds: Holds
        var stalls: [Stall]

        /// All bytes that were read went on.
        var isLossless: Bool { [self.up, self.down].allSatisfy { $0.read == $0.written && $0.discarded == 0 } }
    }

    private struct NoPort: Error {
        var line: String
    }

    /// Runs `body` beside a proxy before a server on loopback, then interrupts the proxy.
    ///
    /// - Parameters:
    ///   - server: its port.
    ///   - faults: flags, apart by spaces.
    ///   - descriptors: the proxy's limit; without one it is the tests' own.
    ///   - body: what to run.
    /// - Returns: what `body` returns, and what the proxy has counted and said.
    /// - Throws: what `body` throws, or why there is no proxy.
    static func with<Result>(
        before server: Int,
        _ faults: String = "",
        descriptors: Int? = nil,
        _ body: (ProxyProgram) async throws -> Result
    ) async throws -> (Result, Counters, errors: [String]) {
        let arguments = ["proxy", "127.0.0.1:\(server)"] + faults.split(separator: " ").map(String.init)
        let program =
            if let descriptors {
                try RunningProgram(
                    "/bin/sh",
                    ["-c", "ulimit -n \(descriptors) && exec \"$0\" \"$@\"", ClamorBinary.path] + arguments
                )
            } else {
                try ClamorBinary.start(arguments)
            }
        defer { program.send(SIGKILL) }
        let line = try await program.line()
        guard let port = line.split(separator: ":").last.flatMap({ Int($0) }) else { throw NoPort(line: line) }
        #expect(line == "listening on 127.0.0.1:\(port)")
        let result = try await body(ProxyProgram(port: port, program: program))
        program.send(SIGINT)
        let ending = try await program.ended()
        #expect(ending.status == 0)
        let text = ending.outputLines.dropFirst().joined(separator: "\n")
        let counters = try JSONDecoder().decode(Counters.self, from: Data(text.utf8))
        return (result, counters, ending.errorLines)
    }
}
