import ArgumentParser
import Foundation

struct InitCommand: OptionsCommand {
    static let configuration = CommandConfiguration(
        commandName: "init",
        abstract: "Writes a ready scenario with comments, to begin with; or a workflow that runs one.",
        discussion: """
            The scenarios, the first without a name:

            \(ReadyScenario.all.map { "  \($0.name): \($0.about)" }.joined(separator: "\n"))
            """
    )

    @Argument(help: ArgumentHelp("Which one. (default: \(ReadyScenario.all[0].name))", valueName: "name"))
    var name: String?
    @Flag(name: .long, help: "Write .github/workflows/load.yml, which runs the scenario on each pull request.")
    var ci = false
    @Option(name: .long, help: ArgumentHelp("Where to; -: stdout. (default: NAME.yaml)", valueName: "file"))
    var out: String?

    func invocation(_ reader: inout OptionReader) -> Invocation {
        if self.ci {
            if let name = self.name { reader.report(name, "--ci writes a workflow; leave one of the two out") }
            return .draft(Draft(path: self.out ?? ".github/workflows/load.yml", text: ReadyScenario.workflow))
        }
        let ready = self.name.map { name in ReadyScenario.all.first { $0.name == name } } ?? ReadyScenario.all[0]
        guard let ready else {
            let names = ReadyScenario.all.map(\.name)
            let hint = NearestName.of(self.name ?? "", in: names).map { "did you mean \($0)? " } ?? ""
            reader.report(self.name ?? "", "is no ready scenario; \(hint)there are \(names.joined(separator: ", "))")
            return .text("")
        }
        return .draft(Draft(path: self.out ?? "\(ready.name).yaml", text: ready.text))
    }
}

/// A file that is written once, and then the user's.
package struct Draft: Hashable, Sendable {
    package let path: String
    package let text: String

    /// What was there stays.
    func write(_ screen: ProgressScreen) -> ExitStatus {
        if self.path == "-" {
            screen.write(self.text)
            return .success
        }
        let url = URL(filePath: self.path)
        do {
            try FileManager.default.createDirectory(
                at: url.deletingLastPathComponent(),
                withIntermediateDirectories: true
            )
            try Data(self.text.utf8).write(to: url, options: .withoutOverwriting)
        } catch {
            let isThere = FileManager.default.fileExists(atPath: self.path)
            let remedy =
                isThere ? "it is there already; move it away, or name another file with --out" : "check its directory"
            screen.warn("init: cannot write \(self.path): \(remedy)")
            return .cannotCreate
        }
        let next = self.path.hasSuffix(".yml") ? "" : "; what would run: clamor run \(self.path) --check"
        screen.show("wrote \(self.path)\(next)\n")
        return .success
    }
}
