import NIOCore
import TestSupport
import Testing
import XMPP

@Suite("Components (XEP-0114)", .timeLimit(.minutes(10)))
struct ComponentTests {
    private static func rig() throws -> ConnectionRig {
        let options = ConnectionRig.options { $0.isComponent = true }
        let account = XMPPAccount(try JID("plays.shakespeare.lit"), password: "test")
        let rig = try ConnectionRig(options, account: account)
        rig.connection.start(deadline: rig.now + .seconds(30), isBare: false, isSecure: false)
        return rig
    }

    private static func header(
        id: String = "3BF96D32",
        namespace: String = "jabber:component:accept",
        from: String = "plays.shakespeare.lit"
    ) -> String {
        "<stream:stream xmlns:stream='http://etherx.jabber.org/streams' xmlns='\(namespace)' from='\(from)' id='\(id)'>"
    }

    @Test("the handshake is the digest of stream id and secret; an empty one accepts")
    func handshake() throws {
        let rig = try Self.rig()
        #expect(
            try rig.sent() == "<?xml version='1.0'?><stream:stream to='plays.shakespeare.lit' "
                + "xmlns='jabber:component:accept' xmlns:stream='http://etherx.jabber.org/streams'>"
        )
        try rig.receive(Self.header())
        // SHA-1 of "3BF96D32test", made with sha1sum.
        #expect(try rig.sent() == "<handshake>aaee83c26aeeafcbabeabfcbcd50df997e0a2a1e</handshake>")
        #expect(rig.observer.calls.isEmpty)
        try rig.receive("<handshake/>")
        #expect(rig.stream.pointee.state == .connected)
        #expect(rig.stream.pointee.jid == (try JID("plays.shakespeare.lit")))
    }

    @Test("stanzas are read as stanzas, and those that are sent say who they are from")
    func stanzas() throws {
        let rig = try Self.rig()
        try rig.receive(Self.header() + "<handshake/>")
        _ = try rig.sent()
        try rig.receive("<message from='a@b' to='king@plays.shakespeare.lit'><body>hail</body></message>")
        guard case .received(let message)? = rig.observer.calls.last else {
            Issue.record("\(rig.observer.calls)")
            return
        }
        #expect(message.namespace == XMPPNamespace.client)
        #expect(message.child("body", XMPPNamespace.client)?.text == "hail")
        try rig.connection.send(
            XMPPElement("message", namespace: XMPPNamespace.client, attributes: ["to": "a@b"])
        )
        try rig.connection.send(
            XMPPElement(
                "message",
                namespace: XMPPNamespace.client,
                attributes: ["to": "a@b", "from": "king@plays.shakespeare.lit"]
            )
        )
        #expect(
            try rig.sent() == "<message to='a@b' from='plays.shakespeare.lit'/>"
                + "<message to='a@b' from='king@plays.shakespeare.lit'/>"
        )
        try rig.receive("<iq type='get' id='1' from='a@b/c' to='king@plays.shakespeare.lit'><x xmlns='y'/></iq>")
        #expect(try rig.sent().hasPrefix("<iq from='king@plays.shakespeare.lit' to='a@b/c' id='1' type='error'>"))
    }

    @Test(
        "what is wrong with the server's header ends the stream before the secret is used",
        arguments: [
            (Self.header(namespace: "jabber:client"), "its default namespace is not jabber:component:accept"),
            (Self.header(id: ""), "it has no id"),
        ]
    )
    func wrongHeader(_ header: String, _ words: String) throws {
        let rig = try Self.rig()
        _ = try rig.sent()
        try rig.receive(header + "<handshake/>")
        #expect(rig.end == .header(words))
        #expect(try !rig.sent().contains("handshake"))
    }

    @Test("a wrong secret, and anything in place of the handshake's answer, ends the stream")
    func refused() throws {
        let rig = try Self.rig()
        try rig.receive(Self.header())
        try rig.receive(
            "<stream:error><not-authorized xmlns='urn:ietf:params:xml:ns:xmpp-streams'/></stream:error></stream:stream>"
        )
        #expect(rig.end == .streamError(StreamError(.notAuthorized)))
        let other = try Self.rig()
        try other.receive(Self.header() + "<message/>")
        guard case .unexpected? = other.end else {
            Issue.record("\(String(describing: other.end))")
            return
        }
        // A client's stream is none of a component.
        let client = try ConnectionRig(ConnectionRig.options(), account: ConnectionRig.account)
        client.connection.start(deadline: client.now + .seconds(30), isBare: false, isSecure: false)
        try client.receive(Self.header(from: "im.example.com"))
        try client.receive("<stream:features/>")
        guard case .header? = client.end else {
            Issue.record("\(String(describing: client.end))")
            return
        }
    }

    @Test("a component of a real server gets and sends for its addresses", arguments: XMPPServer.Kind.installed)
    func live(_ kind: XMPPServer.Kind) async throws {
        try await XMPPServer.with(kind, users: 1) { server in
            let configuration = XMPPClientConfiguration(
                component: server.componentDomain,
                secret: XMPPServer.password,
                host: "127.0.0.1",
                port: UInt16(server.componentPort)
            )
            let component = XMPPClient(configuration)
            let domain = try await component.connect()
            #expect(domain == (try JID(server.componentDomain)))
            var user = XMPPClientConfiguration(jid: "user1@\(server.domain)", password: XMPPServer.password)
            user.host = "127.0.0.1"
            user.port = UInt16(server.port)
            user.authorityFile = server.certificates.authority
            let client = XMPPClient(user)
            let jid = try await client.connect()
            let address = "king@\(server.componentDomain)"
            try await client.send(
                XMPPElement(
                    "message",
                    namespace: XMPPNamespace.client,
                    attributes: ["to": address, "type": "chat"],
                    children: [.element(XMPPElement("body", namespace: XMPPNamespace.client, text: "hail"))]
                )
            )
            var received = component.stanzas.makeAsyncIterator()
            var message = await received.next()
            while let stanza = message, stanza.name != "message" { message = await received.next() }
            #expect(message?["to"] == address)
            #expect(message?["from"] == jid.description)
            #expect(message?.child("body")?.text == "hail")
            // The client answers the component, and the component the client.
            #expect(try await component.ping(jid) > .zero)
            #expect(try await client.ping(JID(address)) > .zero)
            await client.disconnect()
            await component.disconnect()

            var wrong = configuration
            wrong.password = "another"
            let error = await #expect(throws: XMPPClientError.self) { try await XMPPClient(wrong).connect() }
            guard case .ended(let end)? = error else {
                Issue.record("\(String(describing: error))")
                return
            }
            #expect(end.kind == "not-authorized")
        }
    }

    @Test("settings that a component cannot have are refused")
    func settings() async throws {
        var configuration = XMPPClientConfiguration(component: "a.localhost", secret: "s", host: "127.0.0.1", port: 1)
        configuration.encryption = .required
        let words = "a component or a peer has neither STARTTLS nor WebSocket; set encryption to off or direct"
        await #expect(throws: XMPPClientError.invalid(words)) { try await XMPPClient(configuration).connect() }
    }
}
