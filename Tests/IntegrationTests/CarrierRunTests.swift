import Foundation
import Measurement
import TestSupport
import Testing

extension Integration {
    @Suite("Payloads that carry the ledger's header in their own way")
    struct CarrierRunTests {
        static let json = #"{"n":%s,"v":%{float 18.5..24.0 1},"at":"%{time iso}","l":"%{ledger}"}"#

        static let carriers: [(flags: String, message: String?)] = [
            ("-s 16", nil), ("-s 16..40", nil), ("-s 20 -t clamor/%rand_3", nil), ("", Self.json),
            ("--ledger property", "hello"),
        ]

        private static let load = "pubsub --topology fan-in -c 3 -q 1"

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
                let run = try await Self.run(carrier, "\(Self.load) -p \(broker.port) --rate 300/s -L 150")
                Self.expectAll(run, 150)
            }
        }

        @Test("a broker that drops 2 % loses what the ledger calls lost", arguments: Self.carriers.indices)
        func dropped(_ carrier: Int) async throws {
            let (run, broker) = try await BrokerProgram.with("--drop 2%") { broker in
                try await Self.run(carrier, "\(Self.load) -p \(broker.port) --rate 1000/s -L 1500")
            }
            #expect(run.record.count("delivery_expected") == 1_500)
            #expect(broker.dropped.total > 0)
            let absent = run.record.count("delivery_lost") + run.record.count("delivery_outstanding")
            #expect(absent == broker.dropped.total)
            #expect(run.record.count("delivery_received") == 1_500 - absent)
        }

        @Test(
            "of receivers of MQTT 3 and 5, the ledger follows those of 5",
            .enabled(if: Mosquitto.isInstalled, "\(Mosquitto.missing)")
        )
        func mixed() async throws {
            let scenario = """
                name: mixed
                target: mqtt://127.0.0.1:${PORT}
                duration: 1s
                groups:
                  devices:
                    clients: 3
                    publish: { topic: "a/%i", qos: 1, message: "hello", ledger: property, rate: 100/s }
                  new:
                    clients: 2
                    subscribe: [{ filter: "a/+", qos: 1 }]
                  old:
                    clients: 2
                    connect: { protocol: 3.1.1 }
                    subscribe: [{ filter: "a/+", qos: 1 }]
                thresholds:
                  - "delivery_lost == 0"
                """
            let run = try await Self.run(scenario: scenario)
            #expect(run.status == 0, "\(run.ending.errors)")
            #expect(run.record.count("received") == 400)
            #expect(run.record.count("delivery_expected") == 200)
            #expect(run.record.metrics.allSatisfy { $0.name != "delivery_lost" || $0.labels["group"] == "new" })
        }

        private static func run(scenario: String) async throws -> ClamorRun {
            let folder = try ScratchFolder()
            let file = folder.path("scenario.yaml")
            try scenario.write(toFile: file, atomically: true, encoding: .utf8)
            return try await Mosquitto.with { broker in
                try await ClamorRun.of("run \(file) --set PORT=\(broker.port)")
            }
        }

        @Test(
            "sub alone finds the run of texts and properties",
            .enabled(if: Mosquitto.isInstalled, "\(Mosquitto.missing)"),
            arguments: Self.carriers.indices
        )
        func alone(_ carrier: Int) async throws {
            try await Mosquitto.with { broker in
                let run = try await ClamorRun.of("sub -p \(broker.port) -t clamor/# -q 1 -d 4s") { run in
                    try await run.lines { $0.contains { $0.contains(" measure ") } }
                    let sent = try await Self.run(carrier, "pub -p \(broker.port) -c 3 -q 1 --rate 300/s -L 300")
                    #expect(sent.status == 0)
                }
                #expect(run.record.count("received") == 300)
                // Two headers name the run, of each publisher in turn.
                let delivery = try #require(run.record.duration("delivery_duration"))
                #expect((290...300).contains(delivery.count))
            }
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
            let run = try await Self.run(scenario: scenario)
            #expect(run.status == 0, "\(run.ending.errors)")
            #expect(run.record.count("received") == 200)
            #expect(run.record.metrics.allSatisfy { $0.name != "delivery_lost" })
            #expect(!run.record.ledger.on)
            #expect(run.record.ledger.reason?.contains("no receiver gets properties") == true)
        }
    }
}
