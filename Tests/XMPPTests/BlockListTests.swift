import Testing
import XMPP

@Suite("Block list")
struct BlockListTests {
    private static func push(_ inner: String, _ from: String) -> String {
        "<iq type='set' id='p'\(from)>\(inner)</iq>"
    }

    private static func block(_ jids: String..., name: String = "block") -> String {
        "<\(name) xmlns='urn:xmpp:blocking'>\(jids.map { "<item jid='\($0)'/>" }.joined())</\(name)>"
    }

    @Test("[XEP-0191 §3] the list is asked for and changed by one request each")
    func requests() throws {
        let rig = try ConnectionRig.ready()
        let jids = [try JID("romeo@example.net"), try JID("example.org")]
        for request in [
            XMPPBlockList.listRequest, XMPPBlockList.change("block", jids), XMPPBlockList.change("unblock", []),
        ] {
            try rig.connection.send(request)
        }
        #expect(
            try rig.sent() == """
                <iq type='get'><blocklist xmlns='urn:xmpp:blocking'/></iq>\
                <iq type='set'><block xmlns='urn:xmpp:blocking'><item jid='romeo@example.net'/>\
                <item jid='example.org'/></block></iq><iq type='set'><unblock xmlns='urn:xmpp:blocking'/></iq>
                """
        )
    }

    @Test("[XEP-0191 §3.3, §3.4] a change is told and answered")
    func pushes() throws {
        var events: [XMPPBlockList.Event] = []
        let handler = BlockListHandler { events.append($0) }
        let rig = try ConnectionRig.ready(modules: [handler])
        let romeo = try JID("romeo@example.net")
        let own = " from='juliet@im.example.com'"
        try rig.receive(Self.push(Self.block("romeo@example.net", "@"), ""))
        try rig.receive(Self.push(Self.block("romeo@example.net", name: "unblock"), own))
        try rig.receive(Self.push("<unblock xmlns='urn:xmpp:blocking'/>", own))
        let answer = "<iq type='result' id='p' to='juliet@im.example.com'/>"
        #expect(try rig.sent() == "<iq type='result' id='p'/>\(answer)\(answer)")
        #expect(events == [.blocked([romeo]), .unblocked([romeo]), .unblockedAll])
    }

    @Test(
        "[XEP-0191 §3.3] a change counts only from the own account",
        arguments: ["evil@example.net", "juliet@im.example.com/other", "im.example.com", "@"]
    )
    func foreign(_ from: String) throws {
        var events: [XMPPBlockList.Event] = []
        let handler = BlockListHandler { events.append($0) }
        let rig = try ConnectionRig.ready(modules: [handler])
        try rig.receive(Self.push("<unblock xmlns='urn:xmpp:blocking'/>", " from='\(from)'"))
        #expect(try rig.sent().contains("service-unavailable"))
        #expect(events.isEmpty)
    }

    @Test(
        "[XEP-0191 §3.4] a change of no address is a bad one, and does not mean all of them",
        arguments: [
            "<block xmlns='urn:xmpp:blocking'/>", Self.block("@"), Self.block("@", name: "unblock"),
            "<unblock xmlns='urn:xmpp:blocking'><all/></unblock>",
        ]
    )
    func bad(_ change: String) throws {
        var events: [XMPPBlockList.Event] = []
        let rig = try ConnectionRig.ready(modules: [BlockListHandler { events.append($0) }])
        try rig.receive(Self.push(change, ""))
        #expect(try rig.sent().contains("bad-request"))
        #expect(events.isEmpty)
    }

    @Test(
        "[XEP-0191 §3.2] a list that was asked for is asked for again on a new stream, and the differences are events"
    )
    func again() throws {
        var events: [XMPPBlockList.Event] = []
        let handler = BlockListHandler { events.append($0) }
        let rig = try ConnectionRig.resumable([handler])
        let fresh = try rig.reconnected([handler], resumed: nil)
        #expect(try fresh.sent() == "")
        handler.list(in: fresh.module) { _ in }
        let answer = { (id: String, jids: [String]) in
            "<iq type='result' id='\(id)'><blocklist xmlns='urn:xmpp:blocking'>"
                + jids.map { "<item jid='\($0)'/>" }.joined() + "</blocklist></iq>"
        }
        try fresh.receive(answer(try AccountModuleTests.id(of: fresh.sent()), ["a@b", "c@d"]))
        try fresh.receive(Self.push(Self.block("e@f"), "") + Self.push(Self.block("a@b", name: "unblock"), ""))
        #expect(events == [.blocked([try JID("e@f")]), .unblocked([try JID("a@b")])])
        _ = try fresh.sent()
        let next = try fresh.reconnected([handler], resumed: nil)
        try next.receive(answer(try AccountModuleTests.id(of: next.sent()), ["c@d", "g@h"]))
        #expect(events.dropFirst(2) == [.blocked([try JID("g@h")]), .unblocked([try JID("e@f")])])
        let last = try next.reconnected([handler], resumed: nil)
        try last.receive(answer(try AccountModuleTests.id(of: last.sent()), []))
        #expect(events.dropFirst(4) == [.unblockedAll])
    }

    @Test("[XEP-0191] the calls send what was asked for, refuse an empty list, and read the answer")
    func calls() async throws {
        try await FakeServer.with(features: "") { _, element in
            guard element.name == "iq", element.child("bind") == nil else { return nil }
            let list = element["type"] == "get" ? Self.block("romeo@example.net", "@", name: "blocklist") : ""
            return "<iq type='result' id='\(element["id"] ?? "")'>\(list)</iq>"
        } _: { server in
            let list = XMPPBlockList()
            let client = XMPPClient(server.configuration, modules: [list])
            await #expect(throws: XMPPClientError.notConnected) { try await list.unblockAll() }
            try await client.connect()
            let romeo = try JID("romeo@example.net")
            #expect(try await list.list() == [romeo])
            try await list.block([romeo])
            try await list.unblock([romeo])
            await #expect(throws: XMPPClientError.self) { try await list.unblock([]) }
            await #expect(throws: XMPPClientError.self) { try await list.block([]) }
            try await list.unblockAll()
            let sent = try await server.heard(0).filter { $0.name == "iq" }.compactMap(\.elements.first)
            #expect(sent.map(\.name) == ["blocklist", "block", "unblock", "unblock"])
            #expect(sent.map(\.elements.count) == [0, 1, 1, 0])
            await client.disconnect()
        }
    }

    @Test("[XEP-0191 §3.5] an error tells whether the addressee is blocked")
    func blockedError() {
        let blocked = XMPPElement("blocked", namespace: "urn:xmpp:blocking:errors")
        #expect(XMPPBlockList.isBlocked(StanzaError(.notAcceptable, application: blocked)))
        #expect(!XMPPBlockList.isBlocked(StanzaError(.notAcceptable)))
    }
}
