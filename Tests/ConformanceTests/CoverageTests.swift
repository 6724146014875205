import Testing

@Suite("The list of what is covered, line by line")
struct CoverageTests {
    @Test("every row has a test that exists, or a reason")
    func list() throws {
        let list = try CoverageList.stored()
        #expect(list.problems == [])
        #expect(Set(list.rows.map(\.id)).count == list.rows.count)
        var known = KnownTests()
        var missing: [String] = []
        for row in list.rows {
            guard case .tests(let references) = row.proof else { continue }
            missing += references.filter { !known.contains($0) }.map { "\(row.id): \($0)" }
        }
        #expect(missing == [], "named in the list, and not in the sources")
    }

    @Test("a reason says something")
    func reasons() throws {
        for row in try CoverageList.stored().rows {
            switch row.proof {
            case .tests: break
            case .none(let words), .gap(let words): #expect(words.split(separator: " ").count > 2, "\(row.id)")
            }
        }
    }

    @Test(
        "a list that is wrong is found to be",
        arguments: [
            ("| A1.1 | a | `X/Y.z` |", []), ("| A1.1 | a | none: it cannot be |", []),
            ("| A1.1 | a | words |", ["A1.1: has neither a test nor a reason"]),
            ("| A1.1 | a |  |", ["A1.1: has neither a test nor a reason"]),
            ("| A1.1 |  | `X/Y.z` |", ["A1.1: says no behaviour"]),
            ("| A1.1 | a b |", ["A1, row 1: not three cells"]),
            (
                "| A1.1 | a | `X/Y.z` |\n| A1.1 | b | `X/Y.z` |",
                ["A1.1: is twice, or out of its turn; A1.2 was expected"]
            ),
            ("| A1.2 | a | `X/Y.z` |", ["A1.2: is twice, or out of its turn; A1.1 was expected"]),
            ("# A1", ["A1: has no rows"]),
        ] as [(String, [String])]
    )
    func problems(_ rows: String, _ problems: [String]) {
        var list = CoverageList()
        list.read("| id | behaviour | tests |\n| --- | --- | --- |\n" + rows, section: "A1")
        #expect(list.problems == problems)
    }

    @Test(
        "a test that is not there is found missing",
        arguments: [
            ("ConformanceTests/CoverageTests.known", true), ("ConformanceTests/ServerFlows.roundTrip", true),
            ("ConformanceTests/ServerFlows+Session.ping", true), ("mqtt/publish: QoS 3", true),
            ("ConformanceTests/CoverageTests.unknown", false), ("ConformanceTests/Coverage.known", false),
            ("ConformanceTests/CoverageList.read", false), ("ConformanceTests/Endpoint.configuration", false),
            ("CoverageTests.known", false), ("mqtt/publish: QoS 4", false), ("mqtt/nothing: QoS 3", false),
            ("mqtt/publish", false), ("xmpp-streams/login-plain", true), ("xmpp-streams/login-magic", false),
        ]
    )
    func known(_ reference: String, _ isKnown: Bool) {
        var tests = KnownTests()
        #expect(tests.contains(reference) == isKnown)
    }
}
