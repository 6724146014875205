import NIOCore
import Testing
import XMPP

@Suite("Service discovery and chat markers")
struct DiscoveryTests {
    @Test("[XEP-0115 §5.2, §5.3] the hash is the one of the specification")
    func verification() {
        let muc = "http://jabber.org/protocol/muc"
        let info = XMPPDiscovery.Info(
            identities: [.init(category: "client", type: "pc", name: "Exodus 0.9.1")],
            features: [
                "http://jabber.org/protocol/caps", "http://jabber.org/protocol/disco#info",
                "http://jabber.org/protocol/disco#items", muc,
            ]
        )
        #expect(info.verification == "QgayPKawpkPSDYmwT/WM94uAlu0=")
    }

    private static let hash = "http://jabber.org/protocol/caps"

    @Test("[XEP-0115 §4] an available presence names what the client can do, and no other does")
    func presence() throws {
        let rig = try ConnectionRig.ready(modules: [
            DiscoveryHandler(.init(category: "client", type: "bot"), node: "urn:clamor")
        ])
        try rig.connection.send(XMPPElement("presence", namespace: XMPPNamespace.client))
        let text = try rig.sent()
        #expect(text.hasPrefix("<presence><c xmlns='\(Self.hash)' hash='sha-1' node='urn:clamor' ver='"))
        for type in ["unavailable", "subscribe"] {
            try rig.connection.send(
                XMPPElement("presence", namespace: XMPPNamespace.client, attributes: ["type": type])
            )
            #expect(try rig.sent() == "<presence type='\(type)'/>")
        }
    }

    @Test("[XEP-0030 §3, XEP-0115 §6.2] a query is answered, also by the hash; a query for another node is not")
    func answers() throws {
        let identity = XMPPDiscovery.Identity(category: "client", type: "bot", name: "B", language: "en")
        let rig = try ConnectionRig.ready(modules: [DiscoveryHandler(identity, features: ["urn:x"], node: "urn:clamor")]
        )
        let info = XMPPDiscovery.Info(
            identities: [identity],
            features: ["urn:x", XMPPNamespace.discoInfo, XMPPNamespace.discoItems, XMPPNamespace.capabilities]
        )
        let ask = { (node: String) in
            "<iq type='get' id='q' from='a@b'><query xmlns='\(XMPPNamespace.discoInfo)'\(node)/></iq>"
        }
        let features = info.features.sorted().map { "<feature var='\($0)'/>" }.joined()
        let known = "urn:clamor#\(info.verification)"
        for node in ["", " node='\(known)'"] {
            try rig.receive(ask(node))
            #expect(
                try rig.sent() == """
                    <iq type='result' id='q' to='a@b'><query xmlns='\(XMPPNamespace.discoInfo)'\(node)>\
                    <identity category='client' type='bot' name='B' xml:lang='en'/>\(features)</query></iq>
                    """
            )
        }
        try rig.receive(ask(" node='urn:clamor#old'"))
        #expect(try rig.sent().contains("<item-not-found "))
        try rig.receive("<iq type='get' id='q' from='a@b'><query xmlns='\(XMPPNamespace.discoItems)'/></iq>")
        #expect(
            try rig.sent() == "<iq type='result' id='q' to='a@b'><query xmlns='\(XMPPNamespace.discoItems)'/></iq>"
        )
    }

    // MARK: Receipts and markers

    private static func element(_ text: String) throws -> XMPPElement {
        let rig = try ConnectionRig.ready()
        try rig.receive(text)
        guard case .received(let element)? = rig.observer.calls.last else { throw Conversation.Broken(line: text) }
        return element
    }

    @Test("[XEP-0333 §4] a sender that asks for markers gets one; in a room the marker goes to the whole room")
    func markers() throws {
        var seen: [String] = []
        let rig = try ConnectionRig.ready(modules: [
            ReceiptsHandler(told: { seen.append("\($0.stage) \($0.id) \($0.from?.description ?? "-")") })
        ])
        let markable = "<markable xmlns='urn:xmpp:chat-markers:0'/>"
        for (from, type, to) in [("a@b/c", "chat", "a@b/c"), ("room@muc.b/c", "groupchat", "room@muc.b")] {
            let message = try Self.element("<message id='m1' from='\(from)' type='\(type)'>\(markable)</message>")
            try rig.connection.send(try #require(ReceiptsHandler.marker(for: message)))
            #expect(
                try rig.sent() == """
                    <message to='\(to)' type='\(type)'><displayed xmlns='urn:xmpp:chat-markers:0' id='m1'/></message>
                    """
            )
        }
        for text in [
            "<message id='m' from='a@b'/>", "<message from='a@b'>\(markable)</message>",
            "<message id='m' from='a@b' type='error'>\(markable)</message>",
        ] {
            #expect(ReceiptsHandler.marker(for: try Self.element(text)) == nil)
        }
        try rig.receive("<message from='a@b/c'><displayed xmlns='urn:xmpp:chat-markers:0' id='mine'/></message>")
        #expect(seen == ["displayed mine a@b/c"])
        var message = XMPPElement("message", namespace: XMPPNamespace.client)
        ReceiptsHandler.askForMarker(in: &message)
        #expect(message.children.isEmpty)
        message["id"] = "m"
        ReceiptsHandler.askForMarker(in: &message)
        #expect(message.child("markable", XMPPNamespace.chatMarkers) != nil)
    }

    @Test("[XEP-0184 §8] receipts may be kept to those who are known")
    func knownSenders() throws {
        let friend = try JID("a@b")
        let rig = try ConnectionRig.ready(modules: [ReceiptsHandler(answers: { $0.bare == friend })])
        let ask = "<request xmlns='urn:xmpp:receipts'/>"
        try rig.receive("<message id='1' from='evil@b/c'>\(ask)</message>")
        #expect(try rig.sent() == "")
        try rig.receive("<message id='1' from='a@b/c'>\(ask)</message>")
        #expect(try rig.sent().contains("<received "))
    }
}
