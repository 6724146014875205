import Foundation
import NIOCore
import TestSupport
import Testing
import XMPP

@Suite("The client for async code", .timeLimit(.minutes(10)))
struct XMPPClientTests {
    private static func configuration(
        _ server: XMPPServer,
        _ user: String,
        _ encryption: XMPPClientConfiguration.Encryption = .required
    ) -> XMPPClientConfiguration {
        var configuration = XMPPClientConfiguration(
            jid: "\(user)@\(server.domain)/clamor",
            password: XMPPServer.password
        )
        configuration.host = "127.0.0.1"
        configuration.port = UInt16(encryption == .direct ? server.directTLSPort : server.port)
        configuration.authorityFile = server.certificates.authority
        configuration.encryption = encryption
        return configuration
    }

    @Test("connects, sends, asks, and leaves", arguments: XMPPServer.Kind.installed)
    func whole(_ kind: XMPPServer.Kind) async throws {
        try await XMPPServer.with(kind) { server in
            for encryption in [XMPPClientConfiguration.Encryption.required, .direct] {
                var configuration = Self.configuration(server, "client", encryption)
                configuration.registers = true
                let client = XMPPClient(configuration)
                let jid = try await client.connect()
                #expect(jid.bare == (try JID("client@\(server.domain)")))
                await #expect(throws: XMPPClientError.alreadyConnected) { try await client.connect() }
                #expect(try await client.ping() > .zero)

                let body = XMPPElement("body", namespace: XMPPNamespace.client, text: "to myself")
                try await client.send(
                    XMPPElement(
                        "message",
                        namespace: XMPPNamespace.client,
                        attributes: ["to": jid.description, "type": "chat"],
                        children: [.element(body)]
                    )
                )
                var stanzas = client.stanzas.makeAsyncIterator()
                #expect(await stanzas.next()?.child("body")?.text == "to myself")

                let unknown = XMPPElement(
                    "iq",
                    namespace: XMPPNamespace.client,
                    attributes: ["type": "get", "to": jid.description],
                    children: [.element(XMPPElement("what", namespace: "urn:example:what"))]
                )
                // By this client itself, who does not know it either.
                await #expect(throws: XMPPClientError.refused(StanzaError(.serviceUnavailable))) {
                    try await client.request(unknown)
                }
                await client.disconnect()
                await #expect(throws: XMPPClientError.notConnected) { try await client.ping() }
            }
        }
    }

    @Test("says in one line what is wrong", arguments: XMPPServer.Kind.installed)
    func refusals(_ kind: XMPPServer.Kind) async throws {
        try await XMPPServer.with(kind) { server in
            var wrong = Self.configuration(server, XMPPServer.user)
            wrong.password = "no"
            await Self.expect("not-authorized", XMPPClient(wrong))
            var untrusted = Self.configuration(server, XMPPServer.user)
            untrusted.authorityFile = server.certificates.certificate(.otherAuthority)
            await Self.expect("tls", XMPPClient(untrusted))
            var foreign = Self.configuration(server, XMPPServer.user)
            foreign.jid = "\(XMPPServer.user)@example.net"
            await Self.expectAny(["host-unknown", "protocol"], XMPPClient(foreign))
            var nobody = Self.configuration(server, XMPPServer.user)
            nobody.jid = "@"
            await #expect(throws: XMPPClientError.self) { try await XMPPClient(nobody).connect() }
        }
    }

    private static func expect(_ kind: String, _ client: XMPPClient) async { await self.expectAny([kind], client) }

    private static func expectAny(_ kinds: [String], _ client: XMPPClient) async {
        do {
            try await client.connect()
            Issue.record("connected in place of \(kinds)")
        } catch {
            guard case .ended(let end) = error else {
                Issue.record("\(error)")
                return
            }
            #expect(kinds.contains(end.kind), "\(end)")
            #expect(!end.words.contains("\n"))
        }
    }

    @Test("an attempt that is cancelled ends at once, and the client can try again")
    func cancelled() async throws {
        let peer = try await SilentPeer.start()
        var configuration = XMPPClientConfiguration(jid: "a@localhost", password: "b")
        configuration.host = "127.0.0.1"
        configuration.port = UInt16(peer.port)
        configuration.encryption = .off
        let client = XMPPClient(configuration)
        let task = Task { try await client.connect() }
        try await peer.hasClient()
        task.cancel()
        await #expect(throws: XMPPClientError.cancelled) { try await task.value }
        let again = Task { try await client.connect() }
        try await peer.hasClient()
        await client.disconnect()
        await #expect(throws: XMPPClientError.disconnected) { try await again.value }
        try await peer.stop()
    }

    @Test("an attempt at a peer that says nothing ends by its timeout, with the layer that it waited for")
    func silence() async throws {
        let peer = try await SilentPeer.start()
        var configuration = XMPPClientConfiguration(jid: "a@localhost", password: "b")
        configuration.host = "127.0.0.1"
        configuration.port = UInt16(peer.port)
        configuration.encryption = .off
        configuration.connectTimeout = .seconds(3)
        await Self.expect("timeout-stream", XMPPClient(configuration))
        try await peer.stop()
    }

    @Test("an attempt that is cancelled at any moment leaves the client as it was")
    func cancelledEarly() async throws {
        let peer = try await SilentPeer.start()
        var configuration = XMPPClientConfiguration(jid: "a@localhost", password: "b")
        configuration.host = "localhost"
        configuration.port = UInt16(peer.port)
        configuration.encryption = .off
        // A busy host may need seconds for a round, and no attempt is to end by its timeout.
        configuration.connectTimeout = .seconds(3600)
        let client = XMPPClient(configuration)
        for round in 0..<200 {
            let task = Task { try await client.connect() }
            for _ in 0..<(round % 20) { await Task.yield() }
            task.cancel()
            await #expect(throws: XMPPClientError.cancelled) { try await task.value }
        }
        peer.hangUp()
        // The peer may close before or after it has the client's first bytes.
        await Self.expectAny(["closed", "lost", "reset"], client)
        try await peer.stop()
    }
}

@Suite("The library's front page")
struct FrontPageTests {
    @Test("the example on it is the one that is built")
    func example() throws {
        let tests = Conversation.folder.deletingLastPathComponent().deletingLastPathComponent()
        let built = try String(
            contentsOf: tests.appendingPathComponent("XMPPTests/ClientExample.swift"),
            encoding: .utf8
        )
        let page = try String(
            contentsOf: tests.deletingLastPathComponent().appendingPathComponent("Sources/XMPP/XMPP.docc/XMPP.md"),
            encoding: .utf8
        )
        let lines = built.split(separator: "\n", omittingEmptySubsequences: false).dropFirst(4).dropLast(2)
        let example = lines.map { $0.hasPrefix("    ") ? String($0.dropFirst(4)) : String($0) }
        #expect(example.count >= 10)
        #expect(page.contains(example.joined(separator: "\n")))
    }

    @Test("another package sees all of the face by one import, and only what is public")
    func otherPackage() async throws {
        let errors = try await PackageClient.errors(of: "PackageXMPP")
        #expect(errors == nil, "\(errors ?? "")")
    }
}
