import Foundation
import Measurement
import TestSupport
import Testing

extension Integration {
    @Suite("Payloads that carry the ledger's header in their own way")
    struct CarrierRunTests {
        static let json = #"{"n":%s,"v":%{float 18.5..24.0 1},"at":"%{time iso}","l":"%{ledger}"}"#

        static let carriers: [(flags: String, message: String?)] = [
            ("-s 16", nil), ("-s 16..40", nil), ("-s 20 -t clamor/%rand_3 --topology fan-in", nil), ("", Self.json),
            ("--ledger property", "hello"),
        ]

        private static func run(_ carrier: Int, _ line: String) async throws -> ClamorRun {
            let (flags, message) = self.carriers[carrier]
            guard let message else { return try await ClamorRun.of("\(line) \(flags)") }
            return try await ClamorRun.of("\(line) \(flags)", "-m", message)
        }

        private static func expectAll(_ run: ClamorRun, _ count: Int) {
            #expect(run.status == 0, "\(run.ending.errors)")
            #expect(run.record.isSound && run.record.ledger.on, "\(run.record.reasonCodes)")
            #expect(run.record.count("delivery_expected") == count)
            #expect(run.record.count("delivery_received") == count)
            for name in ["delivery_lost", "delivery_duplicated", "delivery_reordered"] {
                #expect(run.record.count(name) == 0, "\(name)")
            }
            #expect(run.record.duration("delivery_duration")?.count == UInt64(count))
        }

        @Test(
            "every message is followed on mosquitto",
            .enabled(if: Mosquitto.isInstalled, "\(Mosquitto.missing)"),
            arguments: Self.carriers.indices
        )
        func mosquitto(_ carrier: Int) async throws {
            try await Mosquitto.with { broker in
                let run = try await Self.run(carrier, "pubsub -p \(broker.port) -c 3 -q 1 --rate 300/s -L 150")
                Self.expectAll(run, 150)
            }
        }

        @Test("a broker that drops 2 % loses what the ledger calls lost", arguments: Self.carriers.indices)
        func dropped(_ carrier: Int) async throws {
            let (run, broker) = try await BrokerProgram.with("--drop 2%") { broker in
                try await Self.run(carrier, "pubsub -p \(broker.port) -c 3 -q 1 --rate 1000/s -L 1500")
            }
            #expect(run.record.count("delivery_expected") == 1_500)
            #expect(broker.dropped.total > 0)
            let absent = run.record.count("delivery_lost") + run.record.count("delivery_outstanding")
            #expect(absent == broker.dropped.total)
            #expect(run.record.count("delivery_received") == 1_500 - absent)
        }

        @Test(
            "mosquitto leaves properties out for subscribers of MQTT 3: the stream is not followed, and nothing is lost",
            .enabled(if: Mosquitto.isInstalled, "\(Mosquitto.missing)")
        )
        func stripped() async throws {
            let scenario = """
                name: stripped
                target: mqtt://127.0.0.1:${PORT}
                duration: 1s
                groups:
                  devices:
                    clients: 3
                    publish: { topic: "a/%i", qos: 1, message: "hello", ledger: property, rate: 100/s }
                  old:
                    clients: 2
                    connect: { protocol: 3.1.1 }
                    subscribe: [{ filter: "a/+", qos: 1 }]
                """
            let folder = try ScratchFolder()
            let file = folder.path("stripped.yaml")
            try scenario.write(toFile: file, atomically: true, encoding: .utf8)
            try await Mosquitto.with { broker in
                let run = try await ClamorRun.of("run \(file) --set PORT=\(broker.port)")
                #expect(run.status == 0, "\(run.ending.errors)")
                #expect(run.record.count("received") == 200)
                #expect(run.record.metrics.allSatisfy { $0.name != "delivery_lost" })
                #expect(!run.record.ledger.on)
                #expect(run.ending.output.contains("messages arrived without their user property 'clamor'"))
            }
        }
    }
}
