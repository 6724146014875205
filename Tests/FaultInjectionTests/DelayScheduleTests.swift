import FaultInjection
import NIOCore
import Testing

@Suite("Bytes that a delay holds, and for how long")
struct DelayScheduleTests {
    enum Event: Sendable {
        /// Bytes of the client go on.
        case asked(Int64)
        /// Bytes of the server come, and are held so long.
        case came(Int64, held: Double?)
    }

    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let delay: FaultDelay
        let every: UInt64
        /// Times in milliseconds.
        let events: [Event]

        init(_ name: String, _ delay: FaultDelay, every: UInt64 = 1, _ events: [Event]) {
            self.testDescription = name
            self.delay = delay
            self.every = every
            self.events = events
        }
    }

    static let cases = [
        Case(
            "a time holds every read, asked for or not",
            .time(.milliseconds(20)),
            [.came(0, held: 20), .asked(1), .came(2, held: 20), .came(3, held: 20)]
        ),
        Case(
            "a time with every 3rd",
            .time(.milliseconds(5)),
            every: 3,
            [.came(0, held: nil), .came(1, held: nil), .came(2, held: 5), .came(3, held: nil), .came(9, held: nil)]
        ),
        Case("a share holds an answer by the server's time", .share(0.15), [.asked(10), .came(50, held: 6)]),
        Case(
            "only the first bytes of the answer",
            .share(0.5),
            [
                .asked(0), .came(8, held: 4), .came(9, held: nil), .came(100, held: nil), .asked(200),
                .came(202, held: 1),
            ]
        ),
        Case("nothing that came unasked", .share(1), [.came(5, held: nil), .asked(6), .came(9, held: 3)]),
        Case("from the last bytes that went on", .share(1), [.asked(0), .asked(7), .came(10, held: 3)]),
        Case("a share of nothing is held for nothing", .share(1), [.asked(4), .came(4, held: 0)]),
        Case(
            "every 2nd answer, not every 2nd read",
            .share(1),
            every: 2,
            [
                .asked(0), .came(1, held: nil), .came(2, held: nil), .asked(10), .came(13, held: 3), .asked(20),
                .came(21, held: nil), .asked(30), .came(32, held: 2),
            ]
        ),
        // A PUBACK goes on, and the next delivery comes a second later.
        Case("idle time counts as the server's", .share(0.2), [.asked(2), .came(1_002, held: 200)]),
        Case("more than the time itself", .share(2.5), [.asked(0), .came(4, held: 10)]),
    ]

    @Test("of what is read from a server", arguments: cases)
    func schedule(_ example: Case) {
        var schedule = DelaySchedule(example.delay, every: example.every)
        for event in example.events {
            switch event {
            case .asked(let time): schedule.asked(at: Self.time(time))
            case .came(let time, let held):
                let expected = held.map { TimeAmount.nanoseconds(Int64($0 * 1e6)) }
                #expect(schedule.hold(at: Self.time(time)) == expected, "at \(time) ms")
            }
        }
    }

    private static func time(_ milliseconds: Int64) -> NIODeadline {
        .uptimeNanoseconds(7_000_000_000) + .milliseconds(milliseconds)
    }
}
