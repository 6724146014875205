import Foundation
import RunControl
import Scenario
import Testing
import clamor

@Suite("The schedule hash follows the rules of results/README.md")
struct ScheduleHashTests {
    @Test(
        "a command line or a scenario has the lines and the hash that the page shows",
        arguments: [
            ("### A command", "2:c3e016b8b3cf6364299e0e30b90b6002da4a5d1eb20837e6d511968038566949"),
            (
                "### An interval, which is hashed as its rate",
                "2:f2a0906207b36022083bd704f97ece21960ae1effd29e0dda22e5d787a1e94b9"
            ),
            ("### A scenario", "2:a20fac925bc3e112f4c8ece8d85c8231b2a39ee6caf60e49aa0c2da665847087"),
        ]
    )
    func vectors(_ title: String, _ hash: String) throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let page = try String(contentsOf: root.appending(path: "results/README.md"), encoding: .utf8)
        let section = try #require(page.split(separator: "\n## ").first { $0.hasPrefix("Schedule hash") })
        let part = try #require(section.split(separator: "\n\(title)\n").dropFirst().first)
        let blocks = part.split(separator: "\n### ")[0].split(separator: "```")
        let load = try #require(blocks.first { $0.hasPrefix("sh\n") || $0.hasPrefix("yaml\n") })
        let scenario = try Self.scenario(String(load))
        let lines = try #require(blocks.first { $0.hasPrefix("text\n") })
        #expect(scenario.scheduleLines == lines.split(separator: "\n").dropFirst().map(String.init))
        #expect(scenario.scheduleHash == hash)
        #expect(part.contains("\n`\(hash)`\n"))
    }

    /// The load of a block whose first line names its language.
    private static func scenario(_ block: String) throws -> ScenarioOptions {
        let text = block.drop { $0 != "\n" }.dropFirst()
        if block.hasPrefix("yaml\n") { return try ScenarioFile(String(text)).scenario() }
        let words = text.split(whereSeparator: \.isWhitespace).dropFirst().map(String.init)
        switch Invocation.parse(words) {
        case .run(let scenario): return scenario
        case let other: throw ScenarioFile.Unexpected(what: "\(other)")
        }
    }

    static let same: [(String, String)] = [
        ("pub -c 10 -I 100", "pub -c 10 --rate 100/s"),
        ("pub", "pub -h a -p 7 -S --insecure --read-size 5 --threads 1"),
        ("pub", "pub --seed 3 --out x --quiet --no-tty --connect-timeout 3 -d 10 -s 256 -k 300 -q 0"),
        ("pub -u a -P b", "pub -u a -P c"), ("sub", "sub -t clamor/#"),
    ]

    @Test("the same schedule in other words, or with another server and generator, has the same hash", arguments: same)
    func agrees(_ one: String, _ other: String) throws {
        let scenarios = try [one, other].map { try Self.scenario("sh\nclamor \($0)") }
        #expect(scenarios[0].scheduleLines == scenarios[1].scheduleLines)
    }
}
