import Foundation
import TestSupport
import Testing
import XMPP

@Suite("The bot of the documentation", .timeLimit(.minutes(10)))
struct EchoBotTests {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent()

    @Test("the article shows the bot as it runs, in sixty lines at most")
    func equalsArticle() throws {
        let code = try String(contentsOf: Self.root.appending(path: "EchoBot.swift"), encoding: .utf8)
        let article = Self.root.appending(path: "../../../Sources/XMPP/XMPP.docc/Bot.md").standardized
        #expect(try String(contentsOf: article, encoding: .utf8).contains("```swift\n\(code)```\n"))
        #expect(code.split(separator: "\n", omittingEmptySubsequences: false).count <= 61)
    }

    private static func configuration(_ user: String, _ server: XMPPServer, port: Int) -> XMPPClientConfiguration {
        var configuration = XMPPClientConfiguration(
            jid: "\(user)@\(server.domain)",
            password: XMPPServer.password
        )
        configuration.host = "127.0.0.1"
        configuration.port = UInt16(port)
        configuration.authorityFile = server.certificates.authority
        return configuration
    }

    @Test(
        "the bot answers over cuts: each answer once, in order; its stream is resumed",
        arguments: XMPPServer.Kind.installed
    )
    func survives(_ kind: XMPPServer.Kind) async throws {
        try await XMPPServer.with(kind, users: 2) { server in
            try await CuttingRelay.with(to: server.port) { relay in
                let room = try JID("parlour@conference.\(server.domain)")
                let bot = EchoBot(
                    Self.configuration("user1", server, port: Int(relay.port)),
                    room: room,
                    friends: server.domain
                )
                let states = bot.client.states
                let task = Task { try await bot.run() }

                let (rooms, presence) = (XMPPRooms(), XMPPPresence())
                let person = XMPPClient(
                    Self.configuration("user2", server, port: server.port),
                    modules: [rooms, presence]
                )
                let jid = try await person.connect()
                try await presence.set()
                let contacts = bot.roster.events
                let events = rooms.events
                try await Self.untilJoined(bot, room)
                try await Self.join(rooms, room)

                // The bot lets its friend see its presence, which its roster shows.
                try await presence.request(JID("user1@\(server.domain)"))
                for await case .changed(let contact) in contacts where contact.jid == jid.bare {
                    if contact.subscription == .from { break }
                }

                for cut in 0..<3 {
                    for number in 0..<5 { try await rooms.say("echo \(10 * cut + number)", in: room) }
                    try await relay.cut()
                    for number in 5..<10 { try await rooms.say("echo \(10 * cut + number)", in: room) }
                    try await Self.untilResumed(states)
                }
                var answers: [String] = []
                for await case .message(let message) in events where message.nick == "echo" {
                    answers.append(message.body ?? "")
                    if answers.count == 30 { break }
                }
                // An answer that came twice would come before this one.
                try await rooms.say("echo end", in: room)
                for await case .message(let message) in events where message.nick == "echo" {
                    answers.append(message.body ?? "")
                    if message.body == "end" { break }
                }
                #expect(answers == (0..<30).map(String.init) + ["end"])
                task.cancel()
                await bot.client.disconnect()
                await person.disconnect()
                _ = await task.result
            }
        }
    }

    /// The room is the bot's when it has come first.
    private static func untilJoined(_ bot: EchoBot, _ room: JID) async throws {
        while true {
            if let people = try? await bot.rooms.occupants(of: room), !people.isEmpty { return }
            await Task.yield()
        }
    }

    /// A new room is locked until the bot has accepted its configuration (XEP-0045 §10.1.2).
    private static func join(_ rooms: XMPPRooms, _ room: JID) async throws {
        while true {
            do throws(XMPPClientError) {
                try await rooms.join(room, as: "person")
                return
            } catch .refused(let error) where error.condition == .itemNotFound {
                continue
            }
        }
    }

    private static func untilResumed(_ states: AsyncStream<XMPPClientState>) async throws {
        for await state in states {
            guard case .connected(let session) = state else { continue }
            if session.isResumed { return }
        }
    }
}
