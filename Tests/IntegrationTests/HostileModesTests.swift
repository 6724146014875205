import Measurement
import TestSupport
import Testing

extension Integration {
    /// A client of another server shares the event loop with those of the hostile one.
    @Suite("Hostile MQTT servers: no trap, no hang, bounded memory, and other servers' clients untouched")
    struct HostileModesTests {
        struct Mode: CustomTestStringConvertible, Sendable {
            let testDescription: String
            let steps: [ScriptedPeer.Step]

            init(_ name: String, _ steps: ScriptedPeer.Step...) {
                self.testDescription = name
                // CONNECT comes first.
                self.steps = [.expectCount(10)] + steps
            }
        }

        /// CONNACK without properties.
        private static let up: [UInt8] = [0x20, 3, 0, 0, 0]
        private static func connack(_ properties: [UInt8]) -> [UInt8] {
            packet(0x20, [0, 0] + [UInt8(properties.count)] + properties)
        }

        /// A packet with its remaining length.
        private static func packet(_ head: UInt8, _ body: [UInt8]) -> [UInt8] {
            var (bytes, rest) = ([head], body.count)
            repeat {
                bytes.append(UInt8(rest & 0x7F) | (rest > 0x7F ? 0x80 : 0))
                rest >>= 7
            } while rest > 0
            return bytes + body
        }

        private static func publish(_ flags: UInt8, topic: [UInt8] = [0x61], _ rest: [UInt8] = []) -> [UInt8] {
            let length = [UInt8(topic.count >> 8), UInt8(topic.count & 0xFF)]
            return packet(0x30 | flags, length + topic + rest)
        }

        private static func flood(_ packet: [UInt8], bytes: Int = 4 << 20) -> ScriptedPeer.Step {
            .send(Array(repeatElement(packet, count: bytes / packet.count).joined()))
        }

        private static func zeros(_ count: Int, _ byte: UInt8 = 0) -> [UInt8] { Array(repeating: byte, count: count) }

        static let modes: [Mode] = [
            Mode("says nothing"), Mode("closes at once", .close), Mode("resets at once", .reset),
            Mode("shuts its side at once", .halfClose), Mode("closes after CONNACK", .send(up), .close),
            Mode("resets after CONNACK", .send(up), .reset),
            Mode("shuts its side after CONNACK", .send(up), .halfClose),
            Mode("never reads after CONNACK", .send(up), .stopReading),
            Mode("answers nothing after CONNACK", .send(up), .discard),
            Mode("CONNACK with reserved flags", .send([0x20, 3, 2, 0, 0])),
            Mode("CONNACK with an unknown reason", .send([0x20, 3, 0, 0x01, 0])),
            Mode("CONNACK with the highest reason", .send([0x20, 3, 0, 0xFF, 0])),
            Mode("CONNACK without a body", .send([0x20, 0])), Mode("CONNACK of one byte", .send([0x20, 1, 0])),
            Mode("a length of five bytes", .send([0x20, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F])),
            Mode("CONNACK that announces 256 MB", .send([0x20, 0xFF, 0xFF, 0xFF, 0x7F, 0, 0]), .send(zeros(4 << 20))),
            Mode("CONNACK of a megabyte", .send([0x20, 0xFC, 0xFF, 0x3F, 0, 0]), .send(zeros(1 << 20))),
            Mode("a PUBLISH of two megabytes", .send(up + publish(0, [0] + zeros(2 << 20)))),
            Mode("CONNACK twice", .send(up + up)),
            Mode("session present that was not asked for", .send([0x20, 3, 1, 0, 0])),
            Mode("properties longer than the packet", .send([0x20, 3, 0, 0, 0x7F])),
            Mode("an unknown property", .send(connack([0x7F, 0]))),
            Mode("a property twice", .send(connack([0x21, 0, 1, 0x21, 0, 1]))),
            Mode("Receive Maximum 0", .send(connack([0x21, 0, 0]))),
            Mode("Maximum Packet Size 0", .send(connack([0x27, 0, 0, 0, 0]))),
            Mode("Maximum Packet Size 1", .send(connack([0x27, 0, 0, 0, 1]))),
            Mode("Maximum QoS 2", .send(connack([0x24, 2]))), Mode("Maximum QoS 0", .send(connack([0x24, 0]))),
            Mode("keep alive of a second, then silence", .send(connack([0x13, 0, 1])), .discard),
            Mode(
                "a client identifier of 65,535 bytes",
                .send(packet(0x20, [0, 0, 0x82, 0x80, 4, 0x12, 0xFF, 0xFF] + zeros(65_535, 0x61)))
            ),
            Mode(
                "a reason of 65,535 control characters",
                .send(packet(0x20, [0, 0x87, 0x82, 0x80, 4, 0x1F, 0xFF, 0xFF] + zeros(65_535, 0x1B)))
            ),
            Mode("PUBLISH before CONNACK", .send(publish(0, [0]))),
            Mode("AUTH that no client began", .send([0xF0, 2, 0x18, 0])),
            Mode("DISCONNECT before CONNACK", .send([0xE0, 0])),
            Mode("SUBACK of an unknown packet", .send(up + [0x90, 4, 0, 9, 0, 0])),
            Mode("UNSUBACK of an unknown packet", .send(up + [0xB0, 4, 0, 9, 0, 0])),
            Mode("SUBACK with 1,000 codes", .send(up + packet(0x90, [0, 1, 0] + zeros(1_000)))),
            Mode("a flood of PUBACK", .send(up), flood([0x40, 2, 0, 9])),
            Mode("a flood of PUBREC", .send(up), flood([0x50, 2, 0, 9])),
            Mode("a flood of PUBREL", .send(up), flood([0x62, 2, 0, 9])),
            Mode("a flood of PUBCOMP", .send(up), flood([0x70, 2, 0, 9])),
            Mode("a flood of PINGRESP", .send(up), flood([0xD0, 0])),
            Mode("a flood of PUBREC, and no reading", .send(up), .stopReading, flood([0x50, 2, 0, 9])),
            Mode("a flood of PUBREL, and no reading", .send(up), .stopReading, flood([0x62, 2, 0, 9])),
            Mode("a flood at QoS 0", .send(up), flood(publish(0, [0] + zeros(32)))),
            Mode("a flood at QoS 1, and no reading", .send(up), .stopReading, flood(publish(2, [0, 9, 0]))),
            Mode("a flood at QoS 2 of one identifier", .send(up), flood(publish(4, [0, 9, 0]))),
            Mode("a flood of topics of 60,000 bytes", .send(up), flood(publish(0, topic: zeros(60_000, 0x61), [0]))),
            Mode("QoS 3", .send(up + publish(6, [0, 9, 0]))),
            Mode("packet identifier 0", .send(up + publish(2, [0, 0, 0]))),
            Mode("a wildcard in a topic", .send(up + publish(0, topic: [0x23], [0]))),
            Mode("a topic that is not UTF-8", .send(up + publish(0, topic: [0xFF, 0xFE], [0]))),
            Mode("U+0000 in a topic", .send(up + publish(0, topic: [0x61, 0], [0]))),
            Mode("no topic, and no alias", .send(up + publish(0, topic: [], [0]))),
            Mode("topic alias 0", .send(up + publish(0, [3, 0x23, 0, 0]))),
            Mode("a topic alias above the maximum", .send(up + publish(0, [3, 0x23, 0xFF, 0xFF]))),
            Mode("subscription identifier 0", .send(up + publish(0, [2, 0x0B, 0]))),
            Mode(
                "PUBLISH that announces 256 MB",
                .send(up + [0x30, 0xFF, 0xFF, 0xFF, 0x7F, 0, 1, 0x61, 0]),
                .send(zeros(8 << 20))
            ),
            Mode("DISCONNECT that sends elsewhere", .send(up + packet(0xE0, [0x9D, 5, 0x1C, 0, 2, 0x78, 0x79]))),
            Mode("CONNECT", .send(up + [0x10, 0])), Mode("SUBSCRIBE", .send(up + [0x82, 6, 0, 1, 0, 0, 0, 0])),
            Mode("PINGREQ", .send(up + [0xC0, 0])), Mode("packet type 0", .send(up + [0x00, 0])),
            Mode("a megabyte of zeros", .send(zeros(1 << 20))), Mode("a megabyte of ones", .send(zeros(1 << 20, 0xFF))),
            Mode("HTTP", .send(Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8))),
            Mode("a TLS alert", .send([21, 3, 3, 0, 2, 2, 40])),
        ]

        private static let good = """
            duration: 1s
            drain: 300ms
            groups:
              good:
                target: embedded
                clients: 4
                publish: { topic: "good/%i", qos: 1, rate: 100/s }
                subscribe: [{ filter: "good/%i", qos: 1 }]
            """

        /// The peak memory in bytes of a run without the hostile server.
        private static let idleMemory = Task {
            let folder = try ScratchFolder()
            let file = try folder.write(Self.good, to: "good.yaml")
            let run = try await ClamorRun.of("run \(file) --threads 1 --no-page")
            return try #require(run.record.generator.peakMemoryBytes)
        }

        private static func run(_ mode: Mode) async throws -> ClamorRun {
            try await withScriptedPeer(mode.steps) { peer in
                let folder = try ScratchFolder()
                let file = try folder.write(
                    Self.good + """

                          bad:
                            target: mqtt://127.0.0.1:\(peer.port)
                            clients: 3
                            reconnect: { times: 2, from: 100ms }
                            connect: { timeout: 400ms }
                            publish: { topic: "bad/%i", qos: 1, rate: 60/s }
                            subscribe: [{ filter: "bad/%i", qos: 2 }]
                        """,
                    to: "hostile.yaml"
                )
                return try await ClamorRun.of("run \(file) --threads 1 --no-page")
            }
        }

        @Test("more than 60 of them", arguments: modes)
        func mode(_ mode: Mode) async throws {
            let run = try await Self.run(mode)
            // Ended by itself: a signal would be above 128.
            #expect(run.status < 128, "\(run.ending.errors)")
            let record = run.record
            #expect(record.errors.allSatisfy { $0.group == "bad" }, "\(record.errors)")
            let good = record.books.first { $0.group == "good" }
            #expect(good?.offered == 100 && good?.acked == 100)
            #expect(good?.expected == 100 && good?.received == 100)
            let peak = try #require(record.generator.peakMemoryBytes)
            #expect(try await peak < Self.idleMemory.value + (64 << 20))
            // One line each, whatever the server wrote.
            #expect(run.ending.errorLines.allSatisfy { $0.utf8.count < 5_000 && !$0.unicodeScalars.contains("\u{1B}") })
        }

        @Test("there are at least 60")
        func count() { #expect(Self.modes.count >= 60) }
    }
}
