import Measurement
import TestSupport
import Testing

extension Integration {
    @Suite("Churn and storms")
    struct DepartureRunTests {
        /// How many are due, and how many of them so late that the load's end may find them away.
        @Test(
            "conn --churn: clients leave at that rate, in turn, and all come back",
            arguments: [("40/s --duration 1s", 40, 10)]
        )
        func churn(_ churn: String, _ due: Int, _ away: Int) async throws {
            let run = try await ClamorRun.of("conn -h embedded -c 10 --churn \(churn)")
            #expect(run.status == 0, "\(run.ending.errors)")
            let left = run.record.count("disconnects", ["reason": "churn"])
            let missed = run.record.count("departures_missed", ["reason": "churn"])
            #expect(left + missed == due)
            #expect(left > 0)
            let back = run.record.count("reconnects")
            #expect((left - away...left).contains(back), "\(back) of \(left)")
            #expect(run.record.duration("reconnect_duration", ["phase": "total"])?.count ?? 0 == UInt64(back))
            #expect(run.record.duration("connect_duration", ["phase": "total"])?.count == 10)
            #expect(run.record.errors.isEmpty)
        }

        @Test(
            "a storm with a persistent session loses nothing at QoS 1 and 2",
            .enabled(if: Mosquitto.isInstalled, Comment(rawValue: Mosquitto.missing)),
            arguments: ["-V 4 -C false", "-V 5 -C false -x 300"]
        )
        func persistent(_ session: String) async throws {
            try await Mosquitto.with { broker in
                let run = try await ClamorRun.of(
                    """
                    pubsub -p \(broker.port) -c 6 -q 1,2 --rate 200/s --duration 4s \(session) --storm 50%@500ms \
                    --storm 50%@2s:disconnect --seed 7
                    """
                )
                #expect(run.status == 0, "\(run.ending.errors)")
                #expect(run.record.count("disconnects", ["reason": "storm"]) == 12)
                #expect(run.record.count("reconnects") == 12)
                #expect(run.record.perQoS("publish_offered") == [0, 400, 400])
                #expect(run.record.perQoS("delivery_lost") == [0, 0, 0])
                #expect(run.record.perQoS("publish_acked") == [0, 400, 400])
                #expect(run.record.count("delivery_duplicated", qos: 2) == 0)
                #expect(run.record.books.allSatisfy { $0.balances })
                #expect(run.record.isSound, "\(run.record.reasonCodes)")
            }
        }

        @Test("a storm that the load's end came before is counted, every client of it")
        func stormMissed() async throws {
            let run = try await ClamorRun.of("pub -h embedded -c 4 -q 1 --rate 100/s -L 10 --storm 50%@60s")
            #expect(run.status == 0, "\(run.ending.errors)")
            #expect(run.record.count("disconnects", ["reason": "storm"]) == 0)
            #expect(run.record.count("departures_missed", ["reason": "storm"]) == 2)
        }

        @Test("sessions that are resumed at the embedded broker: its counts agree", arguments: [50, 100])
        func resumed(_ share: Int) async throws {
            let run = try await ClamorRun.of(
                """
                pubsub -h embedded -c 6 -q 1,2 -I 0 -F 50 --duration 1s -V 5 -C false -x 300 --storm \(share)%@300ms \
                --storm \(share)%@600ms --seed 7
                """
            )
            #expect(run.status == 0, "\(run.ending.errors)")
            #expect(run.record.count("publish_resent") > 0)
            #expect(!run.record.reasonCodes.contains("broker-books"), "\(run.record.verdict?.reasons ?? [])")
        }

        @Test("a storm of all with clean sessions: what is lost is counted, and the books close")
        func clean() async throws {
            let run = try await ClamorRun.of(
                "pubsub -h embedded -c 6 -q 0,1,2 --rate 300/s --duration 4s --storm 100%@500ms -R 100 --seed 3"
            )
            #expect(run.status == 0, "\(run.ending.errors)")
            #expect(run.record.count("disconnects", ["reason": "storm"]) == 12)
            #expect(run.record.count("reconnects") == 12)
            #expect(run.record.books.allSatisfy { $0.balances })
            #expect(run.record.perQoS("publish_offered") == [400, 400, 400])
            #expect(run.record.isSound, "\(run.record.reasonCodes)")
        }

        @Test("messages of different sizes and an alias: nothing is lost, and each topic goes out once a connection")
        func aliases() async throws {
            let run = try await ClamorRun.of(
                """
                pubsub -h embedded -c 2 -q 1 --rate 100/s -L 60 --topic-alias --response-topic r/%i/%s \
                --user-properties=a:b
                """
            )
            #expect(run.status == 0, "\(run.ending.errors)")
            #expect(run.record.count("delivery_expected", qos: 1) == 60)
            #expect(run.record.count("delivery_lost", qos: 1) == 0)
        }

        @Test(
            "--raw: bytes instead of CONNECT, and the server's reaction",
            arguments: [
                ("-V 4", "100c00044d5154540402003c0000", 0, ""),
                ("-V 4", "100c00044d5154540902003c0000", 69, "connack 0x01"),
            ]
        )
        func raw(_ version: String, _ bytes: String, _ status: Int32, _ kind: String) async throws {
            let run = try await ClamorRun.of("conn -h embedded \(version) --duration 100ms --raw \(bytes)")
            #expect(run.status == status, "\(run.ending.errors)")
            #expect(run.record.errors.map(\.kind) == (kind.isEmpty ? [] : [kind]))
            #expect(!run.record.command.joined().contains(bytes))
        }

        @Test("of several targets one is dead: the others carry their part, and what was never sent is in the books")
        func deadTarget() async throws {
            let reserved = try ReservedPort()
            try await ClamorBinary.with(["broker", "-p", "0"]) { broker in
                let port = try await broker.line().split(separator: ":").last ?? ""
                let run = try await ClamorRun.of(
                    "pub -h 127.0.0.1:\(port),127.0.0.1:\(reserved.port) -c 4 -q 1 --rate 100/s -L 40"
                )
                #expect(run.status == 0, "\(run.ending.errors)")
                #expect(run.record.errors.map(\.kind) == ["refused"])
                #expect(run.record.errors.map { $0.count } == [2])
                #expect(run.record.count("publish_acked", qos: 1) == 20)
                #expect(run.record.count("publish_not_sent", qos: 1) == 20)
                #expect(run.record.books.allSatisfy { $0.balances })
            }
        }
    }
}
