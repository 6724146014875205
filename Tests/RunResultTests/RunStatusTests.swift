import Measurement
import RunResult
import Testing

/// The contract of verdicts and exit statuses.
@Suite("Verdict and exit status of a run")
struct RunStatusTests {
    struct Row: CustomTestStringConvertible, Sendable {
        let events: [Event]
        let state: Verdict.State
        let codes: [String]
        let status: Int32

        init(_ events: [Event], _ state: Verdict.State, _ codes: [String], _ status: Int32) {
            self.events = events
            self.state = state
            self.codes = codes
            self.status = status
        }

        init(_ events: [Event], _ state: Verdict.State, _ status: Int32) { self.init(events, state, [], status) }

        var testDescription: String { "\(self.events) is \(self.state.rawValue), \(self.status)" }
    }

    private static let held = "publish_acked >= 1000"
    private static let failed = "publish_acked > 1000"
    private static let unknown = "publish_ack_duration p99 < 1s"

    static let good: [Row] = [
        Row([], .valid, 0),
        Row([.strict], .valid, 0),
        Row([.closedLoop, .strict], .valid, 0),
        Row([.ledgerOff, .strict], .valid, 0),
        Row([.errors("refused", 3), .strict], .valid, 0),
        Row([.lost(5), .strict], .valid, 0),
        Row([.duplicated(5), .strict], .valid, 0),
        Row([.lost(2), .duplicated(3), .strict], .valid, 0),
        Row([.inFlight(3), .drainTimedOut, .strict], .valid, 0),
        Row([.drainTimedOut], .valid, 0),
        Row([.stages(warmup: 1, measured: 2), .strict], .valid, 0),
        Row([.groups("sensors", "backend"), .strict], .valid, 0),
        Row([.segment, .strict], .valid, 0),
        Row([.segment, .pending, .strict], .valid, 0),
    ]

    static let thresholds: [Row] = [
        Row([.thresholds(held)], .valid, 0),
        Row([.thresholds(held), .strict], .valid, 0),
        Row([.thresholds(failed)], .valid, 99),
        Row([.thresholds(unknown)], .valid, 99),
        Row([.thresholds(held, failed)], .valid, 99),
        Row([.thresholds(failed, held), .strict], .valid, 99),
        Row([.thresholds("error_rate < 1%"), .errors("timeout", 3)], .valid, 0),
        Row([.thresholds("errors count == 0"), .errors("timeout", 3)], .valid, 99),
        Row([.thresholdEndsRun(failed + " abort")], .aborted, ["threshold"], 99),
        // A threshold that ended the run stays failed, though it would hold in the end.
        Row([.thresholdEndsRun(held + " abort")], .aborted, ["threshold"], 99),
        Row([.thresholdEndsRun(failed + " abort"), .strict], .aborted, ["threshold"], 99),
        // The thresholds of a segment are judged by the merge.
        Row([.segment, .thresholds(failed)], .valid, 0),
        Row([.segment, .thresholds(unknown), .strict], .valid, 0),
    ]

    static let aborted: [Row] = [
        Row([.noClientCameUp], .aborted, ["no-connection"], 69),
        Row([.noClientCameUp, .errors("refused", 10)], .aborted, ["no-connection"], 69),
        Row([.allConnectionsLost], .aborted, ["connections-lost"], 69),
        Row([.signal], .aborted, ["interrupted"], 105),
        Row([.signal, .segment], .aborted, ["interrupted"], 105),
        Row([.groups("a", "b"), .noClientCameUp], .aborted, ["no-connection"], 69),
        Row([.groups("a", "b"), .allConnectionsLost], .aborted, ["connections-lost"], 69),
        Row([.groups("a", "b"), .groupNeverUp("a")], .aborted, ["no-connection"], 69),
        Row([.groups("a", "b"), .groupNeverUp("b")], .aborted, ["no-connection"], 69),
        Row([.groups("a", "b"), .groupLost("b")], .aborted, ["connections-lost"], 69),
        Row(
            [.groups("a", "b", "c"), .groupNeverUp("a"), .groupLost("c")],
            .aborted,
            ["no-connection", "connections-lost"],
            69
        ),
        Row([.filesNotWritten], .valid, 73),
    ]

    static let unreconciled: [Row] = [
        Row([.booksOff], .unreconciled, ["books"], 0),
        Row([.booksOff, .strict], .unreconciled, ["books"], 97),
        Row([.groups("a", "b"), .booksOff, .strict], .unreconciled, ["books"], 97),
        Row([.unreconciled("ledger-overflow")], .unreconciled, ["ledger-overflow"], 0),
        Row([.unreconciled("ledger-overflow"), .strict], .unreconciled, ["ledger-overflow"], 97),
        Row([.unreconciled("ledger-stray"), .booksOff, .strict], .unreconciled, ["ledger-stray", "books"], 97),
        Row([.errors("live connections", 1)], .unreconciled, ["live-connections"], 0),
        Row([.errors("live connections", 1), .strict], .unreconciled, ["live-connections"], 97),
        Row([.brokerCountsDiffer], .unreconciled, ["broker-books"], 0),
        Row([.brokerCountsDiffer, .strict], .unreconciled, ["broker-books"], 97),
        Row([.booksOff, .segment, .strict], .unreconciled, ["books"], 97),
    ]

    static let limited: [Row] = [
        Row([.scheduleLag(milliseconds: 6, seconds: 3)], .generatorLimited, ["schedule-lag"], 0),
        Row([.scheduleLag(milliseconds: 6, seconds: 3), .strict], .generatorLimited, ["schedule-lag"], 98),
        Row([.scheduleLag(milliseconds: 6, seconds: 2), .strict], .valid, 0),
        Row([.scheduleLag(milliseconds: 5, seconds: 10), .strict], .valid, 0),
        Row([.scheduleLag(milliseconds: 9, ackMilliseconds: 100, seconds: 10), .strict], .valid, 0),
        Row(
            [.scheduleLag(milliseconds: 11, ackMilliseconds: 100, seconds: 10), .strict],
            .generatorLimited,
            ["schedule-lag"],
            98
        ),
        Row([.scheduleLag(milliseconds: 60, seconds: 10), .closedLoop, .strict], .valid, 0),
        Row([.unsent(share: 0.001), .strict], .valid, 0),
        Row([.unsent(share: 0.002)], .generatorLimited, ["unsent"], 0),
        Row([.unsent(share: 0.002), .strict], .generatorLimited, ["unsent"], 98),
        Row([.unsent(share: 0.5), .closedLoop, .strict], .valid, 0),
        Row([.busyLoop(seconds: 6), .strict], .generatorLimited, ["generator-cpu"], 98),
        Row([.busyLoop(seconds: 5), .strict], .valid, 0),
        Row([.busyLoop(seconds: 10, waiting: 0.4), .strict], .valid, 0),
        Row([.busyLoop(seconds: 6), .closedLoop, .strict], .generatorLimited, ["generator-cpu"], 98),
        Row([.stolen(share: 0.1), .strict], .valid, 0),
        Row([.stolen(share: 0.11), .strict], .generatorLimited, ["cpu-steal"], 98),
        Row([.connects(begun: 100), .strict], .valid, 0),
        Row([.connects(begun: 90), .strict], .generatorLimited, ["connect-rate"], 98),
        Row([.connects(begun: 0), .strict], .valid, 0),
        Row([.connects(begun: 100, returnShare: 0.9), .strict], .generatorLimited, ["connect-rate"], 98),
        Row([.connects(begun: 100, returnShare: 0.96), .strict], .valid, 0),
        Row([.errors("ports", 4)], .generatorLimited, ["local-ports"], 0),
        Row([.errors("ports", 4), .strict], .generatorLimited, ["local-ports"], 98),
        Row([.errors("descriptors", 1), .strict], .generatorLimited, ["descriptors"], 98),
        Row(
            [.unsent(share: 0.1), .busyLoop(seconds: 10), .stolen(share: 0.5), .strict],
            .generatorLimited,
            ["unsent", "generator-cpu", "cpu-steal"],
            98
        ),
    ]

    static let several: [Row] = [
        // 73 is before all.
        Row([.filesNotWritten, .noClientCameUp], .aborted, ["no-connection"], 73),
        Row([.filesNotWritten, .signal, .thresholds(failed)], .aborted, ["interrupted"], 73),
        Row([.filesNotWritten, .booksOff, .strict], .unreconciled, ["books"], 73),
        // 69 is before 105, 97, 98 and 99.
        Row([.noClientCameUp, .thresholds(unknown), .strict], .aborted, ["no-connection"], 69),
        Row([.noClientCameUp, .errors("ports", 9), .strict], .aborted, ["no-connection", "local-ports"], 69),
        Row([.groups("a", "b"), .groupLost("a"), .signal], .aborted, ["interrupted", "connections-lost"], 69),
        Row([.groups("a", "b"), .groupLost("a"), .thresholds(failed)], .aborted, ["connections-lost"], 69),
        Row([.allConnectionsLost, .booksOff, .strict], .aborted, ["connections-lost", "books"], 69),
        Row(
            [.groups("a", "b"), .groupNeverUp("b"), .thresholdEndsRun(failed + " abort")],
            .aborted,
            ["threshold", "no-connection"],
            69
        ),
        // 105 is before 97, 98 and 99.
        Row([.signal, .thresholds(failed)], .aborted, ["interrupted"], 105),
        Row([.signal, .booksOff, .strict], .aborted, ["interrupted", "books"], 105),
        Row([.signal, .unsent(share: 0.1), .strict], .aborted, ["interrupted", "unsent"], 105),
        // 97 is before 98, and both are before 99.
        Row([.booksOff, .unsent(share: 0.1), .strict], .unreconciled, ["books", "unsent"], 97),
        Row([.booksOff, .thresholds(failed), .strict], .unreconciled, ["books"], 97),
        Row([.unsent(share: 0.1), .thresholds(failed), .strict], .generatorLimited, ["unsent"], 98),
        // Without --strict the verdict is no failure, but a threshold is.
        Row([.booksOff, .thresholds(failed)], .unreconciled, ["books"], 99),
        Row([.unsent(share: 0.1), .thresholds(failed)], .generatorLimited, ["unsent"], 99),
        Row([.unsent(share: 0.1), .thresholds(held)], .generatorLimited, ["unsent"], 0),
        // A run that a threshold ended is judged by its thresholds.
        Row([.thresholdEndsRun(failed + " abort"), .booksOff, .strict], .aborted, ["threshold", "books"], 99),
        Row(
            [.thresholdEndsRun(held + " abort"), .unsent(share: 0.1), .strict],
            .aborted,
            ["threshold", "unsent"],
            99
        ),
    ]

    @Test("a run that went well is valid and 0", arguments: good)
    func isValid(_ row: Row) { self.check(row) }

    @Test("failed thresholds are 99", arguments: thresholds)
    func thresholdFails(_ row: Row) { self.check(row) }

    @Test("a run that ended before its plan is aborted: 69 or 105", arguments: aborted)
    func isAborted(_ row: Row) { self.check(row) }

    @Test("a run that does not balance is unreconciled: 97 with --strict", arguments: unreconciled)
    func isUnreconciled(_ row: Row) { self.check(row) }

    @Test("a run that the generator limited is generator-limited: 98 with --strict", arguments: limited)
    func isLimited(_ row: Row) { self.check(row) }

    @Test("of several ends the first in the order of the design counts", arguments: several)
    func firstCounts(_ row: Row) { self.check(row) }

    private func check(_ row: Row) {
        let (record, status) = SampleRun(row.events).finished
        #expect(record.verdict?.state == row.state)
        #expect(record.verdict?.reasons.map(\.code) == row.codes)
        #expect(status.rawValue == row.status)
    }

    // Events; the line for standard error.
    static let words: [([Event], String?)] = [
        ([], nil),
        ([.unsent(share: 0.1)], nil),
        ([.filesNotWritten], nil),
        ([.noClientCameUp], "every connect attempt failed"),
        ([.noClientCameUp, .connected], "no client could take part in the load"),
        (
            [.noClientCameUp, .errors("timeout", 2), .errors("refused", 8)],
            "every connect attempt failed: refused!"
        ),
        ([.allConnectionsLost, .errors("reset", 2)], "all connections were lost and none came back: reset!"),
        ([.groups("a", "b"), .groupNeverUp("b")], "b: every connect attempt failed"),
        (
            [.groups("a", "b"), .groupLost("a"), .errors("reset", 2)],
            "a: all connections were lost and none came back: reset!"
        ),
        ([.signal], "a signal ended the run before its time"),
        ([.booksOff, .strict], "QoS 1: sent 1000 is not acked 999 + in flight 0 + timed out 0 + failed 0 [books]"),
        (
            [.groups("a", "b"), .booksOff, .strict],
            "a QoS 1: sent 1000 is not acked 999 + in flight 0 + timed out 0 + failed 0 [books]"
        ),
        ([.brokerCountsDiffer, .strict], "QoS 1: 1000 sent, but the broker received 998 [broker-books]"),
        ([.thresholds(failed)], "threshold failed: 'publish_acked > 1000'"),
        (
            [.thresholds(failed, held, unknown)],
            "threshold failed: 'publish_acked > 1000', 'publish_ack_duration p99 < 1s'"
        ),
    ]

    @Test("the last line names the first reason, or every failed threshold", arguments: words)
    func lastWord(_ events: [Event], _ line: String?) {
        let (record, status) = SampleRun(events).finished
        #expect(status.lastWord(of: record) == line)
    }

    // Events; the stages of the record, with their starts and ends in seconds; the seconds measured, which rates are
    // over.
    static let stages: [([Event], [String], Double?)] = [
        ([], ["connect 0-1", "measure 1-11 measured", "drain 11-12"], 10),
        ([.noClientCameUp], ["connect 0-12"], nil),
        (
            [.stages(warmup: 1, measured: 2)],
            ["connect 0-1", "warm 0 1-2", "peak 0 2-3 measured", "peak 1 3-4 measured", "drain 4-12"],
            2
        ),
        ([.stages(warmup: 1, measured: 0)], ["connect 0-1", "warm 0 1-2", "drain 2-12"], nil),
    ]

    @Test("the record has the stages that took place", arguments: stages)
    func hasStages(_ events: [Event], _ stages: [String], _ measured: Double?) {
        let run = SampleRun(events)
        #expect(run.measuredSeconds == measured)
        let (record, _) = run.finished
        let found = record.stages.map { stage in
            let end = Int(stage.start + stage.durationSeconds)
            return "\(stage.name) \(Int(stage.start))-\(end)" + (stage.measured ? " measured" : "")
        }
        #expect(found == stages)
        #expect(record.durationSeconds == 12)
    }

    @Test("the ledger is the account's, and stays off where it was off")
    func hasLedger() {
        #expect(SampleRun([.pending]).finished.record.ledger.pending == true)
        #expect(SampleRun([.ledgerOff, .pending]).finished.record.ledger == LedgerRecord(on: false, reason: "-m"))
        let groups = SampleRun([.groups("a", "b"), .pending]).finished.record
        #expect(groups.ledger.pending == true)
        #expect(groups.groups?.map(\.ledger.pending) == [true, nil])
        #expect(groups.groups?.map(\.up) == [10, 10])
    }
}
