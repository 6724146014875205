import Foundation

/// The other real server, as Debian packages it, with a configuration of its own on free ports of 127.0.0.1.
///
/// XMPP tests get it as an ``XMPPServer``, each a fresh one: a start costs 0.1 CPU seconds, and one with as many virtual
/// hosts as there are tests 15.
package struct Prosody: ServedDomain {
    package static let isInstalled = FileManager.default.isExecutableFile(atPath: Self.path)
    /// For `.enabled(if:)`.
    package static let missing = "needs prosody: make test installs it"

    package let domain: String
    package let clientPort: Int
    package let clientTLSPort: Int
    package let webSocketPort: Int
    package let secureWebSocketPort: Int
    package let componentPort: Int
    package let program: RunningProgram
    let folder: ScratchFolder

    private static let path = "/usr/bin/prosody"
    private static let domain = "localhost"

    /// Runs `body` beside a server of its own, which is gone after that; its domain is `localhost`.
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
        var setup = Setup(certificate, key: key)
        setup.limit = limit
        setup.registers = registers
        setup.sasl2 = sasl2
        let server = try await self.start(setup)
        do {
            try server.writeAccounts(users: users)
            let result = try await body(server)
            server.program.send(SIGKILL)
            _ = try await server.program.ended()
            return result
        } catch {
            server.program.send(SIGKILL)
            throw error
        }
    }

    private struct Setup {
        let certificate: String
        let key: String
        var limit: Int?
        var registers = true
        var sasl2 = false

        init(_ certificate: String, key: String) {
            self.certificate = certificate
            self.key = key
        }
    }

    /// Another process can take a free port before the server binds it: then other ports are tried.
    private static func start(_ setup: Setup) async throws -> Prosody {
        let folder = try ScratchFolder()
        let modules = setup.sasl2 ? try self.writeModule(in: folder) : nil
        var attempt = 1
        while true {
            // Held together, so that they differ.
            let ports = try (0..<5).map { _ in try ReservedPort() }
            let numbers = ports.map(\.port)
            for port in ports { port.release() }
            let path = try folder.write(
                self.configuration(numbers, folder: folder.path, modules: modules, setup),
                to: "prosody-\(attempt).cfg.lua"
            )
            let program = try await RunningProgram.endingWithThisProcess(self.path, ["-F", "--config", path])
            do {
                for port in numbers { try await Listener.wait(for: port, of: program) }
                return Prosody(
                    domain: self.domain,
                    clientPort: numbers[0],
                    clientTLSPort: numbers[1],
                    webSocketPort: numbers[2],
                    secureWebSocketPort: numbers[3],
                    componentPort: numbers[4],
                    program: program,
                    folder: folder
                )
            } catch {
                program.send(SIGKILL)
                guard attempt < 5, !(error is CancellationError) else { throw error }
                attempt += 1
            }
        }
    }

    /// As the server itself keeps them; it reads an account at each login.
    private func writeAccounts(users: Int) throws {
        let accounts = self.folder.path("data/\(self.domain)/accounts")
        try FileManager.default.createDirectory(atPath: accounts, withIntermediateDirectories: true)
        for name in [XMPPServer.user] + XMPPServer.users(users) {
            let text = "return { [\"password\"] = \"\(XMPPServer.password)\"; };\n"
            try text.write(toFile: "\(accounts)/\(name).dat", atomically: false, encoding: .utf8)
        }
    }

    /// Limits on rates (`mod_limits`) are loaded only with a limit; a stanza may have a megabyte.
    private static func configuration(_ ports: [Int], folder: String, modules: String?, _ setup: Setup) -> String {
        let tls = "{ certificate = \"\(setup.certificate)\", key = \"\(setup.key)\" }"
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
            http_default_host = "\(self.domain)"
            network_settings = { tcp_backlog = 4096 }
            modules_enabled = {
                "roster", "saslauth", "tls", "disco", "ping", "version", "user_account_management",
                "carbons", "mam", "smacks", "pep", "websocket", "offline", "blocklist", "csi", "csi_simple",
                \(setup.registers ? "\"register_ibr\"," : "")
                \(setup.limit == nil ? "" : "\"limits\",")
                \(modules == nil ? "" : self.modulesOfSASL2)
            }
            modules_disabled = { "s2s" }
            admins = { "\(XMPPServer.user)@\(self.domain)" }
            \(setup.registers ? "allow_registration = true" : "")
            \(setup.limit.map { "limits = { c2s = { rate = \"\($0 / 1_000)kb/s\" } }" } ?? "")
            \(modules.map { "plugin_paths = { \"\($0)\" }" } ?? "")
            authentication = "internal_plain"
            c2s_require_encryption = false
            allow_unencrypted_plain_auth = true
            consider_websocket_secure = true
            c2s_stanza_size_limit = 1048576
            ssl = \(tls)
            c2s_direct_tls_ssl = \(tls)
            https_ssl = \(tls)
            VirtualHost "\(self.domain)"
            VirtualHost "\(XMPPServer.anonymousDomain)"
                authentication = "anonymous"
                allow_registration = false
            Component "conference.\(self.domain)" "muc"
            Component "pubsub.\(self.domain)" "pubsub"
            Component "\(XMPPServer.componentDomain(at: self.domain))"
                component_secret = "\(XMPPServer.password)"

            """
    }
}
