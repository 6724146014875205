import Testing
import XMPP

@Suite("Bookmarks")
struct BookmarkTests {
    private static let hall = "hall@conference.example.com"
    private static let conference = """
        <conference xmlns='urn:xmpp:bookmarks:1' name='The hall' autojoin='true'><nick>jul</nick>\
        <password>pw</password><extensions><state xmlns='urn:example:s' minimized='true'/></extensions></conference>
        """

    private static func bookmark() throws -> XMPPBookmarks.Bookmark {
        XMPPBookmarks.Bookmark(
            try JID(Self.hall),
            name: "The hall",
            joins: true,
            nick: "jul",
            password: "pw",
            extensions: [XMPPElement("state", namespace: "urn:example:s", attributes: ["minimized": "true"])]
        )
    }

    private static func event(_ inner: String, from: String = "", node: String = "urn:xmpp:bookmarks:1") -> String {
        """
        <message type='headline'\(from)><event xmlns='http://jabber.org/protocol/pubsub#event'>\
        <items node='\(node)'>\(inner)</items></event></message>
        """
    }

    @Test("[XEP-0402 §4] a bookmark is published for the account alone, kept, and never sent unasked")
    func publication() throws {
        let rig = try ConnectionRig.ready()
        try rig.connection.send(XMPPBookmarks.publication(of: try Self.bookmark()))
        let field = { (name: String, value: String) in
            "<field var='pubsub#\(name)'><value>\(value)</value></field>"
        }
        let options =
            field("persist_items", "true") + field("access_model", "whitelist")
            + field("max_items", "max") + field("send_last_published_item", "never")
        #expect(
            try rig.sent() == """
                <iq type='set'><pubsub xmlns='http://jabber.org/protocol/pubsub'>\
                <publish node='urn:xmpp:bookmarks:1'><item id='\(Self.hall)'>\(Self.conference)</item></publish>\
                <publish-options><x xmlns='jabber:x:data' type='submit'><field var='FORM_TYPE' type='hidden'>\
                <value>http://jabber.org/protocol/pubsub#publish-options</value></field>\(options)</x>\
                </publish-options></pubsub></iq>
                """
        )
        try rig.connection.send(XMPPBookmarks.retraction(of: try JID("\(Self.hall)/nick")))
        try rig.connection.send(XMPPBookmarks.itemsRequest)
        #expect(
            try rig.sent() == """
                <iq type='set'><pubsub xmlns='http://jabber.org/protocol/pubsub'>\
                <retract node='urn:xmpp:bookmarks:1' notify='true'><item id='\(Self.hall)'/></retract></pubsub></iq>\
                <iq type='get'><pubsub xmlns='http://jabber.org/protocol/pubsub'>\
                <items node='urn:xmpp:bookmarks:1'/></pubsub></iq>
                """
        )
    }

    @Test("[XEP-0402 §3] a change of the bookmarks is told once, whichever of the modules comes first")
    func besidePubSub() throws {
        for isFirst in [true, false] {
            var (bookmarked, published) = (0, 0)
            let bookmarks = BookmarksHandler { _ in bookmarked += 1 }
            let pubSub = PubSubHandler { _ in published += 1 }
            let rig = try ConnectionRig.ready(modules: isFirst ? [bookmarks, pubSub] : [pubSub, bookmarks])
            try rig.receive(Self.event("<item id='\(Self.hall)'>\(Self.conference)</item>"))
            #expect([bookmarked, published] == [1, 0])
            // Others have nodes of that name too, and other nodes are no bookmarks.
            try rig.receive(Self.event("<item id='i'/>", from: " from='evil@example.net'"))
            try rig.receive(Self.event("<item id='i'/>", node: "urn:n"))
            #expect([bookmarked, published] == [1, 2])
            #expect(rig.observer.calls.count == 1)
        }
    }

    @Test("[XEP-0402 §3] changes are told: set, removed, all gone")
    func events() throws {
        var events: [XMPPBookmarks.Event] = []
        let rig = try ConnectionRig.ready(modules: [BookmarksHandler { events.append($0) }])
        try rig.receive(Self.event("<item id='\(Self.hall)'>\(Self.conference)</item>"))
        try rig.receive(Self.event("<retract id='\(Self.hall)'/>", from: " from='juliet@im.example.com'"))
        for name in ["purge", "delete"] {
            try rig.receive(
                """
                <message><event xmlns='http://jabber.org/protocol/pubsub#event'>\
                <\(name) node='urn:xmpp:bookmarks:1'/></event></message>
                """
            )
        }
        #expect(events == [.changed(try Self.bookmark()), .removed(try JID(Self.hall)), .cleared, .cleared])
        // They are no messages to read.
        #expect(rig.observer.calls.count == 1)
    }

    @Test(
        "[XEP-0402 §7] a change counts only from the own account, and of the bookmarks' node",
        arguments: [
            Self.event("<retract id='\(Self.hall)'/>", from: " from='evil@example.net'"),
            Self.event("<retract id='\(Self.hall)'/>", from: " from='juliet@im.example.com/other'"),
            Self.event("<retract id='\(Self.hall)'/>", node: "urn:example:other"),
            Self.event("<retract id='\(Self.hall)'/>").replacing("'headline'", with: "'error'"),
        ]
    )
    func foreign(_ stanza: String) throws {
        var events: [XMPPBookmarks.Event] = []
        let handler = BookmarksHandler { events.append($0) }
        let rig = try ConnectionRig.ready(modules: [handler])
        try rig.receive(stanza)
        #expect(events.isEmpty)
        #expect(rig.observer.calls.count == 2)
    }

    @Test(
        "[XEP-0402 §3] items that are no bookmarks are none",
        arguments: [
            "<item id='@'>\(Self.conference)</item>", "<item>\(Self.conference)</item>", "<item id='\(Self.hall)'/>",
            "<item id='\(Self.hall)/nick'>\(Self.conference)</item>", "<retract/>", "<retract id='@'/>",
            "<item id='\(Self.hall)'><conference xmlns='urn:xmpp:bookmarks:0'/></item>",
        ]
    )
    func noBookmarks(_ item: String) throws {
        var events: [XMPPBookmarks.Event] = []
        let rig = try ConnectionRig.ready(modules: [BookmarksHandler { events.append($0) }])
        try rig.receive(Self.event(item))
        #expect(events.isEmpty)
    }

    @Test("[XEP-0402 §4] all bookmarks are read; without a node there are none yet, and other refusals are told")
    func items() async throws {
        for answer in ["items", "item-not-found", "forbidden"] {
            try await FakeServer.with(features: "") { _, element in
                guard element.name == "iq", element.child("bind") == nil else { return nil }
                let id = element["id"] ?? ""
                guard answer == "items" else {
                    return "<iq type='error' id='\(id)'><error type='cancel'>"
                        + "<\(answer) xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></iq>"
                }
                let item = "<item id='\(Self.hall)'>\(Self.conference)</item><item id='x@y'/>"
                return "<iq type='result' id='\(id)'><pubsub xmlns='http://jabber.org/protocol/pubsub'>"
                    + "<items node='urn:xmpp:bookmarks:1'>\(item)</items></pubsub></iq>"
            } _: { server in
                let bookmarks = XMPPBookmarks()
                let client = XMPPClient(server.configuration, modules: [bookmarks])
                try await client.connect()
                if answer == "forbidden" {
                    await #expect(throws: XMPPClientError.self) { try await bookmarks.items() }
                } else {
                    #expect(try await bookmarks.items() == (answer == "items" ? [try Self.bookmark()] : []))
                }
                await client.disconnect()
            }
        }
    }

    @Test(
        "[XEP-0402 §4] where the number of items is no option, the node gets it first; other refusals are told",
        arguments: [("resource-constraint", true), ("not-acceptable", false), ("conflict", nil)] as [(String, Bool?)]
    )
    func nodeFirst(_ condition: String, _ hasNode: Bool?) async throws {
        try await FakeServer.with(features: "") { _, element in
            guard let pubsub = element.child("pubsub") else { return nil }
            let id = element["id"] ?? ""
            func refusal(_ condition: String) -> String {
                "<iq type='error' id='\(id)'><error type='cancel'>"
                    + "<\(condition) xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></iq>"
            }
            let fields = pubsub.child("publish-options")?.child("x")?.elements.compactMap { $0["var"] } ?? []
            if fields.contains("pubsub#max_items") { return refusal(condition) }
            if pubsub.namespace == XMPPNamespace.pubsubOwner, hasNode == false { return refusal("item-not-found") }
            return "<iq type='result' id='\(id)'/>"
        } _: { server in
            let bookmarks = XMPPBookmarks()
            let client = XMPPClient(server.configuration, modules: [bookmarks])
            try await client.connect()
            if hasNode == nil {
                await #expect(throws: XMPPClientError.self) { try await bookmarks.set(try Self.bookmark()) }
            } else {
                try await bookmarks.set(try Self.bookmark())
            }
            let steps = try await server.heard(0).compactMap { $0.child("pubsub")?.elements.first?.name }
            let configures = ["publish", "configure"] + (hasNode == false ? ["create"] : []) + ["publish"]
            #expect(steps == (hasNode == nil ? ["publish"] : configures))
            await client.disconnect()
        }
    }

    @Test("[XEP-0402 §3] the module asks for notifications") func features() {
        #expect(XMPPBookmarks().features == ["urn:xmpp:bookmarks:1+notify"])
    }
}
