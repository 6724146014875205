import Testing
import XMPP

extension ExampleTests {
    /// Presence and what an account has and tells.
    static let accountExamples: [Example] = [
        Example(topic: "Presence") { place in
            let status = try await watchPresence(place.first, place.second)
            #expect(status == "on the balcony")
        },
        Example(topic: "SoftwareVersion") { place in
            let answer = try await askBot(place.first, place.second)
            #expect(answer == "Bot 1.0, on time")
        },
        Example(topic: "Activity") { place in
            let isTold = try await rest(place.first)
            #expect(isTold)
        },
        Example(topic: "BlockList") { place in
            let tybalt = try JID("tybalt@localhost")
            let changes = try await blockForAWhile(place.first)
            #expect(changes == [.blocked([tybalt]), .unblocked([tybalt])])
        },
        Example(topic: "Bookmarks") { place in
            let room = try JID("hall@conference.localhost")
            let bookmarks = try await rememberRoom(place.first)
            #expect(bookmarks == [XMPPBookmarks.Bookmark(room, name: "The hall", joins: true, nick: "jul")])
        },
        Example(topic: "Responder") { place in
            let answer = try await answerQuestions(place.first, place.second)
            #expect(answer == "rain")
        },
    ]
}
