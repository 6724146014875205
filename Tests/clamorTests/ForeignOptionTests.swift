import Foundation
import Scenario
import TestSupport
import Testing
import clamor

@Suite("Options of other load generators")
struct ForeignOptionTests {
    private static let article: String = {
        let path = MarkdownPage.root.appending(path: "Sources/clamor/Clamor.docc/Migration.md").path
        return (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
    }()

    @Test("each has a row in the article on other tools", arguments: ForeignOption.all.map(\.name))
    func documented(_ name: String) {
        #expect(Self.article.contains("`\(name)") || Self.article.contains("`\(name.drop { $0 == "-" })`"))
    }

    @Test("each option in the first column of the article is one of Clamor's, or has an answer here")
    func complete() {
        // The parser answers it itself.
        let own = Set(CommandName.allCases.flatMap { OptionTable.specs(of: $0) }.flatMap(\.allNames)).union([
            "--version"
        ])
        let answered = Set(ForeignOption.all.map(\.name))
        let cells = Self.article.split(separator: "\n").filter { $0.hasPrefix("| `") }
            .compactMap { $0.split(separator: "|").first }
        // Names with two dashes alone: a letter means something else here.
        let names = cells.flatMap { cell in
            cell.split { !($0.isLetter || $0.isNumber || "-_".contains($0)) }.map(String.init)
                .filter { $0.hasPrefix("--") }
        }
        #expect(names.count > 20)
        #expect(names.filter { !own.contains($0) && !answered.contains($0) } == [])
    }

    static let answers: [(line: String, answer: String)] = [
        ("pub -im 100", "clamor pub: -im: an option of MQTTX; the interval between messages is -I, such as -I 1000"),
        ("pub --split", "clamor pub: --split: an option of MQTTX; -m file://FILE is one message; leave it out"),
        (
            "conn --qoe true",
            "clamor conn: --qoe: an option of emqtt_bench; each run measures connects, acknowledgements and deliveries; leave it out"
        ),
        (
            "pub --quic=true",
            "clamor pub: --quic: an option of emqtt_bench; MQTT over QUIC is not supported; leave it out"
        ),
        (
            "pub --load-qst FILE",
            "clamor pub: --load-qst: an option of emqtt_bench; without a counterpart; leave it out"
        ),
        (
            "conn -l wss",
            "clamor conn: -l: an option of emqtt_bench and MQTTX; low memory has no counterpart, and the protocol is --ws, -S or both"
        ),
        ("run a.yaml -e A=1", "clamor run: -e: an option of k6; a variable of a file is --set NAME=VALUE"),
        (
            "pub --durations 1s",
            "clamor pub: Unknown option '--durations'. Did you mean '--duration'? See clamor pub --help"
        ),
        ("pub --dupe", "clamor pub: Unknown option '--dupe'; see clamor pub --help"),
    ]

    @Test("are refused with what is there instead, and others with a name only if it is near", arguments: answers)
    func answered(_ line: String, _ answer: String) {
        guard case .refused(let lines) = Invocation.parse(line.split(separator: " ").map(String.init)) else {
            Issue.record("\(line) is taken")
            return
        }
        #expect(lines == [answer])
    }
}
