import Foundation
import RunResult

extension GivenOptions {
    /// The file that `init` writes.
    mutating func draft(_ name: String?) -> Invocation {
        let path = self[\.draftFile]
        if self[\.writesWorkflow] == true {
            if let name {
                self.refuse(argument: name, "\(\.writesWorkflow) writes a workflow; leave one of the two out")
            }
            return .draft(Draft(path: path ?? ".github/workflows/load.yml", text: ReadyScenario.workflow))
        }
        let ready = name.map { name in ReadyScenario.all.first { $0.name == name } } ?? ReadyScenario.all[0]
        guard let ready else {
            let names = ReadyScenario.all.map(\.name)
            let hint = NearestName.of(name ?? "", in: names).map { "did you mean \($0)? " } ?? ""
            self.refuse(
                argument: name ?? "",
                "is no ready scenario; \(hint)there are \(names.joined(separator: ", "))"
            )
            return .text("")
        }
        return .draft(Draft(path: path ?? "\(ready.name).yaml", text: ready.text))
    }
}

/// A file that is written once, and then the user's.
package struct Draft: Hashable, Sendable {
    package let path: String
    package let text: String

    /// Writes the file; an existing file is kept.
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
