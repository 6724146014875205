import Scenario
import Testing
import clamor

@Suite("Options of clamor capacity")
struct CapacityOptionsTests {
    private static func options(_ arguments: String...) throws -> CapacityOptions {
        guard case .capacity(let options) = Invocation.parse(["capacity"] + arguments) else {
            throw CancellationError()
        }
        return options
    }

    @Test("its own flags, followed by the load as in a run")
    func load() throws {
        let options = try Self.options(
            "--slo",
            "publish_ack_duration p99 < 50ms",
            "--hold",
            "5s",
            "--first",
            "2000/s",
            "--max-rate",
            "90000/s",
            "pub",
            "-h",
            "embedded",
            "-c",
            "50",
            "-q",
            "1"
        )
        #expect(options.load == ["pub", "-h", "embedded", "-c", "50", "-q", "1"])
        #expect(!options.variesClients)
        #expect(options.first == 2_000 && options.most == 90_000 && options.hold == 5_000_000_000)
        #expect(
            options.arguments(load: 1_234.5678, directory: "d") == [
                "pub", "-h", "embedded", "-c", "50", "-q", "1", "--rate", "1234.568/s", "--duration", "5s",
                "--threshold", "publish_ack_duration p99 < 50ms", "--end-decided", "--out", "d", "--quiet", "--no-page",
            ]
        )
    }

    @Test("of loads without operations the clients vary")
    func clients() throws {
        let options = try Self.options("--slo", "connect_duration p99 < 1s", "conn", "-h", "embedded")
        #expect(options.variesClients && options.first == 100)
        #expect(options.arguments(load: 400, directory: "d").contains("400"))
    }

    static let refused: [(arguments: [String], lines: [String])] = [
        (
            ["--slo", "delivery_lost == 0"],
            ["load: is missing; end with a command, such as pub -h embedded -c 50 -q 1"]
        ),
        (["pub"], ["--slo: is missing; say what has to hold, such as 'publish_ack_duration p99 < 50ms'"]),
        (["--slo", "errors < 1", "pub", "--rate", "5/s"], ["--rate: the search sets it; leave it out of the load"]),
        (["--slo", "errors < 1", "conn", "-c=5"], ["-c: the search sets it; leave it out of the load"]),
        (["--slo", "errors < 1", "--hold", "10ms", "pub"], ["--hold: has to be a second at least"]),
        (["--slo", "errors < 1", "doctor"], ["load: 'doctor' is no load; take conn, pub, sub, pubsub or xmpp"]),
        (
            ["--slo", "errors < 1", "--max-clients", "5", "pub"],
            ["--max-clients: the load varies by its rate; use --max-rate"]
        ),
        (
            ["--slo", "errors < 1", "--max-rate", "5", "conn"],
            ["--max-rate: the load varies by clients; use --max-clients"]
        ),
        (
            ["--slo", "errors < 1", "pub", "-q", "7"],
            [
                "load: pub: -q: '7' is not QoS 0, 1 or 2, nor a list of them such as 0,1,2 with each once"
            ]
        ),
    ]

    @Test("what is wrong is said in one line each", arguments: refused.indices)
    func refusals(_ index: Int) {
        let row = Self.refused[index]
        guard case .refused(let lines) = Invocation.parse(["capacity"] + row.arguments) else {
            Issue.record("\(row.arguments) was taken")
            return
        }
        #expect(lines == row.lines.map { "clamor capacity: \($0)" })
    }

    @Test(
        "--help is of what stands before it",
        arguments: [
            ("--help", "capacity"), ("--slo x --help", "capacity"), ("pub --help", "pub"),
            ("--slo x pub -q 1 --help", "pub"),
            ("--slo x xmpp ping --help", "xmpp ping"),
        ]
    )
    func help(_ words: String, _ name: String) {
        let arguments = ["capacity"] + words.split(separator: " ").map(String.init)
        guard case .text(let text) = Invocation.parse(arguments) else {
            Issue.record("\(words) gave no help")
            return
        }
        #expect(text.contains("Usage: clamor \(name) "))
    }
}
