import LoadEngine
import Measurement
import RunResult
import Testing

@Suite("Exit status of merge, --processes, capacity, decode, series and compare")
struct OtherStatusTests {
    // State and codes of the merged run, whether its threshold holds, --strict.
    typealias Merged = (state: Verdict.State, codes: [String], holds: Bool, isStrict: Bool, status: Int32)

    static let merged: [Merged] = [
        (.valid, [], true, true, 0),
        (.valid, [], false, false, 99),
        (.generatorLimited, ["segments-apart"], true, false, 0),
        (.generatorLimited, ["segments-apart"], true, true, 98),
        (.generatorLimited, ["segments-apart"], false, true, 98),
        (.generatorLimited, ["segments-apart"], false, false, 99),
        (.unreconciled, ["ledger-left"], true, false, 0),
        (.unreconciled, ["ledger-left"], true, true, 97),
        (.unreconciled, ["unsent", "clock-offset"], false, true, 97),
        (.aborted, ["no-connection"], true, false, 69),
        (.aborted, ["connections-lost", "interrupted"], false, true, 69),
        (.aborted, ["interrupted"], false, true, 105),
        // A segment that was killed, or that has no word for it.
        (.aborted, ["cut"], true, false, 105),
        (.aborted, ["still-running", "unsent"], true, true, 105),
        (.aborted, ["aborted"], true, false, 105),
    ]

    @Test("a merged run that a segment did not end as planned is 69 or 105", arguments: merged)
    func mergedRun(_ row: Merged) {
        var record = RunRecord.begun
        record.verdict = Verdict()
        record.verdict?.add(row.state, row.codes.map { Verdict.Reason(code: $0, text: "") })
        record.thresholds = [ThresholdResult(expression: "errors == 0", ok: row.holds, value: 0)]
        #expect(ExitStatus(of: record, isStrict: row.isStrict).rawValue == row.status)
        #expect(ExitStatus(of: record, isStrict: row.isStrict, isWritten: false) == .cannotCreate)
    }

    // How the process of a segment ended; the status of the whole.
    static let segments: [(code: Int32, isSignal: Bool, status: Int32)] = [
        (64, false, 64), (65, false, 65), (69, false, 69), (73, false, 73), (99, false, 99), (105, false, 105),
        // Success without results, an unknown status, a signal.
        (0, false, 65), (1, false, 65), (9, true, 65), (15, true, 65), (99, true, 65),
    ]

    @Test("a segment without results gives its own status, else 65", arguments: segments)
    func lostSegment(_ row: (code: Int32, isSignal: Bool, status: Int32)) {
        #expect(ExitStatus(ofLostSegment: row.code, isSignal: row.isSignal).rawValue == row.status)
    }

    struct Search: Sendable {
        var answer: CapacityAnswer?
        var isStopped = false
        var failure: ExitStatus?
        var isStrict = false
        var status: Int32
    }

    /// Of a server that holds a load up to 100.
    private static var found: CapacityAnswer? {
        var search = CapacitySearch(CapacitySearch.Settings(first: 10))
        while case .offer(let load, _) = search.next { search.add(load <= 100 ? .held : .broken("p99 < 5ms")) }
        guard case .end(let answer) = search.next, case .found = answer else { return nil }
        return answer
    }

    private static let limited = CapacityAnswer.generatorLimited(at: 10, held: 9, reason: "unsent")

    static let searches: [Search] = [
        Search(answer: found, isStrict: true, status: 0),
        Search(answer: .atLeast(10), isStrict: true, status: 0),
        Search(answer: .nothingHolds(10), status: 99),
        Search(answer: .nothingHolds(10), isStrict: true, status: 99),
        Search(answer: limited, status: 0),
        Search(answer: limited, isStrict: true, status: 98),
        Search(answer: nil, isStopped: true, status: 105),
        Search(answer: nil, isStopped: true, failure: .usage, status: 105),
        Search(answer: nil, failure: .unavailable, status: 69),
        Search(answer: nil, failure: .usage, isStrict: true, status: 64),
    ]

    @Test("a search without a load that holds is 99, a search that stopped is 105", arguments: searches)
    func search(_ row: Search) {
        #expect(Self.found != nil)
        let status = ExitStatus(
            of: row.answer,
            isStopped: row.isStopped,
            failure: row.failure,
            isStrict: row.isStrict
        )
        #expect(status.rawValue == row.status)
    }

    // The verdict of a step's own run, its status; whether the search counts the step.
    static let steps: [(codes: [String], state: Verdict.State, status: Int32, counts: Bool)] = [
        ([], .valid, 0, true),
        (["no-connection"], .aborted, 69, false),
        (["connections-lost"], .aborted, 69, true),
        (["no-connection"], .aborted, 105, true),
    ]

    @Test("a step without a server ends the search", arguments: steps)
    func step(_ row: (codes: [String], state: Verdict.State, status: Int32, counts: Bool)) {
        var record = RunRecord.begun
        #expect(record.step(status: row.status) == nil)
        record.verdict = Verdict()
        record.verdict?.add(row.state, row.codes.map { Verdict.Reason(code: $0, text: $0) })
        #expect((record.step(status: row.status) != nil) == row.counts)
    }

    struct Decode: Sendable {
        var end = DecodeEnd.planned
        var share = 1.0
        var steal = 0.0
        /// Holds, fails, or is not there.
        var threshold: Bool?
        var isBroken = false
        var isStrict = false
        var state: Verdict.State
        var codes: [String] = []
        var status: Int32
    }

    static let decodes: [Decode] = [
        Decode(isStrict: true, state: .valid, status: 0),
        Decode(threshold: true, state: .valid, status: 0),
        Decode(threshold: false, state: .valid, status: 99),
        Decode(share: 0.9, isStrict: true, state: .valid, status: 0),
        Decode(share: 0.8, state: .generatorLimited, codes: ["core-shared"], status: 0),
        Decode(share: 0.8, isStrict: true, state: .generatorLimited, codes: ["core-shared"], status: 98),
        Decode(share: 0.8, threshold: false, state: .generatorLimited, codes: ["core-shared"], status: 99),
        Decode(steal: 0.2, isStrict: true, state: .generatorLimited, codes: ["cpu-steal"], status: 98),
        Decode(end: .interrupted, threshold: false, state: .aborted, codes: ["interrupted"], status: 105),
        Decode(end: .connection("it broke"), state: .aborted, codes: ["connection"], status: 69),
        Decode(
            end: .connection("it broke"),
            share: 0.1,
            threshold: false,
            isStrict: true,
            state: .aborted,
            codes: ["connection", "core-shared"],
            status: 69
        ),
        // A decoder that loses packets fails without --strict.
        Decode(end: .decoded("9 of 10"), state: .unreconciled, codes: ["decoded"], status: 97),
        Decode(end: .decoded("9 of 10"), threshold: false, state: .unreconciled, codes: ["decoded"], status: 97),
        // A threshold that ended the decode stays failed, though it would hold in the end.
        Decode(
            end: .thresholdBroken,
            threshold: true,
            isBroken: true,
            isStrict: true,
            state: .aborted,
            codes: ["threshold"],
            status: 99
        ),
        Decode(
            end: .interrupted,
            threshold: true,
            isBroken: true,
            state: .aborted,
            codes: ["interrupted"],
            status: 105
        ),
    ]

    @Test("a decode that loses packets is 97, a lost connection 69", arguments: decodes)
    func decode(_ row: Decode) {
        var audit = GeneratorAudit(isOpenLoop: false)
        for _ in 0..<10 { audit.second([], stealShare: row.steal) }
        let sentence = row.threshold == false ? "errors count > 0" : "errors count == 0"
        let thresholds = row.threshold == nil ? [] : [Threshold(sentence)]
        var record = RunRecord.begun
        record.judge(
            row.end,
            by: thresholds,
            broken: row.isBroken ? sentence : nil,
            audit,
            shares: [LaneShare(lane: "qos0", share: row.share, words: "80.0 %")]
        )
        #expect(record.verdict?.state == row.state)
        #expect(record.verdict?.reasons.map(\.code) == row.codes)
        #expect(record.thresholds.map(\.ok) == (row.threshold.map { [$0 && !row.isBroken] } ?? []))
        #expect(ExitStatus(of: record, isStrict: row.isStrict).rawValue == row.status)
    }

    @Test("a comparison with a regression is 99")
    func comparison() {
        #expect(ExitStatus(hasRegressed: true).rawValue == 99)
        #expect(ExitStatus(hasRegressed: false).rawValue == 0)
    }

    @Test("a calibration with a failed check is 99")
    func calibration() {
        #expect(ExitStatus(isCalibrated: false).rawValue == 99)
        #expect(ExitStatus(isCalibrated: true).rawValue == 0)
    }

    @Test("a series goes on after runs that came to their planned end")
    func seriesGoesOn() {
        let whole = ExitStatus.allCases.filter(\.leavesWholeRun).map(\.rawValue)
        #expect(whole == [97, 98, 99, 0])
    }

    // The statuses of several runs; the status of all.
    static let several: [([ExitStatus], Int32)] = [
        ([], 0), ([.success, .thresholdFailed, .success], 99), ([.thresholdFailed, .generatorLimited], 98),
        ([.generatorLimited, .unreconciled], 97), ([.thresholdFailed, .dataError], 65),
        ([.interrupted, .unavailable], 69), ([.unavailable, .cannotCreate], 73),
    ]

    @Test("of several runs the first status in the order of the design counts", arguments: several)
    func firstCounts(_ statuses: [ExitStatus], _ status: Int32) {
        #expect(ExitStatus.first(statuses).rawValue == status)
    }
}
