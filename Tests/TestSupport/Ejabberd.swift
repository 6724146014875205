import Foundation

/// The real server with a configuration of its own on free ports of 127.0.0.1: its MQTT side, and XMPP if asked for.
///
/// XMPP tests start it as an ``XMPPServer``.
///
/// An Erlang node without distribution: no name server is started that would outlive it.
package struct Ejabberd: Sendable {
    package static let isInstalled = FileManager.default.fileExists(atPath: Self.erlang) && Self.hasProgram
    /// For `.enabled(if:)`.
    package static let missing = "needs ejabberd: make test installs it"

    /// The one account there is; MQTT user names are JIDs here.
    package static let username = "clamor@localhost"
    package static let password = "secret"

    package let port: Int
    package let tlsPort: Int
    /// Its path is `/mqtt`.
    package let webSocketPort: Int
    /// Plain, for connections that begin with a PROXY header and no others.
    package let proxyPort: Int
    /// XMPP with STARTTLS, TLS at once, and WebSocket in TLS; 0 unless they were asked for.
    ///
    /// WebSocket without TLS is at ``webSocketPort``; the path of both is `/ws`.
    package let clientPort: Int
    package let clientTLSPort: Int
    package let secureWebSocketPort: Int
    /// For ``XMPPServer/componentDomain``.
    package let componentPort: Int
    package let program: RunningProgram

    private static let erlang = "/usr/bin/erl"
    private static let hasProgram = ["/usr/sbin/ejabberdctl", "/usr/bin/ejabberdctl"]
        .contains { FileManager.default.isExecutableFile(atPath: $0) }

    /// Runs `body` beside a fresh server, which is gone after that.
    ///
    /// - Parameters:
    ///   - certificate: a PEM file with the certificate, what leads to its issuer, and the key.
    ///   - servesXMPP: whether there are listeners and modules for XMPP too.
    ///   - users: accounts `user1`, `user2` ... with the same password.
    ///   - limit: bytes a second of its shaper for XMPP, and a burst of twenty thousand, as Debian has it.
    ///   - registers: whether accounts can be made in-band.
    ///   - body: the test.
    /// - Returns: what `body` returns.
    /// - Throws: what `body` throws, or why there is no server.
    package static func with<Result>(
        certificate: String,
        servesXMPP: Bool = false,
        users: Int = 0,
        limit: Int? = nil,
        registers: Bool = true,
        _ body: (Ejabberd) async throws -> Result
    ) async throws -> Result {
        let folder = try ScratchFolder()
        let server = try await self.start(
            in: folder,
            Setup(certificate: certificate, servesXMPP: servesXMPP, limit: limit, registers: registers),
            users: users
        )
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
        let servesXMPP: Bool
        let limit: Int?
        let registers: Bool
    }

    /// Another process can take a free port before the server binds it: then other ports are tried.
    private static func start(
        in folder: ScratchFolder,
        _ setup: Setup,
        users: Int
    ) async throws -> Ejabberd {
        let servesXMPP = setup.servesXMPP
        var attempt = 1
        while true {
            // Held together, so that they differ.
            let ports = try (0..<(servesXMPP ? 8 : 4)).map { _ in try ReservedPort() }
            let numbers = ports.map(\.port)
            for port in ports { port.release() }
            let path = try folder.write(
                self.configuration(ports: numbers, setup),
                to: "ejabberd-\(attempt).yml"
            )
            let program = try self.run(in: folder, configuration: path, users: users, attempt: attempt)
            do {
                try await program.line { $0.hasPrefix("account ") }
                for port in numbers { try await Listener.wait(for: port, of: program) }
                return Ejabberd(
                    port: numbers[0],
                    tlsPort: numbers[1],
                    webSocketPort: numbers[2],
                    proxyPort: numbers[3],
                    clientPort: servesXMPP ? numbers[4] : 0,
                    clientTLSPort: servesXMPP ? numbers[5] : 0,
                    secureWebSocketPort: servesXMPP ? numbers[6] : 0,
                    componentPort: servesXMPP ? numbers[7] : 0,
                    program: program
                )
            } catch {
                program.send(SIGKILL)
                guard attempt < 5, !(error is CancellationError) else { throw error }
                attempt += 1
            }
        }
    }

    private static func configuration(ports: [Int], _ setup: Setup) -> String {
        let servesXMPP = setup.servesXMPP
        return """
            hosts: ["localhost"\(servesXMPP ? ", \"anon.localhost\"" : "")]
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
                request_handlers: {/mqtt: mod_mqtt\(servesXMPP ? ", /ws: ejabberd_http_ws" : "")}
              - {port: \(ports[3]), ip: "127.0.0.1", module: mod_mqtt, backlog: 1000, use_proxy_protocol: true}
            \(servesXMPP ? Self.clientListeners(ports[4...], setup) : "")
            modules:
              mod_mqtt: {max_queue: infinity}
            \(servesXMPP ? Self.clientModules(setup) : "")

            """
    }

    /// Where no shaper is named none works; a stanza may have a megabyte, a queue what it needs.
    private static func clientListeners(_ ports: ArraySlice<Int>, _ setup: Setup) -> String {
        let ports = Array(ports)
        let shaper = setup.limit == nil ? "" : ", shaper: c2s_shaper"
        let options = "module: ejabberd_c2s, backlog: 4096, max_stanza_size: 1048576, max_fsm_queue: 1000000\(shaper)"
        let rules = setup.limit.map { limit in
            "\nshaper: {normal: {rate: \(limit), burst_size: 20000}}\nshaper_rules: {c2s_shaper: normal}"
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
                hosts: {"\(XMPPServer.componentDomain)": {password: "\(XMPPServer.password)"}}
            registration_timeout: infinity
            host_config:
              anon.localhost:
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

    private static func run(
        in folder: ScratchFolder,
        configuration: String,
        users: Int,
        attempt: Int
    ) throws -> RunningProgram {
        let register =
            "{ok, _} = application:ensure_all_started(ejabberd), "
            + "[ejabberd_auth:try_register(<<\"user\", (integer_to_binary(I))/binary>>, <<\"localhost\">>, "
            + "<<\"\(self.password)\">>) || I <- lists:seq(1, \(users))], "
            + "io:format(\"account ~p~n\", [ejabberd_auth:try_register(<<\"clamor\">>, <<\"localhost\">>, "
            + "<<\"\(self.password)\">>)])."
        return try RunningProgram(
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
