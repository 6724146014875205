import Foundation
import Measurement
import TestSupport
import Testing

extension Integration {
    @Suite("Stages and load models, by clamor run")
    struct StageRunTests {
        private static func run(_ scenario: String, _ flags: String = "") async throws -> ClamorRun {
            let folder = try ScratchFolder()
            let file = try folder.write(scenario, to: "staged.yaml")
            return try await ClamorRun.of("run \(file) --threads 2 --summary full \(flags)")
        }

        @Test(
            "sessions end with their run: the next one on the same server expects and receives its own messages",
            .enabled(if: Mosquitto.isInstalled, "\(Mosquitto.missing)")
        )
        func sessionsEnd() async throws {
            try await Mosquitto.with { broker in
                // The same client ids again, then others, beside which members of the share group would show as a loss.
                for seed in [3, 3, 4] {
                    let run = try await Self.run(
                        """
                        target: mqtt://127.0.0.1:\(broker.port)
                        seed: \(seed)
                        duration: 1s
                        groups:
                          devices:
                            clients: 4
                            publish: { topic: "d/%i", qos: 1, size: 64, rate: 100/s }
                          backend:
                            clients: 2
                            connect: { clean: false, session_expiry: 5m }
                            subscribe: [{ filter: "$share/g/d/+", qos: 1 }]
                        """
                    )
                    #expect(run.status == 0, "seed \(seed): \(run.ending.errors)")
                    #expect(run.record.isSound, "\(run.record.reasonCodes)")
                    #expect(run.record.books.compactMap(\.expected) == [100])
                    #expect(run.record.books.compactMap(\.received) == [100])
                }
            }
        }
    }
}
