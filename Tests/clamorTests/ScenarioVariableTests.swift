import Foundation
import RunControl
import Scenario
import TestSupport
import Testing
import Transport
import Workloads
import clamor

@Suite("Variables and includes of a scenario file")
struct ScenarioVariableTests {
    @Test("a value comes from the command line, else the file, else the environment, else its default")
    func order() throws {
        let text = "groups: { a: { clients: \"${CLIENTS:-7}\" } }\n"
        let own = "vars: { CLIENTS: 3 }\n" + text
        func clients(_ text: String, _ flags: String = "", _ environment: [String: String] = [:]) throws -> Int {
            try ScenarioFile(text).scenario(flags, environment: environment).groups[0].options.clients
        }
        #expect(try clients(text) == 7)
        #expect(try clients(text, "", ["CLIENTS": "5"]) == 5)
        #expect(try clients(own, "", ["CLIENTS": "5"]) == 3)
        #expect(try clients(own, "--set CLIENTS=2", ["CLIENTS": "5"]) == 2)
    }

    @Test("variables stand anywhere in a value, several in one, quoted or not, and columns stay what they are")
    func places() throws {
        let text = """
            # ${NOT_LOOKED_AT}
            name: "${A}-${B:-two: three, four} run"
            target: "mqtt://${HOST:-h}:${PORT:-1884}"
            groups:
              a: { publish: { topic: "x/$${y}/%i", rate: "${RATE:-50}/s" }, clients: "${N:-3}", password: p }
            """
        let scenario = try ScenarioFile(text).scenario("--set A=one --set N=4")
        #expect(scenario.name == "one-two: three, four run")
        #expect(scenario.groups[0].options.target == .servers([Target(host: "h", port: 1884)]))
        #expect(scenario.groups[0].options.pacing == .rate(50))
        #expect(scenario.groups[0].options.clients == 4)
        guard case .mqtt(let options) = scenario.groups[0].work else { return }
        #expect(options.topic == "x/${y}/%i")
        guard case .wrong(let lines) = try ScenarioFile(text).parsed("--set A=b --set RATE=x --set N=0") else { return }
        #expect(
            lines.map { $0.drop { $0 != ":" } } == [
                ":5:46: a.publish.rate: 'x/s' is not a rate; write it like 500/s",
                ":5:74: a.clients: '0' is not a whole number of 1 to 10000000",
            ]
        )
    }

    @Test("a byte order mark in front of a file is no part of it")
    func mark() throws {
        let text = "\u{FEFF}groups: { a: { clients: 3 } }\n"
        #expect(try ScenarioFile(text).scenario("").groups[0].options.clients == 3)
    }

    @Test(
        "a variable that reaches a secret key is hidden in the record's command, whatever its name is",
        arguments: [
            ("password: '${X}'", true), ("username: '${X}'", false), ("password: '${OWN}'", true),
            ("psk: 'i:${X}'", true), ("path: '/mqtt?sig=${X}'", true),
            ("target: 'mqtt://u:${X}@h'", true),
        ]
    )
    func secrets(_ key: String, isHidden: Bool) throws {
        let tls = key.hasPrefix("psk") ? "mqtts" : key.hasPrefix("path") ? "ws" : "mqtt"
        let file = try ScenarioFile(
            "vars: { OWN: \"${X}\" }\ntarget: \(tls)://h\ngroups: { a: { clients: \"${N:-1}\", \(key) } }\n"
        )
        for words in ["--set X=ab12cd --set N=2", "--set=X=ab12cd --set=N=2"] {
            let command = try file.scenario(words).common.redactedCommand.joined(separator: " ")
            #expect(command.contains("N=2"))
            #expect(command.contains("ab12cd") == !isHidden, "\(command)")
            #expect(command.contains("X=***") == isHidden, "\(command)")
        }
    }

    @Test("variables that name each other do not grow without a bound")
    func bounded() throws {
        let names = (0..<40).map { "V\($0)" }
        let doubled = zip(names, names.dropFirst()).map { "\($1): \"${\($0)}${\($0)}\"" }.joined(separator: ", ")
        let text = "vars: { V0: xxxxxxxx, \(doubled) }\ngroups: { a: { clients: 1, prefix: \"${V39}\" } }\n"
        guard case .wrong(let lines) = try ScenarioFile(text).parsed() else {
            Issue.record("is taken")
            return
        }
        #expect(lines.contains { $0.hasSuffix("variables expand to more than 16 MiB of text") }, "\(lines)")
    }

    @Test("a value that was given and is used nowhere is refused, and what is none too")
    func unused() throws {
        let file = try ScenarioFile("groups: { a: { clients: \"${CLIENTS:-7}\" } }\n")
        guard case .refused(let lines) = file.parsed("--set CLEINTS=2 --set 3") else {
            Issue.record("is taken")
            return
        }
        #expect(
            lines == [
                "clamor run: --set: '3' is no NAME=VALUE; write it like --set RATE=5000",
                "clamor run: --set: \(file.path) has no ${CLEINTS}; it has ${CLIENTS}",
            ]
        )
    }

    @Test("a file overrides its includes; groups and thresholds add up; values reach all files")
    func includes() throws {
        let folder = try ScratchFolder()
        let parts = folder.path("parts")
        try FileManager.default.createDirectory(atPath: parts, withIntermediateDirectories: true)
        _ = try folder.write(
            """
            name: base
            seed: 7
            vars: { RATE: 10/s, CLIENTS: 2 }
            groups: { base: { clients: "${CLIENTS}", publish: { rate: "${RATE}" } } }
            thresholds: ["publish_offered{group=base} > 0"]
            """,
            to: "parts/base.yaml"
        )
        _ = try folder.write("include: base.yaml\nvars: { CLIENTS: 5 }\nduration: 9s\n", to: "parts/middle.yaml")
        let main = try folder.write(
            """
            include: parts/${FILE:-middle}.yaml
            name: main
            vars: { RATE: 20/s }
            groups: { own: {} }
            thresholds: ["connect_lag{group=own} count > 0"]
            """,
            to: "main.yaml"
        )
        guard let scenario = Invocation.parse(["run", main]).scenario else {
            Issue.record("\(Invocation.parse(["run", main]))")
            return
        }
        #expect(scenario.name == "main")
        #expect(scenario.common.seed == 7)
        #expect(scenario.common.duration == 9_000_000_000)
        #expect(scenario.groups.map(\.name) == ["base", "own"])
        #expect(scenario.groups[0].options.clients == 5)
        #expect(scenario.groups[0].options.pacing == .rate(20))
        #expect(
            scenario.common.thresholds == ["publish_offered{group=base} > 0", "connect_lag{group=own} count > 0"]
        )
    }

    @Test("a file that several others include counts once")
    func diamond() throws {
        let folder = try ScratchFolder()
        _ = try folder.write(
            "groups: { base: { clients: 3 } }\nthresholds: [\"connect_lag{group=base} count > 0\"]\nseed: 3\n",
            to: "base.yaml"
        )
        _ = try folder.write("include: base.yaml\ngroups: { one: {} }\nduration: 4s\n", to: "one.yaml")
        _ = try folder.write("include: ./base.yaml\ngroups: { two: {} }\nseed: 5\n", to: "two.yaml")
        let main = try folder.write("include: [one.yaml, two.yaml, base.yaml]\n", to: "main.yaml")
        guard let scenario = Invocation.parse(["run", main]).scenario else {
            Issue.record("\(Invocation.parse(["run", main]))")
            return
        }
        #expect(Set(scenario.groups.map(\.name)) == ["base", "one", "two"])
        #expect(scenario.common.thresholds == ["connect_lag{group=base} count > 0"])
        #expect(scenario.common.duration == 4_000_000_000)
        // By the first way that leads to it.
        #expect(scenario.common.seed == 3)
    }

    @Test("rooms, presence and registration are jobs of a group")
    func xmppJobs() throws {
        let who = "jid: u%i@x, password: p"
        let scenario = try ScenarioFile(
            """
            groups:
              rooms: { \(who), muc: { rooms: 3, room_size: 4, rate: 10/s, size: 80 } }
              circles: { \(who), clients: 6, presence: { contacts: 2 } }
              accounts: { \(who), clients: 5, registration: { keep: true } }
            """
        ).scenario()
        let kinds: [XMPPLoad.Work] = scenario.groups.compactMap { group in
            if case .xmpp(let options) = group.work { options.kind } else { nil }
        }
        #expect(kinds == [.muc, .presence, .register])
        #expect(scenario.groups.map(\.options.clients) == [12, 6, 5])
        guard case .xmpp(let accounts) = scenario.groups[2].work else { return }
        #expect(accounts.keepsAccounts)
    }
}
