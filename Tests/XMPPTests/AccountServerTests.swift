import TestSupport
import Testing
import XMPP

@Suite("Account modules on real servers", .timeLimit(.minutes(10)))
struct AccountServerTests {
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
