import Foundation
import TestSupport
import Testing

/// A network of its own: loopback, a range of local ports, a broker at 127.0.0.1:1883, and no connection before.
struct NetworkNamespace {
    let broker: RunningProgram

    static let reason: Comment = "needs root, iproute2 and util-linux: 'unshare --net' with 'ip link set lo up' failed"

    /// For `.enabled(if:)`.
    static let canBeMade =
        (try? RunningProgram.run(
            "/usr/bin/env",
            ["unshare", "--net", "sh", "-c", "ip link set lo up && command -v nsenter"]
        ))?.status == 0

    /// Runs `body` in one, beside its broker.
    static func with<Result>(
        ports: String,
        timeWaitReuse: Int = 2,
        _ body: (NetworkNamespace) async throws -> Result
    ) async throws -> Result {
        let script = """
            ip link set lo up
            echo '\(ports)' > /proc/sys/net/ipv4/ip_local_port_range
            echo '\(timeWaitReuse)' > /proc/sys/net/ipv4/tcp_tw_reuse
            exec "$0" broker -p 1883
            """
        let broker = try RunningProgram(
            "/usr/bin/env",
            ["unshare", "--net", "sh", "-ec", script, ClamorBinary.path]
        )
        defer { broker.send(SIGKILL) }
        try await broker.line { $0 == "listening on 127.0.0.1:1883" }
        return try await body(NetworkNamespace(broker: broker))
    }

    func start(_ program: String, _ arguments: [String]) throws -> RunningProgram {
        try RunningProgram(
            "/usr/bin/env",
            ["nsenter", "--net=/proc/\(self.broker.pid)/ns/net", "--", program] + arguments
        )
    }

    func clamor(_ arguments: [String]) async throws -> RunningProgram.Ending {
        try await self.start(ClamorBinary.path, arguments).ended()
    }

    func clamor(_ line: String) async throws -> RunningProgram.Ending {
        try await self.clamor(line.split(separator: " ").map(String.init))
    }

    /// Runs a command that leaves results.
    func run(_ line: String) async throws -> ClamorRun {
        let folder = try ScratchFolder()
        return try ClamorRun(try await self.clamor(ClamorRun.arguments(line, in: folder)), folder)
    }
}
