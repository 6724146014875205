import Measurement
import RunResult
import Testing

@Suite("The run in one sentence")
struct FindingsTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let sentence: String
        /// Kind and second of each event, in order.
        let events: [String]
        let run: FindingRun

        init(_ name: String, _ sentence: String, _ events: [String], _ run: FindingRun) {
            self.testDescription = name
            self.sentence = sentence
            self.events = events
            self.run = run
        }

        /// Without an event.
        init(_ name: String, _ sentence: String, _ run: FindingRun) { self.init(name, sentence, [], run) }
    }

    /// A run of 1,000 messages per second, changed by `body`.
    static func run(
        load: Int = 30,
        rate: Double = 1000,
        stages: [(String, Int, load: Double)] = [],
        warmup: Int = 0,
        _ body: (inout FindingRun) -> Void = { _ in }
    ) -> FindingRun {
        var run = FindingRun(load: load, warmup: warmup, stages: stages)
        let loads = stages.flatMap { stage in (0..<stage.1).map { _ in stage.load } }
        run.messages { second in rate * (loads.isEmpty ? 1 : loads[second - 1]) }
        body(&run)
        return run
    }

    static let stages: [(String, Int, load: Double)] = [("settle", 10, 0.2), ("peak", 20, 1), ("calm", 10, 0.2)]

    static let quiet: [Case] = [
        Case("a clean run with noise", "nothing broke", run()),
        Case("an hour", "nothing broke", run(load: 3600)),
        Case("stages with loads of their own", "nothing broke", run(stages: stages)),
        Case(
            "a stage without load",
            "nothing broke",
            run(stages: [("on", 10, 1), ("off", 10, 0), ("on again", 10, 1)])
        ),
        Case("a warm-up", "nothing broke", run(warmup: 5)),
        Case("one message in 5 s", "nothing broke", run(load: 60, rate: 0) { $0.rare(every: 5) }),
        Case(
            "one message in 5 s, answered in the next second",
            "nothing broke",
            run(load: 60, rate: 0) { $0.rare(every: 5, answeredAfter: 1) }
        ),
        Case("a load that only connects", "nothing broke", FindingRun()),
        Case(
            "a slow second of one message",
            "nothing broke",
            run { $0.latency("publish_ack_duration", at: 9..<10, p50: 0.001, p99: 0.004, max: 0.9) }
        ),
        Case(
            "a storm that the plan has",
            "nothing broke",
            ["storm 12"],
            run { run in
                run.set("disconnects", ["reason": "storm"], .counter) { $0 == 12 ? 3 : 0 }
                run.change("clients", at: 12..<14) { _ in 7 }
            }
        ),
    ]

    static let stalls: [Case] = [
        Case(
            "of a second, within an hour",
            "answers stopped at 1234 s for 1 s with 1,000 messages in flight; 0 lost",
            ["stall 1234"],
            run(load: 3600) { $0.stall(at: 1234, for: 1) }
        ),
        Case(
            "of a second that begins in the middle of one",
            "answers stopped at 1234 s for 1 s with 500 messages in flight; 0 lost",
            ["stall 1234"],
            run(load: 3600) { $0.stall(at: 1234.5, for: 1) }
        ),
        Case(
            "that begins with a second, so that its few results are late ones",
            "answers stopped at 14 s for 1 s with 997 messages in flight; 0 lost",
            ["stall 14"],
            run {
                $0.stall(at: 14.003, for: 1)
                $0.latency("publish_ack_duration", at: 14..<15, p50: 0.02, p99: 0.03, max: 0.03)
                $0.latency("delivery_duration", at: 14..<15, p50: 0.02, p99: 0.03, max: 0.03)
            }
        ),
        Case(
            "of two seconds, without a silent one",
            "answers stopped at 14 s for 1.96 s with 980 messages in flight; 0 lost",
            ["stall 14"],
            run { $0.stall(at: 14.02, for: 1.96) }
        ),
        Case(
            "of five seconds in a stage",
            "answers stopped at 14 s in stage peak for 5 s with 5,000 messages in flight; 0 lost",
            ["stall 14"],
            run(stages: stages) { $0.stall(at: 14, for: 5) }
        ),
        Case(
            "of deliveries alone",
            "deliveries stopped at 14 s for 3 s; 0 lost",
            ["stall 14"],
            run { run in
                run.change("received", at: 14..<17) { _ in 0 }
                run.latency("delivery_duration", at: 14..<17, p50: .nan, p99: .nan, max: .nan)
            }
        ),
        Case(
            "of the generator itself",
            "nothing broke",
            ["generator 14"],
            run { run in
                run.stall(at: 14, for: 2)
                run.set("loop_lag", ["loop": "0"]) { second in
                    FindingRun.Latency(count: 900, p50: 0.0001, p99: 0.001, max: second == 16 ? 1.9 : 0.002)
                }
            }
        ),
        Case(
            "to one of two groups",
            "acks to a stopped at 14 s for 3 s with 3,000 messages in flight; 0 lost",
            ["stall 14"],
            run(rate: 0) { run in
                run.messages({ _ in 1000 }, group: "a")
                run.messages({ _ in 1000 }, group: "b")
                run.change("publish_acked", ["group": "a", "qos": "1"], at: 14..<17) { _ in 0 }
            }
        ),
        Case(
            "of requests over XMPP",
            "answers stopped at 14 s for 3 s with 300 messages in flight; 0 lost",
            ["stall 14"],
            xmpp { $0.stall(at: 14, for: 3) }
        ),
    ]

    static func xmpp(_ body: (inout FindingRun) -> Void) -> FindingRun {
        var run = FindingRun()
        let load = run.load
        for name in ["stanza_offered", "stanza_sent", "stanza_answered"] {
            run.set(name, ["stanza": "iq"], .counter) { load.contains($0) ? 100 : 0 }
        }
        run.latencies("iq_duration", ["request": "ping"], 0.002) { load.contains($0) ? 100 : 0 }
        body(&run)
        return run
    }

    static let objectives: [Case] = [
        Case(
            "that failed",
            "delivery p99 broke its objective at 14 s in stage peak: 412 ms, over 100 ms, 6 ms before, for 9 s",
            ["threshold 14", "change 14"],
            run(stages: stages) { run in
                run.latency("delivery_duration", at: 1..<14, p50: 0.0015, p99: 0.006, max: 0.02)
                run.latency("delivery_duration", at: 14..<23, p50: 0.08, p99: 0.412, max: 0.5)
                run.threshold("delivery_duration p99 < 100ms", ok: false, value: 0.41)
            }
        ),
        Case(
            "that held, but not in every second",
            "the objective delivery_duration p99 < 100ms held, though not at 14 s: 412 ms, over 100 ms, 6 ms before, for 1 s",
            ["threshold 14"],
            run { run in
                run.latency("delivery_duration", at: 1..<14, p50: 0.0015, p99: 0.006, max: 0.02)
                run.latency("delivery_duration", at: 14..<15, p50: 0.002, p99: 0.412, max: 0.5)
                run.threshold("delivery_duration p99 < 100ms", ok: true, value: 0.05)
            }
        ),
        Case(
            "that failed while some had no answer",
            "delivery p99 broke its objective at 14 s: 412 ms or more, over 100 ms, 6 ms before, for 9 s",
            ["threshold 14", "change 14"],
            run { run in
                run.latency("delivery_duration", at: 1..<14, p50: 0.0015, p99: 0.006, max: 0.02)
                run.latency("delivery_duration", at: 14..<23, p50: 0.08, p99: 0.412, max: 0.5)
                run.bound("delivery_duration", at: 15)
                run.threshold("delivery_duration p99 < 100ms", ok: false, value: 0.41)
            }
        ),
        Case(
            "that failed by a stall, and not by a little before it",
            "answers stopped at 14 s for 2 s with 2,000 messages in flight; 0 lost",
            ["threshold 5", "stall 14", "threshold 16"],
            run { run in
                run.latency("delivery_duration", at: 5..<6, p50: 0.002, p99: 0.11, max: 0.12)
                run.stall(at: 14, for: 2)
                run.threshold("delivery_duration p99 < 100ms", ok: false, value: 1.5)
            }
        ),
        Case(
            "of a figure that no second has",
            "the objective publish_acked rate >= 2000/s failed: 1,000/s",
            run { $0.threshold("publish_acked rate >= 2000/s", ok: false, value: 1000) }
        ),
    ]

    static let connections: [Case] = [
        Case(
            "lost",
            "4 of 10 clients lost the connection at 9 s (reset); 0 lost",
            ["storm 9"],
            run { $0.set("disconnects", ["reason": "reset"], .counter) { $0 == 9 ? 4 : 0 } }
        ),
        Case(
            "an error",
            "error PUBACK 0x97 at 9 s, the first of 12, such as: quota exceeded",
            ["error 9"],
            run { $0.error("PUBACK 0x97", 12, at: 9, example: "quota exceeded") }
        ),
        Case(
            "losses",
            "12 of 30,000 messages were lost (violated); the first: message 42 of ops-3 to device-7",
            run { run in
                run.record.ledger.lost = ["violated": 12]
                var example = LedgerExample(finding: .lost, cause: "violated", qos: 1)
                (example.sequence, example.publisher, example.subscriber) = (42, "ops-3", "device-7")
                run.record.ledger.examples = [example]
            }
        ),
        Case(
            "no answer to some",
            "4,211 of 30,000 messages were not answered",
            run { ($0.record.books[0].outstanding, $0.record.books[0].notSent) = (4_211, 3_411) }
        ),
        Case("no answer to one", "1 of 30,000 messages was not answered", run { $0.record.books[0].outstanding = 1 }),
        Case(
            "what was not sent",
            "2,439 of 30,000 messages were not sent",
            run { ($0.record.books[0].outstanding, $0.record.books[0].notSent) = (2_439, 2_439) }
        ),
        Case(
            "deliveries that did not come, whatever the cause",
            "5 of 30,000 deliveries had not come when the drain ended",
            run { $0.record.books[0].deliveryOutstanding = 5 }
        ),
        Case(
            "no answer to some before an objective that nothing dates",
            "12 of 30,000 messages were not answered",
            run { run in
                run.record.books[0].outstanding = 12
                run.threshold("error_rate < 0.1%", ok: false, value: 0.4)
            }
        ),
        Case(
            "what came twice where it must not, and out of order",
            "1 message came twice at QoS 2; 40 messages came out of order",
            run { run in
                run.count("delivery_duplicated", ["qos": "1"], 7)
                run.count("delivery_duplicated", ["qos": "2"], 1)
                run.count("delivery_reordered", ["qos": "1"], 40)
            }
        ),
        Case(
            "connects and sends that the server let wait",
            "connects took 2 s (p99); sends were held back for 1.8 s (p99)",
            run { run in
                run.duration("connect_duration", ["phase": "total"], 2)
                run.duration("publish_blocked_duration", ["qos": "0"], 1.8)
            }
        ),
        Case(
            "a connect within a second",
            "nothing broke",
            run { $0.duration("connect_duration", ["phase": "total"], 0.9) }
        ),
        Case(
            "messages that came back",
            "3 stanzas came back as an error",
            run { $0.count("stanza_refused", ["stanza": "message"], 3) }
        ),
        Case(
            "an objective that nothing decides",
            "the objective publish_ack_duration p99.9 < 10s is undecided: 6 s or more",
            run { run in
                let expression = "publish_ack_duration p99.9 < 10s"
                var result = ThresholdResult(expression: expression, state: .undecided, value: 6)
                result.isBound = true
                run.record.thresholds.append(result)
            }
        ),
        Case(
            "a stall, and what it left",
            "answers stopped at 14 s for 5 s with 5,000 messages in flight; 0 lost; 12 of 30,000 messages were not answered",
            ["stall 14"],
            run { run in
                run.stall(at: 14, for: 5)
                run.record.books[0].outstanding = 12
            }
        ),
        Case(
            "no acknowledgement",
            "no message was acknowledged: 30,000 were sent",
            run { run in
                run.change("publish_acked", at: 1..<31) { _ in 0 }
                run.change("received", at: 1..<31) { _ in 0 }
            }
        ),
        Case(
            "what broke first, not what came after it",
            "4 of 10 clients lost the connection at 9 s (reset); 0 lost",
            ["storm 9", "stall 14"],
            run { run in
                run.set("disconnects", ["reason": "reset"], .counter) { $0 == 9 ? 4 : 0 }
                run.stall(at: 14, for: 5)
            }
        ),
    ]

    static func verdict(_ state: Verdict.State, _ code: String, _ text: String) -> Verdict {
        var verdict = Verdict()
        verdict.add(state, Verdict.Reason(code: code, text: text))
        return verdict
    }

    static let verdicts: [Case] = [
        Case(
            "no client",
            "no client connected: connection refused",
            ["error 0"],
            {
                var run = FindingRun(load: 0)
                run.connected(0)
                run.record.verdict = verdict(.aborted, "no-connection", "every connect attempt failed")
                run.error("refused", 10, at: 0, example: "connection refused")
                return run
            }()
        ),
        Case(
            "no client was let in",
            "no client could take part in the load: SUBACK refused: not authorized",
            ["error 0"],
            {
                var run = FindingRun(load: 0)
                run.record.population?.up = 0
                run.record.verdict = verdict(.aborted, "no-connection", "no client could take part in the load")
                run.error("suback 0x87", 10, at: 0, example: "SUBACK refused: not authorized")
                return run
            }()
        ),
        Case(
            "all connections",
            "all connections were lost at 9 s and none came back: reset",
            ["storm 9"],
            run { run in
                run.set("disconnects", ["reason": "reset"], .counter) { $0 == 9 ? 10 : 0 }
                run.record.verdict = verdict(
                    .aborted,
                    "connections-lost",
                    "all connections were lost and none came back: reset"
                )
            }
        ),
        Case(
            "a signal",
            "a signal ended the run at 31 s",
            run { $0.record.verdict = verdict(.aborted, "interrupted", "a signal ended the run before its time") }
        ),
        Case(
            "a signal after a stall",
            "a signal ended the run at 31 s; before that, answers stopped at 14 s for 5 s with 5,000 messages in flight; 0 lost",
            ["stall 14"],
            run { run in
                run.stall(at: 14, for: 5)
                run.record.verdict = verdict(.aborted, "interrupted", "a signal ended the run before its time")
            }
        ),
        Case(
            "books that do not balance, before a stall",
            "the figures do not reconcile: QoS 1: 3 is not 4 [books]",
            ["stall 14"],
            run { run in
                run.stall(at: 14, for: 5)
                run.record.verdict = verdict(.unreconciled, "books", "QoS 1: 3 is not 4")
            }
        ),
        Case(
            "a generator that was late, before a stall",
            "answers stopped at 14 s for 5 s with 5,000 messages in flight; 0 lost; the generator was the limit from 7 s "
                + "on: sends began too late [schedule-lag]",
            ["generator 7", "stall 14"],
            run { run in
                run.stall(at: 14, for: 5)
                run.record.verdict = verdict(.generatorLimited, "schedule-lag", "sends began too late")
                run.set("schedule_lag", [:]) { second in
                    FindingRun.Latency(count: 1000, p50: 0.0001, p99: second < 7 ? 0.001 : 0.02, max: 0.03)
                }
            }
        ),
        Case(
            "a generator that ran out of ports",
            "the generator was the limit: 12 connects found no free local port [local-ports]",
            run { run in
                run.record.verdict = verdict(
                    .generatorLimited,
                    "local-ports",
                    "12 connects found no free local port"
                )
            }
        ),
        Case(
            "a host that other work had",
            "the host was the limit: in 9 of 9 seconds it had no idle CPU [host-full]",
            run { run in
                run.record.verdict = verdict(.generatorLimited, "host-full", "in 9 of 9 seconds it had no idle CPU")
            }
        ),
    ]

    @Test("nothing broke", arguments: quiet)
    func noFalseAlarm(_ item: Case) { self.check(item) }

    @Test("a stall has its second, its stage and its length", arguments: stalls)
    func stalled(_ item: Case) { self.check(item) }

    @Test("an objective has its figure, and the level before", arguments: objectives)
    func missed(_ item: Case) { self.check(item) }

    @Test("connections and messages that were lost", arguments: connections)
    func lost(_ item: Case) { self.check(item) }

    @Test("a verdict comes before any statement on the server", arguments: verdicts)
    func judged(_ item: Case) { self.check(item) }

    private func check(_ item: Case) {
        let findings = item.run.findings
        #expect(findings.sentence == item.sentence)
        #expect(findings.events.map { "\($0.kind) \($0.second)" } == item.events)
        #expect(findings.events.map(\.number) == Array(1..<(findings.events.count + 1)))
        if let evidence = findings.evidence {
            #expect(findings.events.contains { $0.number == evidence })
        }
    }
}

@Suite("What every summary says of a run")
struct FindingFiguresTests {
    static let share: [(String, @Sendable (inout FindingRun) -> Void, Double?)] = [
        ("no latency threshold", { $0.threshold("delivery_lost == 0", ok: true, value: 0) }, nil),
        ("all seconds", { $0.threshold("delivery_duration p99 < 100ms", ok: true, value: 0.005) }, 1),
        (
            "three seconds over the limit",
            { run in
                run.threshold("delivery_duration p99 < 100ms", ok: true, value: 0.05)
                run.latency("delivery_duration", at: 5..<8, p50: 0.01, p99: 0.2, max: 0.3)
            }, 0.9
        ),
        (
            "a stall is not within an objective",
            { run in
                run.threshold("delivery_duration p99 < 10s", ok: true, value: 0.05)
                run.stall(at: 5, for: 3)
            }, 0.9
        ),
        (
            "the maximum proves that p99.9 held",
            { $0.threshold("delivery_duration p99.9 < 100ms", ok: true, value: 0.05) }, 1
        ),
        (
            "p99.9 between p99 and the maximum",
            { run in
                run.threshold("delivery_duration p99.9 < 100ms", ok: true, value: 0.05)
                run.latency("delivery_duration", at: 5..<6, p50: 0.001, p99: 0.005, max: 0.3)
            }, nil
        ),
        (
            "a lower bound below the limit",
            { run in
                run.threshold("delivery_duration p99 < 100ms", ok: true, value: 0.005)
                run.bound("delivery_duration", at: 5)
            }, nil
        ),
        ("a mean", { $0.threshold("delivery_duration mean < 100ms", ok: true, value: 0.005) }, nil),
    ]

    @Test("the share of seconds within the objectives, or none where a second cannot be judged", arguments: share)
    func within(_ name: String, _ body: @Sendable (inout FindingRun) -> Void, _ share: Double?) {
        #expect(FindingsTests.run(body).findings.withinObjective == share, "\(name)")
    }

    @Test("clients up, and the time to all of them")
    func clients() {
        var run = FindingsTests.run()
        #expect(run.findings.clientsPlanned == 10)
        #expect(run.findings.clientsUp == 10)
        #expect(run.findings.allUpSeconds == 1)
        run.connected(9)
        run.set("clients", ["state": "connected"], .gauge) { _ in 9 }
        #expect(run.findings.clientsUp == 9)
        #expect(run.findings.allUpSeconds == nil)
    }

    @Test("a part of a run counts its own clients, and an old record without counts names none")
    func population() {
        var run = FindingsTests.run()
        run.record.plan["clients"] = .integer(20)
        #expect(run.findings.clientsPlanned == 10)
        run.record.population = nil
        #expect(run.findings.clientsPlanned == 20 && run.findings.clientsUp == nil)
    }

    @Test("clients that connect during the load")
    func during() {
        var run = FindingsTests.run()
        run.set("clients", ["state": "connected"], .gauge) { Swift.min(10, Double($0)) }
        run.record.stages.removeAll { $0.name == "connect" }
        #expect(run.findings.allUpSeconds == 11)
    }

    @Test("peak in flight")
    func peak() {
        var run = FindingsTests.run()
        #expect(run.findings.peakInFlight == nil)
        run.change("publish_acked", at: 1..<31) { $0 - 40 }
        #expect(run.findings.peakInFlight == FindingPoint(second: 30, value: 1200))
        // A message that failed is not in flight, and its second is unknown.
        run.record.books[0].failed = 3
        #expect(run.findings.peakInFlight == nil)
    }

    @Test("the worst second and the longest silence, with their stages")
    func worst() {
        let run = FindingsTests.run(stages: FindingsTests.stages) { run in
            run.stall(at: 14, for: 3)
            run.latency("delivery_duration", at: 20..<21, p50: 0.01, p99: 4.2, max: 5)
        }
        let findings = run.findings
        #expect(findings.worstSecond?.second == 20)
        #expect(findings.worstSecond?.value == 4.2)
        #expect(findings.worstSecond?.metric == "delivery_duration qos=1")
        #expect(findings.worstSecond?.stage == "peak" && findings.worstSecond?.bound == nil)
        let late = FindingsTests.run { run in
            run.latency("delivery_duration", at: 20..<21, p50: 0.01, p99: 4.2, max: 5)
            run.bound("delivery_duration", at: 20)
        }
        #expect(late.findings.worstSecond?.value == 4.2 && late.findings.worstSecond?.bound == true)
        #expect(findings.longestSilence == FindingPoint(second: 14, value: 3, stage: "peak"))
        #expect(FindingsTests.run().findings.longestSilence == nil)
    }

    @Test("the moment from which on a run was steady")
    func steady() {
        #expect(FindingsTests.run { $0.change("received", at: 1..<9) { $0 / 2 } }.findings.steadySecond == 9)
        #expect(FindingsTests.run().findings.steadySecond == 1)
        #expect(FindingsTests.run(warmup: 5).findings.steadySecond == 6)
        // Steady for less than half of the run is not said.
        #expect(FindingsTests.run { $0.change("received", at: 25..<26) { $0 / 2 } }.findings.steadySecond == nil)
    }

    @Test("the most frequent error, and the error of clocks")
    func errors() {
        let run = FindingsTests.run { run in
            run.error("refused", 2, at: 3, example: "")
            run.error("reset", 7, at: 4, example: "")
        }
        #expect(run.findings.topError == "reset")
        #expect(run.findings.clockErrorSeconds == nil)
    }

    @Test("the generator's headroom is bounded by the host's idle CPU")
    func headroom() {
        var run = FindingsTests.run()
        run.record.generator.loopCPUShares = [0.045, 0.09]
        run.record.generator.cpuSeconds = run.record.durationSeconds.map { $0 * 0.2 }
        run.record.host.cores = 2
        run.record.metrics.append(Metric(name: "publish_offered", reading: .counter(CounterReading(value: 1, rate: 1))))
        #expect(run.findings.headroom == nil)
        for (idle, expected) in [(0.95, 10.0), (0.1, 2.0)] {
            run.record.metrics.removeAll { $0.name == "host_cpu_idle" }
            let reading = GaugeReading(value: idle, min: idle, mean: idle, max: idle)
            run.record.metrics.append(Metric(name: "host_cpu_idle", reading: .gauge(reading)))
            #expect(run.findings.headroom.map { ($0 * 1e6).rounded() / 1e6 } == expected)
        }
    }

    static let departures: [(reason: String, seconds: Range<Int>, text: String)] = [
        ("storm", 15..<16, "3 clients left as planned at 15 s in stage peak"),
        ("storm", 15..<18, "9 clients left as planned from 15 s to 17 s in stage peak"),
        ("reset", 15..<17, "6 of 10 clients lost the connection from 15 s to 16 s in stage peak (reset)"),
    ]

    @Test("an event of several seconds has its first and its last", arguments: departures)
    func departure(reason: String, seconds: Range<Int>, text: String) {
        var run = FindingsTests.run(stages: FindingsTests.stages)
        run.set("disconnects", ["reason": reason], .counter) { seconds.contains($0) ? 3 : 0 }
        #expect(run.findings.events.map(\.text) == [text])
    }

    @Test("without a time line there is a sentence, and what the record has")
    func noTimeline() {
        let findings = Findings.record(of: FindingsTests.run().record, Timeline())
        #expect(findings.sentence == "nothing broke")
        #expect(findings.events.isEmpty)
        #expect(findings.clientsUp == 10)
        #expect(findings.worstSecond == nil)
    }
}
