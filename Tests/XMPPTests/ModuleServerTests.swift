import TestSupport
import Testing
import XMPP

/// The modules' calls on both real servers.
@Suite("Modules on real servers", .timeLimit(.minutes(10)))
struct ModuleServerTests {
    /// A client with its modules.
    private struct Person {
        let client: XMPPClient
        let jid: JID
        let rooms = XMPPRooms()
        let archive = XMPPArchive()
        let receipts = XMPPReceipts()
        let pubSub = XMPPPubSub()
        let discovery = XMPPDiscovery()

        init(
            _ user: String,
            at server: XMPPServer,
            _ change: (inout XMPPClientConfiguration) -> Void = { _ in }
        ) async throws {
            var configuration = ExampleTests.Place.configuration(user, server)
            change(&configuration)
            self.client = XMPPClient(
                configuration,
                modules: [self.rooms, self.archive, self.receipts, self.pubSub, self.discovery]
            )
            self.jid = try await self.client.connect()
            try await self.client.send(XMPPElement("presence", namespace: XMPPNamespace.client))
        }
    }

    /// The first event that is meant; the test's time limit ends a wait for none.
    private static func first<Event: Sendable>(
        _ events: AsyncStream<Event>,
        _ isMeant: (Event) -> Bool
    ) async throws -> Event {
        for await event in events where isMeant(event) { return event }
        throw LiveClient.NotReady(description: "the events have ended")
    }

    @Test(
        "[XEP-0045] a room is configured, entered, talked in and moderated",
        arguments: XMPPServer.Kind.installed
    )
    func room(_ kind: XMPPServer.Kind) async throws {
        try await XMPPServer.with(kind, users: 2) { server in
            let juliet = try await Person("user1", at: server)
            let romeo = try await Person("user2", at: server)
            let room = try JID("hall@conference.\(server.domain)")
            #expect(try await juliet.rooms.join(room, as: "juliet").isNew)
            let form = try await juliet.rooms.configuration(of: room)
            #expect(form["muc#roomconfig_membersonly"] != nil)
            let values = ["muc#roomconfig_membersonly": ["1"], "muc#roomconfig_roomname": ["Hall"]]
            try await juliet.rooms.configure(room, with: form.filled(values))

            // For members only: refused, made a member, let in.
            func administer(_ item: KeyValuePairs<String, String?>) async throws {
                let namespace = "http://jabber.org/protocol/muc#admin"
                var query = XMPPElement("query", namespace: namespace)
                query.add(XMPPElement("item", namespace: namespace, attributes: item))
                var request = XMPPElement("iq", namespace: XMPPNamespace.client)
                (request["type"], request["to"]) = ("set", room.description)
                request.add(query)
                _ = try await juliet.client.request(request)
            }
            await #expect(throws: XMPPClientError.self) { try await romeo.rooms.join(room, as: "romeo") }
            let arrivals = juliet.rooms.events
            try await administer(["affiliation": "member", "jid": romeo.jid.bare.description])
            let joined = try await romeo.rooms.join(room, as: "juliet")
            #expect(joined.nick == "juliet-1")
            #expect(Set(joined.occupants.map(\.nick)) == ["juliet", "juliet-1"])
            try await romeo.rooms.setNick("romeo", in: room)
            _ = try await Self.first(arrivals) { $0 == .renamed(room: room, from: "juliet-1", to: "romeo") }

            let heard = romeo.rooms.events
            let id = try await juliet.rooms.say("to all", in: room, waits: true)
            let message = try await Self.first(heard) { if case .message = $0 { true } else { false } }
            guard case .message(let said) = message else { return }
            #expect(said.stanza["id"] == id)
            #expect(said.body == "to all")
            #expect(said.nick == "juliet")
            #expect(!said.isOwn)
            try await juliet.rooms.setSubject("The hall", of: room)
            _ = try await Self.first(heard) { $0 == .subject(room: room, "The hall", by: "juliet") }
            try await juliet.rooms.say("to you", to: "romeo", in: room)
            _ = try await Self.first(heard) { event in
                guard case .privateMessage(let message) = event else { return false }
                return message.body == "to you" && message.nick == "juliet"
            }
            try await administer(["nick": "romeo", "role": "none"])
            _ = try await Self.first(heard) { $0 == .left(room: room, .kicked) }
            _ = try await romeo.rooms.join(room, as: "romeo")
            try await administer(["affiliation": "outcast", "jid": romeo.jid.bare.description])
            _ = try await Self.first(heard) { $0 == .left(room: room, .banned) }
            try await juliet.rooms.destroy(room)
            for person in [juliet, romeo] { await person.client.disconnect() }
        }
    }

    @Test(
        "[C9 0045] after a connection that cannot be resumed a room is joined again, and nothing is missed or told twice",
        arguments: XMPPServer.Kind.installed
    )
    func rejoins(_ kind: XMPPServer.Kind) async throws {
        try await XMPPServer.with(kind, users: 2) { server in
            try await CuttingRelay.with(to: server.port) { relay in
                let juliet = try await Person("user1", at: server) {
                    $0.port = relay.port
                    $0.resumes = false
                }
                let romeo = try await Person("user2", at: server)
                let room = try JID("hall@conference.\(server.domain)")
                try await romeo.rooms.join(room, as: "romeo")
                try await romeo.rooms.acceptDefaults(of: room)
                try await juliet.rooms.join(room, as: "juliet")
                let events = juliet.rooms.events
                try await romeo.rooms.say("1", in: room, waits: true)
                _ = try await Self.first(events) { if case .message = $0 { true } else { false } }
                let departures = romeo.rooms.events
                try await relay.cut()
                for await state in juliet.client.states { if case .closed = state { break } }
                _ = try await Self.first(departures) { event in
                    if case .exited(_, "juliet", _) = event { true } else { false }
                }
                try await romeo.rooms.say("2", in: room, waits: true)
                try await juliet.client.connect()
                _ = try await Self.first(events) { if case .joined = $0 { true } else { false } }
                try await romeo.rooms.say("3", in: room, waits: true)
                var bodies: [String] = []
                for await case .message(let message) in events {
                    bodies.append(message.body ?? "-")
                    if message.body == "3" { break }
                }
                #expect(bodies == ["2", "3"])
                for person in [juliet, romeo] { await person.client.disconnect() }
            }
        }
    }

    @Test(
        "[XEP-0060] a node of a service is made, configured, published to, read and removed",
        arguments: XMPPServer.Kind.installed
    )
    func node(_ kind: XMPPServer.Kind) async throws {
        // All hosts of an ejabberd share the tables of its nodes. Two transactions that meet there end one of them with
        // "Database failure", since the module catches the restart that Mnesia asks for. So no other test may be near.
        try await XMPPServer.with(kind, isOwn: true) { server in
            let owner = try await Person(XMPPServer.user, at: server)
            let service = try JID("pubsub.\(server.domain)")
            let node = try await owner.pubSub.create("news", at: service, configuration: ["pubsub#max_items": "5"])
            let form = try await owner.pubSub.configuration(of: node)
            #expect(form["pubsub#max_items"]?.value == "5")
            try await owner.pubSub.configure(node, with: form.filled(["pubsub#notify_retract": ["1"]]))
            #expect(try await owner.pubSub.subscribe(to: node).state == .subscribed)
            #expect(try await owner.pubSub.subscriptions(at: service).compactMap(\.node) == ["news"])
            // prosody 0.12 lists no affiliations.
            if kind == .ejabberd {
                #expect(try await owner.pubSub.affiliations(at: service)["news"] == .owner)
                #expect(try await owner.pubSub.affiliations(of: node)[owner.jid.bare] == .owner)
            }
            let events = owner.pubSub.events
            let entry = XMPPElement("entry", namespace: "urn:example:entry", text: "here")
            #expect(try await owner.pubSub.publish(entry, id: "i1", to: node) == "i1")
            let event = try await Self.first(events) { if case .published = $0 { true } else { false } }
            guard case .published(node, let item) = event else {
                Issue.record("\(event)")
                return
            }
            #expect(item.payload?.text == "here")
            #expect(try await owner.pubSub.items(of: node).map(\.id) == ["i1"])
            try await owner.pubSub.retract("i1", from: node, notifies: true)
            _ = try await Self.first(events) { $0 == .retracted(node, id: "i1") }
            try await owner.pubSub.publish(entry, id: "i2", to: node)
            try await owner.pubSub.purge(node)
            #expect(try await owner.pubSub.items(of: node).isEmpty)
            try await owner.pubSub.unsubscribe(from: node)
            try await owner.pubSub.delete(node)
            await #expect(throws: XMPPClientError.self) { try await owner.pubSub.items(of: node) }
            await owner.client.disconnect()
        }
    }

    @Test(
        "[XEP-0313 §7, XEP-0115] preferences of an archive, and what another client of the account can do",
        arguments: XMPPServer.Kind.installed
    )
    func archiveAndCapabilities(_ kind: XMPPServer.Kind) async throws {
        try await XMPPServer.with(kind, users: 2) { server in
            let juliet = try await Person("user1", at: server)
            let romeo = try await Person("user2", at: server)
            let friend = romeo.jid.bare
            try await juliet.archive.setPreferences(.init(.never, always: [friend]))
            let preferences = try await juliet.archive.preferences()
            #expect(preferences.default == .never)
            #expect(preferences.always == [friend])
            let presence = XMPPElement(
                "presence",
                namespace: XMPPNamespace.client,
                attributes: ["to": juliet.jid.description]
            )
            try await romeo.client.send(presence)
            for await stanza in juliet.client.stanzas where stanza["from"] == romeo.jid.description { break }
            let info = try await juliet.discovery.capabilities(of: romeo.jid)
            #expect(info.features.isSuperset(of: [XMPPNamespace.receipts, XMPPNamespace.muc, XMPPNamespace.ping]))
            #expect(info.identities.map(\.name) == ["Clamor"])
            for person in [juliet, romeo] { await person.client.disconnect() }
        }
    }
}
