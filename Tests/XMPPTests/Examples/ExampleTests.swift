import Foundation
import TestSupport
import Testing
import XMPP

/// The examples of the articles in `XMPP.docc`: each is a file here, and runs against the real servers.
@Suite("Examples of the documentation", .timeLimit(.minutes(10)))
struct ExampleTests {
    /// Two accounts of its own for each example.
    struct Place: Sendable {
        let server: XMPPServer
        let first: XMPPClientConfiguration
        let second: XMPPClientConfiguration

        init(_ server: XMPPServer, number: Int) {
            self.server = server
            self.first = Self.configuration("user\(2 * number + 1)", server)
            self.second = Self.configuration("user\(2 * number + 2)", server)
        }

        static func configuration(_ user: String, _ server: XMPPServer) -> XMPPClientConfiguration {
            var configuration = XMPPClientConfiguration(
                jid: "\(user)@\(server.domain)",
                password: XMPPServer.password
            )
            configuration.host = "127.0.0.1"
            configuration.port = UInt16(server.port)
            configuration.authorityFile = server.certificates.authority
            return configuration
        }

        func message(_ body: String, to jid: JID) -> XMPPElement {
            XMPPElement(
                "message",
                namespace: XMPPNamespace.client,
                attributes: ["to": jid.description, "type": "chat"],
                children: [.element(XMPPElement("body", namespace: XMPPNamespace.client, text: body))]
            )
        }
    }

    struct Example: Sendable {
        let topic: String
        let run: @Sendable (Place) async throws -> Void
    }

    /// Each with what it has to achieve.
    static let examples = Self.moduleExamples + Self.accountExamples

    private static let moduleExamples: [Example] = [
        Example(topic: "Roster") { place in
            let changes = try await keepRoster(place.first)
            #expect(changes.map(\.name) == ["Romeo", nil])
            #expect(changes.map(\.subscription) == [.none, .remove])
        },
        Example(topic: "Ping") { place in
            let time = try await measureRoundTrip(place.first)
            #expect(time > .zero)
        },
        Example(topic: "Rooms") { place in
            let room = try JID("hall@conference.\(place.server.domain)")
            let rooms = XMPPRooms()
            let client = XMPPClient(place.second, modules: [rooms])
            try await client.connect()
            let joined = try await rooms.join(room, as: "romeo")
            #expect(joined.isNew)
            try await rooms.acceptDefaults(of: room)
            let others = try await visitRoom(place.first, room, as: "juliet")
            #expect(others == ["romeo"])
            await client.disconnect()
        },
        Example(topic: "Archive") { place in
            let contact = try JID(place.second.jid)
            let client = XMPPClient(place.first)
            try await client.connect()
            for number in 0..<7 { try await client.send(place.message("\(number)", to: contact)) }
            // Its answer comes when the messages have been handled.
            _ = try await client.ping()
            await client.disconnect()
            let bodies = try await readArchive(place.first, with: contact)
            #expect(bodies == ["6", "5", "4", "3", "2"])
        },
        Example(topic: "Carbons") { place in
            let copy = try await followAccount(place.first, place.message("hello", to: try JID(place.second.jid)))
            #expect(copy?.child("body")?.text == "hello")
        },
        Example(topic: "Receipts") { place in
            let client = XMPPClient(place.second, modules: [XMPPReceipts()])
            let receiver = try await client.connect()
            try await client.send(XMPPElement("presence", namespace: XMPPNamespace.client))
            _ = try await client.ping()
            let device = try await deliver(place.first, "hello", to: receiver.bare)
            #expect(device == receiver)
            await client.disconnect()
        },
        Example(topic: "PubSub") { place in
            let items = try await publishMood(place.first)
            #expect(items.map(\.id) == ["current"])
        },
        Example(topic: "Discovery") { place in
            let services = try await findRooms(place.first)
            let expected = try JID("conference.\(place.server.domain)")
            #expect(services.contains(expected))
        },
        Example(topic: "Registration") { place in
            try await renewAndRemove(place.first, password: "another")
            await #expect(throws: XMPPClientError.self) { try await XMPPClient(place.first).connect() }
        },
    ]

    @Test("each example runs against a real server", arguments: XMPPServer.Kind.installed)
    func runs(_ kind: XMPPServer.Kind) async throws {
        // The articles' domain is `localhost`.
        try await XMPPServer.with(kind, users: 2 * Self.examples.count, isOwn: true) { server in
            for (number, example) in Self.examples.enumerated() {
                do {
                    try await example.run(Place(server, number: number))
                } catch {
                    Issue.record("\(example.topic): \(error)")
                }
            }
        }
    }

    private static let root = URL(filePath: #filePath).deletingLastPathComponent()
    private static let articles = Self.root.appending(path: "../../../Sources/XMPP/XMPP.docc").standardized

    /// The topics of the files that end like this.
    private static func topics(in folder: URL, ending: String) throws -> Set<String> {
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        return Set(names.filter { $0.hasSuffix(ending) }.map { String($0.dropLast(ending.count)) })
    }

    @Test("an example is one function of twenty lines at most, and stands in its article as it runs")
    func equalsArticle() throws {
        #expect(Set(Self.examples.map(\.topic)) == (try Self.topics(in: Self.root, ending: "Example.swift")))
        for topic in Self.examples.map(\.topic) {
            let code = try String(contentsOf: Self.root.appending(path: "\(topic)Example.swift"), encoding: .utf8)
            let article = try String(contentsOf: Self.articles.appending(path: "\(topic).md"), encoding: .utf8)
            #expect(article.contains("```swift\n\(code)```\n"), "\(topic).md has another text")
            let function = try #require(code.split(separator: "\n\n", maxSplits: 1).last)
            let lines = function.split(separator: "\n").filter { !$0.hasPrefix("///") }
            #expect(lines.count <= 20, "\(topic): \(lines.count) lines")
        }
    }
}
