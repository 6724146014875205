import ArgumentParser
import Scenario

/// A command whose options are those that the table has for it.
protocol TableCommand: ParsableCommand {
    static var name: CommandName { get }
    var options: CommandOptions<Self> { get }
    func invocation(_ given: inout GivenOptions) -> Invocation
}

extension TableCommand {
    static var configuration: CommandConfiguration {
        CommandConfiguration(commandName: self.name.word, abstract: self.name.abstract)
    }
}

/// The options of a command as the argument parser takes them: one definition for each entry of the table.
///
/// The argument parser finds definitions by reflection, so the table replaces properties.
struct CommandOptions<Command: TableCommand>: ParsableArguments, CustomReflectable {
    /// The texts that were given, by the option's id; one that stands alone has the text that this means.
    private(set) var texts: [String: [String]] = [:]
    /// Options that were given by their negation as well, with the opposite value.
    private(set) var contradictions: Set<String> = []

    private struct Key: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }

        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }

        static func negation(of spec: OptionSpec) -> Key { Key(stringValue: "no-\(spec.id)") }
    }

    init() {}

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        for spec in OptionTable.specs(of: Command.name) {
            var texts = spec.names.isEmpty ? [] : try Self.texts(of: spec, container)
            if spec.negation != nil,
                try container.decode(Flag<Bool>.self, forKey: .negation(of: spec)).wrappedValue
            {
                if texts.last == "true" { self.contradictions.insert(spec.id) }
                texts.append("false")
            }
            if !texts.isEmpty { self.texts[spec.id] = texts }
        }
    }

    private static func texts(of spec: OptionSpec, _ container: KeyedDecodingContainer<Key>) throws -> [String] {
        let key = Key(stringValue: spec.id)
        switch spec.shape {
        case .flag: return try container.decode(Flag<Bool>.self, forKey: key).wrappedValue ? ["true"] : []
        case .repeated, .pairs, .words: return try container.decode(Option<[String]>.self, forKey: key).wrappedValue
        case .one, .list, .toggle:
            return try container.decode(Option<String?>.self, forKey: key).wrappedValue.map { [$0] } ?? []
        }
    }

    var customMirror: Mirror {
        let definitions = OptionTable.specs(of: Command.name).flatMap { spec -> [(label: String?, value: Any)] in
            let own = spec.names.isEmpty ? [] : [(label: Optional(spec.id), value: spec.definition)]
            guard let negation = spec.negation else { return own }
            let flag = Flag(wrappedValue: false, name: .options([negation]), help: spec.argumentHelp)
            return own + [(Key.negation(of: spec).stringValue, flag)]
        }
        return Mirror(self, children: definitions)
    }

    /// All of them, read, with every problem.
    func given(_ arguments: [String], environment: [String: String]) -> GivenOptions {
        GivenOptions(Command.name, self.texts, self.contradictions, arguments: arguments, environment: environment)
    }
}

extension NameSpecification {
    /// `-k` and `--keep-alive`; a short name may have its value joined to it.
    fileprivate static func options(_ names: [String]) -> Self {
        NameSpecification(
            names.map { name in
                name.hasPrefix("--")
                    ? .customLong(String(name.dropFirst(2)))
                    : .customShort(name.last ?? "?", allowingJoined: true)
            }
        )
    }
}

extension OptionSpec {
    fileprivate var argumentHelp: ArgumentHelp {
        ArgumentHelp(self.help, valueName: self.unit, visibility: self.isHidden ? .hidden : .default)
    }

    /// The argument parser's definition of the option.
    fileprivate var definition: Any {
        let name = NameSpecification.options(self.names)
        switch self.shape {
        case .flag: return Flag(wrappedValue: false, name: name, help: self.argumentHelp)
        case .one, .list:
            return Option<String?>(
                name: name,
                parsing: self.isUnconditional ? .unconditional : .next,
                help: self.argumentHelp
            )
        case .toggle(let bare):
            return Option<String?>(name: name, defaultAsFlag: bare, parsing: .next, help: self.argumentHelp)
        case .repeated, .pairs:
            return Option<[String]>(
                wrappedValue: [],
                name: name,
                parsing: self.isUnconditional ? .unconditionalSingleValue : .singleValue,
                help: self.argumentHelp
            )
        case .words:
            return Option<[String]>(wrappedValue: [], name: name, parsing: .upToNextOption, help: self.argumentHelp)
        }
    }
}
