import Foundation
import LoopContext
import NIOCore
import TestSupport
import Testing
import Transport

/// That the servers of the tests answer, by every way there is to them.
@Suite("The XMPP servers themselves", .timeLimit(.minutes(10)))
struct XMPPServerTests {
    @Test("both are here: make test installs them")
    func installed() {
        // Elsewhere their tests would silently be none.
        if ProcessInfo.processInfo.environment["CLAMOR_CI"] != nil {
            #expect(XMPPServer.Kind.installed == XMPPServer.Kind.allCases)
            #expect(Dnsmasq.isInstalled)
        }
    }

    @Test(
        "every listener answers a stream header; accounts are made by registration",
        arguments: XMPPServer.Kind.installed
    )
    func listeners(_ kind: XMPPServer.Kind) async throws {
        let pid = try await XMPPServer.with(kind, users: 2, isOwn: true) { server in
            try await Self.plain(server)
            try await Self.anonymous(server)
            try await server.register("fresh")
            await #expect(throws: (any Error).self) { try await server.register("user1") }
            try await Self.login(server, "fresh")
            try await Self.login(server, "user2")
            try await Self.directTLS(server)
            try await Self.startTLS(server)
            try await Self.webSocket(server, isSecure: false)
            try await Self.webSocket(server, isSecure: true)
            return server.program.pid
        }
        #expect(kill(pid, 0) == -1)
    }

    @Test(
        "[XEP-0368 §5] by the records of a real name server to a real server: direct TLS first, or what else there is",
        .enabled(if: Dnsmasq.isInstalled, "\(Dnsmasq.missing)"),
        arguments: XMPPServer.Kind.installed
    )
    func discovery(_ kind: XMPPServer.Kind) async throws {
        try await XMPPServer.with(kind) { server in
            let records = [
                "srv-host=_xmpp-client._tcp.\(server.domain),host.test,\(server.port),5,1",
                "srv-host=_xmpps-client._tcp.\(server.domain),host.test,\(server.directTLSPort),1,1",
                "host-record=host.test,127.0.0.1",
            ]
            try await Dnsmasq.with(records) { names in
                let address = try SocketAddress(ipAddress: "127.0.0.1", port: names.port)
                for kinds in [ServiceKinds.both, .direct, .standard] {
                    var settings = Self.settings(server)
                    settings.applicationProtocols = ["xmpp-client"]
                    try await withServiceLoop(server.domain, servers: [address], kinds: kinds, tls: settings) {
                        loop in
                        let result = try await loop.connect()
                        let isDirect = kinds != .standard
                        #expect(result.error == nil && result.isDirectTLS == isDirect)
                        let port = isDirect ? server.directTLSPort : server.port
                        #expect(result.target == Target(host: "host.test", port: port))
                        #expect((result.phases.tls != nil) == isDirect)
                    }
                }
            }
        }
    }

    private static func plain(_ server: XMPPServer) async throws {
        try await TextConnection.with(port: server.port) { connection in
            try await connection.send(server.header)
            let text = try await connection.until { $0.contains("</stream:features>") }
            for name in ["SCRAM-SHA-1", "PLAIN", "urn:ietf:params:xml:ns:xmpp-tls"] { #expect(text.contains(name)) }
            #expect(text.contains("http://jabber.org/features/iq-register"))
        }
    }

    private static func anonymous(_ server: XMPPServer) async throws {
        try await TextConnection.with(port: server.port) { connection in
            try await connection.send(XMPPServer.header(to: XMPPServer.anonymousDomain))
            let text = try await connection.until { $0.contains("</stream:features>") }
            #expect(text.contains("ANONYMOUS"))
        }
    }

    private static func login(_ server: XMPPServer, _ user: String) async throws {
        try await TextConnection.with(port: server.port) { connection in
            try await connection.send(server.header)
            try await connection.until { $0.contains("</stream:features>") }
            let secret = Data("\0\(user)\0\(XMPPServer.password)".utf8).base64EncodedString()
            try await connection.send(
                "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>\(secret)</auth>"
            )
            let text = try await connection.until { $0.contains("<success") || $0.contains("<failure") }
            #expect(text.contains("<success"), "\(user)")
        }
    }

    private static func settings(_ server: XMPPServer) -> TLSSettings {
        var settings = trusting(server.certificates)
        settings.xmppDomain = server.domain
        return settings
    }

    private static func expectAnswer(_ connection: Connection, _ words: String) async throws {
        try await connection.until { String(decoding: $0.bytes, as: UTF8.self).contains(words) }
    }

    private static func directTLS(_ server: XMPPServer) async throws {
        var settings = Self.settings(server)
        settings.applicationProtocols = ["xmpp-client"]
        try await withTLSLoop(settings, host: "host.test", port: server.directTLSPort) { loop in
            let connection = try await loop.connect(within: .seconds(60)).get()
            try await connection.send(Array(server.header.utf8))
            try await Self.expectAnswer(connection, "features>")
        }
    }

    private static func startTLS(_ server: XMPPServer) async throws {
        try await withStartTLSLoop(Self.settings(server), port: server.port, xmpp: server.domain) { loop in
            let outcome = try await loop.startTLS()
            #expect(outcome.failure == nil)
            try await loop.send(Array(server.header.utf8))
            try await loop.until { String(decoding: $0.secured, as: UTF8.self).contains("features>") }
            #expect(try await loop.binding()?.count == 32)
        }
        var wrong = Self.settings(server)
        wrong.xmppDomain = "elsewhere.test"
        try await withStartTLSLoop(wrong, port: server.port, xmpp: server.domain) { loop in
            guard case .wrongName(let wanted, _)? = try await loop.startTLS().failure else {
                Issue.record("believed")
                return
            }
            #expect(wanted == "elsewhere.test")
        }
        // Its issuer is not trusted: STARTTLS reports the reason.
        var distrusting = Self.settings(server)
        distrusting.authorityFile = server.certificates.certificate(.otherAuthority)
        try await withStartTLSLoop(distrusting, port: server.port, xmpp: server.domain) { loop in
            let outcome = try await loop.startTLS()
            #expect(outcome.failure == .unknownIssuer("CN=Clamor Test CA"))
        }
    }

    private static func webSocket(_ server: XMPPServer, isSecure: Bool) async throws {
        let tls = isSecure ? try TLSContext(Self.settings(server)) : nil
        let settings = try WebSocketSettings.xmpp(path: server.kind.webSocketPath)
        let port = isSecure ? server.secureWebSocketPort : server.webSocketPort
        try await withTestLoop(
            [Target(host: "127.0.0.1", port: port)],
            layers: { context in
                (tls.map { [TLSLayer($0, loop: context)] } ?? [])
                    + [WebSocketLayer(settings, isSecure: isSecure, receive: isSecure ? nil : context.receive)]
            }
        ) { loop in
            let connection = try await loop.connect(within: .seconds(60)).get()
            let open = "<open xmlns='urn:ietf:params:xml:ns:xmpp-framing' to='\(server.domain)' version='1.0'/>"
            try await connection.send(Array(open.utf8))
            try await Self.expectAnswer(connection, "features>")
            // One element for each read: the header's answer, then the features.
            let reads = try await connection.ask { $0.reads.count }
            #expect(reads == 2)
        }
    }
}
