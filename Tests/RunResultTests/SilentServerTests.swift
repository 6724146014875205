import Measurement
import RunResult
import Testing

@Suite("A server that falls silent for good")
struct SilentServerTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        /// The second from which on it is silent.
        let second: Int?
        let run: FindingRun
    }

    /// Nothing is answered or delivered in these seconds, and `outstanding` messages never are.
    private static func hung(
        _ seconds: Range<Int>,
        outstanding: UInt64 = 5_000,
        stages: [(String, Int, load: Double)] = []
    ) -> FindingRun {
        FindingsTests.run(stages: stages) { run in
            for name in ["publish_acked", "received"] { run.change(name, at: seconds) { _ in 0 } }
            run.record.books[0].outstanding = outstanding
        }
    }

    /// Messages at QoS 0 that only a probe in the drain can prove to be read.
    private static func unread(confirmed: UInt64) -> FindingRun {
        FindingsTests.run { run in
            run.remove("publish_acked", "received")
            (run.record.books[0].outstanding, run.record.books[0].confirmed) = (5_000, confirmed)
        }
    }

    /// Nothing but a churn of subscriptions, answered for 19 s, with 30 turns that were not begun.
    private static func turns(outstanding: UInt64, rate: Double = 10) -> FindingRun {
        var run = FindingRun()
        run.record.plan["subscription_churn_rate"] = .number(rate)
        run.set("subscription_churn_done", [:], .counter) { (1..<20).contains($0) ? 10 : 0 }
        var values = DurationValues()
        values.answered.record(1_000_000, count: 380)
        values.unanswered.record(2_000_000_000, count: outstanding, as: .outstanding)
        guard let reading = DurationReading(values, isEncoded: true) else { return run }
        run.record.metrics += [
            Metric(duration: "subscription_churn_duration", labels: ["leg": "suback"], reading: reading),
            Metric(
                name: "subscription_churn_missed",
                labels: [:],
                reading: .counter(CounterReading(value: 30, rate: nil))
            ),
        ]
        return run
    }

    // A load of 30 s, from 1 s to 31 s, and a second of drain.
    static let cases: [Case] = [
        Case(testDescription: "in mid-run", second: 20, run: hung(20..<32)),
        Case(testDescription: "from the start", second: 1, run: hung(1..<32)),
        Case(testDescription: "a second before the load ends", second: 30, run: hung(30..<32)),
        Case(testDescription: "in the drain only", second: nil, run: hung(31..<32)),
        Case(testDescription: "and answers in the last second of the load", second: nil, run: hung(20..<30)),
        Case(
            testDescription: "and answers in the drain",
            second: nil,
            run: {
                var run = hung(20..<31)
                run.change("publish_acked", at: 31..<32) { _ in 1 }
                return run
            }()
        ),
        Case(
            testDescription: "and in closed loop no operation is due any more",
            second: 20,
            run: {
                var run = hung(20..<32)
                run.record.plan["pacing"] = "closed"
                run.change("publish_offered", at: 20..<32) { _ in 0 }
                return run
            }()
        ),
        Case(
            testDescription: "but of its clients, which think",
            second: nil,
            run: {
                var run = hung(20..<32, outstanding: 1)
                run.record.plan["pacing"] = "closed"
                run.record.plan["think_seconds"] = 5
                run.change("publish_offered", at: 20..<32) { _ in 0 }
                return run
            }()
        ),
        Case(testDescription: "without receivers at QoS 0", second: 1, run: unread(confirmed: 0)),
        Case(testDescription: "of which it has read some", second: nil, run: unread(confirmed: 1)),
        Case(testDescription: "and had answered everything before", second: nil, run: hung(20..<32, outstanding: 0)),
        Case(
            testDescription: "but of its clients: they had nothing in flight, and sent nothing more",
            second: nil,
            run: {
                var run = hung(20..<32)
                run.record.books[0].notSent = 5_000
                return run
            }()
        ),
        Case(testDescription: "and only changes of subscriptions are due", second: 20, run: turns(outstanding: 40)),
        Case(testDescription: "of clients that could not ask", second: nil, run: turns(outstanding: 30)),
        Case(testDescription: "where few changes are due", second: nil, run: turns(outstanding: 40, rate: 0.5)),
        Case(
            testDescription: "in a stage without load",
            second: nil,
            run: hung(12..<22, stages: [("on", 10, 1), ("off", 10, 0)])
        ),
    ]

    @Test("differs from one that pauses, is done, or has nothing to do", arguments: cases)
    func second(_ one: Case) {
        let findings = one.run.findings
        #expect(findings.silentSecond == one.second)
        let what = one.run.record.books.isEmpty ? "40 of 420 changes of subscriptions" : "5,000 of 30,000 messages"
        let words = one.second.map { "the server stopped answering at \($0) s: \(what) were not answered" }
        if let words { #expect(findings.sentence == words) }
        #expect(findings.sentence.contains("the server stopped answering") == (words != nil))
    }

    // State; whether an objective failed; --strict; the status.
    static let statuses: [(Verdict.State, Bool, Bool, Int32)] = [
        (.valid, false, false, 69), (.valid, false, true, 69), (.valid, true, false, 99),
        (.generatorLimited, false, false, 69), (.generatorLimited, false, true, 69),
        (.generatorLimited, true, false, 99),
        (.unreconciled, false, false, 69), (.unreconciled, false, true, 97), (.aborted, false, false, 105),
    ]

    @Test("ends its run with 69 beside any verdict, unless an objective failed", arguments: statuses)
    func status(_ state: Verdict.State, _ hasFailed: Bool, _ isStrict: Bool, _ status: Int32) {
        var run = Self.hung(20..<32)
        if state != .valid { run.record.verdict?.add(state, Verdict.Reason(code: "other", text: "another reason")) }
        if hasFailed { run.threshold("error_rate < 0.1%", ok: false, value: 0.4) }
        var record = run.record
        record.take(run.findings)
        #expect(record.verdict?.state == state)
        #expect(record.verdict?.reasons.last?.code == "server-silent")
        let ending = ExitStatus(of: record, isStrict: isStrict)
        #expect(ending.rawValue == status)
        if status == 69 { #expect(ending.lastWord(of: record) == "the server stopped answering at 20 s") }
    }
}
