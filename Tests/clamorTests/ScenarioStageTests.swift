import LoadEngine
import NIOCore
import RunControl
import Scenario
import Testing
import clamor

@Suite("Stages and load models of a scenario file")
struct ScenarioStageTests {
    private static let stages = """
        groups:
          a:
            clients: 10
            publish: { qos: 1, rate: 100/s }
          b:
            publish: { interval: 10ms }
            clients: 5
        stages:
          - { name: settle, for: 10s, load: 20%, warmup: true }
          - { name: peak, for: 20s }
          - { name: storm, for: 30s, load: 150%, reconnect: 30% }
        thresholds:
          - "publish_ack_duration{group=a,stage=peak} p99 < 1s"
        """

    @Test("stages are the load of every group, and its length")
    func stages() throws {
        let scenario = try ScenarioFile(Self.stages).scenario()
        #expect(scenario.common.duration == 60_000_000_000)
        #expect(scenario.common.warmup == 0)
        for options in scenario.groups.map(\.options) {
            #expect(options.stages.map(\.name) == ["settle", "peak", "storm"])
            #expect(options.stages.map(\.load) == [0.2, 1, 1.5])
            #expect(options.stages.map(\.isWarmup) == [true, false, false])
            #expect(options.storms.map(\.share) == [0.3])
            #expect(options.storms.map(\.at) == [.seconds(30)])
            #expect(options.storms.map(\.over) == [.seconds(30)])
        }
        let plan = scenario.groups[0].options.plan(targets: 1, seed: 1)
        #expect(plan.measure == .seconds(60))
        #expect(plan.stages.map(\.start) == [.zero, .seconds(10), .seconds(30)])
        #expect(plan.stages.map(\.isMeasured) == [false, true, true])
        // 100/s for each of 10 s, 20 s and 30 s, at a fifth, as it is, and by half more.
        for (group, operations) in zip(scenario.groups, [200 + 2_000 + 4_500, 1_000 + 10_000 + 22_500]) {
            guard case .open(.shaped(let load)) = group.options.plan(targets: 1, seed: 1).pace else {
                Issue.record("\(group.name) has no shape")
                continue
            }
            #expect(abs(load.curve.total - Double(operations)) < 1e-6)
        }
    }

    @Test("offline applies only to subscribers whose sessions are kept")
    func offline() throws {
        let subscribe = "subscribe: [{ filter: x, qos: 1 }]"
        let scenario = try ScenarioFile(
            """
            groups:
              kept: { \(subscribe), connect: { clean: false, session_expiry: 1h } }
              old: { \(subscribe), connect: { clean: false, protocol: 4 } }
              pairs: { publish: { rate: 5/s }, subscribers: 1, connect: { clean: false, session_expiry: 1h } }
              clean: { \(subscribe) }
              short: { \(subscribe), connect: { clean: false } }
              writers: { publish: { rate: 5/s }, connect: { clean: false, session_expiry: 1h } }
            stages: [{ name: up, for: 5s }, { name: away, for: 9s, offline: 40% }, { name: back, for: 3s }]
            """
        ).scenario()
        let storm = DeparturePlan.Storm(share: 0.4, at: .seconds(5), cuts: false, until: .seconds(14))
        for group in scenario.groups {
            let isAway = ["kept", "old", "pairs"].contains(group.name)
            #expect(group.options.storms == (isAway ? [storm] : []), "\(group.name)")
        }
        #expect(scenario.explanation.contains("\n  stage away: 9s, load 100%, 40% of the subscribers are away\n"))
    }

    @Test("a stage's clients are a share of each group, or a number of the only one; --check tells them")
    func turnouts() throws {
        let stages =
            "stages: [{ name: few, for: 5s, clients: 10% }, { name: same, for: 2s, clients: 10% }, { name: all, for: 9s }]"
        let scenario = try ScenarioFile(
            """
            groups:
              senders: { clients: 50, publish: { rate: 5/s }, subscribers: 3 }
              readers: { clients: 4, subscribe: [{ filter: x }] }
            \(stages)
            """
        ).scenario()
        typealias Attendance = DeparturePlan.Attendance
        let plans = scenario.groups.map { $0.options.plan(targets: 1, seed: 1).departures.attendances }
        #expect(plans[0] == [Attendance(at: .zero, present: 5), Attendance(at: .seconds(7), present: 50)])
        // At least one.
        #expect(plans[1] == [Attendance(at: .zero, present: 1), Attendance(at: .seconds(7), present: 4)])
        let words = "5 of 50 clients of senders and 1 of 4 clients of readers take part"
        #expect(scenario.explanation.contains("\n  stage few: 5s, load 100%, \(words)\n"))
        #expect(scenario.explanation.contains("\n  stage all: 9s, load 100%\n"))
        let each = try ScenarioFile(
            """
            groups:
              senders: { clients: 50, publish: { rate: 5/s }, subscribers: 3 }
              readers: { clients: 4, subscribe: [{ filter: x }] }
              others: { clients: 7 }
            stages: [{ name: all, for: 5s }, { name: few, for: 2s, clients: { senders: 20, readers: 50% } }]
            """
        ).scenario()
        #expect(
            each.groups.map { $0.options.plan(targets: 1, seed: 1).departures.attendances } == [
                [Attendance(at: .seconds(5), present: 20)], [Attendance(at: .seconds(5), present: 2)], [],
            ]
        )
        let named = "20 of 50 clients of senders and 2 of 4 clients of readers take part"
        #expect(each.explanation.contains("\n  stage few: 2s, load 100%, \(named)\n"))
        let one = try ScenarioFile(
            "groups: { a: { clients: 8, publish: { rate: 5/s } } }\nstages: [{ name: up, for: 1s }, { name: down, for: 1s, clients: 3 }]\n"
        ).scenario()
        #expect(
            one.groups[0].options.plan(targets: 1, seed: 1).departures.attendances == [
                Attendance(at: .seconds(1), present: 3)
            ]
        )
        #expect(one.explanation.contains("\n  stage down: 1s, load 100%, 3 of 8 clients take part\n"))
    }

    @Test("--check tells the stages")
    func explanation() throws {
        let text = try ScenarioFile(Self.stages).scenario().explanation
        #expect(text.contains("\n  stage settle: 10s, load 20%, not measured\n"))
        #expect(text.contains("\n  stage peak: 20s, load 100%\n"))
        #expect(text.contains("\n  stage storm: 30s, load 150%, 30% of the clients come back\n"))
        #expect(text.hasPrefix("scenario: 2 groups, 15 clients, 50s measured, warm-up 10s, drain"))
    }

    private func plan(_ publish: String, _ rest: String = "duration: 10s", seed: UInt64 = 1) throws -> LoadPlan {
        let scenario = try ScenarioFile("\(rest)\ngroups: { a: { clients: 4, publish: { \(publish) } } }\n").scenario()
        return scenario.groups[0].options.plan(targets: 1, seed: seed)
    }

    /// Operations of each second, by the schedule of the plan.
    private func seconds(_ plan: LoadPlan, _ count: Int = 10) throws -> [UInt64] {
        guard case .open(let pace) = plan.pace else { throw ScenarioFile.Unexpected(what: "\(plan.pace)") }
        let schedule = OperationSchedule(pace: pace, clients: plan.operators)
        let counts = (0...count).map { schedule.count(dueBefore: .seconds(Int64($0))) }
        return zip(counts.dropFirst(), counts).map { $0 - $1 }
    }

    @Test("a plain rate is a plain rate")
    func plain() throws {
        #expect(try self.plan("rate: 50/s").pace == .open(.rate(perSecond: 50)))
        #expect(try self.plan("interval: 50ms").pace == .open(.interval(.milliseconds(50))))
    }

    @Test(
        "each model asks in each second for what the file says",
        arguments: [
            ("rate: { from: 0/s, to: 1000/s }", "duration: 10s", (0..<10).map { 50 + 100 * $0 }),
            (
                "rate: { from: 100/s, to: 500/s, over: 4s }", "duration: 10s",
                [150, 250, 350, 450] + Array(repeating: 500, count: 6)
            ),
            (
                "rate: { steps: [100/s, 0, 300/s], every: 2s }", "duration: 10s",
                [100, 100, 0, 0] + Array(repeating: 300, count: 6)
            ),
            ("rate: 100/s, burst: 50", "duration: 10s", Array(repeating: 100, count: 10)),
            (
                "rate: { from: 0/s, to: 1000/s }",
                "stages: [{ name: a, for: 5s, load: 200% }, { name: b, for: 5s, load: 50% }]",
                [100, 300, 500, 700, 900, 275, 325, 375, 425, 475]
            ),
            (
                "interval: 40ms", "stages: [{ name: a, for: 5s }, { name: b, for: 5s, load: 0% }]",
                Array(repeating: 100, count: 5) + Array(repeating: 0, count: 5)
            ),
        ] as [(String, String, [Int])]
    )
    func models(publish: String, rest: String, asked: [Int]) throws {
        for (second, count) in try self.seconds(self.plan(publish, rest)).enumerated() {
            #expect(abs(Int(count) - asked[second]) <= 1, "second \(second)")
        }
    }

    @Test("Poisson arrivals follow from the seed, and no two groups have the same")
    func poisson() throws {
        let publish = "rate: 1000/s, arrivals: poisson"
        let counts = try self.seconds(self.plan(publish))
        #expect(counts.allSatisfy { abs(Int($0) - 1_000) < 150 })
        #expect(Set(counts).count > 3)
        #expect(try self.plan(publish).pace == self.plan(publish).pace)
        #expect(try self.plan(publish).pace != self.plan(publish, seed: 2).pace)
        let group = "{ publish: { \(publish) } }"
        let scenario = try ScenarioFile("groups: { a: \(group), b: \(group) }\n").scenario()
        let paces = scenario.groups.map { $0.options.plan(targets: 1, seed: 1).pace }
        #expect(paces[0] != paces[1])
    }

    @Test("a client with a think time has one operation in flight")
    func think() throws {
        let plan = try self.plan("qos: 1, think: 200ms")
        #expect(plan.pace == .closed)
        #expect(plan.think == .milliseconds(200))
        let scenario = try ScenarioFile("groups: { a: { publish: { qos: 1, think: 1s } } }\n").scenario()
        #expect(scenario.groups[0].options.window == 1)
        #expect(scenario.explanation.contains("closed loop, window 1, 1s to think"))
    }
}
