import Measurement
import Report
import RunControl
import Scenario
import Testing
import Transport
import clamor
import RunResult

@Suite("Options of clamor run for several runs")
struct SeriesOptionsTests {
    private static let text = """
        name: small
        target: mqtt://127.0.0.1:1884
        duration: 5s
        groups:
          a: { clients: 2, publish: { qos: 1, rate: "${RATE:-100/s}" } }
        """

    private static func series(_ file: borrowing ScenarioFile, _ flags: String) throws -> SeriesOptions {
        let invocation = file.parsed(flags)
        guard case .series(let options) = invocation else { throw ScenarioFile.Unexpected(what: "\(invocation)") }
        return options
    }

    private static func targets(_ options: SeriesOptions) -> [[String]] {
        options.sides.map { side in
            side.scenario.groups.map { group in
                guard case .servers(let servers) = group.options.target else { return "embedded" }
                return servers.map { "\($0.host):\($0.port)" }.joined(separator: ",")
            }
        }
    }

    @Test("--repeat is one side, each run told what the command was, and where its results go")
    func alone() throws {
        let file = try ScenarioFile(Self.text)
        let options = try Self.series(
            file,
            "--repeat 12 --set RATE=50/s --warmup 1s --seed 7 --strict --per-client --out /x"
        )
        #expect(options.runs == 12 && options.sides.map(\.name) == ["a"] && options.outputDirectory == "/x")
        #expect(
            options.arguments(of: options.sides[0], directory: "d/1") == [
                "run", file.path, "--set", "RATE=50/s", "--warmup=1s", "--seed=7", "--per-client", "--strict", "--out",
                "d/1", "--quiet",
            ]
        )
        #expect(options.name(ofRun: 3) == "03" && options.name(ofRun: 12) == "12")
        #expect(options.folder(of: options.sides[0]) == nil)
    }

    @Test("a single run is no series")
    func single() throws {
        let file = try ScenarioFile(Self.text)
        #expect(try file.scenario("--set RATE=5/s").groups.count == 1)
    }

    @Test("--against another server, which has the scheme of the file's where it has none")
    func server() throws {
        let file = try ScenarioFile(Self.text)
        let options = try Self.series(file, "--against localhost:1999 --allow-different plan,cpu")
        #expect(options.runs == 5 && options.sides.map(\.name) == ["a", "b"])
        #expect(Self.targets(options) == [["127.0.0.1:1884"], ["localhost:1999"]])
        #expect(options.sides[1].arguments == ["run", file.path, "--target", "localhost:1999"])
        #expect(options.folder(of: options.sides[1]) == "b")
        #expect(options.comparison.allowed == [.plan, .cpu])
        #expect(Self.targets(try Self.series(file, "--against embedded --repeat 1"))[1] == ["embedded"])
        #expect(Self.targets(try Self.series(file, "--against mqtt://[::1]:2000"))[1] == ["::1:2000"])
    }

    @Test("--target takes the place of the file's, in a run alone too")
    func target() throws {
        let file = try ScenarioFile(Self.text)
        guard case .servers(let servers) = try file.scenario("--target localhost:2001").groups[0].options.target else {
            throw ScenarioFile.Unexpected(what: "no servers")
        }
        #expect(servers == [Target(host: "localhost", port: 2001)])
        let options = try Self.series(file, "--target localhost:2001 --against localhost:2002")
        #expect(Self.targets(options) == [["localhost:2001"], ["localhost:2002"]])
    }

    @Test("--against a value of a variable, beside those of both sides")
    func variable() throws {
        let file = try ScenarioFile(Self.text)
        let options = try Self.series(file, "--set RATE=50/s --against RATE=70/s --against localhost:1999 --repeat 2")
        #expect(options.sides.map { $0.scenario.groups[0].options.pacing } == [.rate(50), .rate(70)])
        #expect(
            options.sides[1].arguments == [
                "run", file.path, "--set", "RATE=50/s", "--set", "RATE=70/s", "--target", "localhost:1999",
            ]
        )
        #expect(Self.targets(options)[1] == ["localhost:1999"])
    }

    @Test("--against another file")
    func other() throws {
        let file = try ScenarioFile(Self.text)
        let other = try ScenarioFile(Self.text.replacing("100/s", with: "30/s"))
        let options = try Self.series(file, "--against \(other.path)")
        #expect(options.sides.map { $0.arguments[1] } == [file.path, other.path])
        #expect(options.sides.map { $0.scenario.groups[0].options.pacing } == [.rate(100), .rate(30)])
    }

    static let refused: [(flags: String, line: String)] = [
        ("--repeat 0", "--repeat: '0' is not a whole number of 1 to 1000"),
        (
            "--repeat 2 --duration 0",
            "--repeat: the scenario has no end of its own, so no second run would begin; give --duration"
        ),
        (
            "--against nothing",
            "--against: 'nothing' is no file here, no server such as host:1884 or mqtt://host:1884, and no variable such "
                + "as RATE=2000"
        ),
        (
            "--against http://h:1",
            "--against: 'http://h:1' is no file here, no server such as host:1884 or mqtt://host:1884, and no variable "
                + "such as RATE=2000"
        ),
        (
            "--against h:1 --against h:2",
            "--against: names 2 servers; one server is held against the scenario at a time"
        ),
        ("--against no.yaml", "--against: cannot read no.yaml (no such file); check the path and its permissions"),
        ("--against X=1", "--against: FILE has no ${X}; it has ${RATE}"),
        ("--set X=1 --against RATE=1", "--set: FILE has no ${X}; it has ${RATE}"),
        ("--target h", "--target: is no server; write it like host:1884, mqtt://host:1884 or embedded"),
        (
            "--against localhost:1999 --watch-pid mosquitto",
            "--watch-pid: would measure the same process for both sides of --against; compare two runs with clamor compare"
        ),
        (
            "--repeat 2 --allow-different plan",
            "--allow-different: is of a comparison; add --against, or give it to clamor compare"
        ),
        ("--repeat 2 --json", "--json: with --repeat it reports the comparison; add --against, or leave it out"),
        (
            "--repeat 2 --junit j.xml",
            "--junit: with --repeat it reports the comparison; add --against, or leave it out"
        ),
    ]

    @Test("what cannot be is refused in one line", arguments: refused)
    func refuses(_ flags: String, _ line: String) throws {
        let file = try ScenarioFile(Self.text)
        guard case .refused(let lines) = file.parsed(flags) else {
            Issue.record("\(flags) is taken")
            return
        }
        #expect(lines == ["clamor run: " + line.replacing("FILE", with: file.path)])
    }

    @Test("a variable of --set that the other file lacks is reported as --set")
    func unknownThere() throws {
        let file = try ScenarioFile(Self.text)
        let other = try ScenarioFile(Self.text.replacing("${RATE:-100/s}", with: "${PACE:-30/s}"))
        for (flags, problem) in [
            ("--against PACE=5", "--set: \(other.path) has no ${RATE}"), ("", "--set: \(other.path) has no ${RATE}"),
            ("--against RATE=5", "--against: \(other.path) has no ${RATE}"),
        ] {
            guard case .refused(let lines) = file.parsed("--set RATE=50/s --against \(other.path) \(flags)") else {
                Issue.record("\(flags) is taken")
                continue
            }
            #expect(lines == ["clamor run: \(problem); it has ${PACE}"])
        }
    }

    @Test("a server for groups that all have their own is refused, and so is a file that is wrong")
    func ownTargets() throws {
        let file = try ScenarioFile(
            """
            duration: 5s
            groups:
              a: { target: "mqtt://h:1", clients: 2, publish: { rate: 10/s } }
            """
        )
        guard case .refused(let lines) = file.parsed("--against h:2") else {
            Issue.record("it is taken")
            return
        }
        #expect(
            lines == [
                "clamor run: --against: every group of \(file.path) sets its own target; write ${TARGET} there, and "
                    + "give --set TARGET=..."
            ]
        )
        let good = try ScenarioFile(Self.text)
        let wrong = try ScenarioFile("groups: 1")
        guard case .wrong(let problems) = good.parsed("--against \(wrong.path)") else {
            Issue.record("a wrong file is taken")
            return
        }
        #expect(problems.count == 1 && problems[0].hasPrefix("\(wrong.path):1:"))
    }

    @Test("of several ends the first of the order of the design is given")
    func statuses() {
        #expect(ExitStatus.first([]) == .success)
        #expect(ExitStatus.first([.success, .thresholdFailed, .success]) == .thresholdFailed)
        #expect(ExitStatus.first([.thresholdFailed, .generatorLimited]) == .generatorLimited)
        #expect(ExitStatus.first([.thresholdFailed, .dataError]) == .dataError)
    }

    @Test("a variable behind --against that names a secret is not shown")
    func secret() {
        #expect(
            Redaction.command(["run", "f", "--against", "PASSWORD=x"]) == ["run", "f", "--against", "PASSWORD=***"]
        )
    }
}
