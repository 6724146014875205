import Foundation
import Testing
import clamor

@Suite("Whoever types an example is understood")
struct ExampleTests {
    /// Help without its line breaks, which fall anywhere; made once, for that takes its time.
    private static let helps = Dictionary(
        uniqueKeysWithValues: ["conn", "broker", "proxy"].map { command in
            guard case .text(let text) = Invocation.parse([command, "--help"]) else { return (command, "") }
            return (command, text.split(whereSeparator: \.isWhitespace).joined(separator: " "))
        }
    )

    /// What is wrong with a command line, if something is.
    private static func problem(_ arguments: [String]) -> String? {
        if case .refused(let lines) = Invocation.parse(arguments) { lines.joined(separator: "\n") } else { nil }
    }

    /// Words as a shell splits them, single quotes kept together.
    private static func words(_ line: Substring) -> [String] {
        line.split(separator: "'", omittingEmptySubsequences: false).enumerated().flatMap { index, part in
            index % 2 == 1 ? [String(part)] : part.split(separator: " ").map(String.init)
        }
    }

    private static func lines(of text: String) -> [[String]] {
        text.split(separator: "\n").compactMap { line in
            let line = line.drop { $0 == " " }
            return line.hasPrefix("clamor ") ? Array(self.words(line).dropFirst()) : nil
        }
    }

    @Test("every command line in clamor --help and in the README is taken")
    func commandLines() throws {
        guard case .text(let help) = Invocation.parse(["--help"]) else { throw CancellationError() }
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let readme = try String(contentsOf: root.appending(path: "README.md"), encoding: .utf8)
        let examples = Self.lines(of: help) + Self.lines(of: readme)
        #expect(examples.count > 8)
        for example in examples {
            // A run of somebody's; a file of theirs, of which README has one.
            if example.first == "report" || example.first == "run" { continue }
            // Results are somebody's too, but any directory is one to the flags.
            let arguments = example.map { $0.hasPrefix("results/") ? "/" : $0 }
            #expect(Self.problem(arguments) == nil, "\(example)")
        }
    }

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
        Form(command: "proxy", flag: "--delay") { Self.words($0, with: "%") },
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

    @Test("every value that a refusal shows is taken in the place of the refused one", arguments: wrong)
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
