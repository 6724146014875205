import Ledger
import TestSupport
import Testing

@Suite("The ledgers of one event loop")
struct SubscriberLedgerTests {
    struct Topology: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var subscriptions: Int
        var publishers: UInt32
        /// Which of the publishers a subscription hears.
        var hears: @Sendable (_ subscription: Int, _ publisher: UInt32) -> Bool = { _, _ in true }
    }

    static let topologies = [
        Topology(testDescription: "pairs", subscriptions: 300, publishers: 300) { $0 == Int($1) },
        Topology(testDescription: "fan-in", subscriptions: 1, publishers: 500),
        Topology(testDescription: "fan-out", subscriptions: 500, publishers: 1),
        Topology(testDescription: "all to all", subscriptions: 20, publishers: 30),
        Topology(testDescription: "three each", subscriptions: 200, publishers: 100) { ($0 + Int($1)) % 33 == 0 },
        Topology(testDescription: "distant ids", subscriptions: 3, publishers: 4_000_000_000) { _, id in
            [0, 1, 70_000, 3_999_999_999].contains(id)
        },
    ]

    @Test("classifies each arrival as sets do, and counts it under its QoS", arguments: topologies, [false, true])
    func oracle(_ topology: Topology, _ reserves: Bool) {
        var dice = SeededDice(seed: 7)
        var ledger = SubscriberLedger(publishers: topology.publishers)
        let ids = topology.publishers > 1000 ? [0, 1, 70_000, 3_999_999_999] : Array(0..<topology.publishers)
        if reserves {
            ledger.reserve(subscriptions: topology.subscriptions, streams: topology.subscriptions * ids.count)
        }
        var heard: [(subscription: Int, publisher: UInt32)] = []
        for subscription in 0..<topology.subscriptions {
            // Numbers in the run differ from the indices on this loop.
            #expect(ledger.addSubscription(UInt32(1000 + subscription * 2)) == subscription)
            for id in ids where topology.hears(subscription, id) { heard.append((subscription, id)) }
        }
        var oracles: [StreamKey: StreamOracle] = [:]
        var counts = PerQoS(repeating: DeliveryCounts())
        var wrong = 0
        for _ in 0..<15_000 {
            guard let (subscription, publisher) = heard.randomElement(using: &dice) else { continue }
            let key = StreamKey(subscription: UInt32(1000 + subscription * 2), publisher: publisher)
            let next = oracles[key]?.highest.map { $0 + 1 } ?? 0
            let sequence = dice.hits(0.7) ? next : UInt64.random(in: 0...next + 3, using: &dice)
            let truth = oracles[key, default: StreamOracle()].arrived(sequence)
            let qos = UInt8(publisher % 3)
            counts[qos].add(truth)
            let arrival = ledger.arrived(
                subscription: subscription,
                publisher: publisher,
                qos: qos,
                sequence: sequence
            )
            if arrival != truth { wrong += 1 }
        }
        #expect(wrong == 0)
        #expect(ledger.counts == counts)
        let export = ledger.export()
        #expect(Set(export.keys) == Set(oracles.keys))
        #expect(export.keys.count == oracles.count)
        #expect(!export.overflowed)
        #expect(export.foreign == 0)
        for (key, stream) in zip(export.keys, export.streams) {
            #expect(stream.distinct == UInt64(oracles[key]?.seen.count ?? -1))
            #expect(stream.missing == oracles[key]?.missing)
            #expect(stream.qos == UInt8(key.publisher % 3))
        }
    }

    @Test("a publisher or a QoS that cannot be is counted apart")
    func foreign() {
        var ledger = SubscriberLedger(publishers: 4)
        let subscription = ledger.addSubscription(0)
        #expect(ledger.arrived(subscription: subscription, publisher: 4, qos: 0, sequence: 0) == nil)
        #expect(ledger.arrived(subscription: subscription, publisher: 0, qos: 3, sequence: 0) == nil)
        #expect(ledger.arrived(subscription: subscription, publisher: 3, qos: 2, sequence: 0) == .new)
        #expect(ledger.export().foreign == 2)
        #expect(ledger.counts[2] == DeliveryCounts(distinct: 1))
        #expect(ledger.counts[0] == DeliveryCounts())
    }

    @Test("more gaps over all streams than the loop may keep are reported")
    func sharedBound() {
        var ledger = SubscriberLedger(limits: .init(window: 128, gaps: 100), gaps: 10)
        for number: UInt32 in 0..<11 {
            let subscription = ledger.addSubscription(number)
            #expect(!ledger.export().overflowed)
            for sequence: UInt64 in [0, 100] {
                _ = ledger.arrived(subscription: subscription, publisher: 0, qos: 0, sequence: sequence)
            }
        }
        #expect(ledger.export().overflowed)
    }
}
