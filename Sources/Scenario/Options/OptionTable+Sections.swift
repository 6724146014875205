/// A title of the help; the options of the table that follow it stand below it.
struct OptionTitle: Sendable {
    let title: String

    init(_ title: String) { self.title = title }
}

extension OptionTable {
    static let shared = OptionTable()

    /// Options that a test adds.
    @TaskLocal package static var added: [OptionSpec] = []

    /// Options under one title of the help.
    package struct Section: Sendable {
        package let title: String
        package var specs: [OptionSpec] = []
    }

    /// The sections, in the order of the table.
    private static let own: [Section] = Mirror(reflecting: OptionTable.shared).children.reduce(into: []) {
        found,
        child in
        if let title = child.value as? OptionTitle {
            found.append(Section(title: title.title))
        } else if let entry = child.value as? any AnyOptionEntry, !found.isEmpty {
            found[found.count - 1].specs.append(entry.spec)
        }
    }

    private static let ownSpecs = Dictionary(
        uniqueKeysWithValues: CommandName.allCases.map { command in
            (command, OptionTable.own.flatMap(\.specs).filter { $0.commands.contains(command) })
        }
    )

    package static var sections: [Section] {
        self.added.isEmpty ? self.own : self.own + [Section(title: "Added", specs: self.added)]
    }

    package static func sections(of command: CommandName) -> [Section] {
        self.sections.map { section in
            Section(title: section.title, specs: section.specs.filter { $0.commands.contains(command) })
        }.filter { !$0.specs.isEmpty }
    }

    package static func specs(of command: CommandName) -> [OptionSpec] {
        let own = self.ownSpecs[command] ?? []
        return self.added.isEmpty ? own : own + self.added.filter { $0.commands.contains(command) }
    }

    package static var all: [OptionSpec] { self.sections.flatMap(\.specs) }

    package static subscript(key: AnyOptionKey) -> OptionSpec {
        guard let entry = Self.shared[keyPath: key] as? any AnyOptionEntry else {
            preconditionFailure("the key path leads to an entry")
        }
        return entry.spec
    }

    static func specs(_ keys: AnyOptionKey...) -> [OptionSpec] { keys.map { self[$0] } }
}

extension OptionTable {
    /// Options that are no part of a plan, each with the reason, by their first long names without the dashes.
    package static var notOfThePlan: [String: String] {
        let reasons = self.all.filter { !$0.commands.isDisjoint(with: .loads) }.compactMap { spec in
            spec.plan.reason.map { (String((spec.names.first { $0.hasPrefix("--") } ?? spec.name).dropFirst(2)), $0) }
        }
        return Dictionary(reasons, uniquingKeysWith: { first, _ in first })
    }
}
