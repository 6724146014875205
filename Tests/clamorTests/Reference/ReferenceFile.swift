import Foundation
import Scenario
import clamor

/// A page or a schema that is made from the option table or the table of metrics; `make reference` writes them.
struct ReferenceFile: Sendable {
    /// Below the root of the repository.
    let path: String
    let text: String

    static let all = Self.made

    /// The same from the table as it is now.
    static var made: [Self] {
        [
            Self(path: "Sources/clamor/Clamor.docc/Options.md", text: OptionReference.text),
            Self(path: "Sources/clamor/Clamor.docc/ScenarioKeys.md", text: KeyReference.text),
            Self(path: "results/schema/scenario.schema.json", text: ScenarioSchema.text),
            Self(path: MetricReference.path, text: MetricReference.text(of: Self.article)),
        ]
    }

    private static var article: String {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let text = try? String(contentsOf: root.appending(path: MetricReference.path), encoding: .utf8)
        return text ?? ""
    }
}

extension CommandName {
    /// The keys of the scenario groups that do what the command does, in dotted form.
    var groupKeyPaths: [String] { self.groupKeys.map(\.key) }
}
