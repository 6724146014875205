import Measurement
import RunResult
import Testing

@Suite("A backlog that grows")
struct FindingBacklogTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        /// Messages per second; `nil`: the backlog does not grow.
        let growth: Double?
        let run: FindingRun

        init(_ name: String, _ growth: Double?, _ run: FindingRun) {
            self.testDescription = name
            self.growth = growth
            self.run = run
        }
    }

    private static func run(
        load: Int = 10,
        rate: Double = 1000,
        _ body: (inout FindingRun) -> Void = { _ in }
    ) -> FindingRun {
        FindingsTests.run(load: load, rate: rate, body)
    }

    /// A run with these backlogs at the end of each second of load.
    private static func run(rate: Double, backlogs: [Double]) -> FindingRun {
        self.run(load: backlogs.count, rate: rate) { run in
            let load = run.load
            run.set("publish_acked", ["qos": "1"], .counter) { second in
                guard load.contains(second) else { return 0 }
                return rate + (second > 1 ? backlogs[second - 2] : 0) - backlogs[second - 1]
            }
        }
    }

    private static let cases: [Case] = [
        Case("a server that keeps up", nil, run()),
        Case(
            "3,410 answers of 40,000 too few in each second",
            3410,
            run(rate: 40_000) { run in
                run.change("publish_acked", at: 1..<11) { $0 - 3410 }
            }
        ),
        Case(
            "4 % too few, for the shortest time that is judged",
            40,
            run(load: 5) { run in
                run.change("publish_acked", at: 1..<6) { $0 - 40 }
            }
        ),
        Case(
            "messages of two clients that are gone",
            nil,
            run(rate: 1000) { run in
                run.change("publish_acked", at: 1..<11) { $0 - 200 }
                run.set("clients", ["state": "connected"], .gauge) { $0 < 3 ? 10 : 8 }
            }
        ),
        Case(
            "half of one message a second",
            0.5,
            run(load: 60, rate: 1) { run in
                run.change("publish_acked", at: 1..<61) { $0 / 2 }
            }
        ),
        Case(
            "too slow in the last third alone",
            39.4,
            run(load: 30) { run in
                run.change("publish_acked", at: 21..<31) { $0 - 140 }
            }
        ),
        Case("a late stall of a second, after which all is answered", nil, run { $0.stall(at: 8.5, for: 1) }),
        Case("a stall that ends in the last second", nil, run { $0.stall(at: 8.2, for: 2) }),
        Case(
            "too slow, and then all is answered",
            nil,
            run(rate: 1000, backlogs: [50, 150, 300, 450, 600, 750, 900, 600, 300, 0])
        ),
        Case(
            "too slow at first, and level from then on",
            nil,
            run(load: 20) { run in
                run.change("publish_acked", at: 1..<6) { $0 - 100 }
            }
        ),
        Case("a rate that rises, with the same response time of 0.1 s", nil, risingRate),
        Case(
            "a few messages more or less in flight",
            nil,
            run(rate: 40_000, backlogs: [30, 10, 40, 20, 35, 15, 45, 25, 50, 60])
        ),
        Case("chance at a low rate", nil, run(rate: 100, backlogs: [2, 10, 2, 14, 1, 13, 3, 12, 15, 14])),
    ]

    private static var risingRate: FindingRun {
        let rate: (Int) -> Double = { Double($0) * 1000 }
        var run = FindingRun(load: 20)
        run.messages(rate)
        let load = run.load
        run.set("publish_acked", ["qos": "1"], .counter) { second in
            // A tenth of each second's messages is answered in the next one.
            load.contains(second) ? rate(second) * 0.9 + (second > 1 ? rate(second - 1) * 0.1 : 0) : 0
        }
        return run
    }

    @Test("is one that lasts until the load ends, by more than chance", arguments: cases)
    func growth(_ sample: Case) {
        let findings = sample.run.findings
        #expect(findings.backlogGrowth.map { ($0 * 100).rounded() / 100 } == sample.growth)
        #expect(findings.sentence.contains("fell behind") == (sample.growth != nil), "\(findings.sentence)")
        #expect(!findings.sentence.contains("nothing broke") || sample.growth == nil)
    }

    @Test("has a slope in any case, and none where a message failed")
    func slope() {
        let stalled = Self.run { $0.stall(at: 8.5, for: 1) }
        #expect(stalled.findings.backlogSlope ?? 0 > 1)
        var slow = Self.run { $0.change("publish_acked", at: 1..<11) { $0 - 40 } }
        #expect(slow.findings.backlogSlope.map { ($0 * 1e6).rounded() / 1e6 } == 40)
        // A message that failed is not in flight, and its second is unknown.
        slow.record.books[0].failed = 3
        #expect(slow.findings.backlogSlope == nil && slow.findings.backlogGrowth == nil)
    }

    @Test("is named, with the load, before what held, and after what broke")
    func sentence() {
        var run = Self.run(rate: 40_000) { $0.change("publish_acked", at: 1..<11) { $0 - 3410 } }
        let words = "fell behind by 3,410 of 40,000 messages a second"
        #expect(run.findings.sentence == "the answers \(words)")
        run.record.verdict = nil
        #expect(run.findings.sentence == "the answers \(words)")
        run.record.verdict = .valid
        run.error("reset", 2, at: 3, example: "")
        #expect(run.findings.sentence == "the answers \(words)")
        run.threshold("delivery_lost count == 0", ok: false, value: 1)
        #expect(run.findings.sentence == "the objective delivery_lost count == 0 failed: 1")
        run.stall(at: 4, for: 2)
        #expect(run.findings.sentence.hasPrefix("answers stopped at 4 s"))
    }

    @Test("is named with the latency that rose")
    func change() {
        let run = Self.run(load: 30) { run in
            run.change("publish_acked", at: 11..<31) { $0 - 100 }
            for second in 11..<31 {
                run.latency(
                    "publish_ack_duration",
                    at: second..<second + 1,
                    p50: 0.1 * Double(second - 10),
                    p99: 3,
                    max: 3
                )
            }
        }
        let findings = run.findings
        #expect(findings.sentence.hasPrefix("the answers fell behind by "))
        #expect(findings.sentence.contains("; ack p50 rose from "))
        #expect(findings.events.first { $0.number == findings.evidence }?.kind == .change)
    }
}
