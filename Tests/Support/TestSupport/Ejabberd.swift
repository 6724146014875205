import Foundation

/// The real server with a configuration of its own on free ports of 127.0.0.1: XMPP and MQTT.
///
/// XMPP tests get it as an ``XMPPServer``.
///
/// An Erlang node without distribution: no name server is started that would outlive it.
package struct Ejabberd: HostingServer {
    package static let isInstalled = FileManager.default.fileExists(atPath: Self.erlang) && Self.hasProgram
    /// For `.enabled(if:)`.
    package static let missing = "needs ejabberd: make test installs it"

    package static let password = XMPPServer.password

    /// The virtual host; topics and sessions of MQTT belong to one host too.
    package internal(set) var domain: String
    /// Of MQTT: user names are JIDs here.
    package var username: String { "\(XMPPServer.user)@\(self.domain)" }

    /// MQTT.
    package let port: Int
    package let tlsPort: Int
    /// The path of MQTT is `/mqtt`, that of XMPP `/ws`.
    package let webSocketPort: Int
    /// Plain MQTT, for connections that begin with a PROXY header and no others.
    package let proxyPort: Int
    package let clientPort: Int
    package let clientTLSPort: Int
    package let secureWebSocketPort: Int
    package let componentPort: Int
    package let program: RunningProgram
    let folder: ScratchFolder

    private static let erlang = "/usr/bin/erl"
    private static let hasProgram = ["/usr/sbin/ejabberdctl", "/usr/bin/ejabberdctl"]
        .contains { FileManager.default.isExecutableFile(atPath: $0) }

    /// A start with so many virtual hosts is a tenth longer than with one.
    private static let shared = SharedServers<Ejabberd>(hosts: 64) { domains in
        let certificate = try await Certificates.all().bundle(.xmpp)
        return try await Self.start(Setup(certificate: certificate, domains: domains))
    }

    /// Runs `body` with a virtual host of its own at a server that tests share.
    ///
    /// The server's certificate is ``Certificates/Name/xmpp``.
    ///
    /// - Parameters:
    ///   - users: accounts `user1`, `user2` ... with the same password.
    ///   - body: the test.
    /// - Returns: what `body` returns.
    /// - Throws: what `body` throws, or why there is no server.
    package static func with<Result>(
        users: Int = 0,
        _ body: (Ejabberd) async throws -> Result
    ) async throws -> Result {
        let server = try await self.shared.lease()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for user in XMPPServer.users(users) {
                group.addTask { try await XMPPServer.register(user, at: server.domain, port: server.clientPort) }
            }
            try await group.waitForAll()
        }
        return try await body(server)
    }

    /// Runs `body` beside a server of its own, which is gone after that; its domain is `localhost`.
    ///
    /// - Parameters:
    ///   - certificate: a PEM file with the certificate, what leads to its issuer, and the key.
    ///   - users: accounts `user1`, `user2` ... with the same password.
    ///   - limit: bytes a second of its shaper for XMPP, and a burst of twenty thousand, as Debian has it.
    ///   - registers: whether accounts can be made in-band.
    ///   - body: the test.
    /// - Returns: what `body` returns.
    /// - Throws: what `body` throws, or why there is no server.
    package static func withOwn<Result>(
        certificate: String,
        users: Int = 0,
        limit: Int? = nil,
        registers: Bool = true,
        _ body: (Ejabberd) async throws -> Result
    ) async throws -> Result {
        let setup = Setup(
            certificate: certificate,
            domains: ["localhost"],
            users: users,
            limit: limit,
            registers: registers
        )
        let server = try await self.start(setup)
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

    private struct Setup {
        let certificate: String
        let domains: [String]
        /// Beside ``XMPPServer/user``, at each domain.
        var users = 0
        var limit: Int?
        var registers = true
    }

    /// Another process can take a free port before the server binds it: then other ports are tried.
    private static func start(_ setup: Setup) async throws -> Ejabberd {
        let folder = try ScratchFolder()
        var attempt = 1
        while true {
            // Held together, so that they differ.
            let ports = try (0..<8).map { _ in try ReservedPort() }
            let numbers = ports.map(\.port)
            for port in ports { port.release() }
            let path = try folder.write(
                self.configuration(ports: numbers, setup),
                to: "ejabberd-\(attempt).yml"
            )
            let program = try await self.run(in: folder, configuration: path, setup, attempt: attempt)
            do {
                try await program.line { $0 == Self.readyLine }
                for port in numbers { try await Listener.wait(for: port, of: program) }
                return Ejabberd(
                    domain: setup.domains[0],
                    port: numbers[0],
                    tlsPort: numbers[1],
                    webSocketPort: numbers[2],
                    proxyPort: numbers[3],
                    clientPort: numbers[4],
                    clientTLSPort: numbers[5],
                    secureWebSocketPort: numbers[6],
                    componentPort: numbers[7],
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

    private static func configuration(ports: [Int], _ setup: Setup) -> String {
        let hosts = (setup.domains + [XMPPServer.anonymousDomain]).map { "\"\($0)\"" }
        return """
            hosts: [\(hosts.joined(separator: ", "))]
            loglevel: warning
            log_rotate_count: 0
            auth_method: [internal]
            certfiles: ["\(setup.certificate)"]
            listen:
              - {port: \(ports[0]), ip: "127.0.0.1", module: mod_mqtt, backlog: 1000}
              - {port: \(ports[1]), ip: "127.0.0.1", module: mod_mqtt, backlog: 1000, tls: true}
              - port: \(ports[2])
                ip: "127.0.0.1"
                module: ejabberd_http
                request_handlers: {/mqtt: mod_mqtt, /ws: ejabberd_http_ws}
              - {port: \(ports[3]), ip: "127.0.0.1", module: mod_mqtt, backlog: 1000, use_proxy_protocol: true}
            \(self.clientListeners(Array(ports[4...]), setup))
            modules:
              mod_mqtt: {max_queue: infinity}
            \(self.clientModules(setup))

            """
    }

    /// Where no shaper is named none works; a stanza may have a megabyte, a queue what it needs.
    ///
    /// With `global_routes` a component would get what is for all the others.
    private static func clientListeners(_ ports: [Int], _ setup: Setup) -> String {
        let shaper = setup.limit == nil ? "" : ", shaper: c2s_shaper"
        let options = "module: ejabberd_c2s, backlog: 4096, max_stanza_size: 1048576, max_fsm_queue: 1000000\(shaper)"
        let rules = setup.limit.map { limit in
            "\nshaper: {normal: {rate: \(limit), burst_size: 20000}}\nshaper_rules: {c2s_shaper: normal}"
        }
        let components = setup.domains.map {
            "\"\(XMPPServer.componentDomain(at: $0))\": {password: \"\(XMPPServer.password)\"}"
        }
        return """
              - {port: \(ports[0]), ip: "127.0.0.1", \(options), starttls: true}
              - {port: \(ports[1]), ip: "127.0.0.1", \(options), tls: true}
              - port: \(ports[2])
                ip: "127.0.0.1"
                module: ejabberd_http
                tls: true
                request_handlers: {/ws: ejabberd_http_ws}
              - port: \(ports[3])
                ip: "127.0.0.1"
                module: ejabberd_service
                global_routes: false
                hosts: {\(components.joined(separator: ", "))}
            registration_timeout: infinity
            host_config:
              \(XMPPServer.anonymousDomain):
                auth_method: [anonymous]
                anonymous_protocol: sasl_anon
                allow_multiple_connections: true\(rules ?? "")
            """
    }

    private static func clientModules(_ setup: Setup) -> String {
        """
          mod_roster: {versioning: true}
          mod_privacy: {}
          mod_blocking: {}
          mod_ping: {}
          mod_register: {access: \(setup.registers ? "all" : "none"), ip_access: all}
          mod_muc: {access: all, access_create: all, max_users: 10000, max_user_conferences: 10000}
          mod_carboncopy: {}
          mod_client_state: {}
          mod_mam: {default: always}
          mod_caps: {}
          mod_disco: {}
          mod_version: {show_os: false}
          mod_offline: {}
          mod_stream_mgmt: {max_ack_queue: infinity, resend_on_timeout: if_offline}
          mod_pubsub: {access_createnode: all, plugins: [flat, pep]}
        """
    }

    /// The line that it prints then.
    private static let readyLine = "accounts are made"

    private static func run(
        in folder: ScratchFolder,
        configuration: String,
        _ setup: Setup,
        attempt: Int
    ) async throws -> RunningProgram {
        func list(_ words: [String]) -> String { "[\(words.map { "<<\"\($0)\">>" }.joined(separator: ", "))]" }
        let register =
            "{ok, _} = application:ensure_all_started(ejabberd), "
            + "[ok = ejabberd_auth:try_register(User, Host, <<\"\(self.password)\">>) || "
            + "Host <- \(list(setup.domains)), User <- \(list([XMPPServer.user] + XMPPServer.users(setup.users)))], "
            + "io:format(\"\(self.readyLine)~n\")."
        return try await RunningProgram.endingWithThisProcess(
            "/usr/bin/env",
            [
                "EJABBERD_CONFIG_PATH=\(configuration)", "EJABBERD_LOG_PATH=\(folder.path("ejabberd.log"))",
                "ERL_LIBS=/usr/lib/\(self.library)", "ERL_CRASH_DUMP=\(folder.path("crash"))", "HOME=\(folder.path)",
                self.erlang, "-noinput", "-mnesia", "dir", "\"\(folder.path("mnesia-\(attempt)"))\"", "-eval", register,
            ]
        )
    }

    /// The folder of Debian's Erlang libraries.
    private static var library: String {
        #if arch(arm64)
        "aarch64-linux-gnu"
        #else
        "x86_64-linux-gnu"
        #endif
    }
}
