import Testing
import XMPP

@Suite("Streams without a server (XEP-0174)", .timeLimit(.minutes(10)))
struct ServerlessTests {
    private static func message(_ text: String) -> XMPPElement {
        XMPPElement(
            "message",
            namespace: XMPPNamespace.client,
            attributes: ["type": "chat"],
            children: [.element(XMPPElement("body", namespace: XMPPNamespace.client, text: text))]
        )
    }

    @Test("two clients meet over a socket: messages and requests both ways, and a clean end")
    func meet() async throws {
        let listener = try await XMPPPeerListener.bind(jid: "romeo@forza", host: "127.0.0.1")
        let client = XMPPClient(
            XMPPClientConfiguration(jid: "juliet@pronto", peer: "romeo@forza", host: "127.0.0.1", port: listener.port)
        )
        let jid = try await client.connect()
        #expect(jid == (try JID("juliet@pronto")))
        var peers = listener.peers.makeAsyncIterator()
        let peer = try #require(await peers.next())
        for await state in peer.states {
            guard case .connected(let session) = state else { continue }
            #expect(session.peer == (try JID("juliet@pronto")))
            break
        }
        try await client.send(Self.message("hello"))
        var received = peer.stanzas.makeAsyncIterator()
        #expect(await received.next()?.child("body")?.text == "hello")
        try await peer.send(Self.message("well met"))
        var answers = client.stanzas.makeAsyncIterator()
        #expect(await answers.next()?.child("body")?.text == "well met")
        #expect(try await client.ping() > .zero)
        #expect(try await peer.ping(JID("juliet@pronto")) > .zero)
        await client.disconnect()
        for await state in peer.states {
            guard case .closed(let end) = state else { continue }
            #expect(end.kind == "closed")
            break
        }
        let words = "the stream was accepted from a peer; only the peer can connect again"
        await #expect(throws: XMPPClientError.invalid(words)) { try await peer.connect() }
        await listener.close()
    }

    @Test("a peer of another name is left, and a wrong own address is refused before listening")
    func wrongNames() async throws {
        let listener = try await XMPPPeerListener.bind(jid: "romeo@forza", host: "127.0.0.1")
        let client = XMPPClient(
            XMPPClientConfiguration(jid: "juliet@pronto", peer: "paris@forza", host: "127.0.0.1", port: listener.port)
        )
        let error = await #expect(throws: XMPPClientError.self) { try await client.connect() }
        guard case .ended(let end)? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(end.words == "the server's stream header is wrong: it is from 'romeo@forza', and not from the peer")
        await listener.close()
        await #expect(throws: XMPPClientError.self) {
            _ = try await XMPPPeerListener.bind(jid: "@", host: "127.0.0.1")
        }
    }

    @Test("an accepted stream is not connected again, and no peer leads a client to another host")
    func staysHere() async throws {
        let reconnect = XMPPReconnect(initialDelay: .milliseconds(1))
        let listener = try await XMPPPeerListener.bind(jid: "romeo@forza", host: "127.0.0.1", modules: { [reconnect] })
        let client = XMPPClient(
            XMPPClientConfiguration(jid: "juliet@pronto", peer: "romeo@forza", host: "127.0.0.1", port: listener.port)
        )
        try await client.connect()
        var peers = listener.peers.makeAsyncIterator()
        let peer = try #require(await peers.next())
        var error = StreamError(.seeOtherHost)
        error.otherHost = "127.0.0.1:1"
        try await client.send(error.element)
        for await state in peer.states {
            guard case .closed(let end) = state else { continue }
            #expect(end.kind == "see-other-host")
            break
        }
        let words = "the stream was accepted from a peer; only the peer can connect again"
        await #expect(throws: XMPPClientError.invalid(words)) { try await peer.connect() }
        await listener.close()
    }
}
