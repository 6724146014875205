import Testing

extension ExampleTests {
    /// Presence and what an account has and tells.
    static let accountExamples: [Example] = [
        Example(topic: "Presence") { place in
            let status = try await watchPresence(place.first, place.second)
            #expect(status == "on the balcony")
        },
        Example(topic: "SoftwareVersion") { place in
            let answer = try await askBot(place.first, place.second)
            #expect(answer == "Bot 1.0")
        },
        Example(topic: "Activity") { place in
            let isTold = try await rest(place.first)
            #expect(isTold)
        },
        Example(topic: "Responder") { place in
            let answer = try await answerQuestions(place.first, place.second)
            #expect(answer == "rain")
        },
    ]
}
