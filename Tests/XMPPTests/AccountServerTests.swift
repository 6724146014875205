import TestSupport
import Testing
import XMPP

@Suite("Account modules on real servers", .timeLimit(.minutes(10)))
struct AccountServerTests {
    /// Announces the modules' features, and answers questions for them.
    private final class Discovery: XMPPModule {
        let link = XMPPModuleLink()
        let announced: Set<String>

        init(_ announced: [String]) { self.announced = Set(announced) }

        func makeHandler() -> any XMPPHandler {
            DiscoveryHandler(.init(category: "client", type: "bot"), features: self.announced, node: "urn:clamor")
        }
    }

    @Test(
        "[XEP-0402] all bookmarks are kept, and each change is told to the other clients of the account",
        arguments: XMPPServer.Kind.installed
    )
    func bookmarks(_ kind: XMPPServer.Kind) async throws {
        try await XMPPServer.with(kind, users: 1) { server in
            let configuration = ExampleTests.Place.configuration("user1", server)
            let (watching, bookmarks) = (XMPPBookmarks(), XMPPBookmarks())
            let presence = XMPPPresence()
            let (isAsked, asked) = AsyncStream.makeStream(of: Void.self)
            let questions = XMPPFilter(received: { stanza in
                if stanza.child("query", XMPPNamespace.discoInfo) != nil { asked.yield() }
                return stanza
            })
            let watcher = XMPPClient(
                configuration,
                modules: [questions, Discovery(watching.features), watching, presence]
            )
            let client = XMPPClient(configuration, modules: [bookmarks])
            try await watcher.connect()
            try await presence.set()
            // The server sends events to clients whose features it knows. It asks for them when it sees the presence,
            // and has the answer when it answers a later ping.
            for await _ in isAsked { break }
            _ = try await watcher.ping()
            try await client.connect()
            let rooms = try ["a", "b", "c"].map { try JID("\($0)@conference.\(server.domain)") }
            let kept = rooms.map { XMPPBookmarks.Bookmark($0, joins: true, nick: "jul") }
            let events = watching.events
            for bookmark in kept { try await bookmarks.set(bookmark) }
            #expect(Set(try await bookmarks.items()) == Set(kept))
            let renamed = XMPPBookmarks.Bookmark(rooms[0], name: "A")
            try await bookmarks.set(renamed)
            try await bookmarks.remove(rooms[1])
            #expect(try await bookmarks.items().count == 2)
            // ejabberd 23.01 tells nobody of a retraction, though it is asked to.
            let last: XMPPBookmarks.Event = kind == .prosody ? .removed(rooms[1]) : .changed(renamed)
            var told: Set<XMPPBookmarks.Event> = []
            for await event in events {
                told.insert(event)
                if event == last { break }
            }
            #expect(told.isSuperset(of: kept.map { .changed($0) }))
            for one in [watcher, client] { await one.disconnect() }
        }
    }

    @Test(
        "[RFC 6121 §3, §4.5] a contact is denied, and an account sees who comes and goes",
        arguments: XMPPServer.Kind.installed
    )
    func subscriptions(_ kind: XMPPServer.Kind) async throws {
        try await XMPPServer.with(kind, users: 2) { server in
            let (juliet, romeo) = (XMPPPresence(), XMPPPresence())
            let first = XMPPClient(ExampleTests.Place.configuration("user1", server), modules: [juliet])
            let roster = XMPPRoster()
            let second = XMPPClient(ExampleTests.Place.configuration("user2", server), modules: [roster, romeo])
            let jid = try await first.connect()
            let other = try await second.connect()
            // Answers go to clients that have asked for the roster.
            _ = try await roster.items()
            var (asked, answers) = (juliet.events.makeAsyncIterator(), romeo.events.makeAsyncIterator())
            func next(
                _ events: inout AsyncStream<XMPPPresence.Event>.AsyncIterator,
                _ isMeant: (XMPPPresence.Event) -> Bool
            ) async -> XMPPPresence.Event? {
                while let event = await events.next(isolation: #isolation) { if isMeant(event) { return event } }
                return nil
            }
            try await juliet.set()
            try await romeo.set()
            try await romeo.request(jid)
            let request = await next(&asked) { if case .requested = $0 { true } else { false } }
            #expect(request == .requested(other.bare, status: nil))
            try await juliet.approve(other)
            #expect(await next(&answers) { $0 == .approved(jid.bare) } != nil)
            let seen = await next(&answers) { if case .available(let who) = $0 { who.jid == jid } else { false } }
            #expect(seen != nil)
            try await juliet.setUnavailable(status: "gone")
            let gone = await next(&answers) { if case .unavailable = $0 { true } else { false } }
            #expect(gone == .unavailable(jid, status: "gone"))
            #expect(try await romeo.resources(of: jid).isEmpty)
            try await juliet.deny(other)
            #expect(await next(&answers) { $0 == .denied(jid.bare) } != nil)
            for client in [first, second] { await client.disconnect() }
        }
    }
}
