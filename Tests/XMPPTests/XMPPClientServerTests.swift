import NIOCore
import TestSupport
import Testing
import XMPP

/// Tests of the async client on both real servers.
@Suite("The client on real servers", .timeLimit(.minutes(10)))
struct XMPPClientServerTests {
    /// One client, and its received events.
    private struct Person {
        let client: XMPPClient
        let jid: JID
        private var stanzas: AsyncStream<XMPPElement>.AsyncIterator

        init(
            _ user: String,
            _ resource: String = "clamor",
            at server: XMPPServer,
            isPresent: Bool = true,
            _ change: (inout XMPPClientConfiguration) -> Void = { _ in }
        ) async throws {
            var configuration = XMPPClientConfiguration(
                jid: "\(user)@\(server.domain)/\(resource)",
                password: XMPPServer.password
            )
            configuration.host = "127.0.0.1"
            configuration.port = UInt16(server.port)
            configuration.authorityFile = server.certificates.authority
            change(&configuration)
            self.client = XMPPClient(configuration)
            self.jid = try await self.client.connect()
            self.stanzas = self.client.stanzas.makeAsyncIterator()
            if isPresent { try await self.client.send(XMPPElement("presence", namespace: XMPPNamespace.client)) }
        }

        /// The next stanza that is meant; the test's time limit ends a wait for none.
        mutating func next(_ isMeant: (XMPPElement) -> Bool) async throws -> XMPPElement {
            while let stanza = await self.stanzas.next(isolation: #isolation) { if isMeant(stanza) { return stanza } }
            throw LiveClient.NotReady(description: "the stanzas have ended")
        }

        mutating func message(_ body: String) async throws -> XMPPElement {
            try await self.next { $0.name == "message" && $0.child("body")?.text == body }
        }

        func presence(_ type: String?, to: JID) async throws {
            try await self.client.send(
                XMPPElement(
                    "presence",
                    namespace: XMPPNamespace.client,
                    attributes: ["to": to.description, "type": type]
                )
            )
        }
    }

    private static func chat(_ body: String, to: JID, id: String? = nil, type: String = "chat") -> XMPPElement {
        XMPPElement(
            "message",
            namespace: XMPPNamespace.client,
            attributes: ["to": to.description, "type": type, "id": id],
            children: [.element(XMPPElement("body", namespace: XMPPNamespace.client, text: body))]
        )
    }

    private static func iq(_ type: String, to: JID? = nil, _ payload: XMPPElement) -> XMPPElement {
        XMPPElement(
            "iq",
            namespace: XMPPNamespace.client,
            attributes: ["type": type, "to": to?.description],
            children: [.element(payload)]
        )
    }

    @Test("[RFC 6121 §3, §4] contacts subscribe to each other, come and go", arguments: XMPPServer.Kind.installed)
    func presence(_ kind: XMPPServer.Kind) async throws {
        try await XMPPServer.with(kind, users: 2) { server in
            var juliet = try await Person("user1", at: server)
            var romeo = try await Person("user2", at: server)
            // RFC 6121 §2.2: the roster is asked for by who wants its pushes.
            for person in [juliet, romeo] {
                let query = XMPPElement("query", namespace: XMPPNamespace.roster)
                #expect(try await person.client.request(Self.iq("get", query))["type"] == "result")
            }
            try await romeo.presence("subscribe", to: juliet.jid.bare)
            _ = try await juliet.next { $0.name == "presence" && $0["type"] == "subscribe" }
            try await juliet.presence("subscribed", to: romeo.jid.bare)
            _ = try await romeo.next { $0.name == "presence" && $0["type"] == "subscribed" }
            let julietName = juliet.jid.description
            _ = try await romeo.next { $0.name == "presence" && $0["type"] == nil && $0["from"] == julietName }
            var away = XMPPElement("presence", namespace: XMPPNamespace.client)
            away.add(XMPPElement("show", namespace: XMPPNamespace.client, text: "away"))
            try await juliet.client.send(away)
            _ = try await romeo.next { $0["from"] == julietName && $0.child("show")?.text == "away" }
            await juliet.client.disconnect()
            _ = try await romeo.next { $0["from"] == julietName && $0["type"] == "unavailable" }
            await romeo.client.disconnect()
        }
    }

    @Test(
        "[XEP-0280] what one client of an account says and gets the other sees too",
        arguments: XMPPServer.Kind.installed
    )
    func carbons(_ kind: XMPPServer.Kind) async throws {
        try await XMPPServer.with(kind, users: 2) { server in
            let one = try await Person("user1", "one", at: server)
            var two = try await Person("user1", "two", at: server)
            var other = try await Person("user2", at: server)
            let enable = XMPPElement("enable", namespace: XMPPNamespace.carbons)
            for person in [one, two] { try await person.client.request(Self.iq("set", enable)) }
            try await one.client.send(Self.chat("from one", to: other.jid))
            _ = try await other.message("from one")
            let sent = try await two.next { $0.child("sent", XMPPNamespace.carbons) != nil }
            #expect(sent["from"] == two.jid.bare.description)
            try await other.client.send(Self.chat("to one", to: one.jid))
            let got = try await two.next { $0.child("received", XMPPNamespace.carbons) != nil }
            let forwarded = got.child("received")?.child("forwarded", XMPPNamespace.forward)?.child("message")
            #expect(forwarded?.child("body")?.text == "to one")
            for person in [one, two, other] { await person.client.disconnect() }
        }
    }

    @Test(
        "[XEP-0045] all occupants of a room get each message once, in the same order",
        arguments: XMPPServer.Kind.installed
    )
    func room(_ kind: XMPPServer.Kind) async throws {
        try await XMPPServer.with(kind, users: 3) { server in
            let room = try JID("hall@conference.\(server.domain)")
            var people: [Person] = []
            for number in 1...3 { people.append(try await Person("user\(number)", at: server)) }
            for index in people.indices {
                var x = XMPPElement("x", namespace: XMPPNamespace.muc)
                x.add(XMPPElement("history", namespace: XMPPNamespace.muc, attributes: ["maxstanzas": "0"]))
                let join = XMPPElement(
                    "presence",
                    namespace: XMPPNamespace.client,
                    attributes: ["to": "\(room)/n\(index)"],
                    children: [.element(x)]
                )
                try await people[index].client.send(join)
                // The own presence ends the flood of the others.
                _ = try await people[index].next { $0["from"] == "\(room)/n\(index)" && $0["type"] == nil }
                guard index == 0 else { continue }
                var query = XMPPElement("query", namespace: XMPPNamespace.mucOwner)
                query.add(XMPPElement("x", namespace: XMPPNamespace.dataForms, attributes: ["type": "submit"]))
                try await people[0].client.request(Self.iq("set", to: room, query))
            }
            for number in 0..<9 {
                try await people[number % 3].client.send(
                    Self.chat("say \(number)", to: room, id: "g\(number)", type: "groupchat")
                )
                // One by one, so that there is one order.
                for index in people.indices {
                    let said = try await people[index].next { $0.name == "message" && $0.child("body") != nil }
                    #expect(said.child("body")?.text == "say \(number)")
                    #expect(said["from"] == "\(room)/n\(number % 3)")
                }
            }
            try await people[2].presence("unavailable", to: try JID("\(room)/n2"))
            _ = try await people[0].next { $0["from"] == "\(room)/n2" && $0["type"] == "unavailable" }
            for person in people { await person.client.disconnect() }
        }
    }

    @Test(
        "[XEP-0060, XEP-0313] a node tells its subscribers, an archive has what was said",
        arguments: XMPPServer.Kind.installed
    )
    func nodeAndArchive(_ kind: XMPPServer.Kind) async throws {
        try await XMPPServer.with(kind, users: 1) { server in
            var owner = try await Person(XMPPServer.user, at: server)
            let service = try JID("pubsub.\(server.domain)")
            func ask(_ payload: XMPPElement, _ configure: String? = nil) async throws -> XMPPElement {
                var pubsub = XMPPElement("pubsub", namespace: payload.namespace)
                pubsub.add(payload)
                return try await owner.client.request(Self.iq("set", to: service, pubsub))
            }
            func element(_ name: String, _ namespace: String = XMPPNamespace.pubsub, jid: Bool = false) -> XMPPElement {
                XMPPElement(
                    name,
                    namespace: namespace,
                    attributes: ["node": "news", "jid": jid ? owner.jid.bare.description : nil]
                )
            }
            _ = try await ask(element("create"))
            _ = try await ask(element("subscribe", jid: true))
            var publish = element("publish")
            var item = XMPPElement("item", namespace: XMPPNamespace.pubsub, attributes: ["id": "i1"])
            item.add(XMPPElement("entry", namespace: "urn:example:entry", text: "here"))
            publish.add(item)
            _ = try await ask(publish)
            let event = try await owner.next { $0.child("event", XMPPNamespace.pubsubEvent) != nil }
            let told = event.child("event")?.child("items")?.child("item")
            #expect(told?["id"] == "i1")
            #expect(told?.child("entry", "urn:example:entry")?.text == "here")
            _ = try await ask(element("unsubscribe", jid: true))
            _ = try await ask(element("delete", XMPPNamespace.pubsubOwner))

            var other = try await Person("user1", at: server)
            try await owner.client.send(Self.chat("for the archive", to: other.jid, id: "m1"))
            _ = try await other.message("for the archive")
            let query = XMPPElement("query", namespace: XMPPNamespace.mam, attributes: ["queryid": "q1"])
            let answer = try await other.client.request(Self.iq("set", query))
            #expect(answer.child("fin", XMPPNamespace.mam) != nil)
            let result = try await other.next { $0.child("result", XMPPNamespace.mam)?["queryid"] == "q1" }
            let kept = result.child("result")?.child("forwarded", XMPPNamespace.forward)?.child("message")
            #expect(kept?.child("body")?.text == "for the archive")
            for person in [owner, other] { await person.client.disconnect() }
        }
    }

    @Test(
        "[XEP-0198 §5] a cut connection is resumed: nothing lost, nothing twice, requests answered",
        arguments: XMPPServer.Kind.installed
    )
    func resumption(_ kind: XMPPServer.Kind) async throws {
        try await XMPPServer.with(kind, users: 2) { server in
            try await CuttingRelay.with(to: server.port) { relay in
                let juliet = try await Person("user1", at: server) { $0.port = relay.port }
                var romeo = try await Person("user2", at: server)
                let target = romeo.jid
                for round in 0..<4 {
                    for number in 0..<10 {
                        // The second half never arrives, and has to be sent again.
                        if number == 5 { try await relay.lose() }
                        try await juliet.client.send(Self.chat("\(10 * round + number)", to: target))
                    }
                    let ping = XMPPElement("ping", namespace: XMPPNamespace.ping)
                    let (client, question) = (juliet.client, Self.iq("get", ping))
                    let answer = Task { try await client.request(question) }
                    try await romeo.client.send(Self.chat("back \(round)", to: juliet.jid))
                    try await relay.cut()
                    for await state in juliet.client.states { if case .closed = state { break } }
                    #expect(try await juliet.client.connect() == juliet.jid)
                    guard case .connected(let session) = juliet.client.state else {
                        Issue.record("\(juliet.client.state)")
                        return
                    }
                    #expect(session.jid == juliet.jid)
                    #expect(session.isResumed)
                    #expect(session.lost == 0)
                    // If the request was sent after the cut, it was lost with the connection.
                    do { #expect(try await answer.value["type"] == "result") } catch XMPPClientError.notConnected {}
                }
                try await juliet.client.send(Self.chat("end", to: target))
                var bodies: [String] = []
                while bodies.last != "end" {
                    let message = try await romeo.next { $0.name == "message" && $0.child("body") != nil }
                    bodies.append(message.child("body")?.text ?? "")
                }
                #expect(bodies == (0..<40).map(String.init) + ["end"])
                var back: [String] = []
                var reader = juliet
                while back.count < 4 {
                    let message = try await reader.next { $0.name == "message" && $0.child("body") != nil }
                    back.append(message.child("body")?.text ?? "")
                }
                #expect(back == (0..<4).map { "back \($0)" })
                for person in [juliet, romeo] { await person.client.disconnect() }
            }
        }
    }

    @Test(
        "[RFC 6120 §13.7] a certificate of another domain than the JID's is refused",
        arguments: XMPPServer.Kind.installed
    )
    func foreignDomain(_ kind: XMPPServer.Kind) async throws {
        try await XMPPServer.with(kind) { server in
            var configuration = XMPPClientConfiguration(jid: "user1@example.net", password: "secret")
            configuration.host = "127.0.0.1"
            configuration.port = UInt16(server.directTLSPort)
            configuration.authorityFile = server.certificates.authority
            configuration.encryption = .direct
            do throws(XMPPClientError) {
                try await XMPPClient(configuration).connect()
                Issue.record("connected")
            } catch {
                guard case .noConnection(let end) = error else {
                    Issue.record("\(error)")
                    return
                }
                #expect(end.kind == "tls")
                // prosody does not even begin for a name that is not its own.
                let words = kind == .ejabberd ? "example.net" : "unrecognized name"
                #expect(end.words.contains(words), "\(end.words)")
            }
        }
    }

    @Test(
        "[RFC 6120 §3.2, XEP-0368] the DNS says where a domain is served",
        .enabled(if: Dnsmasq.isInstalled, "\(Dnsmasq.missing)"),
        arguments: XMPPServer.Kind.installed
    )
    func service(_ kind: XMPPServer.Kind) async throws {
        try await XMPPServer.with(kind, users: 1) { server in
            let records = [
                "host-record=xmpp.test,127.0.0.1",
                // The first is not there; the second is, and then TLS from the first byte.
                "srv-host=_xmpp-client._tcp.\(server.domain),xmpp.test,1,1,1",
                "srv-host=_xmpp-client._tcp.\(server.domain),xmpp.test,\(server.port),2,1",
                "srv-host=_xmpps-client._tcp.\(server.domain),xmpp.test,\(server.directTLSPort),3,1",
            ]
            try await Dnsmasq.with(records) { dns in
                for encryption in [XMPPClientConfiguration.Encryption.required, .direct] {
                    let person = try await Person("user1", at: server) {
                        $0.host = nil
                        $0.nameServers = ["127.0.0.1:\(dns.port)"]
                        $0.encryption = encryption
                    }
                    #expect(person.jid.bare == (try JID("user1@\(server.domain)")))
                    await person.client.disconnect()
                }
            }
        }
    }

    @Test(
        "[RFC 7395] through a WebSocket, with TLS and without, an account is made, used and removed",
        arguments: XMPPServer.Kind.installed
    )
    func webSocket(_ kind: XMPPServer.Kind) async throws {
        try await XMPPServer.with(kind) { server in
            for isSecure in [true, false] {
                var person = try await Person("socket", at: server) {
                    $0.webSocketPath = server.kind.webSocketPath
                    $0.port = UInt16(isSecure ? server.secureWebSocketPort : server.webSocketPort)
                    if !isSecure {
                        $0.encryption = .off
                        $0.allowsPlainWithoutTLS = true
                    }
                    $0.registers = true
                }
                try await person.client.send(Self.chat("to myself", to: person.jid))
                _ = try await person.message("to myself")
                #expect(try await person.client.ping() > .zero)
                var query = XMPPElement("query", namespace: XMPPNamespace.register)
                query.add(XMPPElement("remove", namespace: XMPPNamespace.register))
                // A server may close in place of an answer.
                _ = try? await person.client.request(Self.iq("set", query))
                await person.client.disconnect()
                let error = await #expect(throws: XMPPClientError.self) { _ = try await Person("socket", at: server) }
                guard case .ended(let end)? = error, end.kind == "not-authorized" else {
                    Issue.record("\(String(describing: error))")
                    return
                }
            }
        }
    }

    @Test(
        "[RFC 6120 §6] every offered mechanism logs in, in clear and in TLS, and ANONYMOUS too",
        arguments: XMPPServer.Kind.installed
    )
    func mechanisms(_ kind: XMPPServer.Kind) async throws {
        try await XMPPServer.with(kind, users: 1) { server in
            for encryption in [XMPPClientConfiguration.Encryption.off, .required] {
                var (offered, refused) = ([] as [String], [] as [String])
                for mechanism in Self.known {
                    do throws(XMPPClientError) {
                        let jid = "user1@\(server.domain)"
                        var configuration = XMPPClientConfiguration(jid: jid, password: XMPPServer.password)
                        configuration.host = "127.0.0.1"
                        configuration.port = UInt16(server.port)
                        configuration.authorityFile = server.certificates.authority
                        configuration.encryption = encryption
                        configuration.mechanisms = [mechanism]
                        configuration.allowsPlainWithoutTLS = true
                        let client = XMPPClient(configuration)
                        try await client.connect()
                        offered.append(mechanism)
                        await client.disconnect()
                    } catch {
                        guard case .ended(let end) = error, end.kind == "sasl" || end.kind == "not-authorized" else {
                            Issue.record("\(mechanism): \(error)")
                            continue
                        }
                        if end.kind == "not-authorized" { refused.append(mechanism) }
                    }
                }
                #expect(offered == Self.offered(kind))
                // ejabberd 23.01 binds to what the TLS library does not give out (`tls-exporter`, `tls-unique`), and does
                // not report that: no client chooses these mechanisms by itself.
                let bindsOtherwise = kind == .ejabberd && encryption == .required
                #expect(refused == (bindsOtherwise ? Self.known.filter { $0.hasSuffix("-PLUS") } : []))
            }
            var nobody = XMPPClientConfiguration(jid: XMPPServer.anonymousDomain, password: "")
            nobody.host = "127.0.0.1"
            nobody.port = UInt16(server.port)
            nobody.authorityFile = server.certificates.authority
            let client = XMPPClient(nobody)
            let jid = try await client.connect()
            #expect(jid.domain == XMPPServer.anonymousDomain)
            await client.disconnect()
        }
    }

    private static let known = [
        "SCRAM-SHA-512-PLUS", "SCRAM-SHA-256-PLUS", "SCRAM-SHA-1-PLUS", "SCRAM-SHA-512", "SCRAM-SHA-256", "SCRAM-SHA-1",
        "PLAIN",
    ]

    private static func offered(_ kind: XMPPServer.Kind) -> [String] {
        let both = ["SCRAM-SHA-256", "SCRAM-SHA-1", "PLAIN"]
        return kind == .ejabberd ? ["SCRAM-SHA-512"] + both : both
    }
}
