import RunResult

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

    private static let program = "clamor"

    /// The page of the program.
    private init(date: String) {
        self.name = Self.program
        var page = Page(self.name, HelpText.abstract, date: date)
        page.section("SYNOPSIS")
        page.line(".B clamor\n.I command\n[options]")
        page.section("DESCRIPTION")
        page.text(
            """
            Clamor connects many clients and measures what each of them sees: latency, throughput, loss, duplicates, order.
            \(HelpText.hostNote)
            """
        )
        page.section("COMMANDS")
        for command in CommandName.allCases {
            page.entry(".BR \(Page.escaped(command.pageName)) (1)", command.abstract)
        }
        page.section("OPTIONS")
        page.entry(".B \(Page.escaped("--help"))", "Show the help; after a command that of the command.")
        page.entry(".B \(Page.escaped("--help-all"))", "After a command: show all its options.")
        page.entry(".B \(Page.escaped("--version"))", "Show the version, and what the build knew of itself.")
        page.entry(
            ".BI \(Page.escaped("--generate-completion-script")) \" shell\"",
            "Write the completions for bash, zsh or fish to standard output."
        )
        page.section("EXIT STATUS")
        for (code, meaning) in HelpText.exitCodes { page.entry(".B \(code.rawValue)", "\(meaning).") }
        page.example(CommandName.pubsub.example)
        self.text = page.lines.joined(separator: "\n") + "\n"
    }

    private init(_ command: CommandName, date: String) {
        self.name = command.pageName
        var page = Page(self.name, command.abstract, date: date)
        page.section("SYNOPSIS")
        page.line(".B \(Page.escaped("clamor \(command.rawValue)"))")
        page.line(Page.escaped("\(command.arguments)[options]\(command.operands)"))
        page.section("DESCRIPTION")
        page.text(command.discussion ?? command.abstract)
        let sections = OptionTable.sections(of: command).map { section in
            (title: section.title, specs: section.specs.filter { !$0.isHidden && !$0.allNames.isEmpty })
        }.filter { !$0.specs.isEmpty }
        if !sections.isEmpty { page.section("OPTIONS") }
        for section in sections {
            page.line(".SS \(Page.escaped(section.title))")
            for spec in section.specs { page.entry(Page.names(of: spec), spec.description(isWhole: true)) }
        }
        let variables = sections.flatMap(\.specs).filter { $0.environment != nil }
        if !variables.isEmpty { page.section("ENVIRONMENT") }
        for spec in variables {
            page.entry(".B \(Page.escaped(spec.environment ?? ""))", "The value of \(spec.name), if it is not given.")
        }
        page.section("EXIT STATUS")
        page.line("See\n.BR clamor (1).")
        page.example(command.example)
        page.section("SEE ALSO")
        page.line(".BR clamor (1)")
        self.text = page.lines.joined(separator: "\n") + "\n"
    }
}

/// The lines of a page that is under way.
private struct Page {
    private(set) var lines: [String]

    init(_ name: String, _ abstract: String, date: String) {
        let title = Self.escaped(name.uppercased())
        self.lines = [
            ".TH \(title) 1 \(date) \"clamor \(Version.number)\" \"User Commands\"", ".SH NAME",
            "\(Self.escaped(name)) \\- \(Self.escaped(abstract.hasSuffix(".") ? String(abstract.dropLast()) : abstract))",
        ]
    }

    mutating func line(_ line: String) { self.lines.append(line) }

    mutating func section(_ title: String) { self.lines.append(".SH \(title)") }

    /// Paragraphs, a line of `text` each.
    mutating func text(_ text: String) {
        for (index, paragraph) in text.split(separator: "\n").enumerated() {
            if index > 0 { self.lines.append(".PP") }
            self.sentences(String(paragraph))
        }
    }

    /// A tag, which is a line of macros, and its description.
    mutating func entry(_ tag: String, _ description: String) {
        self.lines += [".TP", tag]
        self.sentences(description)
    }

    mutating func example(_ command: String) {
        self.lines += [".SH EXAMPLES", ".nf", Self.escaped(command), ".fi"]
    }

    /// The formatter sets its own space between sentences where each begins a line.
    private mutating func sentences(_ text: String) {
        var words: [Substring] = []
        for word in text.split(separator: " ") {
            words.append(word)
            guard let last = word.last, ".;:".contains(last) else { continue }
            self.lines.append(Self.escaped(words.joined(separator: " ")))
            words = []
        }
        if !words.isEmpty { self.lines.append(Self.escaped(words.joined(separator: " "))) }
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
