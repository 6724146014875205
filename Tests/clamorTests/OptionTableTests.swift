import Foundation
import Measurement
import Report
import TestSupport
import Testing
import clamor

@Suite("An option of the table is everywhere")
struct OptionTableTests {
    /// Two options of this test alone, stored where a run has room for them.
    private static let added = [
        OptionEntry("--linger", key: "linger", .duration, of: .loads)
            .help("How long clients linger.").usual("0s").example("--linger 5s")
            .into(\LoadOptions.think, plan: .fact("linger"))
            .basic
            .spec,
        OptionEntry("--secret-word", key: "secret_word", .text, of: .mqtt)
            .help("A word that nothing shows.")
            .plan(.none("a test has it"))
            .secret(.whole)
            .spec,
    ]

    private static func parsed(_ line: String) -> Invocation {
        OptionTable.$added.withValue(self.added) { Invocation.parse(line.split(separator: " ").map(String.init)) }
    }

    private static func text(_ line: String) -> String {
        guard case .text(let text) = self.parsed(line) else { return "" }
        return text
    }

    private static func refusal(_ line: String) -> [String] {
        guard case .refused(let lines) = self.parsed(line) else { return [] }
        return lines
    }

    @Test("on the command line, with its refusal", arguments: ["pub", "conn", "sub", "pubsub"])
    func commandLine(_ command: String) {
        guard case .run(let options) = Self.parsed("\(command) --linger 5s") else {
            Issue.record("\(Self.parsed("\(command) --linger 5s"))")
            return
        }
        #expect(options.common.think == 5_000_000_000)
        #expect(
            Self.refusal("\(command) --linger soon") == [
                "clamor \(command): --linger: 'soon' is not a duration; write it like 10s, 250ms or 2m"
            ]
        )
    }

    @Test("in a file, with its refusal")
    func file() throws {
        let right = try ScenarioFile("groups:\n  a: { publish: {}, linger: 5s }\n")
        guard case .scenario(let scenario) = Self.parsed("run \(right.path)") else {
            Issue.record("\(Self.parsed("run \(right.path)"))")
            return
        }
        #expect(scenario.groups[0].options.think == 5_000_000_000)
        let wrong = try ScenarioFile("groups:\n  a: { publish: {}, linger: 5 }\n")
        guard case .wrong(let lines) = Self.parsed("run \(wrong.path)") else { return }
        #expect(
            lines == ["\(wrong.path):2:29: a.linger: '5' is not a duration; write it like 10s, 250ms or 2m"]
        )
    }

    @Test("in the help, by its part in it")
    func help() {
        #expect(Self.text("pub --help").contains("--linger duration"))
        #expect(Self.text("pub --help").contains("(default: 0s) Example: --linger 5s"))
        #expect(!Self.text("pub --help").contains("--secret-word"))
        #expect(Self.text("pub --help-all").contains("--secret-word text"))
        #expect(!Self.text("decode --help-all").contains("--linger"))
    }

    @Test("in the references and the schema", arguments: ["--linger", "`linger`", "\"linger\""])
    func references(_ words: String) {
        let made = OptionTable.$added.withValue(Self.added) { ReferenceFile.made }
        let count = made.count { $0.text.contains(words) }
        #expect(count > 0)
        #expect(!ReferenceFile.all.contains { $0.text.contains(words) })
    }

    @Test("in the plan record and the schedule hash")
    func plan() {
        guard case .run(let plain) = Self.parsed("pub"), case .run(let options) = Self.parsed("pub --linger 5s") else {
            Issue.record("is refused")
            return
        }
        OptionTable.$added.withValue(Self.added) {
            #expect(options.planRecord(seed: 1)["linger_seconds"] == .number(5))
            #expect(plain.planRecord(seed: 1)["linger_seconds"] == nil)
            #expect(ScenarioOptions(.mqtt(options)).scheduleLines.contains("group.pub.linger=5000000000"))
            #expect(OptionTable.notOfThePlan["secret-word"] == "a test has it")
        }
    }

    @Test("hidden, where it is a secret")
    func redaction() {
        guard case .run(let options) = Self.parsed("pub --secret-word=xyzzy --linger 5s") else {
            Issue.record("is refused")
            return
        }
        #expect(options.common.redactedCommand == ["clamor", "pub", "--secret-word=***", "--linger", "5s"])
    }

    @Test("in a printed scenario and in the arguments of a child")
    func others() {
        #expect(Self.text("pub --linger 5000ms --print-scenario").contains("    linger: 5s\n"))
        guard case .run(let options) = Self.parsed("pub -c 4 --linger 5s --processes 2 --quiet") else {
            Issue.record("is refused")
            return
        }
        OptionTable.$added.withValue(Self.added) {
            let arguments = options.segment.processes?.arguments(of: 0, seed: 3, threads: 1, directory: "d")
            #expect(arguments?.prefix(5) == ["pub", "-c", "4", "--linger", "5s"])
        }
    }

    // MARK: - Help

    static let commands = CommandName.allCases.map(\.rawValue) + ["", "xmpp"]

    @Test("the help of each command fits on a screen", arguments: commands)
    func length(_ command: String) {
        let lines = Self.text("\(command) --help").split(separator: "\n", omittingEmptySubsequences: false)
        #expect((5...60).contains(lines.count), "\(lines.count) lines")
        #expect(lines.allSatisfy { $0.count <= 120 }, "\(lines.filter { $0.count > 120 })")
    }

    @Test("the example of each command is accepted", arguments: CommandName.allCases)
    func example(_ command: CommandName) throws {
        let help = Self.text("\(command.rawValue) --help")
        let line = try #require(help.split(separator: "\n").first { $0.hasPrefix("Example: clamor ") })
        let words = line.dropFirst("Example: clamor ".count).split(separator: "'", omittingEmptySubsequences: false)
            .enumerated().flatMap { index, part in
                index % 2 == 1 ? [String(part)] : part.split(separator: " ").map(String.init)
            }
        // Results, a file and a password of the reader's.
        let folder = try ScratchFolder()
        let file = try folder.write(ReadyScenario.all[0].text, to: "fleet.yaml")
        let arguments = words.map { $0.hasPrefix("results/") ? "/" : $0 == "fleet.yaml" ? file : $0 }
        if case .refused(let lines) = Invocation.parse(arguments, environment: ["CLAMOR_PASSWORD": "p"]) {
            Issue.record("\(lines)")
        }
    }
}
