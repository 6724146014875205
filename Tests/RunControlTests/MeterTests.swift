import EmbeddedBroker
import Measurement
import RunControl
import TestSupport
import Testing

/// Loss, duplicates and order as `run.json` has them, against what the broker did and counted.
@Suite("The meter is right")
struct MeterTests {
    static let topologies = [
        "pair -c 6 -q 0,1,2", "fan-in -c 6 -q 0,1,2", "fan-out -c 5 -q 2", "shared -c 6 -q 0,1,2",
    ]

    @Test("loss, duplicates and reordering are exactly what the broker made", arguments: Self.topologies)
    func faults(_ topology: String) throws {
        let run = try VirtualClamor.of(
            "pubsub -p 1883 --topology \(topology) -s 64 --rate 900/s --duration 2s --drain 5s",
            on: VirtualClamor.Host("--drop 1.5% --duplicate 40 --reorder 30")
        )
        #expect(run.status == 0)
        // On a busy machine the generator may be late, and say so; the numbers are right all the same.
        #expect(run.record.isSound, "\(run.record.reasonCodes)")
        #expect(run.record.books.flatMap(\.imbalances).isEmpty)
        #expect(run.record.perQoS("publish_sent") == run.broker.received.all)
        #expect(run.record.perQoS("delivery_lost") == run.broker.dropped.all)
        #expect(run.record.perQoS("delivery_duplicated") == run.broker.duplicated.all)
        // The server keeps no order for shared subscriptions (MQTT 5.0 §4.6).
        let isOrdered = !topology.hasPrefix("shared")
        #expect(run.record.perQoS("delivery_reordered") == (isOrdered ? run.broker.reordered.all : [0, 0, 0]))
        #expect(run.broker.dropped.total > 0 && run.broker.duplicated.total > 0 && run.broker.reordered.total > 0)
        let distinct = zip(run.broker.delivered.all, run.broker.duplicated.all).map { $0 - $1 }
        #expect(run.record.receivedPerQoS == distinct)
        #expect(run.record.perQoS("delivery_expected") == zip(distinct, run.broker.dropped.all).map { $0 + $1 })
        #expect(run.record.count("received") == run.broker.delivered.total)
    }

    /// Received messages agree exactly; lost ones agree up to messages of unknown fate.
    ///
    /// A publisher that lost its connection does not know whether its last messages arrived. If the broker lost one
    /// of them, the broker counts it, but the run by its own rule does not expect it. On the virtual clock, where
    /// every message can be followed, all counts agree: see the tests of the workload.
    @Test("the same across injected disconnects", arguments: Self.topologies)
    func disconnects(_ topology: String) throws {
        let faults = "--drop 1.5% --duplicate 40 --reorder 30 --disconnect-every 100ms"
        let run = try VirtualClamor.of(
            """
            pubsub -p 1883 --topology \(topology) -s 64 --rate 900/s --duration 2s --drain 5s \
            --reconnect 1000 --reconnect-period 20
            """,
            on: VirtualClamor.Host(faults)
        )
        #expect(run.status == 0)
        // On a busy machine the generator may be late, and say so; the numbers are right all the same.
        #expect(run.record.isSound, "\(run.record.reasonCodes)")
        #expect(run.record.books.flatMap(\.imbalances).isEmpty)
        #expect(run.broker.disconnected > 0)
        // A reset may hit a client that is still coming up, or has said goodbye.
        #expect(run.record.count("disconnects") <= run.broker.disconnected)
        #expect(run.record.count("reconnects") <= Int(run.broker.connects) - run.record.clientCount)
        #expect(run.record.perQoS("delivery_duplicated") == run.broker.duplicated.all)
        // The server keeps no order for shared subscriptions (MQTT 5.0 §4.6).
        let isOrdered = !topology.hasPrefix("shared")
        #expect(run.record.perQoS("delivery_reordered") == (isOrdered ? run.broker.reordered.all : [0, 0, 0]))
        #expect(run.record.receivedPerQoS == zip(run.broker.delivered.all, run.broker.duplicated.all).map { $0 - $1 })
        let copies = topology.hasPrefix("fan-out") ? 5 : 1
        for books in run.record.books {
            let known = Int(books.acked ?? books.confirmed ?? 0)
            let taken = run.broker.received.all[books.qos ?? 0]
            #expect(known <= taken)
            #expect(taken <= Int(books.sent ?? 0))
            // The broker's own equation: each PUBLISH it took, once per subscription or share group.
            let missing = [run.broker.dropped, run.broker.notDeliveredOffline, run.broker.undelivered]
                .reduce(0) { $0 + $1.all[books.qos ?? 0] }
            #expect(Int(books.received ?? 0) + missing == taken * copies)
            // Of these the run does not count as lost what the end of a connection took with it.
            #expect(Int(books.lost ?? 0) <= missing)
            // The two may differ only by the messages that the broker took and the run does not know of.
            let missed = run.record.perQoS("delivery_missing")[books.qos ?? 0]
            #expect(missing <= missed + (taken - known) * copies)
        }
    }
}

extension RunRecord {
    /// Distinct messages at QoS 0, 1 and 2.
    fileprivate var receivedPerQoS: [Int] {
        (0...2).map { qos in Int(self.books.first { $0.qos == qos }?.received ?? 0) }
    }

    fileprivate var clientCount: Int { self.clients.values.reduce(0) { $0 + $1.count } }
}
