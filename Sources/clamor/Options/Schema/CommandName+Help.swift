import Foundation

extension CommandName {
    /// The texts of help and manual pages about a command, without those of its options.
    private struct Words: Decodable {
        let title: String
        let abstract: String
        let arguments: String?
        let operands: String?
        let example: String
        /// Paragraphs, or the names of notes.
        let discussion: [String]?
    }

    /// `commands.json`.
    private struct File: Decodable {
        /// Paragraphs of several commands.
        let notes: [String: String]
        let commands: [String: Words]
    }

    private static let file: File = {
        guard let file = try? JSONDecoder().decode(File.self, from: Data(PackageResources.commands_json)) else {
            preconditionFailure("a file of the program can be read")
        }
        return file
    }()

    private var words: Words {
        guard let words = Self.file.commands[self.rawValue] else { preconditionFailure("each command has its words") }
        return words
    }

    /// The line about the command in the list of commands.
    package var abstract: String { self.words.abstract }

    /// The title under which the root's help lists the command.
    package var title: String { self.words.title }

    /// Arguments beside the options.
    package var arguments: String { self.words.arguments.map { "\($0) " } ?? "" }

    /// Arguments behind the options.
    package var operands: String { self.words.operands.map { " \($0)" } ?? "" }

    /// The form of a command line.
    package var synopsis: String { "clamor \(self.rawValue) \(self.arguments)[options]\(self.operands)" }

    package var example: String { self.words.example }

    /// Facts about the command beyond its options.
    package var discussion: String? {
        let scenarios = ReadyScenario.all.map(\.name).joined(separator: ", ")
        let paragraphs = self.words.discussion?.map { Self.file.notes[$0] ?? $0 }
        return paragraphs?.joined(separator: "\n").replacing("SCENARIOS", with: scenarios)
    }
}
