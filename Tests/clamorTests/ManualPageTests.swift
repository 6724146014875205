import RunResult
import Scenario
import TestSupport
import Testing
import clamor

@Suite("The manual pages and the completions")
struct ManualPageTests {
    private static let pages = ManualPage.all(date: "2026-01-31")

    private static func page(_ command: CommandName) throws -> ManualPage {
        let name = "clamor-" + command.rawValue.replacing(" ", with: "-")
        return try #require(self.pages.first { $0.name == name })
    }

    /// The text of a page that a reader sees, without its macros.
    private static func plain(_ page: ManualPage) -> String {
        var text = page.text
        for (escape, character) in [
            ("\\fB", ""), ("\\fI", ""), ("\\fR", ""), ("\\-", "-"), ("\\(aq", "'"), ("\\(dq", "\""), ("\\(ga", "`"),
            ("\\(ha", "^"), ("\\(ti", "~"), ("\\[u00A7]", "§"), ("\\&", ""), ("\\e", "\\"),
        ] {
            text = text.replacing(escape, with: character)
        }
        return text
    }

    @Test(
        "a command's page has each option of the table that help shows, with its description",
        arguments: CommandName.allCases
    )
    func options(_ command: CommandName) throws {
        let text = Self.plain(try Self.page(command)).split(whereSeparator: \.isWhitespace).joined(separator: " ")
        let specs = OptionTable.specs(of: command).filter { !$0.isHidden && !$0.allNames.isEmpty }
        #expect(!specs.isEmpty)
        for spec in specs {
            for name in spec.allNames { #expect(text.contains(" \(name)"), "\(name)") }
            let help = spec.help.split(whereSeparator: \.isWhitespace).joined(separator: " ")
            #expect(text.contains(help), "\(spec.name)")
        }
        for spec in OptionTable.specs(of: command) where spec.isHidden {
            #expect(!text.contains(" \(spec.name)"), "\(spec.name)")
        }
    }

    @Test("a command's page has its example and each variable of the environment", arguments: CommandName.allCases)
    func rest(_ command: CommandName) throws {
        let text = Self.plain(try Self.page(command))
        #expect(text.contains("\n\(command.example)\n"))
        for spec in OptionTable.specs(of: command) {
            if let name = spec.environment { #expect(text.contains("\n.B \(name)\n")) }
        }
    }

    @Test("the program's page names every command and every exit code")
    func program() throws {
        let text = Self.plain(try #require(Self.pages.first))
        for command in CommandName.allCases {
            #expect(text.contains("\n.BR clamor-\(command.rawValue.replacing(" ", with: "-")) (1)\n"))
        }
        for code in ExitStatus.allCases { #expect(text.contains("\n.B \(code.rawValue)\n")) }
    }

    @Test("no text is taken for a macro or an escape", arguments: pages)
    func escapes(_ page: ManualPage) {
        let macros: Set = ["TH", "SH", "SS", "TP", "PP", "B", "I", "BR", "BI", "nf", "fi"]
        for line in page.text.split(separator: "\n") {
            if line.hasPrefix(".") {
                #expect(macros.contains(String(line.dropFirst().prefix { $0.isLetter })), "\(line)")
            }
            #expect(!line.hasPrefix("'"))
            let escapes = line.matches(of: /\\(.)/).map { String($0.1) }
            #expect(Set(escapes).isSubset(of: ["-", "e", "(", "f", "&", "["]), "\(line)")
        }
    }

    @Test(
        "mandoc has nothing to remark",
        .enabled(if: SlowTests.areOn, "\(SlowTests.reason)"),
        .enabled(if: isInstalled, "mandoc is missing; install it"),
        arguments: pages
    )
    func lint(_ page: ManualPage) throws {
        let folder = try ScratchFolder()
        let path = try folder.write(page.text, to: page.fileName)
        let ending = try RunningProgram.run("/usr/bin/env", ["mandoc", "-T", "lint", "-W", "warning", path])
        #expect(ending.status == 0, "\(ending.output)\(ending.errors)")
        let shown = try RunningProgram.run("/usr/bin/env", ["mandoc", "-T", "utf8", path])
        #expect(shown.status == 0 && shown.outputLines.count > 10)
    }

    private static let isInstalled =
        (try? RunningProgram.run("/usr/bin/env", ["sh", "-c", "command -v mandoc"]).status) == 0

    @Test("the pages are written to the given directory, dated as reproducible builds have it")
    func written() throws {
        let asked = Invocation.parse(["--generate-manual", "man"], environment: ["SOURCE_DATE_EPOCH": "1769817600"])
        guard case .draft(let draft) = asked else {
            Issue.record("\(asked)")
            return
        }
        #expect(draft.files.map(\.path) == Self.pages.map { "man/\($0.fileName)" })
        #expect(draft.files.map(\.text) == Self.pages.map(\.text))
        #expect(draft.path == "man/clamor.1")
    }

    @Test("without one directory they are refused", arguments: [[], ["-x"], ["a", "b"]])
    func refused(_ rest: [String]) {
        guard case .refused(let lines) = Invocation.parse(["--generate-manual"] + rest) else {
            Issue.record("is taken")
            return
        }
        #expect(lines == ["clamor: --generate-manual: needs the directory to write to, such as --generate-manual man"])
    }

    @Test("a shell's completions have every option of every command", arguments: ["bash", "zsh", "fish"])
    func completions(_ shell: String) {
        guard case .text(let text) = Invocation.parse(["--generate-completion-script", shell]) else {
            Issue.record("refused")
            return
        }
        for spec in OptionTable.all where !spec.isHidden {
            guard let name = spec.names.first(where: { $0.hasPrefix("--") }) else { continue }
            let words = shell == "fish" ? ["'", "="].map { "\(name.dropFirst(2))\($0)" } : [name]
            #expect(words.contains { text.contains($0) }, "\(name)")
        }
    }
}
