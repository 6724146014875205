import Foundation
import TestSupport
import Testing

/// Four hosts on one wire: network namespaces with a bridge in the first.
///
/// They end with their processes.
struct HostNetwork {
    /// The namespaces' processes.
    private let holders: [RunningProgram]

    static let canBeMade =
        (try? RunningProgram.run(
            "/usr/bin/env",
            ["unshare", "--net", "sh", "-ec", "ip link add br0 type bridge; ip link add p1 type veth peer name p2"]
        ))?.status == 0

    static let reason: Comment = "needs root, iproute2 and util-linux, and a kernel with veth and bridge"

    static func address(of host: Int) -> String { "10.77.0.\(host + 1)" }

    /// Runs `body` among the hosts.
    static func with<Result>(_ body: (HostNetwork) async throws -> Result) async throws -> Result {
        var holders: [RunningProgram] = []
        defer { for holder in holders { holder.send(SIGKILL) } }
        for _ in 0..<4 {
            let script = "ip link set lo up; echo up; exec sleep 600"
            let holder = try RunningProgram("/usr/bin/env", ["unshare", "--net", "sh", "-ec", script])
            holders.append(holder)
            try await holder.line()
        }
        let network = HostNetwork(holders: holders)
        try await network.shell(
            0,
            "ip link add br0 type bridge; ip addr add \(self.address(of: 0))/24 dev br0; ip link set br0 up"
        )
        for host in 1..<4 {
            try await network.shell(
                0,
                "ip link add p\(host) type veth peer name eth0 netns \(holders[host].pid); "
                    + "ip link set p\(host) master br0 up"
            )
            try await network.shell(host, "ip addr add \(self.address(of: host))/24 dev eth0; ip link set eth0 up")
        }
        return try await body(network)
    }

    /// Starts the program on a host.
    func clamor(_ host: Int, _ arguments: [String], environment: [String] = []) throws -> RunningProgram {
        try RunningProgram(
            "/usr/bin/env",
            environment + ["nsenter", "--net=/proc/\(self.holders[host].pid)/ns/net", "--", ClamorBinary.path]
                + arguments
        )
    }

    func shell(_ host: Int, _ script: String) async throws {
        let ending = try await RunningProgram(
            "/usr/bin/env",
            ["nsenter", "--net=/proc/\(self.holders[host].pid)/ns/net", "--", "sh", "-ec", script]
        ).ended()
        try #require(ending.status == 0, "\(script): \(ending.errors)")
    }
}
