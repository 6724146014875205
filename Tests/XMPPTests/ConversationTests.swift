import Testing
import XMPP

@Suite("Conversations with scripted servers", .timeLimit(.minutes(10)))
struct ConversationTests {
    @Test("there are conversations")
    func some() { #expect(Conversation.all.count >= 30) }

    @Test("goes as written", arguments: Conversation.all)
    func whole(_ conversation: Conversation) throws {
        let problems = try conversation.run()
        #expect(problems.isEmpty, "\(problems.joined(separator: "\n"))")
    }

    @Test("goes the same way with the server's side cut at each byte", arguments: Conversation.streams)
    func everyCut(_ conversation: Conversation) throws {
        let first = max(conversation.sharedSize, 1)
        for cut in first..<max(conversation.size, first + 1) {
            let problems = try conversation.run(cut: cut)
            guard problems.isEmpty else {
                Issue.record("cut at \(cut): \(problems.joined(separator: "\n"))")
                return
            }
        }
    }

    @Test("goes the same way byte by byte", arguments: Conversation.streams)
    func byteByByte(_ conversation: Conversation) throws {
        let problems = try conversation.run(piece: 1)
        #expect(problems.isEmpty, "\(problems.joined(separator: "\n"))")
    }
}
