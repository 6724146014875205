import Measurement
import Testing

@Suite("The generator's audit of itself")
struct GeneratorAuditTests {
    typealias Second = GeneratorAudit.LoopSecond
    private static let ms: Int64 = 1_000_000

    /// The verdict for a number of seconds of each kind.
    struct Case: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var isOpenLoop = true
        /// Seconds and how many of each.
        var seconds: [(count: Int, loops: [Second])]
        var codes: [String]

        init(_ name: String, isOpenLoop: Bool = true, _ seconds: [(count: Int, loops: [Second])], _ codes: [String]) {
            self.testDescription = name
            self.isOpenLoop = isOpenLoop
            self.seconds = seconds
            self.codes = codes
        }
    }

    private static func lag(_ milliseconds: Int64, ack: Int64? = nil) -> Second {
        Second(scheduleLagP99: milliseconds * ms, ackP99: ack.map { $0 * ms }, offered: 1000)
    }

    private static func cpu(_ share: Double, waiting: Double = 1) -> Second {
        Second(offered: 1000, cpuShare: share, waitingShare: waiting)
    }

    private static func unsent(_ unsent: UInt64, of offered: UInt64) -> Second {
        Second(offered: offered, unsent: unsent)
    }

    static let cases = [
        Case("nothing at all", [], []),
        Case("an easy run", [(60, [lag(1), lag(2)])], []),

        // (a) the plan: schedule lag.
        Case("one second alone that is far too late", [(1, [lag(51)])], ["schedule-lag"]),
        Case("two late seconds of two", [(2, [lag(50)])], ["schedule-lag"]),
        Case("one late second alone", [(1, [lag(50)])], []),
        Case("two late seconds of three", [(1, [lag(1)]), (2, [lag(50)])], []),
        Case("three late seconds of three", [(3, [lag(50)])], ["schedule-lag"]),
        Case("three late seconds of 29", [(26, [lag(1)]), (3, [lag(6)])], ["schedule-lag"]),
        Case("three late seconds of 30 are just 10 %", [(27, [lag(1)]), (3, [lag(6)])], []),
        Case("four late seconds of 30", [(26, [lag(1)]), (4, [lag(6)])], ["schedule-lag"]),
        Case("5 ms is the limit, not beyond it", [(30, [lag(5)])], []),
        Case("a tenth of the acknowledgements' p99 is allowed", [(30, [lag(20, ack: 200)])], []),
        Case("and no more than that", [(30, [lag(21, ack: 200)])], ["schedule-lag"]),
        Case("one loop of several is enough", [(30, [lag(1), lag(6), lag(1)])], ["schedule-lag"]),
        Case("closed loop keeps no plan", isOpenLoop: false, [(30, [lag(500)])], []),
        Case("a second in which nothing was sent is not late", [(30, [Second(ackP99: 1)])], []),

        // (a) the plan: unsent.
        Case("0.1 % unsent", [(10, [unsent(1, of: 1000)])], []),
        Case("over 0.1 % unsent", [(9, [unsent(1, of: 1000)]), (1, [unsent(2, of: 1000)])], ["unsent"]),
        Case(
            "unsent counts over the run, not by the second",
            [(1, [unsent(50, of: 1000)]), (99, [unsent(0, of: 1000)])],
            []
        ),
        Case("closed loop has no unsent", isOpenLoop: false, [(10, [unsent(500, of: 1000)])], []),

        // (b) CPU.
        Case("half of the seconds busy", [(5, [cpu(0.1)]), (5, [cpu(0.99)])], []),
        Case("over half of the seconds busy", [(4, [cpu(0.1)]), (5, [cpu(0.99)])], ["generator-cpu"]),
        Case("busy in closed loop", isOpenLoop: false, [(10, [cpu(0.95), cpu(0.2)])], ["generator-cpu"]),
        Case("busy, but nothing waited", [(10, [cpu(0.99, waiting: 0.4)])], []),
        Case("90 % is the limit, not beyond it", [(10, [cpu(0.9)])], []),
        Case("one busy second alone", [(1, [cpu(0.99)])], []),

        Case(
            "every rule is named",
            [(10, [Second(scheduleLagP99: 900 * ms, offered: 100, unsent: 50, cpuShare: 1, waitingShare: 1)])],
            ["unsent", "schedule-lag", "generator-cpu"]
        ),
    ]

    @Test("names the rules that were broken", arguments: cases)
    func rules(_ test: Case) {
        var audit = GeneratorAudit(isOpenLoop: test.isOpenLoop)
        for (count, loops) in test.seconds {
            for _ in 0..<count { audit.second(loops, stealShare: 0) }
        }
        #expect(audit.reasons.map(\.code) == test.codes)
    }

    @Test("says in words what was measured and what is allowed")
    func words() throws {
        var audit = GeneratorAudit(isOpenLoop: true)
        for _ in 0..<8 {
            audit.second(
                [Second(scheduleLagP99: 12_340_000, offered: 10_000, unsent: 25, cpuShare: 0.97, waitingShare: 1)],
                stealShare: 0.25
            )
        }
        audit.connects(rate: 5000, begun: 15_000, elapsed: 6_000_000_000)
        audit.exhausted(ports: 1234, descriptors: 5)
        let reasons = audit.reasons
        #expect(
            reasons.map(\.text) == [
                "0.25 % of what was offered (200 of 80,000) was still unsent 1 s after its client could send it, over 0.1 %",
                "in 8 of 8 seconds sends began too late: schedule_lag p99 reached 12.34 ms, over 5 ms; "
                    + "a valid run has at most 10 % of such seconds, and figures below 123.4 ms are not the server's",
                "in 8 of 8 seconds an event loop used over 90 % of a core (up to 97 %) while work waited; "
                    + "a valid run has at most half of such seconds",
                "connects were begun at 2,500 per second, under 95 % of the planned 5,000",
                "1,234 connects found no free local port",
                "5 connects found no free file descriptor",
                "the host took 25 % of this machine's CPU for others, over 10 %",
            ]
        )
        #expect(reasons.map(\.limit) == [0.001, 0.1, 0.5, 4750, 0, 0, 0.1])
        let measured = reasons.compactMap(\.measured)
        #expect(zip(measured, [0.0025, 1, 1, 2499.8, 1234, 5, 0.25]).allSatisfy { abs($0 - $1) < 0.1 })
        #expect(measured.count == 7)
    }

    @Test(
        "a host without idle CPU, on which no thread fills a core, limits a run",
        arguments: [
            ([0.04, 0.04, 0.04], 0, 0.5, true), ([0.04, 0.04, 0.2], 0, 0.5, true), ([0.04, 0.2, 0.2], 0, 0.5, false),
            ([0.04, 0.2, 0.04, 0.2], 0, 0.5, false), ([0.05, 0.05, 0.05], 0, 0.5, false), ([0.04], 0, 0.5, false),
            ([0, 0, 0], 0.95, 0.5, false), ([0, 0, 0], 0, 0.95, false), ([0, 0, 0], 0.9, 0.9, true),
        ] as [([Double], Double, Double, Bool)]
    )
    func hostFull(_ idle: [Double], _ serverThread: Double, _ loop: Double, _ isLimited: Bool) {
        var audit = GeneratorAudit(isOpenLoop: true)
        for idle in idle {
            audit.second([Self.cpu(loop, waiting: 0)], stealShare: nil, host: (idle, serverThread))
        }
        #expect(audit.reasons.map(\.code) == (isLimited ? ["host-full"] : []))
    }

    @Test(
        "connects that keep 95 % of the planned rate are in time, and a short plan bears a hiccup of 20 ms",
        arguments: [
            // The last of 15,000 is due 2,999.8 ms after the first.
            (5000, 15_000, 3000, false),
            (5000, 15_000, 3150, false),
            (5000, 15_000, 3200, true),
            (1000, 10, 28, false),
            (1000, 10, 200, true),
            (1_000_000, 5000, 250, true),
            (10, 1, 0, false),
            // A group of a few clients that are late together has no rate.
            (500, 1, 28, false),
            (500, 5, 36, false),
            (500, 1, 900, false),
            (500, 1, 1000, true),
            (500, 5, 100, true),
            (0.5, 3, 4000, false),
            // Half of them never began.
            (100, 500, 10_000, true),
            (100, 0, 1000, true),
            (100, 0, 0, false),
        ] as [(Double, UInt64, Int64, Bool)]
    )
    func connects(_ rate: Double, _ begun: UInt64, _ milliseconds: Int64, _ isLimited: Bool) {
        var audit = GeneratorAudit(isOpenLoop: false)
        audit.connects(rate: rate, begun: begun, elapsed: milliseconds * Self.ms)
        #expect(audit.reasons.map(\.code) == (isLimited ? ["connect-rate"] : []))
    }

    @Test(
        "stolen CPU is judged over the run",
        arguments: [([0.1, 0.1], false), ([0.9, 0, 0], true), ([0.3, 0, 0, 0], false)]
    )
    func steal(_ shares: [Double], _ isLimited: Bool) {
        var audit = GeneratorAudit(isOpenLoop: false)
        for share in shares { audit.second([], stealShare: share) }
        audit.second([], stealShare: nil)
        #expect(audit.reasons.map(\.code) == (isLimited ? ["cpu-steal"] : []))
    }

    @Test("what was stolen in a rest of a second counts by its length, in the drain not at all")
    func stealShare() throws {
        var audit = GeneratorAudit(isOpenLoop: false)
        #expect(audit.stealShare == nil)
        audit.second([], stealShare: nil)
        #expect(audit.stealShare == nil)
        audit.second([], stealShare: 0.02)
        audit.second([], stealShare: 0.05)
        audit.second([], stealShare: 1, length: 10 * Self.ms)
        audit.second([], stealShare: 1, length: 0)
        #expect(abs(try #require(audit.stealShare) - 0.08 / 2.01) < 1e-12)
    }

    @Test(
        "a run of less than half a second is too short for the share that was stolen",
        arguments: [(300, false), (499, false), (500, true), (900, true)]
    )
    func shortSteal(_ milliseconds: Int64, _ isLimited: Bool) {
        var audit = GeneratorAudit(isOpenLoop: true)
        let late = Second(scheduleLagP99: 900 * Self.ms, offered: 180, cpuShare: 1, waitingShare: 1)
        audit.second([late], stealShare: 0.5, length: milliseconds * Self.ms)
        // The drain, which is no second of load.
        audit.second([Second(cpuShare: 1, waitingShare: 1)], stealShare: 0.5, length: 0)
        // A second that is judged is as late as can be, too.
        #expect(audit.reasons.map(\.code) == (isLimited ? ["schedule-lag", "cpu-steal"] : []))
    }

    @Test("the rest of a second at the end of a run is not judged by its shares")
    func shortRest() {
        var audit = GeneratorAudit(isOpenLoop: true)
        let late = Second(scheduleLagP99: 900 * Self.ms, cpuShare: 1, waitingShare: 1)
        for _ in 0..<10 { audit.second([late], stealShare: nil, length: 400 * Self.ms) }
        #expect(audit.reasons.isEmpty)
        for _ in 0..<10 { audit.second([late], stealShare: nil, length: 600 * Self.ms) }
        #expect(audit.reasons.map(\.code) == ["schedule-lag", "generator-cpu"])
    }

    @Test(
        "a CPU quota may stop the generator for 1 % of the measured time",
        arguments: [
            ([0, 0, 0], nil),
            ([10, 10, 10], nil),
            ([31, 0, 0], 0.0103),
            ([0, 0, 450], 0.15),
        ] as [([Int64], Double?)]
    )
    func quota(_ milliseconds: [Int64], _ share: Double?) throws {
        var audit = GeneratorAudit(isOpenLoop: false)
        for time in milliseconds { audit.throttled(time * Self.ms, of: 1_000 * Self.ms) }
        #expect(audit.reasons.map(\.code) == (share == nil ? [] : ["cpu-quota"]))
        guard let share else { return }
        let reason = try #require(audit.reasons.first)
        #expect(abs(try #require(reason.measured) - share) < 1e-4)
        #expect(reason.limit == 0.01)
    }

    @Test("the words of a quota name its share; less than half a second is too short to judge")
    func quotaWords() {
        var audit = GeneratorAudit(isOpenLoop: false)
        audit.throttled(100 * Self.ms, of: 400 * Self.ms)
        #expect(audit.reasons.isEmpty)
        audit.throttled(0, of: 600 * Self.ms)
        #expect(
            audit.reasons.map(\.text) == [
                "the CPU quota of the control group (cpu.max) stopped it for 10 % of the measured time, over 1 %"
            ]
        )
    }
}
