import NIOCore
import Testing
import XMPP

@Suite("Archives, and coming back")
struct ArchiveTests {
    @Test("[XEP-0313 §4] an archive is read page by page, and results of others do not count")
    func archive() throws {
        let archive = ArchiveHandler()
        let rig = try ConnectionRig.ready(modules: [archive])
        var answers: [Result<XMPPArchive.Page, XMPPRequestError>] = []
        archive.ask(.init(with: try JID("a@b"), max: 2, after: "x"), in: rig.module) { answers.append($0) }
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
        #expect(pages.first?.messages.first?.stamp == XMPPTimestamp("2026-01-01T00:00:00Z"))
        #expect(pages.first?.isComplete == true)
        #expect(pages.first?.last == "i2")
        #expect(pages.first?.count == 9)
    }

    @Test("[XEP-0313 §4.1.2] a query has its times as XEP-0082 writes them; a stamp that cannot be read is none")
    func times() throws {
        let archive = ArchiveHandler()
        let rig = try ConnectionRig.ready(modules: [archive])
        var stamps: [XMPPTimestamp?] = []
        archive.ask(
            .init(start: XMPPTimestamp(seconds: 0), end: XMPPTimestamp(seconds: 1, nanoseconds: 500_000_000)),
            in: rig.module
        ) { stamps = (try? $0.get())?.messages.map(\.stamp) ?? [] }
        let text = try rig.sent()
        #expect(text.contains("<field var='start'><value>1970-01-01T00:00:00Z</value></field>"))
        #expect(text.contains("<field var='end'><value>1970-01-01T00:00:01.5Z</value></field>"))
        for stamp in ["1970-01-01T00:00:01Z", "yesterday"] {
            try rig.receive(
                """
                <message><result xmlns='urn:xmpp:mam:2' queryid='00000000000000002' id='i'>\
                <forwarded xmlns='urn:xmpp:forward:0'><delay xmlns='urn:xmpp:delay' stamp='\(stamp)'/>\
                <message xmlns='jabber:client'/></forwarded></result></message>
                """
            )
        }
        try rig.receive("<iq type='result' id='00000000000000003'><fin xmlns='urn:xmpp:mam:2'/></iq>")
        #expect(stamps == [XMPPTimestamp(seconds: 1), nil])
    }

    @Test("[A18] coming back: after a loss of what had worked, in growing steps, spread at random")
    func reconnect() {
        var reconnect = ReconnectMachine(first: .seconds(2), most: .seconds(20))
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

extension ReconnectMachine {
    fileprivate mutating func ended(_ end: XMPPConnectionEnd, now: NIODeadline, random: Double) -> Verdict {
        self.ended(end.retry, now: now, random: random)
    }
}
