import Foundation

/// A scenario file whose segments an engine starts, such as Slurm or Kubernetes.
struct DividedScenario {
    let path: String
    let text: String
    let segments: Int
    /// `NAME=VALUE`.
    let variables: [String]
    /// Seconds from the end of the load until all results are there.
    let ending: Int
    /// Seconds from the first connect until then; `nil`: until a signal ends it.
    let length: Int?

    init(path: String, text: String, segments: Int, variables: [String], of scenario: ScenarioOptions) {
        self.path = path
        self.text = text
        self.segments = segments
        self.variables = variables
        let run = scenario.common
        // A minute for the results.
        let ending = Self.seconds(run.drain) + 60
        self.ending = ending
        self.length = run.duration.map { Self.seconds(run.warmup) + Self.seconds($0) + ending }
    }

    private static func seconds(_ nanoseconds: Int64) -> Int { Int((Double(nanoseconds) / 1e9).rounded(.up)) }
    var baseName: String { URL(filePath: self.path).deletingPathExtension().lastPathComponent }

    /// A name that is one in the DNS too, where it may be followed by `-coordinator` (RFC 1123: 63 characters).
    var name: String {
        let letters = self.baseName.lowercased().map { letter in
            letter.isASCII && (letter.isLetter || letter.isNumber) ? letter : "-"
        }
        let words = String(letters).split(separator: "-").joined(separator: "-").prefix(40)
        let trimmed = words.hasSuffix("-") ? words.dropLast() : words
        return trimmed.isEmpty ? "clamor" : "clamor-\(trimmed)"
    }

    /// A template filled with the name, the number of segments, and `values`.
    func text(of template: [UInt8], _ values: [String: Any]) -> String {
        ProgramTemplate.text(template, values.merging(["name": self.name, "segments": self.segments]) { $1 })
    }

    /// Why the file does not go into a Secret; `nil` if it does.
    var objectProblem: String? {
        // A megabyte at most; names and the other keys are in it too.
        if self.text.utf8.count > 1_000_000 {
            return "is over 1 MB, which is all that a Secret holds; make it smaller"
        }
        if self.text.split(separator: "\n").contains(where: { $0.hasPrefix("include:") }) {
            return "includes other files, and the pods have this one alone; write them into one file"
        }
        return nil
    }

    /// The objects that run the scenario on Kubernetes; `file`: where they are written.
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
                "path": self.path, "file": file, "indicators": indent + end,
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

    /// The script that runs the scenario as a job of Slurm; `file`: where it is written.
    func slurmScript(_ file: String) -> String {
        let scenario = self.path.contains("/") ? self.path : "./\(self.path)"
        return self.text(
            of: PackageResources.slurm_mustache,
            [
                "path": ShellWord.quoted(self.path), "file": ShellWord.quoted(file),
                "scenario": ShellWord.quoted(scenario),
                "limit": self.limit, "ending": min(self.ending, 65_535), "hasVariables": !self.variables.isEmpty,
                "variables": self.variables.map(ShellWord.quoted),
            ]
        )
    }

    /// Time for the job: hours, minutes, seconds.
    private var limit: String {
        // Ten minutes until all have joined and connected.
        let minutes = ((self.length ?? 86_400) + 59) / 60 + 10
        return "\(minutes / 60):\(minutes % 60 < 10 ? "0" : "")\(minutes % 60):00"
    }
}
