import NIOCore
import SASL
import TestSupport
import Testing
import Transport
import XMPP

@Suite("Real servers", .timeLimit(.minutes(10)))
struct LiveServerTests {
    private static func account(
        _ user: String,
        _ resource: String = "clamor",
        at server: XMPPServer
    ) throws -> XMPPAccount {
        XMPPAccount(
            try JID(local: user, domain: server.domain, resource: resource),
            password: XMPPServer.password
        )
    }

    private static func message(to jid: JID, _ body: String, id: String? = nil) -> XMPPElement {
        XMPPElement(
            "message",
            namespace: XMPPNamespace.client,
            attributes: ["to": jid.description, "type": "chat", "id": id],
            children: [.element(XMPPElement("body", namespace: XMPPNamespace.client, text: body))]
        )
    }

    @Test("an account is made, used and removed: login, presence, message, ping", arguments: XMPPServer.Kind.installed)
    func account(_ kind: XMPPServer.Kind) async throws {
        try await XMPPServer.with(kind) { server in
            var options = XMPPStreamOptions()
            options.registration = .create
            let client = try await LiveClient(server, try Self.account("live", at: server), .startTLS, options)
            try await client.connect()
            let phases = try await client.run { $0.readiness?.phases }
            #expect(XMPPPhase.allCases.allSatisfy { phases?[$0] != nil })

            let jid = try #require(try await client.run { $0.place.pointer.pointee.jid })
            #expect(jid.bare == (try JID("live@\(server.domain)")))
            try await client.run { state in
                try state.connection?.send(XMPPElement("presence", namespace: XMPPNamespace.client))
                try state.connection?.send(Self.message(to: jid, "to <myself> & \"me\""))
            }
            try await client.until { !$0.bodies.isEmpty }
            #expect(try await client.run { $0.bodies } == ["to <myself> & \"me\""])
            let time: TimeAmount = try await client.ask { connection, _, answer in
                PingHandler.ping(nil, in: XMPPModuleContext(connection), timeout: .seconds(30), answer)
            }
            #expect(time > .zero)
            let domain = jid.domainOnly
            _ =
                try await client.ask { connection, _, answer in
                    connection.request(RegistrationHandler.password("other", of: "live", at: domain), answer)
                } as XMPPElement
            #expect(try await client.leave() == .answered)
            // The password is another one now.
            try await client.run { try $0.connect() }
            await #expect(throws: (any Error).self) { try await client.until { $0.readiness != nil } }
            try await client.shutdown()

            var account = try Self.account("live", at: server)
            account.password = "other"
            let again = try await LiveClient(server, account, .startTLS, XMPPStreamOptions())
            try await again.connect()
            // A server may close in place of an answer.
            _ =
                try? await again.ask { connection, _, answer in
                    connection.request(RegistrationHandler.removal(), answer)
                } as XMPPElement
            try await again.shutdown()
            let gone = try await LiveClient(server, account, .startTLS, XMPPStreamOptions())
            try await gone.run { try $0.connect() }
            try? await gone.until { $0.readiness != nil }
            let end = try await gone.run { $0.end }
            guard case .notAuthenticated(let failure)? = end, failure.condition == .notAuthorized else {
                Issue.record("ended with \(end.map { "\($0)" } ?? "nothing")")
                return
            }
            try await gone.shutdown()
        }
    }

    @Test("each way leads in, with each mechanism that is offered", arguments: XMPPServer.Kind.installed)
    func ways(_ kind: XMPPServer.Kind) async throws {
        try await XMPPServer.with(kind) { server in
            try await server.register("ways")
            for way in LiveClient.Way.allCases {
                var logins = 0
                for mechanism in ["SCRAM-SHA-256", "SCRAM-SHA-1", "PLAIN"] {
                    var options = XMPPStreamOptions()
                    options.mechanisms = [mechanism]
                    let client = try await LiveClient(server, try Self.account("ways", at: server), way, options)
                    do {
                        try await client.connect()
                    } catch {
                        // Not every server offers each of them on each way, and says so.
                        let end = try await client.run { $0.end }
                        guard case .noMechanism = end else { throw error }
                        try await client.shutdown()
                        continue
                    }
                    let end = try await client.leave()
                    #expect(end == .answered, "\(way) \(mechanism)")
                    try await client.shutdown()
                    logins += 1
                }
                #expect(logins > 0, "\(way)")
            }
        }
    }

    @Test("a cut stream is resumed: nothing is lost, nothing comes twice", arguments: XMPPServer.Kind.installed)
    func resumption(_ kind: XMPPServer.Kind) async throws {
        try await XMPPServer.with(kind) { server in
            try await server.register("alice")
            try await server.register("bob")
            var options = XMPPStreamOptions()
            options.management = .resume
            let alice = try await LiveClient(server, try Self.account("alice", at: server), .clear, options)
            let bob = try await LiveClient(server, try Self.account("bob", at: server), .clear, options)
            try await alice.connect()
            try await bob.connect()
            let target = try #require(try await bob.run { $0.place.pointer.pointee.jid })
            // Several cuts, each with messages on the way in both directions.
            for round in 0..<5 {
                try await alice.run { state in
                    for number in 0..<20 {
                        try state.connection?.send(Self.message(to: target, "\(20 * round + number)"))
                    }
                    // The server reads all of it and closes, but says no more how much that was. Who came back sooner
                    // would find ejabberd still reading, which then has handled more than it says.
                    state.connection?.wire.shutOutput()
                }
                try? await alice.until { $0.end != nil }
                // Messages in flight to him are lost.
                try await bob.run { $0.connection?.abort() }
                try? await bob.until { $0.end != nil }
                try await alice.connect()
                try await bob.connect()
                #expect(try await alice.run { $0.readiness?.resumed } == true)
                #expect(try await bob.run { $0.readiness?.resumed } == true)
            }
            try await bob.until { $0.bodies.count >= 100 }
            try await alice.run { state in state.connection?.requestAcknowledgement() }
            try await alice.until { $0.acknowledged == 100 }
            let bodies = try await bob.run { $0.bodies }
            #expect(bodies == (0..<100).map(String.init), "\(bodies.joined(separator: " "))")
            #expect(try await alice.leave() == .answered)
            #expect(try await bob.leave() == .answered)
            try await alice.shutdown()
            try await bob.shutdown()
        }
    }

    private static func modules(_ heard: LiveClient.Heard) -> [any XMPPHandler] {
        [
            PingHandler(), RosterHandler { heard.note("roster \($0.jid) \($0.name ?? "")") },
            CarbonsHandler(isAutomatic: true) { heard.note("carbon \($0)") },
            RoomsHandler { event in
                switch event {
                case .joined: heard.note("joined")
                case .message(let message) where message.isOwn: heard.note("said \(message.stanza["id"] ?? "")")
                case .left: heard.note("left")
                case .refused(_, let error): heard.note("\(error)")
                default: break
                }
            },
            ArchiveHandler(),
            PubSubHandler { if case .published(let node, let item) = $0 { heard.note("item \(node.name) \(item)") } },
        ]
    }

    @Test("roster, carbons, rooms, archive and nodes", arguments: XMPPServer.Kind.installed)
    func modules(_ kind: XMPPServer.Kind) async throws {
        try await XMPPServer.with(kind) { server in
            try await server.register("mod")
            let options = XMPPStreamOptions()
            let client = try await LiveClient(server, try Self.account("mod", "one", at: server), .clear, options) {
                Self.modules($0)
            }
            let other = try await LiveClient(server, try Self.account("mod", "two", at: server), .clear, options) {
                Self.modules($0)
            }
            for each in [client, other] {
                try await each.connect()
                let items: [JID: XMPPRoster.Item] = try await each.ask { connection, state, answer in
                    try state.module(RosterHandler.self).get(in: XMPPModuleContext(connection), answer)
                }
                #expect(items.isEmpty)
                try await each.run { state in
                    _ = try state.connection?.send(XMPPElement("presence", namespace: XMPPNamespace.client))
                }
            }
            try await Self.tryRosterAndMessages(client, other, at: server)
            try await Self.tryRoom(client, at: server)
            try await Self.tryNode(client)
            for each in [client, other] {
                #expect(try await each.leave() == .answered)
                try await each.shutdown()
            }
        }
    }

    private static func tryRosterAndMessages(
        _ client: LiveClient,
        _ other: LiveClient,
        at server: XMPPServer
    ) async throws {
        let friend = try JID("friend@\(server.domain)")
        _ =
            try await client.ask { connection, state, answer in
                try state.module(RosterHandler.self).set(
                    XMPPRoster.Item(friend, name: "F"),
                    in: XMPPModuleContext(connection),
                    answer
                )
            } as XMPPElement
        try await other.until { $0.heard.lines.contains("roster \(friend) F") }

        // To the other one alone; a copy of what is sent comes to the first.
        let two = try #require(try await other.run { $0.place.pointer.pointee.jid })
        let one = try #require(try await client.run { $0.place.pointer.pointee.jid })
        try await client.run { state in _ = try state.connection?.send(Self.message(to: two, "hello", id: "m1")) }
        try await other.until { $0.bodies.contains("hello") }
        try await other.run { state in _ = try state.connection?.send(Self.message(to: one, "back", id: "m2")) }
        try await client.until { $0.bodies.contains("back") }

        let page: XMPPArchive.Page = try await client.ask { connection, state, answer in
            try state.module(ArchiveHandler.self).ask(.init(max: 50), in: XMPPModuleContext(connection), answer)
        }
        let bodies = page.messages.compactMap { $0.stanza.child("body")?.text }
        #expect(bodies.contains("hello"))
        #expect(bodies.contains("back"))
        #expect(page.isComplete)
    }

    private static func tryRoom(_ client: LiveClient, at server: XMPPServer) async throws {
        let room = try JID("hall@conference.\(server.domain)")
        let joined: XMPPRooms.Joined = try await client.ask { connection, state, answer in
            let context = XMPPModuleContext(connection)
            try state.module(RoomsHandler.self).join(room, .init(nick: "one"), in: context, answer)
        }
        #expect(joined.nick == "one")
        #expect(joined.isNew)
        var query = XMPPElement("query", namespace: XMPPNamespace.mucOwner)
        query.add(XMPPDataForm.submit().element)
        let accepts = query
        _ =
            try await client.ask { connection, _, answer in
                connection.request(
                    XMPPElement(
                        "iq",
                        namespace: XMPPNamespace.client,
                        attributes: ["type": "set", "to": room.description],
                        children: [.element(accepts)]
                    ),
                    answer
                )
            } as XMPPElement
        let id: String = try await client.ask { connection, state, answer in
            let body = XMPPElement("body", namespace: XMPPNamespace.client, text: "in here")
            try state.module(RoomsHandler.self).say(body, in: room, in: XMPPModuleContext(connection), answer)
        }
        #expect(try await client.run { $0.heard.lines.contains("said \(id)") })
        try await client.ask { connection, state, answer in
            try state.module(RoomsHandler.self).leave(room, in: XMPPModuleContext(connection), answer)
        } as Void
        #expect(try await client.run { $0.heard.lines.contains("left") })
    }

    /// The account's own (XEP-0163): every server lets one write there.
    private static func tryNode(_ client: LiveClient) async throws {
        let entry = XMPPElement("entry", namespace: "urn:example:entry", text: "here")
        let node = XMPPPubSub.Node("urn:example:node")
        func ask(_ iq: XMPPElement) async throws -> XMPPElement {
            try await client.ask { connection, _, answer in connection.request(iq, answer) }
        }
        _ = try await ask(PubSubHandler.publish(entry, id: "i1", to: node))
        let items = try await ask(PubSubHandler.items(of: node))
        let item = items.child("pubsub", XMPPNamespace.pubsub)?.child("items")?.child("item")
        #expect(item?["id"] == "i1")
        #expect(item?.child("entry", "urn:example:entry")?.text == "here")
        _ = try await ask(PubSubHandler.owner("set", "delete", node))
    }
}
