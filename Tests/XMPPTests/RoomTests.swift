import NIOCore
import Testing
import XMPP

@Suite("Rooms, archives and nodes")
struct RoomTests {
    private static func presence(_ nick: String, _ inner: String = "", type: String? = nil) -> String {
        let type = type.map { " type='\($0)'" } ?? ""
        return
            "<presence from='hall@muc.example.com/\(nick)'\(type)><x xmlns='http://jabber.org/protocol/muc#user'>\(inner)</x></presence>"
    }

    private static func room(_ told: @escaping (XMPPRooms.Event) -> Void) throws -> (ConnectionRig, XMPPRooms, JID) {
        let rooms = XMPPRooms(told)
        let rig = try ConnectionRig.ready(modules: [rooms])
        let room = try JID("hall@muc.example.com")
        try rooms.join(room, nick: "jul", on: rig.connection)
        #expect(
            try rig.sent() == """
                <presence to='hall@muc.example.com/jul'><x xmlns='http://jabber.org/protocol/muc'>\
                <history maxstanzas='0'/></x></presence>
                """
        )
        return (rig, rooms, room)
    }

    @Test("[XEP-0045 §7.2] the own presence ends the flood of the others, and the subject ends the joining")
    func joins() throws {
        var events: [XMPPRooms.Event] = []
        let (rig, rooms, room) = try Self.room { events.append($0) }
        try rig.receive(Self.presence("a") + Self.presence("b") + Self.presence("jul", "<status code='110'/>"))
        try rig.receive("<message type='groupchat' from='hall@muc.example.com'><subject>hi</subject></message>")
        let (a, b) = (try JID("hall@muc.example.com/a"), try JID("hall@muc.example.com/b"))
        #expect(
            events == [
                .occupant(a, isPresent: true), .occupant(b, isPresent: true),
                .joined(room: room, nick: "jul", occupants: 3, isNew: false), .subject(room: room, "hi"),
            ]
        )
        #expect(rooms.occupants(of: room) == 3)
        events = []
        try rooms.say("hello", in: room, id: "m1", on: rig.connection)
        #expect(
            try rig.sent() == "<message to='hall@muc.example.com' type='groupchat' id='m1'><body>hello</body></message>"
        )
        try rig.receive(
            "<message type='groupchat' id='m1' from='hall@muc.example.com/jul'><body>hello</body></message>"
        )
        try rig.receive("<message type='groupchat' id='m2' from='hall@muc.example.com/a'><body>yo</body></message>")
        let own = events.map { event -> Bool? in if case .message(_, let isOwn) = event { isOwn } else { nil } }
        #expect(own == [true, false])
        try rooms.leave(room, on: rig.connection)
        #expect(try rig.sent() == "<presence to='hall@muc.example.com/jul' type='unavailable'/>")
        try rig.receive(Self.presence("jul", "<status code='110'/>", type: "unavailable"))
        #expect(events.last == .left(room: room, statuses: [110]))
        #expect(rooms.occupants(of: room) == 0)
    }

    @Test("[XEP-0045 §7.2.8, §10.1] a nick assigned by the room is used, and a new room is reported")
    func changedNick() throws {
        var events: [XMPPRooms.Event] = []
        let (rig, _, room) = try Self.room { events.append($0) }
        try rig.receive(Self.presence("juliet", "<status code='110'/><status code='201'/><status code='210'/>"))
        #expect(events == [.joined(room: room, nick: "juliet", occupants: 1, isNew: true)])
    }

    @Test("[XEP-0045 §7.2.8] a nick in use is replaced by others, three tries in all")
    func nickConflict() throws {
        var events: [XMPPRooms.Event] = []
        let (rig, _, room) = try Self.room { events.append($0) }
        let conflict = { (nick: String) in
            """
            <presence from='hall@muc.example.com/\(nick)' type='error'><error type='cancel'>\
            <conflict xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></presence>
            """
        }
        try rig.receive(conflict("jul"))
        #expect(try rig.sent().contains("to='hall@muc.example.com/jul-1'"))
        try rig.receive(conflict("jul-1"))
        #expect(try rig.sent().contains("to='hall@muc.example.com/jul-1-2'"))
        try rig.receive(conflict("jul-1-2"))
        #expect(try rig.sent() == "")
        #expect(events == [.refused(room: room, StanzaError(.conflict))])
    }

    @Test("[XEP-0045 §9] a kick is reported with its reason")
    func kicked() throws {
        var events: [XMPPRooms.Event] = []
        let (rig, _, room) = try Self.room { events.append($0) }
        try rig.receive(Self.presence("jul", "<status code='110'/>"))
        try rig.receive(Self.presence("jul", "<status code='307'/>", type: "unavailable"))
        #expect(events.last == .left(room: room, statuses: [307]))
    }

    @Test("[XEP-0198 §5] who resumes a stream is still in its rooms, and who begins anew is in none")
    func overLosses() throws {
        let (rig, rooms, room) = try Self.room { _ in }
        try rig.receive(Self.presence("a") + Self.presence("jul", "<status code='110'/>"))
        rig.channel.close(promise: nil)
        #expect(rooms.occupants(of: room) == 2)
        for resumed in [true, false] {
            let readiness = XMPPReadiness(resumed: resumed, acknowledged: 0, lost: 0, phases: XMPPPhases())
            rooms.ready(try JID("a@b/c"), readiness, on: rig.connection, now: rig.now)
            #expect(rooms.occupants(of: room) == (resumed ? 2 : 0))
        }
    }

    @Test("[XEP-0313 §4] an archive is read page by page, and results of others do not count")
    func archive() throws {
        let archive = XMPPArchive()
        let rig = try ConnectionRig.ready(modules: [archive])
        var answers: [Result<XMPPArchive.Page, XMPPRequestError>] = []
        archive.ask(.init(with: try JID("a@b"), max: 2, after: "x"), on: rig.connection) { answers.append($0) }
        #expect(
            try rig.sent() == """
                <iq type='set' id='00000000000000003'><query xmlns='urn:xmpp:mam:2' queryid='00000000000000002'>\
                <x xmlns='jabber:x:data' type='submit'><field var='FORM_TYPE' type='hidden'>\
                <value>urn:xmpp:mam:2</value></field><field var='with'><value>a@b</value></field></x>\
                <set xmlns='http://jabber.org/protocol/rsm'><max>2</max><after>x</after></set></query></iq>
                """
        )
        let result = { (query: String, from: String, text: String) in
            """
            <message\(from)><result xmlns='urn:xmpp:mam:2' queryid='\(query)' id='i\(text)'>\
            <forwarded xmlns='urn:xmpp:forward:0'><delay xmlns='urn:xmpp:delay' stamp='2026-01-01T00:00:00Z'/>\
            <message xmlns='jabber:client'><body>\(text)</body></message></forwarded></result></message>
            """
        }
        let query = "00000000000000002"
        try rig.receive(result(query, "", "1") + result(query, " from='juliet@im.example.com'", "2"))
        try rig.receive(result(query, " from='evil@example.net'", "3") + result("other", "", "4"))
        try rig.receive(
            """
            <iq type='result' id='00000000000000003'><fin xmlns='urn:xmpp:mam:2' complete='true'>\
            <set xmlns='http://jabber.org/protocol/rsm'><first>i1</first><last>i2</last><count>9</count></set></fin></iq>
            """
        )
        #expect(answers.count == 1)
        let pages = try answers.map { try $0.get() }
        #expect(pages.first?.messages.map(\.id) == ["i1", "i2"])
        #expect(pages.first?.messages.first?.stamp == "2026-01-01T00:00:00Z")
        #expect(pages.first?.isComplete == true)
        #expect(pages.first?.last == "i2")
        #expect(pages.first?.count == 9)
        #expect(archive.foreign == 2)
    }

    @Test("[XEP-0060 §6 to §8] what is asked of a node")
    func nodes() throws {
        let rig = try ConnectionRig.ready()
        let service = try JID("pubsub.example.com")
        let answer: XMPPPubSub.Answer = { _ in }
        XMPPPubSub.create("n", at: service, configuration: [("pubsub#max_items", "5")], on: rig.connection, answer)
        XMPPPubSub.subscribe(to: "n", at: service, on: rig.connection, answer)
        XMPPPubSub.publish(
            XMPPElement("e", namespace: "urn:e"),
            id: "1",
            to: "n",
            at: service,
            on: rig.connection,
            answer
        )
        XMPPPubSub.items(of: "n", at: nil, max: 3, on: rig.connection, answer)
        XMPPPubSub.retract("1", from: "n", at: service, on: rig.connection, answer)
        XMPPPubSub.unsubscribe(from: "n", at: service, subscription: "s", on: rig.connection, answer)
        XMPPPubSub.purge("n", at: service, on: rig.connection, answer)
        XMPPPubSub.delete("n", at: service, on: rig.connection, answer)
        let to = "to='pubsub.example.com' "
        let iq = { (type: String, to: String, id: Int, inner: String, owner: String) in
            "<iq type='\(type)' \(to)id='0000000000000000\(id)'><pubsub xmlns='http://jabber.org/protocol/pubsub\(owner)'>\(inner)</pubsub></iq>"
        }
        let form = """
            <x xmlns='jabber:x:data' type='submit'><field var='FORM_TYPE'>\
            <value>http://jabber.org/protocol/pubsub#node_config</value></field>\
            <field var='pubsub#max_items'><value>5</value></field></x>
            """
        let expected = [
            iq("set", to, 2, "<create node='n'/><configure>\(form)</configure>", ""),
            iq("set", to, 3, "<subscribe node='n' jid='juliet@im.example.com'/>", ""),
            iq("set", to, 4, "<publish node='n'><item id='1'><e xmlns='urn:e'/></item></publish>", ""),
            iq("get", "", 5, "<items node='n' max_items='3'/>", ""),
            iq("set", to, 6, "<retract node='n'><item id='1'/></retract>", ""),
            iq("set", to, 7, "<unsubscribe node='n' jid='juliet@im.example.com' subid='s'/>", ""),
            iq("set", to, 8, "<purge node='n'/>", "#owner"),
            iq("set", to, 9, "<delete node='n'/>", "#owner"),
        ]
        #expect(try rig.sent() == expected.joined())
    }

    @Test("[XEP-0060 §7.1.2, §7.2.2, §8.4.2, §8.5.2] what a node sends its subscribers")
    func events() throws {
        var events: [XMPPPubSub.Event] = []
        let rig = try ConnectionRig.ready(modules: [XMPPPubSub { events.append($0) }])
        let event = { (inner: String) in
            "<message from='pubsub.example.com'><event xmlns='http://jabber.org/protocol/pubsub#event'>\(inner)</event></message>"
        }
        try rig.receive(
            event("<items node='n'><item id='1'><e xmlns='urn:e'/></item><item id='2'/><retract id='3'/></items>")
        )
        try rig.receive(event("<purge node='n'/>") + event("<delete node='n'/>"))
        let service = try JID("pubsub.example.com")
        #expect(
            events == [
                .item(service: service, node: "n", id: "1", XMPPElement("e", namespace: "urn:e")),
                .item(service: service, node: "n", id: "2", nil), .retracted(service: service, node: "n", id: "3"),
                .purged(service: service, node: "n"), .deleted(service: service, node: "n"),
            ]
        )
    }

    @Test("[A18] coming back: after a loss of what had worked, in growing steps, spread at random")
    func reconnect() {
        var reconnect = XMPPReconnect(first: .seconds(2), most: .seconds(20))
        let now = NIODeadline.uptimeNanoseconds(0)
        #expect(reconnect.ended(.lost, now: now, random: 1) == .stay)
        reconnect.ready()
        for seconds in [2, 4, 8, 16, 20, 20] as [Int64] {
            #expect(reconnect.ended(.lost, now: now, random: 1) == .connect(at: now + .seconds(seconds), to: nil))
        }
        reconnect.ready()
        #expect(reconnect.ended(.lost, now: now, random: 0) == .connect(at: now + .seconds(1), to: nil))
        reconnect.ready()
        let shutdown = XMPPConnectionEnd.streamError(StreamError(.systemShutdown))
        #expect(reconnect.ended(shutdown, now: now, random: 1) == .connect(at: now + .seconds(8), to: nil))
        #expect(reconnect.ended(.answered, now: now, random: 1) == .stay)
        #expect(reconnect.ended(.streamError(StreamError(.conflict)), now: now, random: 1) == .stay)
        let other = XMPPHost(name: "b", port: 5)
        // Hops at once are few, logins between them or not.
        for seconds in [0, 0, 0, 2, 4, 8, 16, 20] as [Int64] {
            let verdict = reconnect.ended(.redirected(other), now: now, random: 1)
            #expect(verdict == .connect(at: now + .seconds(seconds), to: other))
            reconnect.ready()
        }
        reconnect.reset()
        #expect(reconnect.ended(.lost, now: now, random: 1) == .stay)
    }
}
