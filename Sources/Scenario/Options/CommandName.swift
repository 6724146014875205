import Foundation

/// A command, by the words that start it.
package enum CommandName: String, CaseIterable, Sendable {
    case conn, pub, sub, pubsub
    case login = "xmpp login"
    case message = "xmpp message"
    case presence = "xmpp presence"
    case ping = "xmpp ping"
    case muc = "xmpp muc"
    case register = "xmpp register"
    case run, coordinate, watch, capacity, plan, decode, calibrate
    case doctor, broker, proxy
    case report, compare, trend, merge
    case draft = "init"

    package init?(arguments: [String]) {
        let words = arguments.prefix(arguments.first == "xmpp" ? 2 : 1)
        self.init(rawValue: words.joined(separator: " "))
    }

    /// The last word: the name of a subcommand.
    package var word: String { String(self.rawValue.split(separator: " ").last ?? "") }

    /// A key with the section of the command for `*`.
    func key(_ key: String) -> String { key.hasPrefix("*.") ? (self.section ?? "") + key.dropFirst(1) : key }

    /// The mapping of a scenario group that holds the pace and the payload of its operations.
    package var section: String? {
        switch self {
        case .pub, .pubsub: "publish"
        case .message, .presence, .ping, .muc: self.word
        default: nil
        }
    }

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
    package var synopsis: String { "clamor \(self.rawValue) \(self.arguments)[options]\(self.operands)" }
    package var example: String { self.words.example }

    /// Facts about the command beyond its options.
    package var discussion: String? {
        let scenarios = ReadyScenario.all.map(\.name).joined(separator: ", ")
        let paragraphs = self.words.discussion?.map { Self.file.notes[$0] ?? $0 }
        return paragraphs?.joined(separator: "\n").replacing("SCENARIOS", with: scenarios)
    }
}

extension Set<CommandName> {
    package static let mqtt: Self = [.conn, .pub, .sub, .pubsub]
    package static let publishing: Self = [.pub, .pubsub]
    package static let subscribing: Self = [.sub, .pubsub]
    package static let xmpp: Self = [.login, .message, .presence, .ping, .muc, .register]
    /// Commands whose clients send stanzas with a payload.
    package static let stanzas: Self = [.message, .presence, .muc]
    /// Commands whose operations carry a payload.
    package static let payloads = Self.publishing.union(Self.stanzas)
    package static let paced = Self.payloads.union([.ping])
    package static let loads = Self.mqtt.union(Self.xmpp)
    /// Commands that read a scenario file.
    package static let files: Self = [.run, .coordinate]
    package static let runs = Self.loads.union(Self.files)
    /// Commands that have clients of their own.
    package static let clients = Self.loads.union([.run])
    /// Commands that write result files.
    package static let results = Self.runs.union([.decode, .merge])
}
