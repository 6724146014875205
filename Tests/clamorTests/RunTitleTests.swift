import Measurement
import Report
import RunControl
import Scenario
import TestSupport
import Testing
import clamor

@Suite("The name and the tags of a run")
struct RunTitleTests {
    private static func run(_ line: String) throws -> MQTTOptions {
        let invocation = Invocation.parse(line.split(separator: " ").map(String.init))
        guard let options = invocation.mqtt else { throw ScenarioFile.Unexpected(what: "\(invocation)") }
        return options
    }

    @Test("names the directory and is written to run.json")
    func name() throws {
        let options = try Self.run("pub --name tls/nightly")
        #expect(options.common.directoryName == "tls-nightly")
        #expect(options.planRecord(seed: 1)["name"] == "tls/nightly")
        let tagged = try Self.run("pub --tag build=42 --tag host=lab=2")
        #expect(tagged.planRecord(seed: 1)["tags"] == ["build=42", "host=lab=2"])
        let plain = try Self.run("pub")
        #expect(plain.planRecord(seed: 1)["tags"] == nil)
        #expect(plain.common.directoryName == "pub")
        #expect(plain.planRecord(seed: 1)["name"] == nil)
    }

    @Test("overrides the file's, and is no part of the schedule")
    func scenario() throws {
        let file = try ScenarioFile("name: fleet\ngroups: { a: {} }\n")
        let (own, given) = (try file.scenario(), try file.scenario("--name nightly"))
        #expect(own.name == "fleet" && own.common.directoryName == "fleet")
        #expect(given.name == "nightly" && given.common.directoryName == "nightly")
        #expect(own.scheduleHash == given.scheduleHash)
        let tagged = try ScenarioFile("tags: { build: 42, host: lab }\ngroups: { a: {} }\n")
        #expect(try tagged.scenario().common.tags == ["build=42", "host=lab"])
        #expect(try tagged.scenario("--tag build=43").planRecord(seed: 1)["tags"] == ["build=43"])
    }

    @Test("is printed as keys of the file")
    func printed() throws {
        let line = "pub --name nightly --tag build=42 --tag host=lab --print-scenario"
        guard case .text(let text) = Invocation.parse(line.split(separator: " ").map(String.init)) else {
            Issue.record("is refused")
            return
        }
        let scenario = try ScenarioFile(text).scenario()
        #expect(scenario.common.title == "nightly")
        #expect(scenario.common.tags == ["build=42", "host=lab"])
    }

    @Test("is cut in the directory, which has the command's where no letter is left")
    func directory() throws {
        #expect(try Self.run("pub --name \(String(repeating: "x", count: 300))").common.directoryName.count == 60)
        #expect(try Self.run("pub --name ///").common.directoryName == "pub")
    }

    @Test("goes to each segment and to each run of a series")
    func children() throws {
        let options = try Self.run("pub -c 4 --name nightly --processes 2")
        let arguments = options.segment.processes?.arguments(of: 0, seed: 3, threads: 1, directory: "d") ?? []
        #expect(arguments.prefix(5) == ["pub", "-c", "4", "--name", "nightly"])
        let file = try ScenarioFile("groups: { a: { publish: { rate: 5/s } } }\n")
        guard case .series(let series) = file.parsed("--repeat 2 --name nightly") else {
            Issue.record("is no series")
            return
        }
        #expect(series.arguments(of: series.sides[0], directory: "d").contains("--name=nightly"))
    }

    @Test("a key of a file's tags has no =")
    func key() throws {
        let file = try ScenarioFile("tags: { \"a=b\": c }\ngroups: { a: {} }\n")
        guard case .wrong(let lines) = file.parsed("") else {
            Issue.record("is accepted")
            return
        }
        #expect(lines == ["\(file.path):1:9: tags: 'a=b' is no key; write a word without ="])
    }

    @Test(
        "what is none is refused",
        arguments: [
            (["--name", ""], "--name: is empty; name the run"),
            (["--name", "a\u{1B}[31m"], "--name: has a line break or another control character in it; take it out"),
            (["--tag", "a=b\nc"], "--tag: has a line break or another control character in it; take it out"),
            (["--tag", "x"], "--tag: 'x' is no KEY=VALUE; write it like build=42"),
            (["--tag", "=x"], "--tag: '=x' is no KEY=VALUE; write it like build=42"),
            (["--tag", "a=1", "--tag", "a=2"], "--tag: 'a' is given twice; leave one out"),
        ]
    )
    func wrong(_ words: [String], _ answer: String) {
        guard case .refused(let lines) = Invocation.parse(["pub"] + words) else {
            Issue.record("is accepted")
            return
        }
        #expect(lines == ["clamor pub: \(answer)"])
    }
}
