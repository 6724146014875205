import Testing
import XMPP

@Suite("Presence and subscriptions")
struct PresenceTests {
    private static let away = XMPPPresence.available(show: .away, status: "tea", priority: -1)
    private static let awayText = "<presence><show>away</show><status>tea</status><priority>-1</priority></presence>"

    private final class Log {
        var events: [XMPPPresence.Event] = []
    }

    /// A handler on a stream that is ready and can be resumed, and the events that it tells.
    private static func rig(
        resends: Bool = true,
        maximum: Int = 100,
        accepts: @escaping (JID) -> Bool = { _ in false }
    ) throws -> (ConnectionRig, PresenceHandler, Log) {
        let log = Log()
        let handler = PresenceHandler(resends: resends, maximum: maximum, accepts: accepts) { log.events.append($0) }
        return (try ConnectionRig.resumable([handler]), handler, log)
    }

    @Test("[RFC 6121 §4.2, §4.7] presences are written with what is known, and nothing else")
    func stanzas() throws {
        let (rig, _, _) = try Self.rig()
        let jid = try JID("a@b")
        for presence in [
            XMPPPresence.available(), XMPPPresence.available(to: jid, show: .dnd), Self.away,
            XMPPPresence.presence("unavailable", status: "bye"), XMPPPresence.presence("subscribe", to: jid),
        ] {
            try rig.connection.send(presence)
        }
        #expect(
            try rig.sent() == """
                <presence/><presence to='a@b'><show>dnd</show></presence>\(Self.awayText)\
                <presence type='unavailable'><status>bye</status></presence><presence type='subscribe' to='a@b'/>
                """
        )
    }

    @Test("[A16, A18] the last presence to everybody is remembered, and no directed one")
    func ownPresence() throws {
        let (rig, handler, _) = try Self.rig()
        #expect(handler.current == nil)
        try rig.connection.send(Self.away)
        try rig.connection.send(XMPPPresence.available(to: try JID("a@b")))
        try rig.connection.send(XMPPPresence.presence("subscribe", to: try JID("a@b")))
        #expect(handler.current == Self.away)
        let gone = XMPPPresence.presence("unavailable")
        try rig.connection.send(gone)
        #expect(handler.current == gone)
    }

    @Test(
        "[A18] the own presence comes again on a stream that is new, if it was an available one",
        arguments: [(true, false, true), (true, true, false), (false, false, false)]
    )
    func resends(_ resends: Bool, _ isGone: Bool, _ comes: Bool) throws {
        let (rig, handler, _) = try Self.rig(resends: resends)
        try rig.connection.send(Self.away)
        if isGone { try rig.connection.send(XMPPPresence.presence("unavailable")) }
        let next = try rig.reconnected([handler], resumed: nil)
        #expect(try next.sent() == (comes ? Self.awayText : ""))
        #expect((handler.current == Self.away) == comes)
    }

    @Test("[A18] a stream that was closed on purpose has no successor")
    func forgetsAfterLeave() throws {
        let (rig, handler, _) = try Self.rig()
        try rig.connection.send(Self.away)
        rig.connection.finish()
        try rig.receive("</stream:stream>")
        #expect(rig.end == .answered)
        #expect(handler.current == nil)
    }

    @Test("[XEP-0198 §5] over a resumption the presences hold, and the own one is not repeated")
    func resumption() throws {
        let (rig, handler, log) = try Self.rig()
        try rig.connection.send(Self.away)
        try rig.receive("<presence from='a@b/c'/>")
        let next = try rig.reconnected([handler], resumed: 1)
        #expect(try next.sent() == "")
        #expect(handler.current == Self.away)
        #expect(handler.resources(of: try JID("a@b")).count == 1)
        #expect(log.events.count == 1)
    }

    @Test("[C6] a presence that comes before the stream is ready holds on that stream")
    func early() throws {
        let (rig, handler, log) = try Self.rig()
        let next = try rig.reconnected([handler], resumed: nil, early: "<presence from='a@b/c'/>")
        let resource = try #require(handler.resources(of: try JID("a@b")).first)
        #expect(log.events == [.reset, .available(resource)])
        let flood = (0..<300).map { "<presence from='a@b/\($0)'/>" }.joined()
        _ = try next.reconnected([handler], resumed: nil, early: flood)
        #expect(handler.dropped == 44 + 156)
    }

    @Test("[RFC 6121 §4] the resources of a contact come, change and go")
    func contacts() throws {
        let (rig, handler, log) = try Self.rig()
        let romeo = try JID("romeo@example.net")
        try rig.receive("<presence from='romeo@example.net/a'/>")
        try rig.receive(
            """
            <presence from='romeo@example.net/b'><show> xa </show><status>far</status><priority>5</priority>\
            <delay xmlns='urn:xmpp:delay' stamp='2002-09-10T23:41:07Z'/></presence>
            """
        )
        #expect(handler.resources(of: romeo).map(\.jid.resource) == ["b", "a"])
        let far = try #require(handler.resources(of: romeo).first)
        #expect(far.show == .xa)
        #expect(far.status == "far")
        #expect(far.priority == 5)
        #expect(far.delay?.description == "2002-09-10T23:41:07Z")
        try rig.receive("<presence from='romeo@example.net/a'><show>dnd</show><priority>9</priority></presence>")
        #expect(handler.resources(of: romeo).map(\.show) == [.dnd, .xa])
        try rig.receive("<presence from='romeo@example.net/a' type='unavailable'><status>bye</status></presence>")
        #expect(handler.everybody == [romeo: [far]])
        try #require(log.events.count == 4)
        #expect(log.events[1] == .available(far))
        #expect(log.events[3] == .unavailable(try JID("romeo@example.net/a"), status: "bye"))
    }

    @Test("[RFC 6121 §4.3.2] a bare address that is unavailable takes all its resources along")
    func bareUnavailable() throws {
        let (rig, handler, _) = try Self.rig()
        for place in ["romeo@example.net/a", "romeo@example.net/b", "other@example.net/a"] {
            try rig.receive("<presence from='\(place)'/>")
        }
        try rig.receive("<presence from='romeo@example.net' type='unavailable'/>")
        #expect(handler.everybody.keys.sorted() == [try JID("other@example.net")])
    }

    @Test(
        "[RFC 6121 §4.7.2] values that do not exist count as none",
        arguments: [
            "<show>busy</show>", "<priority>128</priority>", "<priority>-129</priority>", "<priority>high</priority>",
            "<priority/>", "<show/>", "<delay xmlns='urn:xmpp:delay' stamp='yesterday'/>",
        ]
    )
    func strangeValues(_ inner: String) throws {
        let (rig, handler, _) = try Self.rig()
        try rig.receive("<presence from='a@b/c'>\(inner)</presence>")
        let resource = try #require(handler.resources(of: try JID("a@b")).first)
        #expect(resource.show == nil)
        #expect(resource.priority == 0)
        #expect(resource.delay == nil)
    }

    @Test("[C6] presences of others are bounded in number; the one heard longest ago makes room")
    func bounded() throws {
        let (rig, handler, _) = try Self.rig(maximum: 3)
        for number in 1...3 { try rig.receive("<presence from='u\(number)@b/c'/>") }
        try rig.receive("<presence from='u1@b/c'/><presence from='u4@b/c'/>")
        #expect(handler.everybody.keys.map(\.description).sorted() == ["u1@b", "u3@b", "u4@b"])
        #expect(handler.dropped == 1)
        // One that is heard over and over fills nothing.
        for _ in 0..<1_000 { try rig.receive("<presence from='u1@b/c'/>") }
        #expect(handler.everybody.count == 3)
        #expect(handler.dropped == 1)
    }

    @Test("[C6] presences of others are bounded in size")
    func boundedSize() throws {
        let (rig, handler, _) = try Self.rig(maximum: 1_000)
        let status = String(repeating: "s", count: 200_000)
        for number in 1...100 {
            try rig.receive("<presence from='u@b/\(number)'><status>\(status)</status></presence>")
        }
        let left = handler.resources(of: try JID("u@b")).count
        #expect(left == 83)
        #expect(handler.dropped == 17)
    }

    @Test("[XEP-0045] occupants of rooms are no contacts")
    func rooms() throws {
        let (rig, handler, log) = try Self.rig()
        let x = "<x xmlns='http://jabber.org/protocol/muc#user'/>"
        try rig.receive("<presence from='hall@muc.example.com/jul'>\(x)</presence>")
        try rig.receive("<presence from='hall@muc.example.com/jul' type='unavailable'>\(x)</presence>")
        #expect(handler.everybody.isEmpty)
        #expect(log.events.isEmpty)
    }

    @Test(
        "[RFC 6121 §3] subscriptions: asked for, approved, denied and cancelled, by bare address",
        arguments: ["subscribe", "subscribed", "unsubscribed", "unsubscribe"]
    )
    func subscriptions(_ type: String) throws {
        let (rig, _, log) = try Self.rig()
        let romeo = try JID("romeo@example.net")
        try rig.receive("<presence from='Romeo@example.net/x' type='\(type)'><status>hi</status></presence>")
        let told: XMPPPresence.Event =
            switch type {
            case "subscribe": .requested(romeo, status: "hi")
            case "subscribed": .approved(romeo)
            case "unsubscribed": .denied(romeo)
            default: .cancelled(romeo)
            }
        #expect(log.events == [told])
        // Nobody is approved unless the owner says so.
        #expect(try rig.sent() == "")
    }

    @Test("[RFC 6121 §3.1.4] requests are approved at once where the owner says so")
    func accepts() throws {
        let (rig, _, log) = try Self.rig(accepts: { $0.domain == "example.net" })
        try rig.receive("<presence from='romeo@example.net' type='subscribe'/>")
        #expect(try rig.sent() == "<presence type='subscribed' to='romeo@example.net'/>")
        try rig.receive("<presence from='evil@example.org' type='subscribe'/>")
        try rig.receive("<presence from='juliet@im.example.com' type='subscribe'/>")
        #expect(try rig.sent() == "")
        #expect(
            log.events == [
                .accepted(try JID("romeo@example.net")), .requested(try JID("evil@example.org"), status: nil),
            ]
        )
    }

    @Test("[RFC 6121 §3.4] pre-approval is offered or not, as the stream says")
    func preapproval() throws {
        for isOffered in [false, true] {
            let handler = PresenceHandler(offersPreapproval: { _ in isOffered })
            _ = try ConnectionRig.ready(modules: [handler])
            #expect(handler.canPreapprove == isOffered)
        }
    }

    @Test("[RFC 6120 §8.3] a presence that comes back is told with its error")
    func errors() throws {
        let (rig, handler, log) = try Self.rig()
        try rig.receive(
            """
            <presence from='a@b' type='error'><error type='cancel'>\
            <remote-server-not-found xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></presence>\
            <presence from='a@b' type='error'/>
            """
        )
        let jid = try JID("a@b")
        #expect(
            log.events == [
                .failed(jid, StanzaError(.remoteServerNotFound)),
                .failed(jid, StanzaError(.undefinedCondition)),
            ]
        )
        #expect(handler.everybody.isEmpty)
    }

    @Test(
        "[S] presences of no sender, no type or no address change nothing",
        arguments: [
            "<presence from='@'/>", "<presence from='' type='subscribe'/>", "<presence from='a@b/c' type='probe'/>",
            "<presence from='a@b/c' type='subscribe2'/>", "<message from='a@b/c' type='subscribe'/>",
        ]
    )
    func hostile(_ stanza: String) throws {
        let (rig, handler, log) = try Self.rig(accepts: { _ in true })
        try rig.receive(stanza)
        #expect(handler.everybody.isEmpty)
        #expect(log.events.isEmpty)
        #expect(try rig.sent() == "")
        // It still goes to the owner.
        guard case .filtered? = rig.observer.calls.last else {
            Issue.record("\(rig.observer.calls)")
            return
        }
    }

    @Test("[C6] on a stream that is new nobody is known, and the owner is told")
    func reset() throws {
        let (rig, handler, log) = try Self.rig()
        #expect(log.events.isEmpty)
        try rig.receive("<presence from='a@b/c'/>")
        let next = try rig.reconnected([handler], resumed: nil)
        #expect(handler.everybody.isEmpty)
        #expect(log.events.last == .reset)
        try next.receive("<presence from='a@b/d'/>")
        #expect(handler.resources(of: try JID("a@b")).map(\.jid.resource) == ["d"])
    }
}
