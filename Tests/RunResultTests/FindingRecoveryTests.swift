import Measurement
import RunResult
import Testing

@Suite("The recovery from an overload")
struct FindingRecoveryTests {
    /// Ten seconds before the overload, ten of overload, and thirty after it; the connect takes the first second.
    private static let stages: [(String, Int, load: Double)] = [
        ("before", 10, 0.7), ("overload", 10, 1.5), ("after", 30, 0.7),
    ]

    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        var seconds: Double?
        var isMetastable = false
        /// A part of the event's text; `nil`: there is no such event.
        var words: String?
        /// Seconds of the run, and the median response time in them.
        var levels: [(seconds: Range<Int>, p50: Double)] = []
        var stages = FindingRecoveryTests.stages
        /// Seconds in which nothing is answered.
        var silent: Range<Int>?

        init(
            _ name: String,
            _ levels: [(Range<Int>, Double)],
            back seconds: Double? = nil,
            isMetastable: Bool = false,
            words: String? = nil,
            stages: [(String, Int, load: Double)] = FindingRecoveryTests.stages,
            silent: Range<Int>? = nil
        ) {
            self.testDescription = name
            self.seconds = seconds
            self.isMetastable = isMetastable
            self.words = words
            self.levels = levels.map { (seconds: $0.0, p50: $0.1) }
            self.stages = stages
            self.silent = silent
        }

        var findings: FindingsRecord {
            FindingsTests.run(stages: self.stages) { run in
                for level in self.levels {
                    run.latency(
                        "publish_ack_duration",
                        at: level.seconds,
                        p50: level.p50,
                        p99: level.p50,
                        max: level.p50
                    )
                }
                if let silent {
                    run.latency("publish_ack_duration", at: silent, p50: .nan, p99: .nan, max: .nan)
                }
            }.findings
        }
    }

    static let cases: [Case] = [
        Case("a server that holds the overload", []),
        Case("response times that rise by less than the margin", [(11..<51, 0.005)]),
        Case(
            "back at once",
            [(11..<21, 2)],
            back: 0,
            words: "the server was back at once when the load fell at 21 s in stage after"
        ),
        Case("back after twelve seconds", [(11..<33, 2)], back: 12, words: "back 12 s after the load fell at 21 s"),
        Case(
            "a good second, and then bad ones again",
            [(11..<25, 2), (26..<35, 2)],
            back: 14,
            words: "back 14 s after"
        ),
        Case("no answers at all for a while", [(11..<21, 2)], back: 9, words: "back 9 s after", silent: 21..<30),
        Case(
            "never back, at the level of the overload",
            [(11..<51, 2)],
            isMetastable: true,
            words: "was not back in the 30 s after the load fell at 21 s in stage after: ack p50 was 2 s"
        ),
        Case("never back, and worse", [(11..<21, 2), (21..<51, 4)], isMetastable: true, words: "(metastable)"),
        Case("no answer any more", [(11..<21, 2)], words: "stage after: it gave no answers", silent: 21..<51),
        Case(
            "not back yet, and falling",
            [(11..<21, 8), (21..<31, 6), (31..<41, 4), (41..<51, 2)],
            words: ", and was falling"
        ),
        Case("back in the last two seconds alone", [(11..<49, 2)], isMetastable: true, words: "was not back"),
        Case(
            "falling by a tenth",
            [(11..<31, 2), (31..<41, 1.9), (41..<51, 1.8)],
            words: "ack p50 was 1.8 s, and"
        ),
        Case(
            "not back, and watched for less time than the overload lasted",
            [(11..<30, 2)],
            words: "was not back in the 9 s after",
            stages: [("before", 10, 0.7), ("overload", 10, 1.5), ("after", 9, 0.7)]
        ),
        Case(
            "a level that is of a lower load than the one after the overload",
            [(11..<51, 2)],
            stages: [("before", 10, 0.1), ("overload", 10, 2), ("after", 30, 1)]
        ),
        Case(
            "two overloads, of which the server does not survive the second",
            [(11..<23, 2), (41..<61, 2)],
            isMetastable: true,
            words: "the server was not back in the 10 s after the load fell at 51 s",
            stages: [("a", 10, 0.7), ("b", 10, 1.5), ("c", 20, 0.7), ("d", 10, 1.5), ("e", 10, 0.7)]
        ),
        Case(
            "a second overload is not the end of the first one's recovery",
            [(11..<31, 2), (31..<41, 3)],
            isMetastable: true,
            words: "the server was not back in the 10 s after the load fell at 21 s",
            stages: [("a", 10, 0.7), ("b", 10, 1.5), ("c", 10, 0.7), ("d", 10, 1.5)]
        ),
        Case(
            "in two steps",
            [(11..<35, 2)],
            back: 4,
            words: "back 4 s after the load fell at 31 s",
            stages: [("a", 10, 0.7), ("b", 10, 1.5), ("c", 10, 1.2), ("d", 20, 0.7)]
        ),
        Case(
            "a load that does not fall",
            [(11..<51, 2)],
            stages: [("before", 10, 0.7), ("overload", 10, 1.5), ("after", 30, 1.5)]
        ),
        Case(
            "an overload without a time before it",
            [(1..<51, 2)],
            stages: [("overload", 20, 1.5), ("after", 30, 0.7)]
        ),
    ]

    @Test("is not judged where the generator was the limit")
    func others() {
        var run = FindingsTests.run(stages: Self.stages) {
            $0.latency("publish_ack_duration", at: 11..<51, p50: 2, p99: 2, max: 2)
        }
        #expect(run.findings.isMetastable == true)
        run.record.verdict?.add(.generatorLimited, [Verdict.Reason(code: "schedule-lag", text: "late")])
        #expect(run.findings.isMetastable == nil)
    }

    @Test("is the time until response times are as before, or is named as missing", arguments: cases)
    func recovery(_ sample: Case) {
        let findings = sample.findings
        #expect(findings.recoverySeconds == sample.seconds)
        #expect(findings.isMetastable == (sample.isMetastable ? true : nil))
        let texts = findings.events.map(\.text).filter { $0.contains("the load fell") }
        #expect(texts.count == (sample.words == nil ? 0 : 1), "\(texts)")
        if let words = sample.words { #expect(texts.first?.contains(words) == true, "\(texts)") }
        let isBack = sample.words == nil || sample.seconds != nil
        #expect(findings.sentence.contains("was not back") == !isBack, "\(findings.sentence)")
    }
}
