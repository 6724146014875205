import EmbeddedBroker
import FaultInjection
import FaultLines
import NIOCore
import Testing

@Suite("Faults of the broker")
struct FaultPlanTests {
    @Test("each is read, in any order")
    func reads() throws {
        let plan = try FaultPlan.parse(
            line: """
                drop 0.1% duplicate 100 reorder 50 delay 5ms delay-every 2 stall 2s@10s \
                disconnect-every 500ms max-rate 1000/s retry-storm 3 spin 90 fragment 1-7 refuse 0x87
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
        expected.retryStorm = 3
        expected.spin = 90
        expected.fragment = 1...7
        expected.refuse = 0x87
        #expect(plan == expected)
    }

    @Test("nothing at all is a broker without faults")
    func empty() throws {
        #expect(try FaultPlan.parse(line: " ") == FaultPlan())
    }

    @Test(
        "a wrong value is named in one line, with one that is right",
        arguments: [
            ("drop 5", "drop: '5' is not a share above 0%; write it like 0.1%"),
            ("drop 101%", "drop: '101%' is not a share above 0%; write it like 0.1%"),
            ("drop -1%", "drop: '-1%' is not a share above 0%; write it like 0.1%"),
            ("duplicate 0", "duplicate: '0' is not a whole number of 1 or more; write it like 100"),
            ("reorder x", "reorder: 'x' is not a whole number of 1 or more; write it like 100"),
            ("delay 5", "delay: '5' is not a time above 0; write it like 5ms or 1m30s"),
            ("delay 0ms", "delay: '0ms' is not a time above 0; write it like 5ms or 1m30s"),
            ("delay 0", "delay: '0' is not a time above 0; write it like 5ms or 1m30s"),
            ("delay 1m30", "delay: '1m30' is not a time above 0; write it like 5ms or 1m30s"),
            ("delay 366d", "delay: '366d' is not a time above 0; write it like 5ms or 1m30s"),
            ("stall 2s", "stall: '2s' is not LENGTH@AFTER, each a time; write it like 2s@10s"),
            (
                "disconnect-every nans",
                "disconnect-every: 'nans' is not a time above 0; write it like 5ms or 1m30s"
            ),
            ("max-rate 0/s", "max-rate: '0/s' is not a rate above 0, at most 1000000000/s; write it like 1000/s"),
            ("fragment 7-1", "fragment: '7-1' is not a range of 1 to 65536 bytes; write it like 1-7"),
            ("fragment 0", "fragment: '0' is not a range of 1 to 65536 bytes; write it like 1-7"),
            (
                "refuse 6",
                "refuse: '6' is not a CONNACK code that refuses; write one like 0x87 (MQTT 5) or 5 (MQTT 3)"
            ),
            ("refuse", "refuse: needs a value"),
        ]
    )
    func refuses(_ line: String, _ message: String) {
        let error = #expect(throws: FaultLineError.self) { try FaultPlan.parse(line: line) }
        #expect(error?.description == message)
    }

    @Test(
        "a time has one unit or several",
        arguments: [
            ("5ms", .milliseconds(5)), ("1.5s", .milliseconds(1_500)), ("1m30s", .seconds(90)),
            ("1h0.5m10ms", .milliseconds(3_630_010)), ("365d", .hours(8_760)), ("7µs", .microseconds(7)),
        ] as [(String, TimeAmount)]
    )
    func times(_ text: String, _ expected: TimeAmount) throws {
        #expect(try FaultPlan.parse(line: "delay \(text)").delay == expected)
        #expect(
            try FaultPlan.parse(line: "stall \(text)@0").stall == FaultStall(length: expected, after: .zero)
        )
    }

    @Test("what is no fault is refused")
    func unknown() {
        let error = #expect(throws: FaultLineError.self) { try FaultPlan.parse(line: "lose 1%") }
        #expect(error?.name == "lose")
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
