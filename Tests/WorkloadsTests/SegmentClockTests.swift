import EmbeddedBroker
import Ledger
import LoadEngine
import MQTTCodec
import Measurement
import NIOCore
import Testing
import VirtualServers
import Workloads

/// The arithmetic of segments, stages and departures, by the engine itself on a virtual clock.
@Suite("Segments, stages and departures on a virtual clock")
struct SegmentClockTests {
    struct Shape: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let topology: MQTTLoad.Topology
        let publishers: Int
        let subscribers: Int
        /// Deliveries of a message.
        let copies: Int

        static let all = [
            Shape(testDescription: "fan-in", topology: .fanIn, publishers: 5, subscribers: 1, copies: 1),
            Shape(testDescription: "several to several", topology: .fanIn, publishers: 3, subscribers: 4, copies: 4),
            Shape(testDescription: "fan-out", topology: .fanOut, publishers: 1, subscribers: 5, copies: 5),
            Shape(testDescription: "shared", topology: .shared, publishers: 4, subscribers: 4, copies: 1),
            Shape(testDescription: "pair", topology: .pair, publishers: 3, subscribers: 6, copies: 2),
        ]
    }

    /// Segments that begin at different times have phases of their own: the publisher's counts.
    @Test(
        "whatever segment hears a message, its delivery is in the publisher's phase",
        arguments: Shape.all,
        [1, 2, 3]
    )
    func durations(_ shape: Shape, _ segments: Int) throws {
        let run = try VirtualSegments(
            .init(
                topology: shape.topology,
                publishers: shape.publishers,
                subscribers: shape.subscribers,
                rate: 600,
                duration: .seconds(2),
                warmup: .milliseconds(500),
                segments: segments,
                lateness: .milliseconds(7)
            )
        )
        try run.perform()
        #expect(run.outcomes.allSatisfy { $0.stop == .planned && !$0.wasAborted })
        let measured = UInt64(1_200 * shape.copies)
        #expect(run.samples("delivery_duration", ["qos": "1"]) == measured)
        #expect(run.samples("publish_ack_duration", ["qos": "1", "leg": "puback"]) == 1_200)
        #expect(run.count("publish_offered", ["qos": "1"]) == 1_500)
        #expect(run.expected == run.received && run.lost == 0)
        #expect(run.received == UInt64(1_500 * shape.copies))
        #expect(run.reconciliation.problems.isEmpty && run.unreconciled.isEmpty)
    }

    @Test("losses, duplicates and swaps are found to the message over segments", arguments: Shape.all, [1, 2, 3])
    func faults(_ shape: Shape, _ segments: Int) throws {
        let run = try VirtualSegments(
            .init(
                faults: "drop 1.5% duplicate 40 reorder 30",
                topology: shape.topology,
                publishers: shape.publishers,
                subscribers: shape.subscribers,
                qualities: shape.publishers < 3 ? [.exactlyOnce] : [.atMostOnce, .atLeastOnce, .exactlyOnce],
                rate: 600,
                segments: segments
            )
        )
        try run.perform()
        let broker = run.network.server.broker.counters
        for row in run.reconciliation.rows {
            let level = row.qos
            #expect(row.lost == broker.dropped[level])
            #expect(row.duplicated == broker.duplicated[level])
            // The server keeps no order for shared subscriptions.
            #expect(row.reordered == (shape.topology == .shared ? 0 : broker.reordered[level]))
            // There is no warm-up: each first arrival has a duration.
            #expect(run.samples("delivery_duration", ["qos": "\(level)"]) == row.received)
        }
        #expect(run.expected == UInt64(1_200 * shape.copies))
        #expect(run.reconciliation.problems.isEmpty && run.unreconciled.isEmpty)
    }

    @Test("the books of all segments know each QoS level, also one that a segment does not use", arguments: [1, 2, 3])
    func books(_ segments: Int) throws {
        // Publisher k has level k mod 3, and is in segment k mod n with its subscriber.
        let run = try VirtualSegments(
            .init(
                publishers: 3,
                subscribers: 3,
                qualities: [.atMostOnce, .atLeastOnce, .exactlyOnce],
                rate: 30,
                segments: segments
            )
        )
        try run.perform()
        #expect(run.books.count == segments)
        let sums = Books.sums(run.books.flatMap(\.self))
        #expect(sums.compactMap(\.qos).sorted() == [0, 1, 2])
        for book in sums {
            #expect(book.offered == 20 && book.sent == 20, "\(book.name)")
            #expect(book.expected == 20 && book.received == 20, "\(book.name)")
            #expect(book.lost == 0 && book.deliveryOutstanding == 0, "\(book.name)")
            #expect(book.imbalances == [])
        }
    }

    private static let stages: [(name: String, length: TimeAmount, isMeasured: Bool)] = [
        ("settle", .seconds(1), false), ("peak", .seconds(2), true), ("rest", .seconds(1), true),
    ]

    @Test("each stage has its share of a constant rate in every segment", arguments: Shape.all, [1, 3])
    func stages(_ shape: Shape, _ segments: Int) throws {
        let run = try VirtualSegments(
            .init(
                topology: shape.topology,
                publishers: shape.publishers,
                subscribers: shape.subscribers,
                rate: 300,
                stages: Self.stages,
                segments: segments,
                lateness: .milliseconds(11)
            )
        )
        try run.perform()
        let qos: Labels = ["qos": "1"]
        for (stage, offered) in [("settle", 300), ("peak", 600), ("rest", 300)] {
            let labels = qos.adding(Labels.stage, stage)
            #expect(run.count("publish_offered", labels) == offered, "\(stage)")
            #expect(run.samples("publish_ack_duration", labels.adding("leg", "puback")) == UInt64(offered))
            #expect(run.samples("delivery_duration", labels) == UInt64(offered * shape.copies), "\(stage)")
        }
        #expect(run.samples("delivery_duration", qos) == UInt64(900 * shape.copies))
        #expect(run.lost == 0 && run.unreconciled.isEmpty)
        let began = try #require(run.outcomes.first?.loadBegan)
        #expect(
            run.outcomes.first?.stages == [
                began..<began + .seconds(1), began + .seconds(1)..<began + .seconds(3),
                began + .seconds(3)..<began + .seconds(4),
            ]
        )
    }

    struct Departure: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let plan: DeparturePlan
        let reason: String
        /// By the rate or the share in 2 s: of 8 clients, and of 4 subscribers that go offline.
        let due: Int

        static let all = [
            Departure(
                testDescription: "churn 40/s",
                plan: DeparturePlan(churn: .init(perSecond: 40)),
                reason: "churn",
                due: 80
            ),
            Departure(
                testDescription: "churn 3/s:cut",
                plan: DeparturePlan(churn: .init(perSecond: 3, cuts: true)),
                reason: "churn",
                due: 6
            ),
            Departure(
                testDescription: "a storm of half",
                plan: DeparturePlan(storms: [.init(share: 0.5, at: .milliseconds(500))]),
                reason: "storm",
                due: 4
            ),
            Departure(
                testDescription: "storms of a quarter and of all",
                plan: DeparturePlan(storms: [.init(share: 0.25, at: .zero), .init(share: 1, at: .seconds(1))]),
                reason: "storm",
                due: 10
            ),
            Departure(
                testDescription: "all subscribers offline for 700 ms",
                plan: DeparturePlan(storms: [
                    .init(share: 1, at: .milliseconds(500), cuts: false, until: .milliseconds(1_200))
                ]),
                reason: "offline",
                due: 4
            ),
        ]
    }

    @Test("clients leave as often as the plan says, and all come back", arguments: Departure.all, [1, 2])
    func departures(_ departure: Departure, _ segments: Int) throws {
        let run = try VirtualSegments(
            .init(rate: 200, departures: departure.plan, segments: segments, isPersistent: true)
        )
        try run.perform()
        let reason: Labels = ["reason": departure.reason]
        let left = run.count("disconnects", reason)
        #expect(left + run.count("departures_missed", reason) == departure.due)
        #expect(left > 0)
        // A client whose turn came with the end of the load stays away.
        #expect((left - 1...left).contains(run.count("reconnects")))
        #expect(run.samples("reconnect_duration", ["phase": "total"]) == UInt64(run.count("reconnects")))
        #expect(run.samples("connect_duration", ["phase": "total"]) == 8)
        #expect(run.lost == 0 && run.unreconciled.isEmpty)
    }
}
