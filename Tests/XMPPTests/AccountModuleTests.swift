import NIOCore
import Testing
import XMPP

@Suite("Roster, account, receipts and carbons")
struct AccountModuleTests {
    // MARK: Roster

    private static let item =
        "<item jid='romeo@example.net' name='Romeo' subscription='both'><group>Friends</group></item>"

    @Test("[RFC 6121 §2.1.3, §2.6] the roster is asked for, by version where there is one")
    func roster() throws {
        let roster = RosterHandler()
        let rig = try ConnectionRig.ready(modules: [roster])
        roster.get(in: rig.module, knowsVersions: true) { _ in }
        let query = { (id: String, version: String) in
            "<iq type='get' id='0000000000000000\(id)'><query xmlns='jabber:iq:roster' ver='\(version)'/></iq>"
        }
        #expect(try rig.sent() == query("2", ""))
        try rig.receive(
            "<iq type='result' id='00000000000000002'><query xmlns='jabber:iq:roster' ver='v1'>\(Self.item)</query></iq>"
        )
        var romeo = XMPPRoster.Item(try JID("romeo@example.net"), name: "Romeo", groups: ["Friends"])
        romeo.subscription = .both
        #expect(roster.items == [romeo.jid: romeo])
        roster.get(in: rig.module, knowsVersions: true) { _ in }
        #expect(try rig.sent() == query("3", "v1"))
        try rig.receive("<iq type='result' id='00000000000000003'/>")
        #expect(roster.items == [romeo.jid: romeo])
        #expect(roster.version == "v1")
    }

    @Test("[RFC 6121 §2.1.6] a push counts and is answered, unless another entity sent it")
    func pushes() throws {
        var pushed: [XMPPRoster.Item] = []
        let roster = RosterHandler { pushed.append($0) }
        let rig = try ConnectionRig.ready(modules: [roster])
        let push = { (from: String) in
            "<iq type='set' id='p'\(from)><query xmlns='jabber:iq:roster' ver='v2'>\(Self.item)</query></iq>"
        }
        for from in ["evil@example.net", "juliet@im.example.com/other", "im.example.com"] {
            try rig.receive(push(" from='\(from)'"))
            #expect(try rig.sent().contains("service-unavailable"))
        }
        #expect(pushed.isEmpty)
        #expect(roster.items.isEmpty)
        try rig.receive(push(""))
        #expect(try rig.sent() == "<iq type='result' id='p'/>")
        try rig.receive(push(" from='juliet@im.example.com'"))
        #expect(try rig.sent() == "<iq type='result' id='p' to='juliet@im.example.com'/>")
        #expect(pushed.count == 2)
        #expect(roster.version == "v2")
        try rig.receive(
            """
            <iq type='set' id='p'><query xmlns='jabber:iq:roster'>\
            <item jid='romeo@example.net' subscription='remove'/></query></iq>
            """
        )
        #expect(roster.items.isEmpty)
        _ = try rig.sent()
        try rig.receive("<iq type='set' id='p'><query xmlns='jabber:iq:roster'>\(Self.item)\(Self.item)</query></iq>")
        #expect(try rig.sent().contains("bad-request"))
    }

    @Test("[RFC 6121 §2.3, §2.5] contacts are set and removed one at a time")
    func setting() throws {
        let roster = RosterHandler()
        let rig = try ConnectionRig.ready(modules: [roster])
        roster.set(.init(try JID("a@b"), name: "A", groups: ["x"]), in: rig.module) { _ in }
        roster.remove(try JID("a@b"), in: rig.module) { _ in }
        #expect(
            try rig.sent() == """
                <iq type='set' id='00000000000000002'><query xmlns='jabber:iq:roster'>\
                <item jid='a@b' name='A'><group>x</group></item></query></iq>\
                <iq type='set' id='00000000000000003'><query xmlns='jabber:iq:roster'>\
                <item jid='a@b' subscription='remove'/></query></iq>
                """
        )
    }

    private static func item(_ jid: String, _ name: String = "A", groups: [String] = []) throws -> XMPPRoster.Item {
        XMPPRoster.Item(try JID(jid), name: name, groups: groups)
    }

    @Test("[RFC 6121 §2.1.6] a loaded roster is asked for again on a new stream, and the differences are events")
    func rosterAgain() throws {
        var changed: [XMPPRoster.Item] = []
        let roster = RosterHandler { changed.append($0) }
        let rig = try ConnectionRig.resumable([roster])
        roster.get(in: rig.module) { _ in }
        let id = try Self.id(of: rig.sent())
        let items = "<item jid='a@b' name='A'/><item jid='c@d' name='A'/><item jid='e@f' name='A'/>"
        try rig.receive("<iq type='result' id='\(id)'><query xmlns='jabber:iq:roster'>\(items)</query></iq>")
        #expect(changed.isEmpty)
        let resumed = try rig.reconnected([roster], resumed: 1)
        #expect(try !resumed.sent().contains("jabber:iq:roster"))
        let next = try resumed.reconnected([roster], resumed: nil)
        let again = try Self.id(of: next.sent())
        let other = "<item jid='a@b' name='A'/><item jid='c@d' name='B'/><item jid='g@h' name='A'/>"
        try next.receive("<iq type='result' id='\(again)'><query xmlns='jabber:iq:roster'>\(other)</query></iq>")
        var removed = try Self.item("e@f")
        removed.subscription = .remove
        #expect(Set(changed) == [try Self.item("c@d", "B"), try Self.item("g@h"), removed])
        #expect(changed.count == 3)
        #expect(roster.items.count == 3)
    }

    @Test("[RFC 6121 §2.1.6] a roster that nobody asked for is not asked for on a new stream either")
    func rosterNotAgain() throws {
        let roster = RosterHandler()
        let rig = try ConnectionRig.resumable([roster])
        #expect(try rig.reconnected([roster], resumed: nil).sent() == "")
    }

    /// The id of the one request in a text.
    private static func id(of text: String) throws -> String {
        let parts = text.split(separator: "<iq type='get' id='")
        try #require(parts.count == 1)
        return String(try #require(parts.first?.split(separator: "'").first))
    }

    // MARK: Sizes

    @Test("events of modules count with all that they hold, so that a slow reader's queue stays bounded")
    func sizes() throws {
        let long = String(repeating: "x", count: 10_000)
        let room = try JID("hall@muc.example.com")
        let error = StanzaError(.conflict, text: long)
        let form = XMPPDataForm(.form, fields: [.init("a", [long, long], options: [.init(long)])])
        var (joined, published): (XMPPRooms.Event?, XMPPPubSub.Event?)
        let rooms = RoomsHandler { joined = $0 }
        let rig = try ConnectionRig.ready(modules: [rooms, PubSubHandler { published = $0 }])
        rooms.join(room, .init(nick: "jul"), in: rig.module) { _ in }
        for nick in (0..<100).map({ "\($0)" }) + ["jul"] { try rig.receive("<presence from='\(room)/\(nick)'/>") }
        try rig.receive(
            """
            <message from='a@b'><event xmlns='\(XMPPNamespace.pubsubEvent)'><items node='\(long)'><item id='i'/></items>\
            </event></message>
            """
        )
        let sizes = [
            try Self.item("a@b", groups: [long]).estimatedSize,
            try Self.item("a@b", groups: Array(repeating: "", count: 1_000)).estimatedSize,
            XMPPPubSub.Event.configured(.init("n"), form).estimatedSize,
            published?.estimatedSize ?? 0,
            XMPPPubSub.Event.retracted(.init("n"), id: long).estimatedSize,
            XMPPRooms.Event.refused(room: room, error).estimatedSize,
            joined?.estimatedSize ?? 0,
        ]
        #expect(sizes.allSatisfy { $0 >= 10_000 }, "\(sizes)")
        #expect(XMPPPubSub.Event.configured(.init("n"), form).estimatedSize >= 30_000)
        #expect(XMPPRooms.Event.left(room: room, .left).estimatedSize < 1_000)
    }

    // MARK: Account

    @Test("[XEP-0077 §3.2] each removal has its own answer")
    func removals() throws {
        let registration = RegistrationHandler()
        let rig = try ConnectionRig.ready(modules: [registration])
        var answers: [String] = []
        for name in ["a", "b"] {
            registration.remove(in: rig.module) { result in
                if case .success = result { answers.append("\(name) gone") } else { answers.append("\(name) failed") }
            }
        }
        try rig.receive(
            """
            <iq type='error' id='00000000000000003'><error type='auth'>\
            <forbidden xmlns='\(XMPPNamespace.stanzas)'/></error></iq>
            """
        )
        #expect(answers == ["b failed"])
        try rig.receive("<iq type='result' id='00000000000000002'/>")
        #expect(answers == ["b failed", "a gone"])
    }

    @Test("[XEP-0077 §3.2, §3.3] password and account are changed and removed")
    func account() throws {
        let rig = try ConnectionRig.ready()
        let server = try JID("im.example.com")
        rig.module.request(RegistrationHandler.password("new", of: "juliet", at: server)) { _ in }
        rig.module.request(RegistrationHandler.removal()) { _ in }
        #expect(
            try rig.sent() == """
                <iq type='set' to='im.example.com' id='00000000000000002'><query xmlns='jabber:iq:register'>\
                <username>juliet</username><password>new</password></query></iq>\
                <iq type='set' id='00000000000000003'><query xmlns='jabber:iq:register'><remove/></query></iq>
                """
        )
    }

    // MARK: Receipts

    @Test("[XEP-0184 §5] a receipt is given once, to who asks for it, and not in rooms or for errors")
    func receipts() throws {
        var received: [String] = []
        let rig = try ConnectionRig.ready(modules: [
            ReceiptsHandler(told: { received.append("\($0.stage) \($0.id) \($0.from?.description ?? "-")") })
        ])
        let ask = "<request xmlns='urn:xmpp:receipts'/>"
        try rig.receive("<message id='m1' from='a@b/c'>\(ask)</message>")
        #expect(
            try rig.sent() == """
                <message to='a@b/c' id='00000000000000002'><received xmlns='urn:xmpp:receipts' id='m1'/></message>
                """
        )
        try rig.receive("<message id='m2' type='groupchat' from='a@b/c'>\(ask)</message>")
        try rig.receive("<message id='m3' type='error' from='a@b/c'>\(ask)</message>")
        try rig.receive("<message from='a@b/c'>\(ask)</message>")
        try rig.receive("<message id='m4' from='a@b/c'><received xmlns='urn:xmpp:receipts' id='mine'/>\(ask)</message>")
        #expect(try rig.sent() == "")
        #expect(received == ["received mine a@b/c"])
    }

    @Test("[XEP-0184 §5.4] a message that has no id, or goes to a room, asks for none")
    func asking() {
        var message = XMPPElement("message", namespace: XMPPNamespace.client)
        ReceiptsHandler.ask(in: &message)
        #expect(message.children.isEmpty)
        message["id"] = "m"
        ReceiptsHandler.ask(in: &message)
        #expect(message.child("request", XMPPNamespace.receipts) != nil)
    }

    @Test("[XEP-0184, XEP-0333] a message with a text is for the application, also one that confirms another")
    func textAndReceipt() throws {
        var told: [String] = []
        let rig = try ConnectionRig.ready(modules: [ReceiptsHandler(told: { told.append("\($0.stage)") })])
        let confirmations = [
            "<received xmlns='urn:xmpp:receipts' id='m'/>", "<displayed xmlns='urn:xmpp:chat-markers:0' id='m'/>",
        ]
        for confirmation in confirmations {
            for body in ["", "<body>hi</body>"] {
                let known = rig.observer.calls.count
                try rig.receive("<message from='a@b/c'>\(confirmation)\(body)</message>")
                #expect(rig.observer.calls.count == known + (body.isEmpty ? 0 : 1))
            }
        }
        #expect(told == ["received", "received", "displayed", "displayed"])
    }

    @Test("[XEP-0184] a wait ends in its own time, also behind an earlier one that was confirmed")
    func waits() throws {
        let handler = ReceiptsHandler()
        let rig = try ConnectionRig.ready(ConnectionRig.options { $0.keepAlive = .zero }, modules: [handler])
        let start = rig.now
        var ends: [String] = []
        let jid = try JID("a@b")
        for (id, seconds) in [("c", 30), ("a", 10), ("b", 20)] as [(String, Int64)] {
            let message = XMPPElement("message", namespace: XMPPNamespace.client, attributes: ["to": "a@b", "id": id])
            handler.deliver(message, to: jid, until: .received, timeout: .seconds(seconds), in: rig.module) { result in
                ends.append("\(id) \((try? result.get()) != nil)")
            }
        }
        #expect(handler.deadline == start + .seconds(10))
        try rig.receive("<message from='a@b/c'><received xmlns='urn:xmpp:receipts' id='a'/></message>")
        rig.advance(.seconds(19))
        #expect(ends == ["a true"])
        #expect(handler.deadline == start + .seconds(20))
        rig.advance(.seconds(1))
        #expect(ends == ["a true", "b false"])
        rig.advance(.seconds(10))
        #expect(ends == ["a true", "b false", "c false"])
        #expect(handler.deadline == .distantFuture)
    }

    // MARK: Carbons

    @Test("[XEP-0280 §11] a copy counts only from the own account")
    func carbons() throws {
        var copied: [String] = []
        let carbons = CarbonsHandler { event in
            switch event {
            case .sent(let message): copied.append("sent \(message.child("body")?.text ?? "")")
            case .received(let message): copied.append("received \(message.child("body")?.text ?? "")")
            case .refused(let error): copied.append("\(error)")
            }
        }
        let rig = try ConnectionRig.ready(modules: [carbons])
        let copy = { (from: String, way: String, text: String) in
            """
            <message from='\(from)'><\(way) xmlns='urn:xmpp:carbons:2'><forwarded xmlns='urn:xmpp:forward:0'>\
            <message xmlns='jabber:client' from='a@b'><body>\(text)</body></message></forwarded></\(way)></message>
            """
        }
        try rig.receive(copy("juliet@im.example.com", "received", "1") + copy("juliet@im.example.com", "sent", "2"))
        try rig.receive(copy("evil@example.net", "received", "3") + copy("juliet@im.example.com/x", "sent", "4"))
        #expect(copied == ["received 1", "sent 2"])
        // None of them is a message of its own.
        #expect(rig.observer.calls.count == 1)
    }
}
