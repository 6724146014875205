/// The protocol of a scenario group's clients.
package enum Speech: String, CaseIterable, Sendable {
    case mqtt = "MQTT"
    case xmpp = "XMPP"

    /// The commands that do the same as a group.
    ///
    /// The first command with any of its marks present decides the job of a group; without marks it is the last
    /// command.
    package var jobs: [CommandName] {
        switch self {
        case .mqtt: [.pubsub, .pub, .sub, .conn]
        case .xmpp: [.message, .ping, .muc, .presence, .register, .login]
        }
    }
}

extension CommandName {
    /// A group with one of these keys does what the command does.
    package var marks: Set<String> {
        switch self {
        case .pubsub: ["subscribers", "topology"]
        case .sub: ["subscribe"]
        case .register: ["registration"]
        case .pub, .message, .ping, .muc, .presence: self.section.map { [$0] } ?? []
        default: []
        }
    }

    package var speech: Speech { Set<CommandName>.xmpp.contains(self) ? .xmpp : .mqtt }

    /// The options that a group may have, with their keys.
    package var groupKeys: [(key: String, spec: OptionSpec)] {
        OptionTable.specs(of: self).compactMap { spec in
            spec.scope == .group ? spec.key(in: self).map { ($0, spec) } : nil
        }
    }
}

/// The keys of scenario groups.
struct ScenarioKeys: Sendable {
    /// The key that a section without keys of its own is short for.
    static let short = ["reconnect": "reconnect.times"]

    /// Keys whose values are mappings.
    let sections: Set<String>
    /// The keys that any group may have.
    let everyPath: Set<String>
    private let paths: [Speech: Set<String>]

    init() {
        self.paths = Dictionary(
            uniqueKeysWithValues: Speech.allCases.map { speech in
                (speech, Set(speech.jobs.flatMap { $0.groupKeys.map(\.key) }))
            }
        )
        let paths = self.paths.values.reduce(into: Set<String>()) { $0.formUnion($1) }
        let paced = paths.filter { $0.hasSuffix(".rate") && $0 != "connect.rate" }.map { $0.dropLast("rate".count) }
        self.everyPath = paths.union(
            paced.flatMap { section in
                (ScenarioReader.paceKeys + ScenarioReader.peerKeys(in: String(section))).map { "\(section)\($0)" }
            }
        )
        self.sections = Set(
            paths.filter { !$0.hasPrefix("subscribe.") }.compactMap { path in
                let parts = path.split(separator: ".")
                return parts.count > 1 ? String(parts[0]) : nil
            }
        )
    }

    /// The protocols whose groups have this key.
    func owners(of path: String) -> Set<Speech> {
        let top = path.split(separator: ".").first.map(String.init) ?? path
        return Set(
            self.paths.filter { _, paths in
                paths.contains { $0 == path || $0.hasPrefix("\(top).") && top != "connect" }
            }.keys
        )
    }
}
