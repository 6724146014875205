import Testing
import XMPP

@Suite("Roster, account, receipts and carbons")
struct AccountModuleTests {
    // MARK: Roster

    private static let item =
        "<item jid='romeo@example.net' name='Romeo' subscription='both'><group>Friends</group></item>"

    @Test("[RFC 6121 §2.1.3, §2.6] the roster is asked for, by version where there is one")
    func roster() throws {
        let roster = XMPPRoster()
        let rig = try ConnectionRig.ready(modules: [roster])
        roster.get(on: rig.connection, knowsVersions: true) { _ in }
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
        roster.get(on: rig.connection, knowsVersions: true) { _ in }
        #expect(try rig.sent() == query("3", "v1"))
        try rig.receive("<iq type='result' id='00000000000000003'/>")
        #expect(roster.items == [romeo.jid: romeo])
        #expect(roster.version == "v1")
    }

    @Test("[RFC 6121 §2.1.6] a push counts and is answered, unless another entity sent it")
    func pushes() throws {
        var pushed: [XMPPRoster.Item] = []
        let roster = XMPPRoster { pushed.append($0) }
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
        #expect(roster.foreignPushes == 3)
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
        let roster = XMPPRoster()
        let rig = try ConnectionRig.ready(modules: [roster])
        roster.set(.init(try JID("a@b"), name: "A", groups: ["x"]), on: rig.connection) { _ in }
        roster.remove(try JID("a@b"), on: rig.connection) { _ in }
        #expect(
            try rig.sent() == """
                <iq type='set' id='00000000000000002'><query xmlns='jabber:iq:roster'>\
                <item jid='a@b' name='A'><group>x</group></item></query></iq>\
                <iq type='set' id='00000000000000003'><query xmlns='jabber:iq:roster'>\
                <item jid='a@b' subscription='remove'/></query></iq>
                """
        )
    }

    // MARK: Account

    @Test("[XEP-0077 §3.2, §3.3] password and account are changed and removed; no password is no password")
    func account() throws {
        let rig = try ConnectionRig.ready()
        var failures = 0
        XMPPAccountRequests.changePassword("", on: rig.connection) { if case .failure(.notSent) = $0 { failures += 1 } }
        #expect(failures == 1)
        XMPPAccountRequests.changePassword("new", on: rig.connection) { _ in }
        XMPPAccountRequests.remove(on: rig.connection) { _ in }
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
            XMPPReceipts(received: { id, from in received.append("\(id) \(from?.description ?? "-")") })
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
        #expect(received == ["mine a@b/c"])
    }

    @Test("[XEP-0184 §5.4] a message that has no id, or goes to a room, asks for none")
    func asking() {
        var message = XMPPElement("message", namespace: XMPPNamespace.client)
        XMPPReceipts.ask(in: &message)
        #expect(message.children.isEmpty)
        message["id"] = "m"
        XMPPReceipts.ask(in: &message)
        #expect(message.child("request", XMPPNamespace.receipts) != nil)
    }

    // MARK: Carbons

    @Test("[XEP-0280 §11] a copy counts only from the own account")
    func carbons() throws {
        var copied: [String] = []
        let carbons = XMPPCarbons { copied.append("\($0) \($1.child("body")?.text ?? "")") }
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
        #expect(carbons.foreign == 2)
        // None of them is a message of its own.
        #expect(rig.observer.calls.count == 1)
    }
}
