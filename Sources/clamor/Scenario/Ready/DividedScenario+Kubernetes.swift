import Foundation

// The objects that run a scenario on Kubernetes.
extension DividedScenario {
    private var kind: String { self.isSecret ? "Secret" : "ConfigMap" }

    /// Why the file does not go into a ConfigMap or a Secret; `nil` if it does.
    var objectProblem: String? {
        // A megabyte at most; names and the other keys are in it too.
        if self.text.utf8.count > 1_000_000 {
            return "is over 1 MB, which is all that a \(self.kind) holds; make it smaller"
        }
        if self.text.split(separator: "\n").contains(where: { $0.hasPrefix("include:") }) {
            return "includes other files, and the pods have this one alone; write them into one file"
        }
        return nil
    }

    /// `file`: where they are written.
    func kubernetesObjects(_ file: String) -> String {
        let lines = self.text.split(separator: "\n", omittingEmptySubsequences: false).map { line in
            line.isEmpty ? "" : "    \(line)"
        }
        // YAML 1.2 §8.1.1: how far the text is indented, where its first line cannot say it, and what ends it.
        let indent = self.text.first?.isWhitespace == true ? "2" : ""
        let end = self.text.hasSuffix("\n\n") ? "+" : self.text.hasSuffix("\n") ? "" : "-"
        return self.text(
            of: PackageResources.kubernetes_mustache,
            [
                "path": self.path, "file": file, "indicators": indent + end, "kind": self.kind,
                "data": self.isSecret ? "stringData" : "data", "volume": self.isSecret ? "secret" : "configMap",
                "reference": self.isSecret ? "secretName" : "name",
                "text": lines.joined(separator: "\n") + (self.text.hasSuffix("\n") ? "" : "\n"),
                "port": CoordinatorPlace.usualPort, "ending": self.ending,
                "variables": self.variables.map(Self.quoted),
            ]
        )
    }

    /// In double quotes, in which YAML reads all that JSON has; a variable is Kubernetes' own alone.
    private static func quoted(_ word: String) -> String {
        let escaped = word.replacing("$(", with: "$$(").replacing("$$(CLAMOR_RUN)", with: "$(CLAMOR_RUN)")
        let encoder = JSONEncoder()
        encoder.outputFormatting = .withoutEscapingSlashes
        guard let json = try? encoder.encode(escaped) else { preconditionFailure("a text can be encoded") }
        return String(decoding: json, as: UTF8.self)
    }
}
