import Measurement
import TestSupport
import Testing

extension Integration {
    /// A run is generator-limited if the generator was the limit, and valid if the server was.
    @Suite("The generator judges itself", .alone)
    struct GeneratorTests {
        @Test("connects that cannot be begun in time are the generator's limit")
        func connects() async throws {
            let run = try await ClamorRun.of("conn -h embedded -c 5000 -R 1000000 --duration 1s --strict")
            #expect(run.record.state == .generatorLimited)
            #expect(run.record.reasonCodes.contains("connect-rate"))
            #expect(run.status == 98)
        }

        @Test("an impossible rate is reported as the generator's limit, and the books still balance")
        func rate() async throws {
            try await DiscardingPeer.with { peer in
                let run = try await ClamorRun.of(
                    """
                    pub -p \(peer.port) -c 4 -q 0 -s 64 --rate 200000000/s --duration 2s --drain 1s --strict
                    """
                )
                #expect(run.record.state == .generatorLimited)
                #expect(run.record.reasonCodes.contains("unsent"))
                #expect(run.status == 98)
                // The plan is arithmetic: 200,000,000/s for 2 s.
                #expect(run.record.count("publish_offered") == 400_000_000)
                #expect(run.record.count("publish_sent") > 0)
                #expect(run.record.books.flatMap(\.imbalances).isEmpty)
            }
        }

        /// CPU time that others took from this host may be reported, and no other reason.
        private static func expectNotLimited(_ run: ClamorRun) {
            let codes = run.record.reasonCodes
            let isTaken = codes.contains("cpu-steal") || codes.contains("host-full")
            let isBusy = isTaken && Set(codes).isSubset(of: ["cpu-steal", "host-full", "schedule-lag"])
            #expect(run.record.state == (isBusy ? .generatorLimited : .valid), "\(codes)")
            #expect(run.status == (isBusy ? 98 : 0))
        }

        @Test("a slow broker is the broker's limit in closed loop")
        func closedLoop() async throws {
            let (run, broker) = try await BrokerProgram.with("--max-rate 1000/s") { broker in
                try await ClamorRun.of("pub -p \(broker.port) -c 8 -q 1,2 -s 64 --duration 2s --drain 10s --strict")
            }
            Self.expectNotLimited(run)
            #expect(run.record.perQoS("publish_acked") == broker.received.all)
            #expect(run.record.perQoS("publish_sent") == broker.received.all)
        }

        /// So short that it has one whole second, and one alone proves nothing.
        @Test("and in open loop, where what the broker held back is stated")
        func openLoop() async throws {
            let (run, broker) = try await BrokerProgram.with("--max-rate 1000/s") { broker in
                try await ClamorRun.of(
                    "pub -p \(broker.port) -c 8 -q 1 -s 64 --rate 2000/s --duration 1450ms --drain 500ms --strict"
                )
            }
            Self.expectNotLimited(run)
            #expect(run.record.count("publish_offered") == 2_900)
            #expect(run.record.count("publish_not_sent") > 0)
            let sent = run.record.count("publish_sent")
            #expect(run.record.count("publish_not_sent") == 2_900 - sent)
            #expect(broker.received.total <= sent)
            #expect(broker.received.total >= run.record.count("publish_acked"))
            let blocked = try #require(run.record.duration("publish_blocked_duration", ["qos": "1"]))
            #expect(Int(blocked.count) == sent)
            // 128 are in flight at once, and the others wait for the broker.
            #expect(blocked.max > 0.1)
        }

        @Test("QoS 0 is confirmed only when the broker has read it, however slowly it reads")
        func confirmed() async throws {
            let (run, broker) = try await BrokerProgram.with("--max-rate 1000/s") { broker in
                try await ClamorRun.of("pub -p \(broker.port) -c 4 -q 0 -s 64 --rate 3000/s --duration 1s --drain 1s")
            }
            #expect(run.record.count("publish_sent") == 3_000)
            #expect(run.record.count("publish_confirmed") <= broker.received.total)
            #expect(run.record.books.flatMap(\.imbalances).isEmpty)
        }
    }
}
