import NIOCore
import NIOEmbedded
import Testing
import Transport
import XMPP

@Suite("Connections")
struct XMPPConnectionTests {
    private static func message(_ text: String) -> String { "<message><body>\(text)</body></message>" }

    @Test("answers and what the owner sends in a read leave in one write")
    func oneWrite() throws {
        let rig = try ConnectionRig.ready()
        rig.observer.onRequest = { _ in
            for text in ["1", "2"] { rig.connection.send { $0.writeString(Self.message(text)) } }
            return false
        }
        let request = "<iq type='get' id='q'><x xmlns='y'/></iq>"
        try rig.receive(request + request)
        #expect(try rig.writes().count == 1)
    }

    @Test("nothing goes out before the stream is ready, nor behind its closing tag")
    func onlyWhenReady() throws {
        let rig = try ConnectionRig(ConnectionRig.options(), account: ConnectionRig.account)
        rig.start()
        _ = try rig.sent()
        let early = rig.connection.send { $0.writeString(Self.message("early")) }
        #expect(!early)
        try rig.login()
        _ = try rig.sent()
        rig.connection.finish()
        let late = rig.connection.send { $0.writeString(Self.message("late")) }
        #expect(!late)
        #expect(try rig.sent() == "</stream:stream>")
    }

    @Test(
        "[RFC 6120 §5.4.2.1] who leaves before the stream is ready says so, but for the word between STARTTLS and TLS"
    )
    func earlyLeave() throws {
        let rig = try ConnectionRig(ConnectionRig.options(), account: ConnectionRig.account)
        rig.start(within: .seconds(3))
        _ = try rig.sent()
        rig.connection.finish()
        #expect(try rig.sent() == "</stream:stream>")
        // It is the leave that is waited for, and no longer the stream.
        rig.advance(.seconds(4))
        #expect(rig.end == nil)
        rig.advance(.seconds(1))
        #expect(rig.end == .closingTimedOut)

        let options = ConnectionRig.options { $0.tlsPolicy = .required }
        let other = try ConnectionRig(options, account: ConnectionRig.account)
        other.start()
        let offer = "<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"
        try other.receive("\(ConnectionRig.header)a'><stream:features>\(offer)</stream:features>")
        #expect(try other.sent().hasSuffix(offer))
        other.connection.finish()
        #expect(other.end == .aborted)
        #expect(try other.sent() == "")
    }

    @Test("[RFC 6121 §4.5.1] who has shown itself takes its leave")
    func unavailable() throws {
        let rig = try ConnectionRig.ready()
        try rig.connection.send(XMPPElement("presence", namespace: XMPPNamespace.client))
        rig.connection.finish()
        #expect(try rig.sent() == "<presence/><presence type='unavailable'/></stream:stream>")
    }

    @Test("phases add up to the whole, each counted once")
    func phases() throws {
        let rig = try ConnectionRig(ConnectionRig.options(), account: ConnectionRig.account)
        rig.start()
        rig.advance(.seconds(1))
        let mechanisms =
            "<mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><mechanism>PLAIN</mechanism></mechanisms>"
        try rig.receive("\(ConnectionRig.header)a'><stream:features>\(mechanisms)</stream:features>")
        rig.advance(.seconds(2))
        try rig.receive("<success xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>")
        rig.advance(.milliseconds(500))
        let bind = "<bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/>"
        try rig.receive("\(ConnectionRig.header)b'><stream:features>\(bind)</stream:features>")
        rig.advance(.milliseconds(250))
        try rig.receive(
            """
            <iq type='result' id='00000000000000001'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'>\
            <jid>juliet@im.example.com/balcony</jid></bind></iq>
            """
        )
        #expect(
            rig.observer.phases == [
                .stream: .milliseconds(1_500), .sasl: .seconds(2), .bind: .milliseconds(250),
            ]
        )
    }

    @Test("bytes are counted both ways, with headers and spaces")
    func bytes() throws {
        let rig = try ConnectionRig(
            ConnectionRig.options { $0.keepAlive = .seconds(20) },
            account: ConnectionRig.account
        )
        rig.start()
        var sent = try rig.sent().utf8.count
        try rig.login()
        sent += try rig.sent().utf8.count
        let received = rig.bytesReceived
        try rig.receive("  ")
        rig.advance(.seconds(20))
        sent += try rig.sent().utf8.count
        #expect(rig.bytesSent == UInt64(sent))
        #expect(rig.bytesReceived == received + 2)
        #expect(rig.observer.wrote == sent)
    }

    @Test("[RFC 7395 §3.3] over a WebSocket each element is a message of its own, and names its namespace")
    func messages() throws {
        let options = ConnectionRig.options {
            $0.framing = .webSocket
            $0.management = .acknowledge
            $0.acknowledgesEvery = 1
        }
        let rig = try ConnectionRig(options, account: ConnectionRig.account)
        rig.start()
        try rig.loginOverWebSocket(features: "<sm xmlns='urn:xmpp:sm:3'/>")
        try rig.receive("<enabled xmlns='urn:xmpp:sm:3'/>")
        _ = try rig.writes()
        rig.observer.onRequest = { _ in
            rig.connection.append { $0.writeString("<message xmlns='jabber:client'/>") }
            return false
        }
        try rig.receive("<iq xmlns='jabber:client' type='get' id='q'><x xmlns='y'/></iq>")
        let writes = try rig.writes()
        #expect(writes.count == 4)
        #expect(writes.allSatisfy { $0.hasPrefix("<") && $0.contains(" xmlns='") })
        #expect(writes.first == "<message xmlns='jabber:client'/>")
        #expect(writes.last == "<r xmlns='urn:xmpp:sm:3'/>")
    }

    @Test(
        "[RFC 7395 §3.3.3] a message of a WebSocket holds one element whole, and none comes before <open/>",
        arguments: [
            (["<open {}/>", "<message xmlns='jabber:client'><bo"], .malformed(.incompleteMessage)),
            (
                ["<open {}/><features/>"],
                .violation(.badFormat, "a message of its WebSocket holds more than one element")
            ),
            (
                ["<stream:features xmlns:stream='http://etherx.jabber.org/streams'/>"],
                .unexpected("<features xmlns='http://etherx.jabber.org/streams'>", in: .opening)
            ),
        ] as [([String], XMPPConnectionEnd)]
    )
    func wholeMessages(_ messages: [String], _ end: XMPPConnectionEnd) throws {
        let options = ConnectionRig.options { $0.framing = .webSocket }
        let rig = try ConnectionRig(options, account: ConnectionRig.account)
        rig.start()
        let open = "xmlns='urn:ietf:params:xml:ns:xmpp-framing' from='im.example.com' id='a' version='1.0'"
        for message in messages { try rig.receive(message.replacing("{}", with: open)) }
        #expect(rig.end == end)
    }

    @Test("[XEP-0174 §7] two clients without a server: ready behind the headers, with features or without")
    func peers() throws {
        let (juliet, romeo) = (try JID("juliet@pronto"), try JID("romeo@forza"))
        let caller = try ConnectionRig(
            ConnectionRig.options { $0.peerRole = .initiator },
            account: XMPPAccount(romeo, peer: juliet)
        )
        let called = try ConnectionRig(
            ConnectionRig.options { $0.peerRole = .recipient },
            account: XMPPAccount(juliet)
        )
        called.start()
        #expect(try called.sent() == "")
        caller.start()
        let hello = try caller.sent()
        #expect(
            hello.hasPrefix("<?xml version='1.0'?><stream:stream to='juliet@pronto' from='romeo@forza' version='1.0'")
        )
        try called.receive(hello)
        #expect(called.observer.calls == [.ready("juliet@pronto", resumed: false, acknowledged: 0, lost: 0)])
        #expect(called.stream.pointee.account.peer == romeo)
        let answer = try called.sent()
        #expect(answer.hasSuffix("<stream:features/>"))
        try caller.receive(answer)
        #expect(caller.observer.calls == [.ready("romeo@forza", resumed: false, acknowledged: 0, lost: 0)])
        caller.connection.send { $0.writeString(Self.message("hi")) }
        try called.receive(try caller.sent())
        #expect(called.observer.calls.count == 2)
        try called.receive("<message from='tybalt@pronto'/><message from='romeo@forza/x'/>")
        #expect(called.observer.calls.count == 3)
        #expect(called.strays.foreign == 1)

        let old = try ConnectionRig(
            ConnectionRig.options { $0.peerRole = .recipient },
            account: XMPPAccount(juliet)
        )
        old.start()
        try old.receive(hello.replacing(" version='1.0' xmlns=", with: " xmlns="))
        #expect(try old.sent().hasSuffix("xmlns:stream='http://etherx.jabber.org/streams'>"))
        let nobody = try ConnectionRig(
            ConnectionRig.options { $0.peerRole = .recipient },
            account: XMPPAccount(juliet)
        )
        nobody.start()
        try nobody.receive(hello.replacing(" from='romeo@forza'", with: ""))
        #expect(nobody.end == .header("it does not say who it is from"))
        #expect(try nobody.sent() == "")
        let wrong = try ConnectionRig(
            ConnectionRig.options { $0.peerRole = .initiator },
            account: XMPPAccount(romeo, peer: juliet)
        )
        wrong.start()
        try wrong.receive(answer.replacing("from='juliet@pronto'", with: "from='tybalt@pronto'"))
        #expect(wrong.end == .header("it is from 'tybalt@pronto', and not from the peer"))
    }

    @Test("[C3] the reason of a failed handshake is reported, although the channel is gone before")
    func handshakeFails() throws {
        let options = ConnectionRig.options { $0.tlsPolicy = .required }
        let answers: [(Result<Void, ConnectError.Reason>, XMPPConnectionEnd)] = [
            (.failure(.tls(.notTLS)), .insecure(.notTLS)), (.failure(.reset), .notConnected(.reset)),
            (.success(()), .lost),
        ]
        for (answer, end) in answers {
            let rig = try ConnectionRig(options, account: ConnectionRig.account)
            rig.start()
            let offer = "<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"
            try rig.receive("\(ConnectionRig.header)a'><stream:features>\(offer)</stream:features>")
            try rig.receive("<proceed xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>")
            rig.channel.close(promise: nil)
            rig.channel.embeddedEventLoop.run()
            #expect(rig.end == nil)
            rig.observer.tls?(answer)
            #expect(rig.end == end)
        }
    }

    @Test("[A18] configured top-level elements go to the owner, others are counted or refused")
    func customElements() throws {
        let named = try ConnectionRig.ready(ConnectionRig.options { $0.customNamespaces = ["urn:example:c"] })
        try named.receive("<hello xmlns='urn:example:c'/><hello xmlns='urn:example:d'/>")
        #expect(named.observer.calls.last == .received(XMPPElement("hello", namespace: "urn:example:c")))
        #expect(named.strays.unknown == 1)
        let strict = try ConnectionRig.ready(ConnectionRig.options { $0.refusesUnknownElements = true })
        try strict.receive("<hello xmlns='urn:example:d'/>")
        #expect(
            strict.end == .violation(.unsupportedStanzaType, "<hello xmlns='urn:example:d'> is no stanza")
        )
    }

    @Test("[C2] the answer to an end says whether to come back")
    func retries() throws {
        let ends: [(XMPPConnectionEnd, XMPPRetry)] = [
            (.answered, .never), (.lost, .soon), (.tlsNotOffered, .never), (.failed(104), .soon),
            (.notAuthenticated(XMPPAuthenticationFailure(.notAuthorized)), .never),
            (.notAuthenticated(XMPPAuthenticationFailure(.temporaryAuthFailure)), .later),
            (.streamError(StreamError(.conflict)), .never), (.streamError(StreamError(.systemShutdown)), .later),
            (.streamError(StreamError(.reset)), .soon),
            (.redirected(XMPPHost(name: "a")), .at(XMPPHost(name: "a"))), (.redirected(nil), .never),
            (.timedOut(.sasl), .soon), (.passwordInClear, .never),
        ]
        for (end, retry) in ends { #expect(end.retry == retry, "\(end)") }
    }

    @Test(
        "[RFC 6120 §4.9.3.19] another host is a name or an address, with a port or without",
        arguments: [
            ("a.example", XMPPHost(name: "a.example")), ("a.example:5", XMPPHost(name: "a.example", port: 5)),
            ("[::1]", XMPPHost(name: "::1")), ("[::1]:9", XMPPHost(name: "::1", port: 9)),
            ("::1", XMPPHost(name: "::1")), ("", nil), ("a:0", nil), ("a:65536", nil), ("a:b", nil), ("[::1", nil),
            ("[::1]x", nil), ("a/b", nil), ("a b", nil), ("x@y", nil), (":5", nil),
        ] as [(String, XMPPHost?)]
    )
    func hosts(_ text: String, _ host: XMPPHost?) { #expect(XMPPHost(text) == host) }

    @Test("[C2] hops from host to host are bounded")
    func redirects() throws {
        let place = StreamPlace(XMPPStream(ConnectionRig.account, options: ConnectionRig.options()))
        let error = """
            <stream:error><see-other-host xmlns='urn:ietf:params:xml:ns:xmpp-streams'>b:1</see-other-host>\
            </stream:error>
            """
        for hop in 1...4 {
            let rig = try ConnectionRig(ConnectionRig.options(), account: ConnectionRig.account, place: place)
            rig.start()
            try rig.receive("\(ConnectionRig.header)a'>\(error)")
            #expect(rig.end == (hop < 4 ? .redirected(XMPPHost(name: "b", port: 1)) : .tooManyRedirects(4)))
        }
    }

    @Test("[C10] what an idle client costs in bytes, its connection apart: reader and stream")
    func bytesPerClient() {
        #expect(MemoryLayout<XMPPReader>.size <= 200)
        #expect(MemoryLayout<XMPPStream>.size <= 248)
    }

    @Test("[C4] no end and no error shows the password")
    func secrets() throws {
        for conversation in Conversation.all {
            let password = conversation.settings["password"] ?? "r0m30myr0m30"
            for case .end(let words) in conversation.steps { #expect(!words.contains(password)) }
        }
    }
}
