import RunControl
import RunResult
import Scenario

/// A manual page, made from the option table: of the program, or of one command.
///
/// In the macros of man(7), which groff and mandoc read.
package struct ManualPage: Hashable, Sendable {
    /// Without the section: `clamor-pub`.
    package let name: String
    package let text: String

    /// All of them; `date` is YYYY-MM-DD.
    package static func all(date: String) -> [ManualPage] {
        [ManualPage(date: date)] + CommandName.allCases.map { ManualPage($0, date: date) }
    }

    package var fileName: String { "\(self.name).1" }

    /// The page of the program.
    private init(date: String) {
        self.name = "clamor"
        self.text = ProgramTemplate.text(
            PackageResources.manual_mustache,
            [
                "date": date, "version": Version.number, "abstract": Words.escaped(HelpText.abstract),
                "note": Words.sentences(HelpText.hostNote),
                "commands": CommandName.allCases.map { command in
                    ["page": Words.escaped(command.pageName), "abstract": Words.sentences(command.abstract)]
                },
                "codes": HelpText.exitCodes.map { exit in
                    ["code": "\(exit.code.rawValue)", "meaning": Words.sentences("\(exit.meaning).")]
                },
                "example": Words.escaped(CommandName.pubsub.example),
            ]
        )
    }

    private init(_ command: CommandName, date: String) {
        self.name = command.pageName
        let sections = OptionTable.sections(of: command).map { section in
            (title: section.title, specs: section.specs.filter { !$0.isHidden && !$0.allNames.isEmpty })
        }.filter { !$0.specs.isEmpty }
        let variables = sections.flatMap(\.specs).filter { $0.environment != nil }
        let abstract = command.abstract
        self.text = ProgramTemplate.text(
            PackageResources.manual_command_mustache,
            [
                "title": Words.escaped(self.name.uppercased()), "date": date, "version": Version.number,
                "page": Words.escaped(self.name),
                "abstract": Words.escaped(abstract.hasSuffix(".") ? String(abstract.dropLast()) : abstract),
                "command": Words.escaped("clamor \(command.rawValue)"),
                "arguments": Words.escaped("\(command.arguments)[options]\(command.operands)"),
                "description": Words.paragraphs(command.discussion ?? abstract),
                "hasOptions": !sections.isEmpty,
                "sections": sections.map { section in
                    ["title": Words.escaped(section.title), "options": section.specs.map(Words.entry)] as [String: Any]
                },
                "hasVariables": !variables.isEmpty,
                "variables": variables.map { spec in
                    ["variable": Words.escaped(spec.environment ?? ""), "option": Words.escaped(spec.name)]
                },
                "example": Words.escaped(command.example),
            ]
        )
    }
}

/// The words of a page.
private enum Words {
    /// Paragraphs, a line of `text` each.
    static func paragraphs(_ text: String) -> String {
        text.split(separator: "\n").map { self.sentences(String($0)) }.joined(separator: "\n.PP\n")
    }

    static func entry(_ spec: OptionSpec) -> [String: String] {
        ["names": self.names(of: spec), "description": self.sentences(spec.description(isWhole: true))]
    }

    /// The formatter sets its own space between sentences where each begins a line.
    static func sentences(_ text: String) -> String {
        var lines: [String] = []
        var words: [Substring] = []
        for word in text.split(separator: " ") {
            words.append(word)
            guard let last = word.last, ".;:".contains(last) else { continue }
            lines.append(self.escaped(words.joined(separator: " ")))
            words = []
        }
        if !words.isEmpty { lines.append(self.escaped(words.joined(separator: " "))) }
        return lines.joined(separator: "\n")
    }

    /// The names in bold, the value in italics.
    static func names(of spec: OptionSpec) -> String {
        let names = spec.shownNames.map { "\\fB\(self.escaped($0))\\fR" }.joined(separator: ", ")
        return spec.valueWord.isEmpty ? names : "\(names) \\fI\(self.escaped(spec.valueWord))\\fR"
    }

    /// A text that means itself, wherever it stands.
    ///
    /// A dash without a backslash is a hyphen, with which an option cannot be copied from the page. The formatter takes
    /// a dot or an apostrophe that begins a line for a macro, and sets quotes, tildes and carets as other characters.
    static func escaped(_ text: String) -> String {
        var escaped = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\\": escaped += "\\e"
            case "-": escaped += "\\-"
            case "'": escaped += "\\(aq"
            case "\"": escaped += "\\(dq"
            case "`": escaped += "\\(ga"
            case "^": escaped += "\\(ha"
            case "~": escaped += "\\(ti"
            case _ where scalar.isASCII: escaped.unicodeScalars.append(scalar)
            default:
                let digits = String(scalar.value, radix: 16, uppercase: true)
                escaped += "\\[u\(String(repeating: "0", count: max(0, 4 - digits.count)))\(digits)]"
            }
        }
        return escaped.hasPrefix(".") ? "\\&" + escaped : escaped
    }
}

extension CommandName {
    /// The name of its page: `clamor-xmpp-login`.
    fileprivate var pageName: String { "clamor-" + self.rawValue.replacing(" ", with: "-") }
}
