import Ledger
import Testing

@Suite("Whether the server was quiet before it was probed")
struct DeliveryEndTests {
    struct Quiet: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var arrival: Int64? = 0
        var publish: Int64? = 0
        var probed: Int64?
        var longest: Int64 = 0
        var isQuiet: Bool
    }

    static let ends = [
        Quiet(testDescription: "without a probe nothing is known", probed: nil, isQuiet: false),
        Quiet(testDescription: "a second is enough", probed: 1_000_000_000, isQuiet: true),
        Quiet(testDescription: "a nanosecond less is not", probed: 999_999_999, isQuiet: false),
        Quiet(testDescription: "the last message counts", arrival: 5, probed: 1_000_000_004, isQuiet: false),
        Quiet(testDescription: "from it on a second", arrival: 5, probed: 1_000_000_005, isQuiet: true),
        Quiet(testDescription: "the last publish counts", publish: 5, probed: 1_000_000_004, isQuiet: false),
        Quiet(testDescription: "from that on a second", publish: 5, probed: 1_000_000_005, isQuiet: true),
        Quiet(
            testDescription: "without a message the publish counts",
            arrival: nil,
            publish: 5,
            probed: 1_000_000_004,
            isQuiet: false
        ),
        Quiet(
            testDescription: "with publishers elsewhere the message counts",
            arrival: 5,
            publish: nil,
            probed: 1_000_000_004,
            isQuiet: false
        ),
        Quiet(
            testDescription: "a shorter longest delivery changes nothing",
            probed: 1_000_000_000,
            longest: 400_000_000,
            isQuiet: true
        ),
        Quiet(
            testDescription: "a longer one must pass",
            probed: 2_999_999_999,
            longest: 3_000_000_000,
            isQuiet: false
        ),
        Quiet(
            testDescription: "and then is enough",
            probed: 3_000_000_000,
            longest: 3_000_000_000,
            isQuiet: true
        ),
        Quiet(
            testDescription: "a message behind the probe",
            arrival: 9_000_000_000,
            probed: 5_000_000_000,
            isQuiet: false
        ),
        Quiet(
            testDescription: "nothing sent and nothing received",
            arrival: nil,
            publish: nil,
            probed: 7,
            isQuiet: true
        ),
        Quiet(
            testDescription: "the same before the clock's zero",
            arrival: nil,
            publish: nil,
            probed: -7,
            isQuiet: true
        ),
        Quiet(
            testDescription: "a time that no subtraction holds",
            arrival: -2,
            publish: nil,
            probed: .max,
            isQuiet: true
        ),
        Quiet(
            testDescription: "and one behind the probe",
            arrival: .max,
            publish: nil,
            probed: -2,
            isQuiet: false
        ),
    ]

    private static func end(
        arrival: Int64? = nil,
        publish: Int64? = nil,
        probed: Int64? = nil,
        longest: Int64 = 0,
        unproved: Set<UInt32> = []
    ) -> DeliveryEnd {
        var end = DeliveryEnd()
        (end.lastArrival, end.lastPublish, end.probed) = (arrival, publish, probed)
        (end.longest, end.unproved) = (longest, unproved)
        return end
    }

    @Test("a second, or as long as the longest delivery, after the last message and publish", arguments: ends)
    func isQuiet(_ one: Quiet) {
        let end = Self.end(arrival: one.arrival, publish: one.publish, probed: one.probed, longest: one.longest)
        #expect(end.isQuiet == one.isQuiet)
        // Another clock changes nothing where it has such times.
        guard [one.arrival, one.publish, one.probed].compactMap(\.self).allSatisfy({ abs($0) < 1 << 60 }) else {
            return
        }
        for offset: Int64 in [1_700_000_000_000_000_000, -1_700_000_000_000_000_000] {
            let shifted = end.shifted(by: offset)
            #expect(shifted.isQuiet == one.isQuiet)
            #expect(shifted.shifted(by: -offset) == end)
        }
    }

    @Test("a shift changes all times, and no duration")
    func shifted() {
        let end = Self.end(arrival: 1, publish: 2, probed: 3, longest: 4, unproved: [5])
        #expect(end.shifted(by: 10) == Self.end(arrival: 11, publish: 12, probed: 13, longest: 4, unproved: [5]))
        let partial = Self.end(probed: 3, longest: 4)
        #expect(partial.shifted(by: -10) == Self.end(probed: -7, longest: 4))
        #expect(DeliveryEnd().shifted(by: 10) == DeliveryEnd())
    }

    struct Sum: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var parts: [DeliveryEnd]
        var whole: DeliveryEnd
    }

    static let sums = [
        Sum(testDescription: "of nothing", parts: [DeliveryEnd(), DeliveryEnd()], whole: DeliveryEnd()),
        Sum(
            testDescription: "with a part that knows nothing",
            parts: [Self.end(arrival: -3, publish: -2, probed: -1, longest: 7, unproved: [1]), DeliveryEnd()],
            whole: Self.end(arrival: -3, publish: -2, probed: -1, longest: 7, unproved: [1])
        ),
        Sum(
            testDescription:
                "the last message and publish, the first probe, the longest delivery, all that lack a proof",
            parts: [
                Self.end(arrival: 3, publish: 10, probed: 30, longest: 5, unproved: [1, 2]),
                Self.end(arrival: 4, publish: 9, probed: 20, longest: 8, unproved: [2, 3]),
                Self.end(arrival: 2, publish: 8, probed: 40, longest: 6),
            ],
            whole: Self.end(arrival: 4, publish: 10, probed: 20, longest: 8, unproved: [1, 2, 3])
        ),
        Sum(
            testDescription: "of publishers and subscribers in different parts",
            parts: [Self.end(publish: 10), Self.end(arrival: 11, probed: 30, longest: 5)],
            whole: Self.end(arrival: 11, publish: 10, probed: 30, longest: 5)
        ),
    ]

    @Test("the end of a whole is that of its parts, in any order", arguments: sums)
    func sum(_ one: Sum) {
        #expect(one.parts.reduce(into: DeliveryEnd()) { $0 += $1 } == one.whole)
        #expect(one.parts.reversed().reduce(into: DeliveryEnd()) { $0 += $1 } == one.whole)
    }
}
