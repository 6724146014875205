import Measurement
import Report
import Testing

@Suite("A calibration's checks")
struct CalibrationTests {
    private static func record(_ metrics: [Metric?], _ change: (inout RunRecord) -> Void = { _ in }) -> RunRecord {
        var record = Samples.begun(["clamor", "pub"])
        record.verdict = .valid
        record.metrics = metrics.compactMap(\.self)
        change(&record)
        return record
    }

    private static func histogram(_ milliseconds: [Double: UInt64]) -> Histogram {
        var histogram = Histogram()
        for (value, count) in milliseconds { histogram.record(Int64(value * 1e6), count: count) }
        return histogram
    }

    // MARK: - Delay

    /// Half of a thousand messages 20 ms later than the others, as the run has it, and as the broker held it.
    private static func delayed(reported: Double, held: Double = 0.02, count: UInt64 = 500) -> [CalibrationCheck] {
        let histogram = Self.histogram([0.1: 500, 0.1 + reported: 500])
        let record = Self.record([Samples.duration("delivery_duration", ["qos": "0"], histogram)])
        return CalibrationCheck.delay([.init(record: record, held: held, count: count)])
    }

    @Test("a delay that is reported as it was is ok, one that is 2 % off is not")
    func delay() throws {
        #expect(Self.delayed(reported: 20).map(\.ok) == [true, true])
        for wrong in [19.6, 20.4] {
            let checks = Self.delayed(reported: wrong)
            #expect(checks.map(\.ok) == [false, true])
            let check = try #require(checks.first)
            #expect(abs((check.difference ?? 0) - (wrong - 20) / 1e3) < 0.000_05)
            #expect(CalibrationText.line(check).hasPrefix("not ok delay "))
        }
    }

    @Test("messages that were delayed and are not reported so are not ok, nor is a broker that held none")
    func delayedMessages() {
        #expect(Self.delayed(reported: 20, count: 500).map(\.ok) == [true, true])
        #expect(Self.delayed(reported: 20, count: 520).map(\.ok) == [true, false])
        #expect(CalibrationCheck.delay([]).map(\.ok) == [false, false])
    }

    @Test("of several runs the median counts")
    func medians() {
        func run(_ milliseconds: Double) -> CalibrationCheck.Delayed {
            let histogram = Self.histogram([0.1: 500, 0.1 + milliseconds: 500])
            let record = Self.record([Samples.duration("delivery_duration", ["qos": "0"], histogram)])
            return .init(record: record, held: 0.02, count: 500)
        }
        #expect(CalibrationCheck.delay([run(20), run(35), run(20)])[0].ok)
        #expect(!CalibrationCheck.delay([run(35), run(35), run(20)])[0].ok)
    }

    @Test("a run that was not valid proves nothing")
    func unsound() {
        let histogram = Self.histogram([0.1: 500, 20.1: 500])
        let record = Self.record([Samples.duration("delivery_duration", ["qos": "0"], histogram)]) {
            $0.verdict?.add(.generatorLimited, Verdict.Reason(code: "x", text: "late"))
        }
        let check = CalibrationCheck.delay([.init(record: record, held: 0.02, count: 500)])[0]
        #expect(!check.ok && check.problem == "the run was generator-limited: late")
    }

    // MARK: - Stall

    /// 950 of those due in a stall of 2 s at 500/s waited for 100 ms and more, the windows through all of it.
    private static func stalled(waited: UInt64, inFlight: UInt64) -> [CalibrationCheck] {
        let response = Self.histogram([0.2: 4_000, 500: waited])
        let service = Self.histogram([0.2: 4_900, 1_900: inFlight])
        let record = Self.record([
            Samples.duration("publish_ack_duration", ["leg": "puback", "qos": "1"], response),
            Samples.duration("publish_service_duration", ["leg": "puback", "qos": "1"], service),
        ])
        return CalibrationCheck.stall(record, seconds: 2, rate: 500, inFlight: 64)
    }

    @Test("a stall that hides from the response time is not ok, nor one that shows in too many service times")
    func stall() {
        #expect(Self.stalled(waited: 950, inFlight: 64).map(\.ok) == [true, true])
        #expect(Self.stalled(waited: 945, inFlight: 64).map(\.ok) == [true, true])
        #expect(Self.stalled(waited: 64, inFlight: 64).map(\.ok) == [false, true])
        #expect(Self.stalled(waited: 956, inFlight: 65).map(\.ok) == [false, false])
    }

    // MARK: - What is counted

    @Test("losses, duplicates and swaps have to be the same to the message", arguments: [0, 1, 9, 10, 11])
    func counts(_ reported: Int) {
        let record = Self.record([
            Samples.counter("delivery_lost", ["qos": "0"], Double(reported)),
            Samples.counter("delivery_lost", ["qos": "1"], 5),
        ])
        let check = CalibrationCheck.count("lost", "delivery_lost", record, injected: 15)
        #expect(check.ok == (reported == 10))
        #expect(check.injected == 15 && check.reported == Double(reported + 5))
    }

    @Test("a missing counter is not 0, and a fault never injected proves nothing")
    func absent() {
        let check = CalibrationCheck.count("lost", "delivery_lost", Self.record([]), injected: 3)
        #expect(!check.ok && check.reported == nil && check.problem == "the run does not report it")
        let none = Self.record([Samples.counter("delivery_lost", ["qos": "0"], 0)])
        #expect(!CalibrationCheck.count("lost", "delivery_lost", none, injected: 0).ok)
        let late = Self.record([Samples.counter("delivery_lost", ["qos": "0"], 3)]) {
            $0.verdict?.add(.generatorLimited, Verdict.Reason(code: "x", text: "late"))
        }
        #expect(CalibrationCheck.count("lost", "delivery_lost", late, injected: 3).ok)
    }

    // MARK: - Pace and cost

    private static func paced(offered: Double, sent: Double, lag milliseconds: Double) -> [Bool] {
        let record = Self.record([
            Samples.counter("publish_offered", ["qos": "0"], offered),
            Samples.counter("publish_sent", ["qos": "0"], sent),
            Samples.duration("schedule_lag", [:], Self.histogram([0.05: 950, milliseconds: 50])),
        ])
        return CalibrationCheck.pacing(record, due: 1_000, arrived: 1_000).map(\.ok)
    }

    @Test("a plan that was not kept, or not sent, or late, is not ok")
    func pacing() {
        #expect(Self.paced(offered: 1_000, sent: 1_000, lag: 0.2) == [true, true, true, true])
        #expect(Self.paced(offered: 998, sent: 998, lag: 0.2) == [false, false, true, true])
        #expect(Self.paced(offered: 1_000, sent: 1_001, lag: 0.2) == [true, false, true, true])
        #expect(Self.paced(offered: 1_000, sent: 1_000, lag: 6) == [true, true, true, false])
    }

    @Test("CPU that the run does not own up to is not ok", arguments: [(9.5, true), (8.5, false), (11.5, false)])
    func cpu(_ reported: Double, _ ok: Bool) {
        let record = Self.record([]) { $0.generator.cpuSeconds = reported }
        #expect(CalibrationCheck.cpu(record, kernel: 10, name: "QoS 0").ok == ok)
    }

    // MARK: - The whole

    private static func calibration() -> Calibration {
        let begun = Samples.begun(["clamor", "calibrate"])
        var calibration = Calibration(tool: begun.tool, host: begun.host, startedAt: begun.startedAt, quick: true)
        calibration.add([CalibrationCheck("a", "b", injected: 1, reported: 1)])
        return calibration
    }

    @Test("one check that is not ok makes the whole not ok")
    func whole() {
        var calibration = Self.calibration()
        #expect(calibration.ok && CalibrationText.headline(calibration) == "OK  1 checks")
        calibration.add([CalibrationCheck("lost", "c", injected: 1, reported: 2)])
        calibration.add([CalibrationCheck("d", "e", injected: 1, reported: 1)])
        #expect(!calibration.ok && CalibrationText.headline(calibration) == "NOT OK  1 of 3 checks: lost")
    }
}
