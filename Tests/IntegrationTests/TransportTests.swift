import Foundation
import Measurement
import TestSupport
import Testing

extension Integration {
    @Suite("TLS and WebSocket from the command line")
    struct TransportTests {
        private static func listeners(_ certificates: Certificates, psk: String) -> [String] {
            let server = """
                cafile \(certificates.authority)
                certfile \(certificates.certificate(.server))
                keyfile \(certificates.key(.server))
                """
            return [
                server, server + "\nrequire_certificate true", "psk_file \(psk)\npsk_hint clamor",
                "protocol websockets", "protocol websockets\n" + server,
            ]
        }

        /// Which listener, and the flags that belong to it.
        struct Way: Sendable, CustomTestStringConvertible {
            let testDescription: String
            let listener: Int
            let flags: @Sendable (Certificates) -> String
            let phases: Set<String>
        }

        static let ways = [
            Way(
                testDescription: "TLS",
                listener: 0,
                flags: { "-S --cacertfile \($0.authority)" },
                phases: ["tcp", "tls", "session", "total"]
            ),
            Way(
                testDescription: "mutual TLS",
                listener: 1,
                flags: {
                    "-S --cacertfile \($0.authority) --certfile \($0.certificate(.client)) --keyfile \($0.key(.client))"
                },
                phases: ["tcp", "tls", "session", "total"]
            ),
            Way(
                testDescription: "PSK",
                listener: 2,
                flags: { _ in "-S --psk me:00112233445566778899aabbccddeeff" },
                phases: ["tcp", "tls", "session", "total"]
            ),
            Way(
                testDescription: "WebSocket",
                listener: 3,
                flags: { _ in "--ws --header X-Test:1" },
                phases: ["tcp", "websocket", "session", "total"]
            ),
            Way(
                testDescription: "secure WebSocket",
                listener: 4,
                flags: { "--ws -S --cacertfile \($0.authority)" },
                phases: ["tcp", "tls", "websocket", "session", "total"]
            ),
        ]

        @Test(
            "mosquitto: every message of every QoS arrives, and each layer is timed",
            .enabled(if: Mosquitto.isInstalled, Comment(rawValue: Mosquitto.missing)),
            arguments: ways
        )
        func mosquitto(_ way: Way) async throws {
            let certificates = try await Certificates.all()
            let folder = try ScratchFolder()
            let psk = try folder.write("me:00112233445566778899aabbccddeeff\n", to: "psk")
            try await Mosquitto.with(listeners: Self.listeners(certificates, psk: psk)) { broker in
                let run = try await ClamorRun.of(
                    "pubsub -p \(broker.ports[way.listener]) -c 3 -q 0,1,2 -L 90 --rate 300/s \(way.flags(certificates))"
                )
                #expect(run.status == 0, "\(run.ending.errors)")
                #expect(run.record.perQoS("publish_sent") == [30, 30, 30])
                #expect(run.record.perQoS("delivery_lost") == [0, 0, 0])
                #expect(run.record.perQoS("delivery_expected") == [30, 30, 30])
                #expect(run.record.books.allSatisfy { $0.balances })
                let phases = run.record.metrics.filter { $0.name == "connect_duration" && $0.duration?.count == 6 }
                #expect(Set(phases.compactMap { $0.labels["phase"] }) == way.phases)
                // There is no suite for a pre-shared key above 1.2.
                let version = way.listener == 2 ? "TLSv1.2" : "TLSv1.3"
                #expect(run.record.tlsVersions == (way.phases.contains("tls") ? [version: 6] : nil))
            }
        }

        @Test("the embedded broker, with a certificate made for the run", arguments: ["-S", "--ws", "--ws -S"])
        func embedded(_ flags: String) async throws {
            let run = try await ClamorRun.of("pubsub -h embedded -c 3 -q 0,1,2 -L 90 --rate 300/s \(flags)")
            #expect(run.status == 0, "\(run.ending.errors)")
            #expect(run.record.perQoS("delivery_expected") == [30, 30, 30])
            #expect(run.record.perQoS("delivery_lost") == [0, 0, 0])
            #expect(run.record.books.allSatisfy { $0.balances })
            #expect(run.record.tlsVersions == (flags.contains("-S") ? ["TLSv1.3": 6] : nil))
            // Answer and arrival of a message are one entry.
            let slowest = try #require(run.record.slowest)
            #expect(slowest.count == 90 && slowest.allSatisfy { $0.received != nil })
            #expect(slowest.allSatisfy { ($0.acknowledged != nil) == ($0.qos != 0) })
        }

        @Test(
            "the subprotocols that are offered are those of the command line",
            arguments: [("mqttv3.1,mqtt", 0), ("mqttv3.1", 69)]
        )
        func subprotocols(_ names: String, _ status: Int32) async throws {
            let run = try await ClamorRun.of("conn -h embedded --ws --subprotocol \(names) -c 2 --duration 100ms")
            #expect(run.status == status, "\(run.ending.errors)")
            #expect(run.record.errors.map(\.kind) == (status == 0 ? [] : ["websocket"]))
        }

        @Test("the embedded broker, with a pre-shared key that no file holds")
        func embeddedPSK() async throws {
            let run = try await ClamorRun.of("conn -h embedded -c 2 --duration 100ms -S --psk me:00ff00ff")
            #expect(run.status == 0, "\(run.ending.errors)")
            #expect(!run.record.command.joined().contains("00ff00ff"))
        }

        @Test("the embedded broker's command line does not show the pre-shared key")
        func hiddenPSK() async throws {
            let psk = try ScratchFolder()
            let file = try psk.write("me:00ff00ff\n", to: "psk")
            let line = "conn -h embedded -c 1 --duration 0 -S --psk-file \(file)"
            let run = try await ClamorRun.of(
                line,
                beside: { program in
                    try await program.line { $0.contains(" measure ") }
                    let children = Self.commands { $0.contains("--child") && $0.contains("--tls-port") }
                    #expect(!children.isEmpty)
                    #expect(!children.flatMap(\.self).contains { $0.contains("00ff00ff") })
                    program.send(SIGINT)
                }
            )
            #expect(run.record.errors.isEmpty)
        }

        /// The command lines of the host's processes.
        private static func commands(_ isWanted: ([String]) -> Bool) -> [[String]] {
            let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
            return names.compactMap { name in
                guard Int(name) != nil, let data = FileManager.default.contents(atPath: "/proc/\(name)/cmdline") else {
                    return nil
                }
                return String(decoding: data, as: UTF8.self).split(separator: "\0").map(String.init)
            }.filter(isWanted)
        }

        @Test(
            "what the files lack is found before the first socket",
            arguments: [
                ("-S --cacertfile /nowhere", "--cacertfile: cannot read /nowhere"),
                ("-S --cacertfile /dev/null", "--cacertfile: /dev/null holds no"),
                ("-S --ciphers NULL", "--ciphers: no cipher suite 'NULL' here"),
                ("-S --pin sha256/AAAA", "--pin: 'sha256/AAAA' is no pin"),
                ("-S --certfile /nowhere --keyfile /nowhere", "--certfile: cannot read /nowhere"),
            ]
        )
        func files(_ flags: String, _ words: String) async throws {
            let line = "conn -c 1 --duration 100ms " + flags
            let ending = try await ClamorBinary.run(line.split(separator: " ").map(String.init))
            #expect(ending.status == 64)
            #expect(ending.errorLines.count == 1)
            #expect(ending.errors.contains(words), "\(ending.errors)")
        }
    }
}
