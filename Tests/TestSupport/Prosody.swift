import Foundation

/// The other real server, as Debian packages it, with a configuration of its own on free ports of 127.0.0.1.
///
/// XMPP tests start it as an ``XMPPServer``.
package struct Prosody: Sendable {
    package static let isInstalled = FileManager.default.isExecutableFile(atPath: Self.path)
    /// For `.enabled(if:)`.
    package static let missing = "needs prosody: make test installs it"

    package let clientPort: Int
    package let clientTLSPort: Int
    package let webSocketPort: Int
    package let secureWebSocketPort: Int
    /// For ``XMPPServer/componentDomain``.
    package let componentPort: Int
    package let program: RunningProgram

    private static let path = "/usr/bin/prosody"

    /// Runs `body` beside a fresh server, which is gone after that.
    ///
    /// - Parameters:
    ///   - certificate: PEM file of the certificate.
    ///   - key: PEM file of its key.
    ///   - users: accounts `user1`, `user2` ...
    ///   - limit: bytes a second that `mod_limits` lets through.
    ///   - registers: whether accounts can be made in-band.
    ///   - sasl2: whether it offers SASL2, Bind 2 and tokens too; it needs ``hasSASL2``.
    ///   - body: the test.
    /// - Returns: what `body` returns.
    /// - Throws: what `body` throws, or why there is no server.
    package static func with<Result>(
        certificate: String,
        key: String,
        users: Int = 0,
        limit: Int? = nil,
        registers: Bool = true,
        sasl2: Bool = false,
        _ body: (Prosody) async throws -> Result
    ) async throws -> Result {
        let folder = try ScratchFolder()
        try self.writeAccounts(in: folder, users: users)
        let paths = sasl2 ? try self.writeModule(in: folder) : nil
        let more =
            (registers ? "allow_registration = true" : "")
            + (limit.map { "\nlimits = { c2s = { rate = \"\($0 / 1_000)kb/s\" } }" } ?? "")
            + (paths.map { "\nplugin_paths = { \"\($0)\" }" } ?? "")
        let server = try await self.start(in: folder, certificate: certificate, key: key, more: more)
        do {
            let result = try await body(server)
            server.program.send(SIGKILL)
            _ = try await server.program.ended()
            return result
        } catch {
            server.program.send(SIGKILL)
            throw error
        }
    }

    /// Another process can take a free port before the server binds it: then other ports are tried.
    private static func start(
        in folder: ScratchFolder,
        certificate: String,
        key: String,
        more: String
    ) async throws -> Prosody {
        var attempt = 1
        while true {
            // Held together, so that they differ.
            let ports = try (0..<5).map { _ in try ReservedPort() }
            let numbers = ports.map(\.port)
            for port in ports { port.release() }
            let path = try folder.write(
                self.configuration(numbers, folder: folder.path, certificate: certificate, key: key, more: more),
                to: "prosody-\(attempt).cfg.lua"
            )
            let program = try RunningProgram(self.path, ["-F", "--config", path])
            do {
                for port in numbers { try await Listener.wait(for: port, of: program) }
                return Prosody(
                    clientPort: numbers[0],
                    clientTLSPort: numbers[1],
                    webSocketPort: numbers[2],
                    secureWebSocketPort: numbers[3],
                    componentPort: numbers[4],
                    program: program
                )
            } catch {
                program.send(SIGKILL)
                guard attempt < 5, !(error is CancellationError) else { throw error }
                attempt += 1
            }
        }
    }

    /// As the server itself keeps them.
    private static func writeAccounts(in folder: ScratchFolder, users: Int) throws {
        let accounts = folder.path("data/localhost/accounts")
        try FileManager.default.createDirectory(atPath: accounts, withIntermediateDirectories: true)
        let names = [XMPPServer.user] + (0..<users).map { "user\($0 + 1)" }
        for name in names {
            let text = "return { [\"password\"] = \"\(XMPPServer.password)\"; };\n"
            try text.write(toFile: "\(accounts)/\(name).dat", atomically: false, encoding: .utf8)
        }
    }

    /// Limits on rates (`mod_limits`) are loaded by `more` alone; a stanza may have a megabyte.
    private static func configuration(
        _ ports: [Int],
        folder: String,
        certificate: String,
        key: String,
        more: String
    ) -> String {
        let tls = "{ certificate = \"\(certificate)\", key = \"\(key)\" }"
        return """
            run_as_root = true
            pidfile = "\(folder)/prosody.pid"
            data_path = "\(folder)/data"
            certificates = "\(folder)"
            log = { { levels = { min = "warn" }, to = "console" } }
            interfaces = { "127.0.0.1" }
            c2s_ports = { \(ports[0]) }
            c2s_direct_tls_ports = { \(ports[1]) }
            http_ports = { \(ports[2]) }
            https_ports = { \(ports[3]) }
            component_ports = { \(ports[4]) }
            component_interfaces = { "127.0.0.1" }
            http_interfaces = { "127.0.0.1" }
            https_interfaces = { "127.0.0.1" }
            http_default_host = "localhost"
            network_settings = { tcp_backlog = 4096 }
            modules_enabled = {
                "roster", "saslauth", "tls", "disco", "ping", "version", "user_account_management",
                "carbons", "mam", "smacks", "pep", "websocket", "offline", "blocklist", "csi", "csi_simple",
                \(more.contains("allow_registration") ? "\"register_ibr\"," : "")
                \(more.contains("limits") ? "\"limits\"," : "")
                \(more.contains("plugin_paths") ? self.modulesOfSASL2 : "")
            }
            modules_disabled = { "s2s" }
            admins = { "\(XMPPServer.user)@localhost" }
            \(more)
            authentication = "internal_plain"
            c2s_require_encryption = false
            allow_unencrypted_plain_auth = true
            consider_websocket_secure = true
            c2s_stanza_size_limit = 1048576
            ssl = \(tls)
            c2s_direct_tls_ssl = \(tls)
            https_ssl = \(tls)
            VirtualHost "localhost"
            VirtualHost "anon.localhost"
                authentication = "anonymous"
                allow_registration = false
            Component "conference.localhost" "muc"
            Component "pubsub.localhost" "pubsub"
            Component "\(XMPPServer.componentDomain)"
                component_secret = "\(XMPPServer.password)"

            """
    }
}
