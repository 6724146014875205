import Scenario
import clamor

/// The page with every option of every command.
enum OptionReference {
    static var text: String {
        var lines = [Self.introduction, "", "## Commands", ""]
        lines += ReferenceText.table(
            ["command", "what it does"],
            CommandName.allCases.map { command in
                [
                    "[`\(command.rawValue)`](#\(ReferenceText.anchor(Self.heading(command))))",
                    ReferenceText.markdown(command.abstract),
                ]
            }
        )
        for command in CommandName.allCases {
            lines += Self.chapter(command)
            for family in Self.families where family.last == command { lines += Self.chapter(family) }
        }
        lines += ["", Self.legend]
        lines += OptionTable.sections.flatMap(Self.chapter)
        return lines.joined(separator: "\n") + "\n"
    }

    private static func heading(_ command: CommandName) -> String { "clamor \(command.rawValue)" }

    // MARK: - Words by hand

    private static let introduction = """
        # Options

        `make reference` generates this page from the program's option table.

        `clamor COMMAND --help` prints the most needed options, and `--help-all` all of them.
        A scenario file has the same options as keys; [Scenario keys](ScenarioKeys.md) lists them.

        ## How values are written

        | value | examples | meaning |
        | --- | --- | --- |
        | `duration` | `10s`, `250ms`, `1m30s`, `1.5h` | units `ns`, `us`, `ms`, `s`, `m`, `h`, `d`; a number without a unit is \
        seconds, and an error in faults |
        | `ms` | `100`, `2s` | a duration; a number without a unit is milliseconds |
        | `s` | `60` | whole seconds, without a unit |
        | `n/s` | `500/s`, `500`, `0.5/s` | a rate, of all clients together |
        | `bytes` | `256`, `64KiB`, `1MB`, `64..1KiB` | `KiB`, `MiB` are 1,024 and 1,024², `KB`, `MB` 1,000 and 1,000²; \
        `..` makes a range |
        | share | `30%`, `0.1%` | 0% to 100% |
        | `a,...` | `0,1,2` | a list, with commas |
        | `[true\\|false]` | `-S`, `-S false` | an option without a value means `true` |

        - `--rate 500/s`, `--rate=500/s`, `-c 100` and `-c100` are all possible.
        - If an option is given twice, the last value counts. Options that say "Repeatable" keep every value.
        - `CLAMOR_PASSWORD` in the environment is the password if neither the command line nor the file has one. Other \
        users of a host can read its command lines.
        - The default of emqtt_bench is in parentheses where it differs.
        """

    private static let legend = """
        ## All options

        The keys are those of [scenario files](ScenarioKeys.md). In `*.rate` the asterisk is the group's section: \
        `publish`, `message`, `presence`, `ping` or `muc`.
        """

    // MARK: - Commands that have most options in common

    private struct Family {
        let words: String
        let commands: Set<CommandName>

        var title: String { "O" + self.words.dropFirst() }

        var last: CommandName? { CommandName.allCases.last(where: self.commands.contains) }

        /// Whether all its commands have the same options in a section.
        func shares(_ section: OptionTable.Section) -> Bool {
            let ids = section.specs.map(\.id)
            return self.commands.allSatisfy { command in
                OptionTable.sections(of: command).contains { $0.title == section.title && $0.specs.map(\.id) == ids }
            }
        }
    }

    private static let families = [
        Family(words: "options of all MQTT loads", commands: .mqtt),
        Family(words: "options of all XMPP loads", commands: .xmpp),
    ]

    // MARK: - Chapters

    private static func chapter(_ command: CommandName) -> [String] {
        var lines = ["", "### \(Self.heading(command))", "", ReferenceText.markdown(command.abstract), ""]
        lines += ["Usage: `clamor \(command.rawValue) \(command.arguments)[options]\(command.operands)`", ""]
        lines += ["```sh", command.example, "```", ""]
        for paragraph in command.discussion?.split(separator: "\n") ?? [] {
            lines += [ReferenceText.markdown(String(paragraph)), ""]
        }
        let family = Self.families.first { $0.commands.contains(command) }
        let rows = Self.rows(OptionTable.sections(of: command).filter { !(family?.shares($0) ?? false) })
        lines += ReferenceText.table(["options", "names"], rows)
        guard let family else { return lines }
        return lines + ["", "It also takes the [\(family.words)](#\(ReferenceText.anchor(family.title)))."]
    }

    private static func chapter(_ family: Family) -> [String] {
        let sections = family.commands.first.map { OptionTable.sections(of: $0) } ?? []
        return ["", "### \(family.title)", ""]
            + ReferenceText.table(["options", "names"], Self.rows(sections.filter(family.shares)))
    }

    /// The visible options of each section.
    private static func rows(_ sections: [OptionTable.Section]) -> [[String]] {
        sections.compactMap { section in
            let names = section.specs.filter { !$0.isHidden }.map(\.name)
            if names.isEmpty { return nil }
            return ["[\(section.title)](#\(ReferenceText.anchor(section.title)))", ReferenceText.list(names)]
        }
    }

    private static func chapter(_ section: OptionTable.Section) -> [String] {
        let specs = section.specs.filter { !$0.isHidden }
        guard let first = specs.first else { return [] }
        let isOfAll = specs.allSatisfy { $0.commands == first.commands }
        var lines = ["", "### \(section.title)", ""]
        if isOfAll { lines += ["Of \(first.commands.audience).", ""] }
        let rows = specs.map { spec in
            [
                Self.names(spec), Self.meaning(spec), ReferenceText.markdown(spec.usual ?? ""),
                isOfAll ? "" : spec.commands.audience, spec.key.map { ReferenceText.code($0) } ?? "",
            ]
        }
        return lines + ReferenceText.table(["option", "meaning", "default", "of", "key"], rows)
    }

    private static func names(_ spec: OptionSpec) -> String {
        let names = ReferenceText.list(spec.allNames)
        return spec.valueWord.isEmpty ? names : "\(names) \(ReferenceText.code(spec.valueWord))"
    }

    private static func meaning(_ spec: OptionSpec) -> String {
        var words = ReferenceText.markdown(spec.help)
        if let elsewhere = spec.elsewhere { words += " (\(ReferenceText.markdown(elsewhere)))" }
        if let example = spec.example { words += " Example: \(ReferenceText.code(example))" }
        return words
    }
}
