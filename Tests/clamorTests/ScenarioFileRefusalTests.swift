import Foundation
import Scenario
import TestSupport
import Testing
import clamor

@Suite("Stages, load models, variables and includes: what is wrong with them")
struct ScenarioFileRefusalTests {
    typealias Wrong = ScenarioRefusalTests.Wrong

    private static let noSession =
        "offline is for MQTT subscribers with connect: { clean: false, session_expiry: 10m }, whose sessions are kept, "
        + "and no group has any; add one, or leave offline out"
    private static let stageExample = "write it like { name: peak, for: 2m, load: 100% }"
    private static let shapes = "write { from: 100/s, to: 5000/s } or { steps: [1000/s, 2000/s], every: 30s }"

    /// A file with one group that publishes at a rate, and these stages.
    private static func stages(_ name: String, _ stages: String, _ lines: String...) -> Wrong {
        var wrong = Wrong(name, "groups: { a: { publish: { rate: 9/s } } }\nstages:\(stages)\n")
        wrong.lines = lines
        return wrong
    }

    /// The same with these keys of `publish`.
    private static func publish(_ name: String, _ keys: String, _ lines: String...) -> Wrong {
        var wrong = Wrong(name, "groups:\n  a:\n    publish: { \(keys) }\n")
        wrong.lines = lines
        return wrong
    }

    static let stageWrongs = [
        Self.stages(
            "no list",
            " 3",
            "2:9: stages is a text; write a list such as - { name: peak, for: 2m, load: 100% }"
        ),
        Self.stages("none", " []", "2:9: stages is empty; write a list such as - { name: peak, for: 2m, load: 100% }"),
        Self.stages("a word", " [peak]", "2:10: a stage is a text; \(Self.stageExample)"),
        Self.stages(
            "nothing in it",
            " [{}]",
            "2:10: stages: for is missing; \(Self.stageExample)",
            "2:10: stages: name is missing; \(Self.stageExample)"
        ),
        Self.stages("no length", "\n  - { name: a }", "3:5: stages: for is missing; \(Self.stageExample)"),
        Self.stages(
            "a length without its unit",
            "\n  - { name: a, for: 30 }",
            "3:21: stages.for: '30' is not a duration; write it like 10s, 250ms or 2m"
        ),
        Self.stages(
            "no time at all",
            "\n  - { name: a, for: 0 }",
            "3:21: stages.for: '0' is no time; a stage lasts longer than that"
        ),
        Self.stages(
            "an unknown key",
            "\n  - { name: a, for: 1s, laod: 50% }",
            "3:25: stages: unknown key 'laod'; did you mean load? here are name, for, load, warmup, reconnect, offline, clients"
        ),
        Self.stages(
            "a load that is no share",
            "\n  - { name: a, for: 1s, load: half }",
            "3:31: stages.load: 'half' is no part of a load; write it like 50%, from 0% to 10000%"
        ),
        Self.stages(
            "a load below nothing",
            "\n  - { name: a, for: 1s, load: -5% }",
            "3:31: stages.load: '-5%' is no part of a load; write it like 50%, from 0% to 10000%"
        ),
        Self.stages(
            "more than all of the clients",
            "\n  - { name: a, for: 1s, reconnect: 130% }",
            "3:36: stages.reconnect: '130%' is not a share; write it like 0.1%, from 0% to 100%"
        ),
        Self.stages(
            "no truth",
            "\n  - { name: a, for: 1s, warmup: yes }",
            "3:33: stages.warmup: 'yes' is not true or false"
        ),
        Self.stages(
            "a list where one value stands",
            "\n  - { name: [a], for: 1s }",
            "3:13: stages.name is a list; give it one value"
        ),
        Self.stages(
            "a name that is none",
            "\n  - { name: a b, for: 1s }",
            "3:13: stages.name: 'a b' is no name of a stage; use letters, digits, _, - and ."
        ),
        Self.stages(
            "a name that every run has",
            "\n  - { name: drain, for: 1s }",
            "3:13: stages.name: every run has its own drain; give the stage another name"
        ),
        Self.stages(
            "stages of many years",
            "\n  - { name: a, for: 300d }\n  - { name: b, for: 300d }",
            "4:13: stages: up to the end of 'b' they are longer than a year; shorten them"
        ),
        Self.stages(
            "stages without number",
            (0...1_000).map { "\n  - { name: s\($0), for: 1s }" }.joined(),
            "1003:5: stages: this is one more than the 1000 that a run may have; leave some out"
        ),
        Self.stages(
            "a number of clients that is none",
            "\n  - { name: a, for: 1s, clients: half }",
            "3:34: stages.clients: 'half' is not a number of clients; write it like 50% or 200"
        ),
        Self.stages(
            "a share of more than all clients",
            "\n  - { name: a, for: 1s, clients: 150% }",
            "3:34: stages.clients: '150%' is not a number of clients; write it like 50% or 200"
        ),
        Self.stages(
            "nobody",
            "\n  - { name: a, for: 1s, clients: 0 }\n  - { name: b, for: 1s, clients: 0% }",
            "3:34: stages.clients: '0' selects no client; give at least one",
            "4:34: stages.clients: '0%' selects no client; give at least one"
        ),
        Self.stages(
            "more clients than there are",
            "\n  - { name: a, for: 1s, clients: 2 }",
            "3:34: stages.clients: a has 1 client, and 2 are more; write fewer, or raise a.clients"
        ),
        Self.stages(
            "a number of clients beside those that are away",
            "\n  - { name: a, for: 1s, offline: true, clients: 50% }",
            "3:49: stages.clients: absent clients would return with the offline ones; use separate stages"
        ),
        Wrong(
            "a number of clients of several groups",
            "groups: { a: { clients: 9 }, b: { clients: 9 } }\nstages: [{ name: a, for: 1s, clients: 5 }]\n",
            "2:39: stages.clients: a number is that of one group, and there are 2; write it like 50%, or { a: 5 }"
        ),
        Wrong(
            "numbers of clients, also of unknown groups",
            "groups: { sensors: { clients: 9 }, b: { clients: 9 } }\nstages:\n"
                + "  - { name: a, for: 1s, clients: { sensor: 5, b: 10 } }\n"
                + "  - { name: b, for: 1s, clients: { b: 0, sensors: 150% } }\n",
            "3:36: stages.clients: there is no group 'sensor'; did you mean sensors? here are sensors, b",
            "3:50: stages.clients: b has 9 clients, and 10 are more; write fewer, or raise b.clients",
            "4:39: stages.clients.b: '0' selects no client; give at least one",
            "4:51: stages.clients.sensors: '150%' is not a number of clients; write it like 50% or 200"
        ),
        Wrong(
            "a number of clients of those that have accounts made",
            "target: xmpp://127.0.0.1\ngroups: { a: { clients: 9, jid: a%i@b, password: p, tls: off, registration: {} } }\nstages: [{ name: a, for: 1s, clients: 50% }]\n",
            "3:39: stages.clients: accounts are created once, whatever the stage; leave it out"
        ),
        Self.stages(
            "a name twice",
            "\n  - { name: a, for: 1s }\n  - { name: a, for: 2s }",
            "4:13: stages: 'a' occurs twice; give each stage a unique name"
        ),
        Self.stages(
            "nothing that counts",
            "\n  - { name: a, for: 1s, warmup: true }",
            "3:3: stages: all of them are warm-up, so nothing would be measured; add one that is not"
        ),
        Wrong(
            "stages beside a duration and a warm-up",
            "duration: 9s\nwarmup: 1s\ngroups: { a: {} }\nstages: [{ name: a, for: 1s }]\n",
            "1:11: duration: the stages say how long the load lasts; leave duration out",
            "2:9: warmup: with stages a warm-up is one of them; write warmup: true on it"
        ),
        Wrong(
            "a storm beside a stage in which clients come back",
            "groups:\n  a: { storm: 30%@1s }\nstages: [{ name: a, for: 9s, reconnect: 5% }]\n",
            "2:15: a.storm: a stage says reconnect, and the two would interfere; leave one out"
        ),
        Wrong(
            "a churn beside a stage in which clients are away",
            "groups:\n  a: { churn: 3/s, subscribe: [{ filter: x }], connect: { clean: false, session_expiry: 1h } }\nstages: [{ name: a, for: 9s, offline: true }]\n",
            "2:15: a.churn: a stage says offline, and the two would interfere; leave one out"
        ),
        Self.stages(
            "an absence that is no share",
            "\n  - { name: a, for: 1s, offline: most }",
            "3:34: stages.offline: 'most' is not true, false or a share; write it like 40%"
        ),
        Self.stages(
            "an absence of those who come back",
            "\n  - { name: a, for: 1s, offline: true, reconnect: 10% }",
            "3:34: stages.offline: offline clients cannot reconnect; use separate stages"
        ),
        Self.stages(
            "an absence without kept sessions",
            "\n  - { name: a, for: 1s, offline: true }",
            "3:3: stages: \(Self.noSession)"
        ),
        Wrong(
            "an absence of users of XMPP",
            "groups: { a: { jid: u@x, password: p } }\nstages: [{ name: a, for: 1s, offline: 50% }]\n",
            "2:9: stages: \(Self.noSession)"
        ),
        Wrong(
            "an absence that no session lasts",
            "groups:\n  a: { subscribe: [{ filter: x }], connect: { clean: false, session_expiry: 9s } }\nstages: [{ name: away, for: 9s, offline: 50% }]\n",
            "2:77: a.connect.session_expiry: stage 'away' is longer, so nothing would be kept; raise it"
        ),
        Wrong(
            "a load without rates",
            "groups: { a: { publish: { qos: 1 } } }\nstages: [{ name: a, for: 1s, load: 50% }]\n",
            "2:9: stages: load scales rates, and no group has one; give a group publish: { rate: 500/s }, say, or leave load out"
        ),
        Wrong(
            "a threshold on a stage that is not there",
            "groups: { a: {} }\nstages: [{ name: one, for: 1s }]\nthresholds:\n  - \"connect_lag{stage=two} p99 < 1s\"\n",
            "4:5: threshold 'connect_lag{stage=two} p99 < 1s': there is no stage 'two'; the stages are one"
        ),
        Wrong(
            "a threshold on a stage of what has none",
            "groups: { a: { publish: {}, subscribers: 1 } }\nstages: [{ name: one, for: 1s }]\nthresholds: [\"delivery_lost{stage=one} == 0\"]\n",
            "3:14: threshold 'delivery_lost{stage=one} == 0': delivery_lost exists only for the whole run; omit stage="
        ),
    ]

    static let paceWrongs = [
        Self.publish(
            "a shape that is none",
            "rate: { form: 1/s }",
            "3:22: a.publish.rate: steps is missing; \(Self.shapes)",
            "3:24: a.publish.rate: unknown key 'form'; here are steps, every"
        ),
        Self.publish(
            "a ramp without an end",
            "rate: { from: 1/s }",
            "3:22: a.publish.rate: to is missing; \(Self.shapes)"
        ),
        Self.publish(
            "a ramp and steps",
            "rate: { from: 1/s, to: 2/s, every: 1s }",
            "3:44: a.publish.rate: unknown key 'every'; here are from, to, over"
        ),
        Self.publish(
            "a ramp from no rate",
            "rate: { from: slow, to: 2/s }",
            "3:30: a.publish.rate.from: 'slow' is not a rate; write it like 500/s"
        ),
        Self.publish(
            "a ramp from nothing to nothing",
            "rate: { from: 0/s, to: 0/s }",
            "3:22: a.publish.rate: from and to are both 0; one of them must be above"
        ),
        Self.publish(
            "a ramp in no time",
            "rate: { from: 1/s, to: 2/s, over: 0s }",
            "3:50: a.publish.rate.over: '0s' is no time; write it like 30s"
        ),
        Self.publish(
            "steps that are no list",
            "rate: { steps: 5/s, every: 1s }",
            "3:31: a.publish.rate.steps: is no list of rates; write it like [1000/s, 2000/s]"
        ),
        Self.publish(
            "a step that is no rate",
            "rate: { steps: [5/s, x], every: 1s }",
            "3:37: a.publish.rate.steps: 'x' is not a rate; write it like 500/s"
        ),
        Self.publish(
            "steps of nothing",
            "rate: { steps: [0, 0], every: 1s }",
            "3:31: a.publish.rate.steps: all are 0; one of them must be above"
        ),
        Self.publish(
            "steps without their length",
            "rate: { steps: [1/s] }",
            "3:22: a.publish.rate: every is missing; \(Self.shapes)"
        ),
        Self.publish(
            "arrivals that are none",
            "rate: 1/s, arrivals: random",
            "3:37: a.publish.arrivals: 'random' is not even or poisson"
        ),
        Self.publish(
            "arrivals without a rate",
            "arrivals: poisson",
            "3:16: a: arrivals goes with a rate; add rate: 500/s, say; without one an operation is due when its client can send it"
        ),
        Self.publish(
            "bursts without a rate",
            "burst: 5",
            "3:16: a: burst goes with a rate; add rate: 500/s, say; without one an operation is due when its client can send it"
        ),
        Self.publish(
            "a burst of nothing",
            "rate: 5/s, burst: 0",
            "3:34: a.publish.burst: '0' is not a whole number of 1 to 1000000"
        ),
        Self.publish(
            "bursts at random times",
            "rate: 5/s, burst: 2, arrivals: poisson",
            "3:37: a: arrivals: poisson and burst do not go together; leave one of the two out"
        ),
        Self.publish(
            "think time with a rate",
            "rate: 5/s, think: 1s",
            "3:27: a: think is for a closed loop, and this group has a rate; leave one of the two out"
        ),
        Self.publish(
            "think time with a window",
            "think: 1s, window: 8",
            "3:16: a: a client with a think time has one operation in flight, but window is 8; leave window out"
        ),
        Self.publish(
            "think time without its unit",
            "think: 100",
            "3:23: a.publish.think: '100' is not a duration; write it like 10s, 250ms or 2m"
        ),
        Self.publish(
            "steps that are never reached",
            "rate: { steps: [1/s, 2/s, 3/s], every: 5s }",
            "3:31: a: the load ends after 10s, before this rate is reached; make it longer"
        ),
        Self.publish(
            "a ramp that is never climbed",
            "rate: { from: 1/s, to: 2/s, over: 11s }",
            "3:22: a: the load ends after 10s, before this rate is reached; make it longer"
        ),
        Self.publish(
            "steps of many years",
            "rate: { steps: [1/s, 2/s], every: 300d }",
            "3:31: a.publish.rate.steps: together they are longer than a year; shorten them"
        ),
        Wrong(
            "Poisson arrivals and a ramp without an end",
            "duration: 0\ngroups:\n  a:\n    publish: { rate: { from: 1/s, to: 2/s }, arrivals: poisson }\n",
            "4:22: a: a load without an end has no ramp; add over: 1m, say",
            "4:46: a: arrivals: poisson needs an end of the load; give a duration"
        ),
    ]

    static let variableWrongs = [
        Wrong(
            "a variable without a value",
            "groups:\n  a: { clients: \"${NOBODY_HAS_IT}\" }\n",
            "2:17: ${NOBODY_HAS_IT} has no value; give --set NOBODY_HAS_IT=..., or write ${NOBODY_HAS_IT:-value}"
        ),
        Wrong(
            "a variable that is none",
            "groups:\n  a: { clients: '${1}' }\n",
            "2:17: a variable's name is letters, digits and _; write ${NAME} or ${NAME:-value}"
        ),
        Wrong(
            "a variable that does not end",
            "groups:\n  a: { clients: \"${N\" }\n",
            "2:17: a ${ has no '}'; write ${NAME}, or $${ for the signs themselves"
        ),
        Wrong(
            "a value that does not fit, where it is used",
            "groups:\n  a: { clients: \"${N:-many}\" }\n",
            "2:17: a.clients: 'many' is not a whole number of 1 to 10000000"
        ),
        Wrong(
            "defaults that are none",
            "vars: 3\ngroups: { a: {} }\n",
            "1:7: vars is a text; write names and values, such as { RATE: 5000/s }"
        ),
        Wrong(
            "a variable without quotes in a mapping on one line",
            "groups:\n  a: { clients: ${N:-3} }\n",
            "2:18: not YAML: while parsing a flow mapping did not find expected ',' or '}'; write \"${NAME}\" in quotes"
        ),
        Wrong(
            "a default's name",
            "vars: { a-b: 3 }\ngroups: { a: {} }\n",
            "1:9: vars: 'a-b' is no name; use letters, digits and _"
        ),
        Wrong(
            "a default that is a list",
            "vars: { A: [3] }\ngroups: { a: {} }\n",
            "1:12: vars.A is a list; give it one value"
        ),
    ]

    static let identityWrongs = [
        Wrong(
            "the same client id in two groups",
            "groups:\n  a: { client_id: dev }\n  b: { client_id: dev }\n",
            "3:19: b.client_id: 'dev' is a client of a too, and a server lets one of them in; give the groups different names or start_number"
        ),
        Wrong(
            "client ids that overlap",
            "groups:\n  a: { clients: 10, prefix: p }\n  b: { clients: 10, prefix: p, start_number: 9 }\n",
            "3:29: b.prefix: 'p-conn-10' is a client of a too, and a server lets one of them in; give the groups different names or start_number"
        ),
        Wrong(
            "the same JID in two groups",
            "groups:\n  a: { jid: u%i@x/r, password: p, clients: 3 }\n  b: { jid: u%i@x/r, password: p, start_number: 2 }\n",
            "3:13: b.jid: 'u3@x/r' is a client of a too, and a server lets one of them in; give the groups different names or start_number"
        ),
    ]

    @Test(
        "each problem names line, column, what was wrong and what would be right",
        arguments: stageWrongs + paceWrongs + variableWrongs + identityWrongs
    )
    func refusal(_ wrong: Wrong) throws { try wrong.check() }

    @Test("with the cases beside these, over 60 mistakes are held")
    func count() {
        let all =
            ScenarioRefusalTests.wrongs + Self.stageWrongs + Self.paceWrongs + Self.variableWrongs + Self.identityWrongs
        #expect(Set(all.map(\.text)).count >= 60)
    }

    @Test("the flags that stages leave no room for are refused as flags")
    func flags() throws {
        let file = try ScenarioFile("groups: { a: {} }\nstages: [{ name: a, for: 1s }]\n")
        for flag in ["--duration", "--warmup"] {
            guard case .refused(let lines) = file.parsed("\(flag) 5s") else {
                Issue.record("is taken")
                continue
            }
            let words = "the stages of \(file.path) say how long the load lasts; leave it out"
            #expect(lines == ["clamor run: \(flag): \(words)"])
        }
    }

    // MARK: - Several files

    @Test("a circle of includes is reported where it closes")
    func circle() throws {
        let folder = try ScratchFolder()
        let first = try folder.write("include: b.yaml\ngroups: { a: {} }\n", to: "a.yaml")
        let second = try folder.write("include: [c.yaml]\n", to: "b.yaml")
        let third = try folder.write("name: x\ninclude: a.yaml\n", to: "c.yaml")
        guard case .wrong(let lines) = Invocation.parse(["run", first]) else {
            Issue.record("is taken")
            return
        }
        #expect(
            lines == [
                "\(third):2:10: include: \(first) includes \(second) includes \(third) includes \(first); leave one of them out"
            ]
        )
        guard case .wrong(let own) = Invocation.parse(["run", try folder.write("include: s.yaml\n", to: "s.yaml")])
        else {
            Issue.record("is taken")
            return
        }
        #expect(own.contains { $0.contains("s.yaml:1:10: include: ") })
    }

    @Test("a problem is reported with its file")
    func places() throws {
        let folder = try ScratchFolder()
        let main = try folder.write("include: more.yaml\ngroups:\n  a: { clients: 0 }\n  b: {}\n", to: "main.yaml")
        let more = try folder.write("seed: x\ngroups:\n  b: { clients: 2 }\n  c: { clients: none }\n", to: "more.yaml")
        guard case .wrong(let lines) = Invocation.parse(["run", main]) else {
            Issue.record("is taken")
            return
        }
        #expect(
            lines == [
                "\(main):3:17: a.clients: '0' is not a whole number of 1 to 10000000",
                "\(main):4:3: 'b' is defined in \(more) too; rename one of them",
                "\(more):1:7: seed: 'x' is not a whole number of 0 or more",
                "\(more):4:17: c.clients: 'none' is not a whole number of 1 to 10000000",
            ]
        )
    }

    @Test("a file that is not there, and what is no file")
    func missing() throws {
        let folder = try ScratchFolder()
        for (include, words) in [
            (
                "none.yaml",
                "1:10: include: cannot read \(folder.path("none.yaml")); give its path as seen from this file"
            ),
            ("{ a: b }", "1:10: include is a mapping; name a file, or a list of them"),
        ] {
            let path = try folder.write("include: \(include)\ngroups: { a: {} }\n", to: "main.yaml")
            guard case .wrong(let lines) = Invocation.parse(["run", path]) else {
                Issue.record("is taken")
                continue
            }
            #expect(lines == ["\(path):\(words)"])
        }
    }

    @Test("nothing of an included file outside the directory is shown", arguments: ["../shadow", "PARENT/shadow"])
    func outside(_ include: String) throws {
        let folder = try ScratchFolder()
        _ = try folder.write("root:hash-7:19000:0\nkey-8: hash-9\n", to: "shadow")
        try FileManager.default.createDirectory(atPath: folder.path("own"), withIntermediateDirectories: true)
        let given = include.replacingOccurrences(of: "PARENT", with: folder.path(""))
        let path = try folder.write("include: \(given)\ngroups: { a: {} }\n", to: "own/main.yaml")
        guard case .wrong(let lines) = Invocation.parse(["run", path]) else {
            Issue.record("is taken")
            return
        }
        #expect(!lines.isEmpty)
        for word in ["root", "hash-7", "key-8", "hash-9"] { #expect(!lines.joined().contains(word), "\(lines)") }
    }
}
