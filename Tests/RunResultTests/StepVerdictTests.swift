import LoadEngine
import Measurement
import Testing
import RunResult

@Suite("The verdict of a search step")
struct CapacityVerdictTests {
    typealias Row = (reasons: [String], state: Verdict.State, broken: [String], verdict: CapacitySearch.Verdict)

    static let rows: [Row] = [
        ([], .valid, [], .held),
        ([], .valid, ["p99 < 5ms"], .broken("p99 < 5ms")),
        ([], .valid, ["p99 < 5ms", "p50 < 1ms"], .broken("p99 < 5ms, p50 < 1ms")),
        // Lateness breaks objectives, and makes none hold.
        (["schedule-lag"], .generatorLimited, [], .held),
        (["schedule-lag"], .generatorLimited, ["p99 < 5ms"], .disturbed("schedule-lag!")),
        (["cpu-steal"], .generatorLimited, [], .held),
        (["schedule-lag", "cpu-steal"], .generatorLimited, ["p99 < 5ms"], .disturbed("schedule-lag!")),
        // Unsent operations were not offered, and a busy loop is the generator's own fault.
        (["unsent"], .generatorLimited, [], .generatorLimited("unsent!")),
        (["schedule-lag", "generator-cpu"], .generatorLimited, [], .generatorLimited("schedule-lag!")),
        (["connect-rate", "schedule-lag"], .generatorLimited, ["p99 < 5ms"], .generatorLimited("connect-rate!")),
        (["unbalanced"], .unreconciled, [], .broken("unbalanced!")),
        (["connections-lost"], .aborted, [], .broken("connections-lost!")),
    ]

    @Test("held, broken, disturbed, or the generator's limit", arguments: rows)
    func verdicts(_ row: Row) {
        var verdict = Verdict()
        verdict.add(row.state, row.reasons.map { Verdict.Reason(code: $0, text: "\($0)!") })
        var record = RunRecord.begun
        record.verdict = verdict
        record.thresholds = row.broken.map { ThresholdResult(expression: $0, ok: false, value: nil) }
        #expect(record.step(status: 0)?.verdict == row.verdict)
        // A load that held although the generator was late is no plain "held".
        let late = row.reasons.first.map {
            "the generator was the limit, and the objectives were met all the same: \($0)!"
        }
        #expect(record.step(status: 0)?.reason == (row.verdict == .held ? late : row.verdict.reason))
    }

    @Test("what was not answered is not held, and an objective that is undecided is not met")
    func unanswered() {
        var record = RunRecord.begun
        record.verdict = .valid
        var books = Books(qos: 1)
        (books.offered, books.outstanding, books.notSent) = (8_000, 4_211, 3_411)
        record.books = [books]
        #expect(record.step(status: 0)?.verdict == .broken("4,211 of 8,000 messages were not answered"))
        record.books = []
        record.thresholds = [ThresholdResult(expression: "delivery_lost == 0", state: .undecided, value: 0)]
        #expect(record.step(status: 0)?.verdict == .broken("delivery_lost == 0"))
    }
}
