import Measurement
import TestSupport
import Testing

extension Integration {
    @Suite("Churn and storms")
    struct DepartureRunTests {
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
