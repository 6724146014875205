import Foundation
import Report
import RunResult

extension GivenOptions {
    /// The file that `init` writes.
    mutating func draft(_ name: String?) -> Invocation {
        let path = self[\.draftFile]
        if self[\.writesDashboard] == true {
            if self[\.writesWorkflow] == true {
                self.refuse(\.writesWorkflow, "writes other files than \(\.writesDashboard); give one of the two")
            }
            if let name {
                self.refuse(argument: name, "\(\.writesDashboard) writes a dashboard; leave one of the two out")
            }
            return .draft(Draft(dashboardIn: path ?? "clamor-grafana"))
        }
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

/// Files that are written once, and then the user's.
package struct Draft: Hashable, Sendable {
    package struct File: Hashable, Sendable {
        package var path: String
        package var text: String
    }

    package let files: [File]

    init(path: String, text: String) { self.files = [File(path: path, text: text)] }

    /// Grafana's dashboard, and Prometheus' configuration of its scrapes.
    init(dashboardIn directory: String) {
        guard let dashboard = try? GrafanaDashboard.text() else { preconditionFailure("a constant can be encoded") }
        guard directory != "-" else {
            self.files = [File(path: "-", text: dashboard)]
            return
        }
        self.files = [
            File(path: "\(directory)/dashboard.json", text: dashboard),
            File(path: "\(directory)/prometheus.yml", text: GrafanaDashboard.scrapeConfiguration()),
        ]
    }

    /// The first file's.
    package var path: String { self.files.first?.path ?? "" }
    package var text: String { self.files.first?.text ?? "" }

    /// Writes the files; if one of them exists, none is written.
    func write(_ screen: ProgressScreen) -> ExitStatus {
        if self.path == "-" {
            screen.write(self.text)
            return .success
        }
        if let file = self.files.first(where: { FileManager.default.fileExists(atPath: $0.path) }) {
            return self.refuse(file, "it is there already; move it away, or name another file with --out", screen)
        }
        for file in self.files {
            let url = URL(filePath: file.path)
            do {
                try FileManager.default.createDirectory(
                    at: url.deletingLastPathComponent(),
                    withIntermediateDirectories: true
                )
                try Data(file.text.utf8).write(to: url, options: .withoutOverwriting)
            } catch {
                return self.refuse(file, "check its directory", screen)
            }
        }
        let paths = self.files.map(\.path).joined(separator: " and ")
        let next = self.path.hasSuffix(".yaml") ? "; what would run: clamor run \(self.path) --check" : ""
        screen.show("wrote \(paths)\(next)\n")
        return .success
    }

    private func refuse(_ file: File, _ remedy: String, _ screen: ProgressScreen) -> ExitStatus {
        screen.warn("init: cannot write \(file.path): \(remedy)")
        return .cannotCreate
    }
}
