import Measurement
import TestSupport
import Testing

extension Integration {
    /// Runs in which an expectation of the ledger would accuse a server that did nothing wrong.
    @Suite("The ledger accuses no server wrongly")
    struct LedgerRunTests {
        static let topologies = ["pair", "fan-in", "shared", "request"]

        @Test("--separate gives each of two servers a ledger of its own", arguments: topologies)
        func separate(_ topology: String) async throws {
            let (run, counters) = try await Self.withTwo { ports in
                try await ClamorRun.of(
                    "pubsub -h \(ports) --separate --topology \(topology) -c 5 --subscribers 3 -q 1 --rate 150/s"
                        + " --duration 2s"
                )
            }
            #expect(run.status == 0, "\(run.ending.errors)")
            #expect(run.record.isSound, "\(run.record.reasonCodes)")
            #expect(run.record.count("publish_offered") == 300)
            #expect(run.record.count("delivery_lost") == 0 && run.record.count("delivery_duplicated") == 0)
            #expect(run.record.books.allSatisfy { $0.balances })
            // Both had their part: publishers 0 and 1, and publishers 2 to 4.
            let received = counters.map { topology == "request" ? $0.received.qos1 : $0.received.total }
            #expect(received == [120, 180])
            // Two of five publishers have no subscriber as pairs; with fan-in one server has one subscriber, the other two.
            let expected = ["pair": 180, "fan-in": 120 + 2 * 180, "shared": 300, "request": 300][topology]
            #expect(run.record.count("delivery_expected") == expected)
            #expect(run.record.plan["separate"] == true)
        }

        @Test("two servers that are taken for one are found by what never crossed, and --separate is named")
        func apart() async throws {
            let (run, _) = try await Self.withTwo { ports in
                try await ClamorRun.of(
                    "pubsub -h \(ports) --topology fan-in -c 4 --subscribers 2 -q 1 --rate 100/s --duration 1s --drain 3s"
                )
            }
            #expect(run.record.count("delivery_lost") == 100)
            #expect(run.record.notes?.first { $0.code == "targets-apart" }?.measured == 100)
            #expect(run.record.notes?.map(\.code).contains("targets-apart") == true)
            #expect(run.ending.errors.contains("look like separate servers; add --separate"), "\(run.ending.errors)")
        }

        @Test("losses of one server behind two addresses are its own", arguments: ["pair", "fan-in", "shared"])
        func cluster(_ topology: String) async throws {
            let (run, counters) = try await BrokerProgram.with("--drop 5%") { broker in
                try await ClamorRun.of(
                    "pubsub -h 127.0.0.1:\(broker.port),localhost:\(broker.port) --topology \(topology) -c 4"
                        + " --subscribers 4 -q 1 --rate 200/s --duration 1s --drain 3s"
                )
            }
            #expect(counters.dropped.total > 0)
            #expect(run.record.count("delivery_lost") == counters.dropped.total)
            #expect(run.record.notes?.map(\.code).contains("targets-apart") != true)
        }

        /// Runs `body` with the hosts of two brokers.
        private static func withTwo(
            _ body: (String) async throws -> ClamorRun
        ) async throws -> (ClamorRun, [BrokerProgram.Counters]) {
            let (inner, first) = try await BrokerProgram.with { one in
                try await BrokerProgram.with { two in
                    try await body("127.0.0.1:\(one.port),127.0.0.1:\(two.port)")
                }
            }
            return (inner.0, [first, inner.1])
        }
    }
}
