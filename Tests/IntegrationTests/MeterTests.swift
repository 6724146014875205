import Measurement
import TestSupport
import Testing

extension Integration {
    /// Loss, duplicates and order as `run.json` has them, against what another process did and counted.
    @Suite("The meter is right")
    struct MeterTests {
        static let topologies = [
            "pair -c 6 -q 0,1,2", "fan-in -c 6 -q 0,1,2", "fan-out -c 5 -q 2", "shared -c 6 -q 0,1,2",
        ]

        @Test("loss, duplicates and reordering are exactly what the broker made", arguments: Self.topologies)
        func faults(_ topology: String) async throws {
            let (run, broker) = try await BrokerProgram.with("--drop 1.5% --duplicate 40 --reorder 30") { broker in
                try await ClamorRun.of(
                    "pubsub -p \(broker.port) --topology \(topology) -s 64 --rate 900/s --duration 2s --drain 5s"
                )
            }
            #expect(run.status == 0)
            // On a busy machine the generator may be late, and say so; the numbers are right all the same.
            #expect(run.record.isSound, "\(run.record.reasonCodes)")
            #expect(run.record.books.flatMap(\.imbalances).isEmpty)
            #expect(run.record.perQoS("publish_sent") == broker.received.all)
            #expect(run.record.perQoS("delivery_lost") == broker.dropped.all)
            #expect(run.record.perQoS("delivery_duplicated") == broker.duplicated.all)
            // The server keeps no order for shared subscriptions (MQTT 5.0 §4.6).
            let isOrdered = !topology.hasPrefix("shared")
            #expect(run.record.perQoS("delivery_reordered") == (isOrdered ? broker.reordered.all : [0, 0, 0]))
            #expect(broker.dropped.total > 0 && broker.duplicated.total > 0 && broker.reordered.total > 0)
            let distinct = zip(broker.delivered.all, broker.duplicated.all).map { $0 - $1 }
            #expect(run.record.receivedPerQoS == distinct)
            #expect(run.record.perQoS("delivery_expected") == zip(distinct, broker.dropped.all).map { $0 + $1 })
            #expect(run.record.count("received") == broker.delivered.total)
        }

        /// Received messages agree exactly; lost ones agree up to messages of unknown fate.
        ///
        /// A publisher that lost its connection does not know whether its last messages arrived. If the broker lost one
        /// of them, the broker counts it, but the run by its own rule does not expect it. On the virtual clock, where
        /// every message can be followed, all counts agree: see the tests of the workload.
        @Test("the same across injected disconnects", arguments: Self.topologies)
        func disconnects(_ topology: String) async throws {
            let faults = "--drop 1.5% --duplicate 40 --reorder 30 --disconnect-every 100ms"
            let (run, broker) = try await BrokerProgram.with(faults) { broker in
                try await ClamorRun.of(
                    """
                    pubsub -p \(broker.port) --topology \(topology) -s 64 --rate 900/s --duration 2s --drain 5s \
                    --reconnect 1000 --reconnect-period 20
                    """
                )
            }
            #expect(run.status == 0)
            // On a busy machine the generator may be late, and say so; the numbers are right all the same.
            #expect(run.record.isSound, "\(run.record.reasonCodes)")
            #expect(run.record.books.flatMap(\.imbalances).isEmpty)
            #expect(broker.disconnected > 0)
            // A reset may hit a client that is still coming up, or has said goodbye.
            #expect(run.record.count("disconnects") <= broker.disconnected)
            #expect(run.record.count("reconnects") <= broker.connects - run.record.clientCount)
            #expect(run.record.perQoS("delivery_duplicated") == broker.duplicated.all)
            // The server keeps no order for shared subscriptions (MQTT 5.0 §4.6).
            let isOrdered = !topology.hasPrefix("shared")
            #expect(run.record.perQoS("delivery_reordered") == (isOrdered ? broker.reordered.all : [0, 0, 0]))
            #expect(run.record.receivedPerQoS == zip(broker.delivered.all, broker.duplicated.all).map { $0 - $1 })
            let copies = topology.hasPrefix("fan-out") ? 5 : 1
            for books in run.record.books {
                let known = Int(books.acked ?? books.confirmed ?? 0)
                let taken = broker.received.all[books.qos ?? 0]
                #expect(known <= taken)
                #expect(taken <= Int(books.sent ?? 0))
                // The broker's own equation: each PUBLISH it took, once per subscription or share group.
                let missing = [broker.dropped, broker.notDeliveredOffline, broker.undelivered]
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
}

extension RunRecord {
    /// Distinct messages at QoS 0, 1 and 2.
    fileprivate var receivedPerQoS: [Int] {
        (0...2).map { qos in Int(self.books.first { $0.qos == qos }?.received ?? 0) }
    }

    fileprivate var clientCount: Int { self.clients.values.reduce(0) { $0 + $1.count } }
}
