import NIOCore
import SASL
import TestSupport
import Testing
import Transport
import XMPP

@Suite("SASL2 on real servers", .timeLimit(.minutes(10)))
struct LiveSASL2Tests {
    private static func account(
        _ user: String,
        at server: XMPPServer,
        password: String = XMPPServer.password
    ) throws -> XMPPAccount {
        XMPPAccount(try JID(local: user, domain: server.domain, resource: "clamor"), password: password)
    }

    private static func options(_ number: Int = 0) -> XMPPStreamOptions {
        var login = XMPPSASL2Options(
            userAgent: XMPPUserAgent(id: "d4565fa7-4d72-4749-b3d3-740edbf8777\(number)", software: "Clamor"),
            tag: "tag"
        )
        login.enablesCarbonsInline = true
        login.usesTokens = true
        var options = XMPPStreamOptions()
        options.login = .sasl2(login)
        options.management = .resume
        return options
    }

    private static func message(to jid: JID, _ body: String) -> XMPPElement {
        XMPPElement(
            "message",
            namespace: XMPPNamespace.client,
            attributes: ["to": jid.description, "type": "chat"],
            children: [.element(XMPPElement("body", namespace: XMPPNamespace.client, text: body))]
        )
    }

    private static func ping(_ client: LiveClient) async throws {
        let time: TimeAmount = try await client.ask { connection, _, answer in
            PingHandler.ping(nil, in: XMPPModuleContext(connection), answer)
        }
        #expect(time > .zero)
    }

    @Test(
        "[XEP-0388] [XEP-0386] one round trip logs in, binds and enables; a server without SASL2 gets the old steps",
        .enabled(if: Prosody.hasSASL2, Comment(rawValue: Prosody.missingSASL2)),
        arguments: XMPPServer.Kind.installed
    )
    func login(_ kind: XMPPServer.Kind) async throws {
        try await XMPPServer.with(kind, sasl2: true) { server in
            try await server.register("one")
            let client = try await LiveClient(server, try Self.account("one", at: server), .startTLS, Self.options())
            try await client.connect()
            let readiness = try #require(try await client.run { $0.readiness })
            let resource = try await client.run { $0.place.pointer.pointee.jid?.resource }
            let hasSASL2 = kind == .prosody
            #expect((readiness.phases.bind == nil) == hasSASL2)
            #expect(readiness.enabled.contains(.carbons) == hasSASL2)
            #expect(resource?.hasPrefix("tag~") == hasSASL2)
            let canResume = try await client.run { $0.place.pointer.pointee.canResume }
            #expect(canResume)
            #expect(try await client.run { $0.place.pointer.pointee.token != nil } == hasSASL2)
            #expect(readiness.offers.isSuperset(of: [.startTLS, .registration, .rosterVersioning, .clientState]))
            #expect(readiness.offers.contains(.preApproval) == hasSASL2)
            try await Self.ping(client)
            try await client.run { $0.connection?.requestAcknowledgement() }
            try await client.until { $0.acknowledged == 1 }
            #expect(try await client.leave() == .answered)
            try await client.shutdown()
        }
    }

    @Test(
        "[XEP-0484] a token logs in without the password, until it is given back",
        .enabled(if: Prosody.hasSASL2, Comment(rawValue: Prosody.missingSASL2))
    )
    func token() async throws {
        try await XMPPServer.with(.prosody, sasl2: true) { server in
            try await server.register("two")
            let client = try await LiveClient(server, try Self.account("two", at: server), .startTLS, Self.options())
            try await client.connect()
            let token = try #require(try await client.run { $0.place.pointer.pointee.token })
            #expect(token.mechanism == "HT-SHA-256-NONE")
            #expect(!token.isExpired(now: 0))
            #expect(token.isExpired(now: .max))
            #expect(token.count == 0)
            #expect(try await client.leave() == .answered)
            try await client.shutdown()

            // It cannot have logged in by its password.
            let account = try Self.account("two", at: server, password: "wrong")
            let other = try await LiveClient(server, account, .startTLS, Self.options())
            try await other.run { $0.place.pointer.pointee.token = token }
            for count in 1...2 {
                try await other.connect()
                #expect(try await other.run { $0.place.pointer.pointee.token?.count } == count)
                try await Self.ping(other)
                #expect(try await other.leave() == .answered)
            }
            try await other.run { $0.place.pointer.pointee.invalidatesToken = true }
            try await other.connect()
            #expect(try await other.run { $0.place.pointer.pointee.token } == nil)
            #expect(try await other.leave() == .answered)

            try await other.run {
                $0.place.pointer.pointee.token = token
                try $0.connect()
            }
            await #expect(throws: (any Error).self) { try await other.until { $0.readiness != nil } }
            try await other.shutdown()
        }
    }

    @Test(
        "[XEP-0484 §4.1] a refused token is forgotten, and the password logs in",
        .enabled(if: Prosody.hasSASL2, Comment(rawValue: Prosody.missingSASL2))
    )
    func refusedToken() async throws {
        try await XMPPServer.with(.prosody, sasl2: true) { server in
            try await server.register("three")
            let client = try await LiveClient(server, try Self.account("three", at: server), .startTLS, Self.options())
            let invented = XMPPFastToken(mechanism: "HT-SHA-256-NONE", token: "invented")
            try await client.run { $0.place.pointer.pointee.token = invented }
            do {
                try await client.connect()
            } catch {
                // The server's module knows no second login on a stream.
                let end = try #require(try await client.run { $0.end })
                guard case .tokenRefused = end else { throw error }
                #expect(end.retry == .soon)
                #expect(try await client.run { $0.place.pointer.pointee.token } == nil)
                try await client.connect()
            }
            let token = try #require(try await client.run { $0.place.pointer.pointee.token })
            #expect(token.token != invented.token)
            #expect(try await client.leave() == .answered)
            try await client.shutdown()
        }
    }

    @Test(
        "[XEP-0198 §9] a cut stream is resumed within its login: nothing is lost, nothing comes twice",
        .enabled(if: Prosody.hasSASL2, Comment(rawValue: Prosody.missingSASL2)),
        arguments: XMPPServer.Kind.installed
    )
    func resumption(_ kind: XMPPServer.Kind) async throws {
        try await XMPPServer.with(kind, sasl2: true) { server in
            try await server.register("alice")
            try await server.register("bob")
            let alice = try await LiveClient(server, try Self.account("alice", at: server), .clear, Self.options(1))
            let bob = try await LiveClient(server, try Self.account("bob", at: server), .clear, Self.options(2))
            try await alice.connect()
            try await bob.connect()
            let target = try #require(try await bob.run { $0.place.pointer.pointee.jid })
            let offers = try await bob.run { $0.readiness?.offers }
            for round in 0..<5 {
                try await alice.run { state in
                    for number in 0..<20 {
                        try state.connection?.send(Self.message(to: target, "\(20 * round + number)"))
                    }
                    // The server reads all of it before it closes.
                    state.connection?.wire.shutOutput()
                }
                try? await alice.until { $0.end != nil }
                // Messages in flight to him are lost.
                try await bob.run { $0.connection?.abort() }
                try? await bob.until { $0.end != nil }
                try await alice.connect()
                try await bob.connect()
                for client in [alice, bob] {
                    let readiness = try #require(try await client.run { $0.readiness })
                    #expect(readiness.resumed)
                    #expect(readiness.lost == 0)
                    #expect((readiness.phases.bind == nil) == (kind == .prosody))
                    #expect(readiness.offers == offers)
                    #expect(readiness.enabled.contains(.carbons) == (kind == .prosody))
                }
            }
            try await bob.until { $0.bodies.count >= 100 }
            try await alice.run { $0.connection?.requestAcknowledgement() }
            try await alice.until { $0.acknowledged == 100 }
            let bodies = try await bob.run { $0.bodies }
            #expect(bodies == (0..<100).map(String.init), "\(bodies.joined(separator: " "))")
            #expect(try await bob.run { $0.place.pointer.pointee.jid } == target)
            #expect(try await alice.leave() == .answered)
            #expect(try await bob.leave() == .answered)
            try await alice.shutdown()
            try await bob.shutdown()
        }
    }

    @Test(
        "[XEP-0198 §9.2] a session that the server has dropped makes way for a new one in the same login",
        .enabled(if: Prosody.hasSASL2, Comment(rawValue: Prosody.missingSASL2))
    )
    func lostSession() async throws {
        try await XMPPServer.with(.prosody, sasl2: true) { server in
            try await server.register("four")
            let client = try await LiveClient(server, try Self.account("four", at: server), .clear, Self.options(3))
            try await client.connect()
            try await client.run { state in
                try state.connection?.send(Self.message(to: try JID("nobody@\(server.domain)"), "1"))
                state.connection?.abort()
            }
            try? await client.until { $0.end != nil }
            let isKept = try await client.run { $0.place.pointer.pointee.canResume }
            #expect(isKept)
            // The same installation gets the same resource, and its new session takes the place of the old one.
            let other = try await LiveClient(server, try Self.account("four", at: server), .clear, Self.options(3))
            try await other.connect()
            try await client.connect()
            try await other.shutdown()
            let readiness = try #require(try await client.run { $0.readiness })
            #expect(!readiness.resumed)
            #expect(readiness.phases.bind == nil)
            #expect(readiness.acknowledged + readiness.lost == 1)
            let canResume = try await client.run { $0.place.pointer.pointee.canResume }
            #expect(canResume)
            try await Self.ping(client)
            #expect(try await client.leave() == .answered)
            try await client.shutdown()
        }
    }
}
