import Foundation

/// A real name server, authoritative for what a test tells it and for nothing else, on a free port of 127.0.0.1.
package struct Dnsmasq: Sendable {
    package static let isInstalled = FileManager.default.isExecutableFile(atPath: Self.path)
    /// For `.enabled(if:)`.
    package static let missing = "needs dnsmasq-base: make test installs it"

    package let port: Int
    package let program: RunningProgram

    private static let path = "/usr/sbin/dnsmasq"

    /// Runs `body` beside a fresh server, which is gone after that.
    ///
    /// - Parameters:
    ///   - records: lines of its configuration, such as `srv-host=_xmpp-client._tcp.x.test,a.x.test,5222,1,2` or
    ///     `host-record=a.x.test,127.0.0.1`.
    ///   - body: the test.
    /// - Returns: what `body` returns.
    /// - Throws: what `body` throws, or why there is no server.
    package static func with<Result>(
        _ records: [String],
        _ body: (Dnsmasq) async throws -> Result
    ) async throws -> Result {
        let folder = try ScratchFolder()
        var attempt = 1
        while true {
            let port = try ReservedPort().port
            let configuration = """
                port=\(port)
                listen-address=127.0.0.1
                bind-interfaces
                no-resolv
                no-hosts
                no-daemon
                local=/test/
                local-ttl=300
                auth-ttl=300
                pid-file=\(folder.path)/pid
                user=\(NSUserName())
                \(records.joined(separator: "\n"))

                """
            let file = try folder.write(configuration, to: "dnsmasq-\(attempt).conf")
            let program = try RunningProgram(self.path, ["--conf-file=\(file)"])
            do {
                // It answers over TCP as well, and is ready for both at once.
                try await Listener.wait(for: port, of: program)
            } catch {
                program.send(SIGKILL)
                guard attempt < 5, !(error is CancellationError) else { throw error }
                attempt += 1
                continue
            }
            do {
                let result = try await body(Dnsmasq(port: port, program: program))
                program.send(SIGKILL)
                _ = try await program.ended()
                return result
            } catch {
                program.send(SIGKILL)
                throw error
            }
        }
    }
}
