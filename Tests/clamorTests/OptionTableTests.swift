import Foundation
import Measurement
import Report
import RunControl
import Scenario
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
        guard let options = Self.parsed("\(command) --linger 5s").mqtt else {
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
        guard let scenario = Self.parsed("run \(right.path)").scenario else {
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
        guard let plain = Self.parsed("pub").mqtt, let options = Self.parsed("pub --linger 5s").mqtt else {
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
        guard let options = Self.parsed("pub --secret-word=xyzzy --linger 5s").mqtt else {
            Issue.record("is refused")
            return
        }
        #expect(options.common.redactedCommand == ["clamor", "pub", "--secret-word=***", "--linger", "5s"])
    }

    @Test("in a printed scenario and in the arguments of a child")
    func others() {
        #expect(Self.text("pub --linger 5000ms --print-scenario").contains("    linger: 5s\n"))
        guard let options = Self.parsed("pub -c 4 --linger 5s --processes 2 --quiet").mqtt else {
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

    // MARK: - The table itself

    @Test("an option has an identity, names and keys that no other has", arguments: CommandName.allCases)
    func unique(_ command: CommandName) {
        let specs = OptionTable.specs(of: command)
        for values in [specs.map(\.id), specs.flatMap(\.allNames)] { #expect(Set(values).count == values.count) }
        // Host, port and URL are one key of a file.
        let keys = command.groupKeys.map(\.key).filter { $0 != "target" }
        #expect(Set(keys).count == keys.count)
    }

    @Test("the argument parser takes every name of every option", arguments: CommandName.allCases)
    func names(_ command: CommandName) {
        let words = OptionTable.specs(of: command).flatMap { spec in
            spec.allNames.flatMap { [.flag].contains(spec.shape) || $0 == spec.negation ? [$0] : [$0, "1"] }
        }
        let arguments = command.rawValue.split(separator: " ").map(String.init) + words
        guard case .refused(let lines) = Invocation.parse(arguments) else { return }
        #expect(!lines.contains { $0.contains("Unknown option") || $0.contains("nexpected argument") }, "\(lines)")
    }

    @Test(
        "--help behind an option without its value is that value's absence",
        arguments: [
            ("pub -u --help", false), ("broker --proxy-protocol --help", true), ("pub --proxy-protocol --help", false),
            ("capacity --slo x pub -q 1 --help", true),
        ]
    )
    func helpAsValue(_ line: String, _ isHelp: Bool) {
        #expect(Self.text(line).contains("Usage: clamor") == isHelp)
    }
}
