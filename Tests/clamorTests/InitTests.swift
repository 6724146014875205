import RunControl
import Scenario
import TestSupport
import Testing
import clamor

@Suite("clamor init")
struct InitTests {
    private func draft(_ line: String) throws -> Draft {
        let invocation = Invocation.parse(line.split(separator: " ").map(String.init))
        guard case .draft(let draft) = invocation else { throw ScenarioFile.Unexpected(what: "\(invocation)") }
        return draft
    }

    @Test(
        "each ready scenario is one, has comments, and nothing of it is wrong",
        arguments: ReadyScenario.all.map(\.name)
    )
    func ready(_ name: String) throws {
        let draft = try self.draft("init \(name)")
        #expect(draft.path == "\(name).yaml")
        #expect(draft.text.hasPrefix("# ") && draft.text.hasSuffix("\n"))
        let scenario = try ScenarioFile(draft.text).scenario()
        #expect(!scenario.groups.isEmpty)
        #expect(scenario.common.seed == 42)
        #expect(!scenario.common.thresholds.isEmpty)
        // With the flags of its own usage lines.
        for line in draft.text.split(separator: "\n") where line.hasPrefix("#   clamor run \(name).yaml ") {
            let flags = line.split(separator: " ").dropFirst(4).joined(separator: " ")
            _ = try ScenarioFile(draft.text).scenario(flags)
        }
    }

    @Test("the guide of scenarios has a line for each ready scenario")
    func page() throws {
        let lines = try MarkdownPage("Sources/clamor/Clamor.docc/Scenarios.md").lines
        for ready in ReadyScenario.all { #expect(lines.contains("| `\(ready.name)` | \(ready.about) |")) }
    }

    @Test("without a name it is the first; it is written to the given place")
    func names() throws {
        #expect(try self.draft("init").path == "fleet.yaml")
        #expect(try self.draft("init mixed --out -").path == "-")
        #expect(try self.draft("init --ci").path == ".github/workflows/load.yml")
        #expect(
            try self.draft("init --grafana").files.map(\.path)
                == ["clamor-grafana/dashboard.json", "clamor-grafana/prometheus.yml"]
        )
        #expect(try self.draft("init --grafana --out x").path == "x/dashboard.json")
    }

    @Test("the workflow's run is one of a ready scenario, and fails where it says nothing about the broker")
    func workflow() throws {
        let draft = try self.draft("init --ci")
        let script = try #require(draft.files.last).text.replacing("\\\n", with: " ")
        let command = try #require(script.split(separator: "\n").first { $0.contains(" clamor run ") })
        #expect(script.contains("${SCENARIO:=fleet.yaml}") && draft.text.contains("SCENARIO: fleet.yaml"))
        let plain = command.replacing("$TARGET", with: "mqtt://127.0.0.1:1884")
            .replacing("\"$@\"", with: "").replacing("\"", with: "")
        let flags = plain.split(separator: " ").drop { $0 != "--strict" }
        let scenario = try ScenarioFile(ReadyScenario.all[0].text).scenario(flags.joined(separator: " "))
        #expect(scenario.common.strict && scenario.common.results.files.junit == "load.xml")
    }

    @Test(
        "what is none is refused",
        arguments: [
            ("init login-strom", "login-strom: is no ready scenario; did you mean login-storm? there are "),
            ("init mixed --ci", "mixed: --ci writes a workflow; leave one of the two out"),
            ("init --ci --grafana", "--ci: writes other files than --grafana; give one of the two"),
            ("init mixed --grafana", "mixed: --grafana writes a dashboard; leave one of the two out"),
        ]
    )
    func refusals(line: String, words: String) {
        guard case .refused(let lines) = Invocation.parse(line.split(separator: " ").map(String.init)) else {
            Issue.record("is taken")
            return
        }
        #expect(lines.first?.hasPrefix("clamor init: \(words)") == true, "\(lines)")
    }
}
