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
    /// The text has a secret.
    let isSecret: Bool

    init(path: String, text: String, segments: Int, variables: [String], of scenario: ScenarioOptions) {
        self.path = path
        self.text = text
        self.segments = segments
        self.variables = variables
        self.isSecret = scenario.hasLiteralSecret
        let run = scenario.common
        // A minute for the results.
        let ending = Self.seconds(run.drain) + 60
        self.ending = ending
        self.length = run.duration.map { Self.seconds(run.warmup) + Self.seconds($0) + ending }
    }

    private static func seconds(_ nanoseconds: Int64) -> Int { Int((Double(nanoseconds) / 1e9).rounded(.up)) }

    /// The file's name without its extension.
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
}
