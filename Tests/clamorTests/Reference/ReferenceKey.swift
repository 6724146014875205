import Scenario
import clamor

import Measurement

/// A key of scenario files, for the page and the schema.
struct ReferenceKey: Sendable {
    /// Below a group: `connect.rate`.
    let path: String
    /// In words, as help texts have them.
    let type: String
    var usual = ""
    let meaning: String
    /// The option's names on the command line.
    var options: [String] = []
    /// Commands that do what the groups with this key do.
    var commands: Set<CommandName> = []
    let schema: JSONValue

    /// The mapping below the group that holds it.
    var section: String? { self.path.contains(".") ? String(self.path.prefix { $0 != "." }) : nil }

    /// Without its section.
    var name: String { self.section.map { String(self.path.dropFirst($0.count + 1)) } ?? self.path }

    /// For a place that has no table.
    var summary: String {
        let usual = self.usual.isEmpty ? "" : self.usual == "required" ? " Required." : " Default: \(self.usual)."
        return self.meaning + usual + (self.options.isEmpty ? "" : " Option: \(self.options[0]).")
    }
}

// MARK: - Keys that options have

extension ReferenceKey {
    /// The keys of all groups, in the order of the table.
    static var groups: [Self] { OptionTable.added.isEmpty ? self.own : self.made() }

    /// Those of the program: they take a second to make, and the page, the schema and their parts ask for them.
    private static let own = Self.made()

    private static func made() -> [Self] {
        var found: [(path: String, specs: [OptionSpec], commands: Set<CommandName>)] = []
        for spec in OptionTable.all where spec.scope == .group {
            for command in CommandName.allCases where Set<CommandName>.loads.contains(command) {
                guard spec.commands.contains(command), let path = spec.key(in: command) else { continue }
                guard let index = found.firstIndex(where: { $0.path == path }) else {
                    found.append((path, [spec], [command]))
                    continue
                }
                found[index].commands.insert(command)
                if found[index].specs.last?.id != spec.id { found[index].specs.append(spec) }
            }
        }
        return found.map { Self($0.path, $0.specs, of: $0.commands) }
    }

    private init(_ path: String, _ specs: [OptionSpec], of commands: Set<CommandName>) {
        let spec = specs[0]
        let options = specs.flatMap(\.shortAndLong).reduce(into: [String]()) { if !$0.contains($1) { $0.append($1) } }
        guard path != "target" else {
            self = .target(
                "The server: 'embedded', or a URL with one host or several, such as mqtt://a,b:1884.",
                usual: "that of the file",
                options
            )
            self.commands = commands
            return
        }
        let isInverted = spec.names.isEmpty
        let meaning = spec.keyText(spec.help, in: commands)
        let isRate = spec.key == "*.rate"
        let isFilter = spec.key == "subscribe.filter"
        // An entry of `subscribe` has one filter and one text for QoS.
        let isOne = isFilter || spec.key == "subscribe.qos"
        let usual = isInverted ? "true" : isFilter ? "required" : spec.keyUsual(in: commands)
        self.init(
            path: path,
            type: isRate ? "rate, ramp or steps" : isOne ? spec.schema.words(spec.unit) : spec.keyType,
            usual: usual,
            meaning: isInverted ? "With 'false': \(meaning)" : meaning,
            options: options,
            commands: commands,
            schema: isRate
                ? ScenarioSchema.reference("pace")
                : isOne ? ScenarioSchema.value(spec.schema) : ScenarioSchema.value(of: spec)
        )
    }

    /// A key of the file that is an option of `run`.
    init(file spec: OptionSpec) {
        self.init(
            path: spec.key ?? spec.name,
            type: spec.keyType,
            usual: spec.usual ?? "",
            meaning: spec.help.replacing(" Repeatable.", with: ""),
            options: spec.shortAndLong,
            schema: ScenarioSchema.value(of: spec)
        )
    }

    static func target(_ meaning: String, usual: String, _ options: [String]) -> Self {
        Self(
            path: "target",
            type: "target",
            usual: usual,
            meaning: meaning,
            options: options,
            schema: ScenarioSchema.reference("target")
        )
    }
}

extension OptionSpec {
    /// One name of each kind.
    var shortAndLong: [String] {
        let short = self.allNames.first { !$0.hasPrefix("--") }
        return [short, self.allNames.first { $0.hasPrefix("--") }].compactMap { $0 }
    }

    /// A text of help, with keys in place of options; a time of a file has its unit, and more than one value is a list.
    fileprivate func keyText(_ text: String, in commands: Set<CommandName>) -> String {
        let specs = CommandName.allCases.filter(commands.contains).flatMap { command in
            OptionTable.specs(of: command).map { (spec: $0, key: $0.key(in: command)) }
        }
        let keys = ReferenceText.renamed(text.replacing(" Repeatable.", with: "")) { option in
            specs.first { $0.spec.allNames.contains(option) && $0.key != nil }?.key
        }
        guard self.schema == .duration else { return keys }
        let start = ["Milliseconds ", "Seconds "].first(where: keys.hasPrefix)
        return (start.map { "Time " + keys.dropFirst($0.count) } ?? keys).replacing(" in seconds", with: "")
    }

    /// The default, without what other commands than loads have.
    fileprivate func keyUsual(in commands: Set<CommandName>) -> String {
        if self.schema == .boolean { return self.usual ?? "false" }
        let parts = (self.usual ?? "").split(separator: "; ").filter { !$0.hasPrefix("with doctor") }
        // A file has no rate of 0.
        let text = parts.joined(separator: "; ").replacing("0: no limit", with: "no limit")
        let usual = self.keyText(text, in: commands)
        return self.schema == .duration && Int(usual) != nil ? "\(usual)s" : usual
    }

    fileprivate var keyType: String {
        switch self.shape {
        case .list: self.schema.words(self.unit.replacing(",...", with: "")) + ", or a list"
        case .repeated, .words: self.schema.words(self.unit) + ", or a list"
        case .pairs: "mapping of texts"
        case .one, .flag, .toggle: self.schema.words(self.unit)
        }
    }
}

extension OptionSchema {
    fileprivate func words(_ unit: String) -> String {
        switch self {
        case .text: unit == "text" ? unit : "'\(unit)'"
        case .duration: "duration"
        case .rate: "rate"
        case .size: "size, or a range"
        case .share: "share"
        case .boolean: "'true' or 'false'"
        case .number(let least, let most):
            most > ScenarioSchema.largestExact ? "\(least) or more" : "\(least) to \(most)"
        case .choice(let words): words.map { "'\($0)'" }.joined(separator: ", ")
        case .pattern, .either: "'\(unit)'"
        }
    }
}
