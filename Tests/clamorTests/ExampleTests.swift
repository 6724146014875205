import Foundation
import Scenario
import TestSupport
import Testing
import clamor

@Suite("Examples in help and documentation are accepted")
struct ExampleTests {
    /// Help without its line breaks, which fall anywhere; made once, for that takes its time.
    private static let helps = Dictionary(
        uniqueKeysWithValues: ["conn", "broker", "proxy"].map { command in
            guard case .text(let text) = Invocation.parse([command, "--help-all"]) else { return (command, "") }
            return (command, text.split(whereSeparator: \.isWhitespace).joined(separator: " "))
        }
    )

    /// The errors of a command line or of the scenario that it names; `nil` without any.
    private static func problem(_ arguments: [String]) -> String? {
        // The password of examples with a coordinator.
        let environment = ["CLAMOR_COORDINATOR_PASSWORD": "secret"]
        return switch Invocation.parse(arguments, environment: environment) {
        case .refused(let lines), .wrong(let lines): lines.joined(separator: "\n")
        default: nil
        }
    }

    private static func commands(_ lines: some Sequence<Substring>) -> [[String]] {
        lines.compactMap { line in MarkdownPage.arguments(line.drop { $0 == " " }) }
    }

    @Test("each command line of clamor --help is accepted")
    func help() throws {
        guard case .text(let help) = Invocation.parse(["--help"]) else { throw CancellationError() }
        let examples = Self.commands(help.split(separator: "\n"))
        #expect(!examples.isEmpty)
        for example in examples { #expect(Self.problem(example) == nil, "\(example)") }
    }

    // MARK: - Pages

    static let pages = MarkdownPage.guides

    /// Files that examples name, with the content that their option reads.
    private static let files: [String: String] = {
        var files = [
            "devices.csv": "site,device\nnorth,d1\n", "users.txt": "sensor:secret\n",
            "accounts.csv": (1...1_000).map { "user\($0)@example.org,secret\n" }.joined(),
        ]
        for ready in ReadyScenario.all { files["\(ready.name).yaml"] = ready.text }
        return files
    }()

    /// The errors of command lines; the files that they name exist.
    private static func problems(_ examples: [[String]]) throws -> [String] {
        let directory = FileManager.default.temporaryDirectory.appending(path: "examples-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        for (name, text) in self.files {
            try text.write(to: directory.appending(path: name), atomically: true, encoding: .utf8)
        }
        return examples.compactMap { example in
            let arguments = example.map { argument in
                // A result of the reader's: to the options any directory is one.
                if argument.hasPrefix("results/") { return "/" }
                return self.files.keys.reduce(argument) { text, name in
                    text.replacing(name, with: directory.appending(path: name).path)
                }
            }
            return self.problem(arguments).map { "\(example): \($0)" }
        }
    }

    @Test("each command line of a page is accepted", arguments: pages)
    func commandLines(_ page: String) throws {
        let lines = try MarkdownPage(page).blocks.filter { ["sh", "console", ""].contains($0.language) }.flatMap(
            \.lines
        )
        #expect(try Self.problems(Self.commands(lines)) == [])
    }

    /// The commands of loads within sentences and tables.
    private static func inline(_ page: MarkdownPage) -> [Substring] {
        page.lines.filter { !$0.hasPrefix("    ") }.flatMap { line in
            line.matches(of: /`(clamor (?:conn|pub|sub|pubsub|xmpp [a-z]+) -[^`]*)`/).map(\.1)
        }
    }

    @Test("each command line of a load in the text of a page is accepted")
    func inlineCommandLines() throws {
        let lines = try Self.pages.flatMap { Self.inline(try MarkdownPage($0)) }
        #expect(lines.count > 5)
        #expect(try Self.problems(Self.commands(lines)) == [])
    }

    @Test("the example in the help of a command is accepted", arguments: CommandName.allCases)
    func example(_ command: CommandName) throws {
        let words = command.rawValue.split(separator: " ").map(String.init)
        guard case .text(let help) = Invocation.parse(words + ["--help"]) else { throw CancellationError() }
        let lines = help.split(separator: "\n").filter { $0.hasPrefix("Example: ") }
        #expect(lines.count == 1)
        #expect(try Self.problems(Self.commands(lines.map { $0.dropFirst("Example: ".count) })) == [])
    }

    /// The whole scenarios of a page.
    static func scenarios(of page: String) throws -> [String] {
        try MarkdownPage(page).blocks.filter { $0.language == "yaml" && $0.lines.contains("groups:") }
            .map { $0.lines.joined(separator: "\n") }
    }

    @Test("each whole scenario of a page is accepted", arguments: pages)
    func scenarios(_ page: String) throws {
        for text in try Self.scenarios(of: page) {
            let invocation = try ScenarioFile(text).parsed()
            if case .wrong(let lines) = invocation { Issue.record("\(lines)") }
        }
    }

    @Test("pages have examples of both kinds")
    func counts() throws {
        let blocks = try Self.pages.flatMap { try MarkdownPage($0).blocks }
        #expect(Self.commands(blocks.filter { $0.language == "sh" }.flatMap(\.lines)).count > 40)
        #expect(try Self.pages.flatMap { try Self.scenarios(of: $0) }.count > 2)
    }

    // MARK: - Values in help

    struct Form: Sendable, CustomTestStringConvertible {
        let command: String
        let flag: String
        /// Its examples, in the command's help.
        let examples: @Sendable (String) -> [String]
        var testDescription: String { "\(self.command) \(self.flag)" }
    }

    private static func words(_ text: String, with mark: String) -> [String] {
        text.split(separator: " ").filter { $0.contains(mark) }
            .map { $0.trimmingCharacters(in: CharacterSet(charactersIn: ".,;:()'")) }
    }

    private static func quoted(_ text: String, from start: String) -> [String] {
        text.split(separator: "'").filter { $0.hasPrefix(start) }.map(String.init)
    }

    static let forms = [
        Form(command: "conn", flag: "--storm") { Self.words($0, with: "%@") },
        Form(command: "conn", flag: "--churn") { Self.words($0, with: "/s:cut") },
        Form(command: "conn", flag: "--broker") { Self.quoted($0, from: "--drop") },
        Form(command: "conn", flag: "--threshold") { Self.quoted($0, from: "connect_duration p99") },
        Form(command: "broker", flag: "--stall") { Self.words($0, with: "s@") },
        Form(command: "broker", flag: "--fragment") { Self.words($0, with: "1-7") },
        Form(command: "broker", flag: "--refuse") { Self.words($0, with: "0x") },
        Form(command: "proxy", flag: "--rate") { Self.words($0, with: "KiB/s") },
        Form(command: "proxy", flag: "--stall") { Self.words($0, with: "s@") },
        Form(command: "proxy", flag: "--fragment") { Self.words($0, with: "1-7") },
    ]

    @Test("every value that a flag's help shows is taken by the flag", arguments: forms)
    func values(_ form: Form) throws {
        let examples = form.examples(try #require(Self.helps[form.command]))
        #expect(!examples.isEmpty)
        let more = form.flag == "--broker" ? ["-h", "embedded"] : form.command == "proxy" ? ["127.0.0.1:1883"] : []
        let command = [form.command] + more
        for example in examples { #expect(Self.problem(command + [form.flag, example]) == nil, "\(example)") }
    }

    static let wrong = [
        "conn --storm X", "conn --storm 0%@1s", "conn --churn X", "conn -R X", "conn -i X", "conn --duration X",
        "conn --connect-timeout 0s", "pub --rate X", "pub -s X", "broker --drop X", "broker --delay 0s",
        "broker --stall X", "broker --fragment X", "broker --max-rate X", "broker --refuse X",
        "proxy X", "proxy h:1 --delay X", "proxy h:1 --rate X", "proxy h:1 --stall X", "proxy h:1 --cut 0s",
        "proxy h:1 --reset X", "proxy h:1 --fragment X",
    ]

    @Test("every value that a refusal suggests is accepted instead of the refused one", arguments: wrong)
    func remedies(_ line: String) throws {
        let words = line.split(separator: " ").map(String.init)
        let problem = try #require(Self.problem(words))
        // In "write it like 10s, 250ms or 2m" three values.
        let hint = try #require(problem.split(separator: " like ", maxSplits: 1).dropFirst().first)
        let values = hint.replacing(" or ", with: ", ").split(separator: ", ")
            .map { String($0.prefix { $0 != " " && $0 != "," }) }.filter { $0.contains(where: \.isNumber) }
        #expect(!values.isEmpty)
        for value in values { #expect(Self.problem(words.dropLast() + [value]) == nil, "\(value): \(problem)") }
    }
}
