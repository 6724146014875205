import Measurement
import Report
import RunControl
import Scenario
import Testing
import clamor

@Suite("Options of clamor compare")
struct CompareOptionsTests {
    private static func options(
        _ line: String,
        _ more: String...,
        environment: [String: String] = [:]
    ) throws
        -> CompareOptions
    {
        let arguments = ["compare"] + line.split(separator: " ").map(String.init) + more
        guard case .compare(let options) = Invocation.parse(arguments, environment: environment) else {
            throw CancellationError()
        }
        return options
    }

    @Test("two directories, or several of each side")
    func sides() throws {
        let pair = try Self.options("/ /tmp")
        #expect(pair.base == ["/"] && pair.new == ["/tmp"])
        #expect(pair.limits == nil && pair.allowed.isEmpty && !pair.strict)
        let several = try Self.options("--base / /tmp --new /usr /etc /var")
        #expect(several.base == ["/", "/tmp"] && several.new == ["/usr", "/etc", "/var"])
    }

    @Test("limits, what may differ, and where the answer goes")
    func rest() throws {
        let options = try Self.options(
            "/ /tmp --allow-different plan,cpu --junit a.xml --summary-md b.md --json --all --strict",
            "--max-regression",
            "publish_ack_duration{qos=1} p99 10%",
            "--max-regression",
            "received rate 2.5%"
        )
        #expect(options.limits?.map(\.share) == [0.1, 0.025])
        #expect(options.limits?.first?.labels == ["qos": "1"])
        #expect(options.allowed == [.plan, .cpu])
        #expect(options.files.junit == "a.xml" && options.files.markdown == "b.md")
        #expect(options.json && options.showsAll && options.strict)
    }

    @Test("GitHub's summary is added to where no other file is named")
    func github() throws {
        let environment = ["GITHUB_STEP_SUMMARY": "/tmp/summary"]
        #expect(try Self.options("/ /tmp", environment: environment).files.inherited == "/tmp/summary")
        let named = try Self.options("/ /tmp --summary-md x", environment: environment).files
        #expect(named.markdown == "x" && named.inherited == nil)
        #expect(try Self.options("/ /tmp", environment: ["GITHUB_STEP_SUMMARY": ""]).files.inherited == nil)
        guard let run = Invocation.parse(["pub", "--junit", "j.xml"], environment: environment).mqtt else {
            throw CancellationError()
        }
        #expect(run.common.files.junit == "j.xml" && run.common.files.inherited == "/tmp/summary")
    }

    static let refused: [(arguments: [String], lines: [String])] = [
        ([], ["BASE NEW: two directories are wanted, not 0; of several runs: --base DIR ... --new DIR ..."]),
        (["/"], ["BASE NEW: two directories are wanted, not 1; of several runs: --base DIR ... --new DIR ..."]),
        (
            ["/nowhere", "/"],
            [
                "/nowhere: no such directory; give the result directory of a run, such as results/runs/<time>-pub"
            ]
        ),
        (["--new", "/"], ["--base: is missing; --new has no run to be compared with"]),
        (["--base", "/"], ["--new: is missing; there is no run to compare with --base"]),
        (
            ["/", "--base", "/", "--new", "/"],
            ["/: is a directory beside --base and --new; give it behind one of them"]
        ),
        (
            ["/", "/", "--allow-different", "time"],
            ["--allow-different: 'time' is none of plan, cpu, cores, server, verdict"]
        ),
        (
            ["/", "/", "--max-regression", "bytes_sent rate 5%"],
            ["--max-regression: 'bytes_sent rate 5%': neither more nor less of bytes_sent is worse"]
        ),
        (
            ["/", "/", "--max-regression", "received rate"],
            [
                "--max-regression: 'received rate': ends in no percentage; write it like "
                    + "'publish_ack_duration{qos=1} p99 10%'"
            ]
        ),
        (["/", "/", "--json", "--quiet"], ["--quiet: --json writes to stdout; leave one of the two out"]),
        (["/", "/", "--junit", ""], ["--junit: is empty; name a file"]),
    ]

    @Test("what is wrong is said in one line each", arguments: 0..<11)
    func refusals(_ index: Int) throws {
        let row = Self.refused[index]
        guard case .refused(let lines) = Invocation.parse(["compare"] + row.arguments) else {
            Issue.record("\(row.arguments) was taken")
            return
        }
        #expect(lines == row.lines.map { "clamor compare: \($0)" })
    }
}
