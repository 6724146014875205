import EmbeddedBroker
import FaultInjection
import NIOCore
import Testing

@Suite("Fault flags")
struct FaultPlanTests {
    @Test("each is read, behind a space or an equals sign, in any order")
    func reads() throws {
        let plan = try FaultPlan.parse(
            line: """
                --drop 0.1% --duplicate=100 --reorder 50 --delay 5ms --delay-every 2 --stall 2s@10s \
                --disconnect-every 500ms --max-rate 1000/s --fragment 1-7 --refuse 0x87
                """
        )
        var expected = FaultPlan()
        expected.dropPerBillion = 1_000_000
        expected.duplicateEvery = 100
        expected.reorderEvery = 50
        expected.delay = .milliseconds(5)
        expected.delayEvery = 2
        expected.stall = FaultStall(length: .seconds(2), after: .seconds(10))
        expected.disconnectEvery = .milliseconds(500)
        expected.maximumRate = 1_000
        expected.fragment = 1...7
        expected.refuse = 0x87
        #expect(plan == expected)
    }

    @Test("other arguments are left where they are")
    func leavesOthers() throws {
        var arguments = ["-p", "0", "--delay", "1.5ms", "--quiet"]
        #expect(try FaultPlan.take(from: &arguments).delay == .microseconds(1_500))
        #expect(arguments == ["-p", "0", "--quiet"])
    }

    @Test("nothing at all is a broker without faults")
    func empty() throws {
        #expect(try FaultPlan.parse(line: " ") == FaultPlan())
    }

    @Test(
        "a wrong one is named in one line, with what it wants",
        arguments: [
            ("--drop 5", "--drop: wants a share like 0.1%, not '5'"),
            ("--drop 101%", "--drop: wants a share like 0.1%, not '101%'"),
            ("--drop -1%", "--drop: wants a share like 0.1%, not '-1%'"),
            ("--duplicate 0", "--duplicate: wants a number N above 0, not '0'"),
            ("--reorder x", "--reorder: wants a number N above 0, not 'x'"),
            ("--delay 5", "--delay: wants a time like 5ms or 2s, not '5'"),
            ("--delay 0ms", "--delay: wants a time like 5ms or 2s, not '0ms'"),
            ("--delay-every 2", "--delay-every: needs --delay"),
            ("--stall 2s", "--stall: wants LENGTH@AFTER like 2s@10s, not '2s'"),
            ("--disconnect-every nans", "--disconnect-every: wants a time like 5ms or 2s, not 'nans'"),
            ("--max-rate 0/s", "--max-rate: wants a rate like 1000/s, not '0/s'"),
            ("--fragment 7-1", "--fragment: wants bytes per write like 1-7, not '7-1'"),
            ("--fragment 0", "--fragment: wants bytes per write like 1-7, not '0'"),
            ("--refuse 6", "--refuse: wants a CONNACK code, 1 to 5 or one of MQTT 5 from 0x80 on, not '6'"),
            ("--refuse", "--refuse: needs a value"),
        ]
    )
    func refuses(_ line: String, _ message: String) {
        let error = #expect(throws: FaultPlanError.self) { try FaultPlan.parse(line: line) }
        #expect(error?.description == message)
    }

    @Test("what is no fault flag is refused where only those may stand")
    func unknown() {
        let error = #expect(throws: FaultPlanError.self) { try FaultPlan.parse(line: "--lose 1%") }
        #expect(error?.flag == "--lose")
    }
}

@Suite("Hold times")
struct HoldTimesTests {
    @Test("the median of many is within 0.1 % of the sorted list's", arguments: [1, 2, 999, 10_000])
    func median(_ count: Int) {
        var holds = HoldTimes()
        var values: [Int64] = []
        var seed: UInt64 = 88_172_645_463_325_252
        for _ in 0..<count {
            seed ^= seed << 13
            seed ^= seed >> 7
            seed ^= seed << 17
            let value = 20_000_000 + Int64(seed % 3_000_000)
            values.append(value)
            holds.record(value)
        }
        values.sort()
        let median = Double(values[(count - 1) / 2])
        let summary = holds.summary
        #expect(summary.count == UInt64(count))
        #expect(summary.min == values.first)
        #expect(summary.max == values.last)
        #expect(abs(Double(summary.p50 ?? 0) - median) <= median / 1_000)
    }
}
