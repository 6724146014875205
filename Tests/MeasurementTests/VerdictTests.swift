import Foundation
import Measurement
import Testing

@Suite("The verdict")
struct VerdictTests {
    @Test("the worst state wins, in whatever order, and every reason is kept")
    func worstWins() {
        let added: [(Verdict.State, String)] = [
            (.generatorLimited, "a"), (.aborted, "b"), (.unreconciled, "c"), (.valid, "d"),
        ]
        for rotation in added.indices {
            var verdict = Verdict.valid
            let order = added[rotation...] + added[..<rotation]
            for (state, code) in order { verdict.add(state, Verdict.Reason(code: code, text: "")) }
            #expect(verdict.state == .aborted)
            #expect(verdict.reasons.map(\.code) == order.map(\.1))
        }
    }

    @Test("states rank valid, generator-limited, unreconciled, aborted")
    func order() {
        #expect(Verdict.State.allCases.shuffled().sorted() == [.valid, .generatorLimited, .unreconciled, .aborted])
    }

    @Test("reads and writes the shape of run.json, and leaves out what is not known")
    func json() throws {
        var verdict = Verdict()
        verdict.add(.unreconciled, Verdict.Reason(code: "x", text: "words", measured: 1.5, limit: 0))
        verdict.add(.generatorLimited, [Verdict.Reason(code: "y", text: "more")])
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        let data = try encoder.encode(verdict)
        #expect(
            String(decoding: data, as: UTF8.self)
                == #"{"reasons":[{"code":"x","limit":0,"measured":1.5,"text":"words"},{"code":"y","text":"more"}],"#
                + #""state":"unreconciled"}"#
        )
        #expect(try JSONDecoder().decode(Verdict.self, from: data) == verdict)
        #expect(Verdict.State(rawValue: "generator-limited") == .generatorLimited)
    }
}
