import TestSupport
import Testing

extension Integration {
    @Suite("clamor broker's routing")
    struct BrokerRoutingTests {
        @Test(
            "--p2p delivers to a client that subscribed to nothing, here the sender itself",
            arguments: [("", 0), ("--p2p gate", 0), ("--p2p gate,door", 6)]
        )
        func p2p(_ flags: String, _ delivered: Int) async throws {
            let (_, counters) = try await BrokerProgram.with(flags) { broker in
                let run = try await ClamorRun.of(
                    "pub -p \(broker.port) --client-id GID_x@@@001 -t door/p2p/GID_x@@@001 -q 1 -L 6"
                )
                #expect(run.status == 0, "\(run.ending.errors)")
                #expect(run.record.perQoS("publish_acked").reduce(0, +) == 6)
            }
            #expect(counters.received.all == [0, 6, 0])
            #expect(counters.delivered.total + counters.undelivered.total == delivered)
        }
    }
}
