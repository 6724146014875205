import Foundation
import TestSupport
import Testing

/// `clamor broker` as a process of its own, whose counts share no line with the generator's.
struct BrokerProgram {
    let port: Int
    let program: RunningProgram

    /// The counters that it prints at its end.
    struct Counters: Decodable {
        struct PerQoS: Decodable {
            var qos0: Int
            var qos1: Int
            var qos2: Int

            var all: [Int] { [self.qos0, self.qos1, self.qos2] }
            var total: Int { self.qos0 + self.qos1 + self.qos2 }
        }

        struct Holds: Decodable {
            var count: Int
            /// Nanoseconds.
            var p50: Int64?
        }

        struct Stall: Decodable {
            /// Nanoseconds since 1970.
            var begin: Int64
            var end: Int64
        }

        var received: PerQoS
        var delivered: PerQoS
        var dropped: PerQoS
        var duplicated: PerQoS
        var reordered: PerQoS
        var notDeliveredOffline: PerQoS
        var undelivered: PerQoS
        var delayHolds: Holds
        var stalls: [Stall]
        var disconnected: Int
        var disconnects: [String: Int]
        var connections: Int
        var connects: Int
        var connectsRefused: Int
        var proxied: [String: Int]
        var proxyRefused: Int
        var clientsMaximum: Int
    }

    private struct NoPort: Error {
        var line: String
    }

    /// Runs `body` beside a broker, then interrupts the broker.
    static func with<Result>(
        _ faults: String = "",
        _ body: (BrokerProgram) async throws -> Result
    ) async throws -> (Result, Counters) {
        let arguments = ["broker", "-p", "0"] + faults.split(separator: " ").map(String.init)
        return try await ClamorBinary.with(arguments) { program in
            let line = try await program.line()
            guard let port = line.split(separator: ":").last.flatMap({ Int($0) }) else { throw NoPort(line: line) }
            #expect(line == "listening on 127.0.0.1:\(port)")
            let result = try await body(BrokerProgram(port: port, program: program))
            program.send(SIGINT)
            let ending = try await program.ended()
            #expect(ending.status == 0)
            #expect(ending.errors.isEmpty)
            let text = ending.outputLines.dropFirst().joined(separator: "\n")
            return (result, try JSONDecoder().decode(Counters.self, from: Data(text.utf8)))
        }
    }
}
