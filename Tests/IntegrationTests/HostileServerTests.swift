import Measurement
import TestSupport
import Testing

extension Integration {
    @Suite("Servers that misbehave, seen from the command line")
    struct HostileServerTests {
        private static let connack311: [UInt8] = [0x20, 2, 0, 0]
        private static let connack5: [UInt8] = [0x20, 3, 0, 0, 0]
        /// A CONNECT of MQTT 3.1.1 with the client id `c`.
        private static let connectSize = 15

        /// Expects a failed run: 69, one line, one kind of error, and its results all the same.
        private static func end(_ run: ClamorRun, _ kind: String, _ words: String, clients: Int) {
            #expect(run.status == 69, "\(run.ending.errors)")
            #expect(run.ending.errorLines.count == 1, "\(run.ending.errors)")
            #expect(run.ending.errors.contains(words), "\(run.ending.errors)")
            #expect(run.record.errors.map(\.kind) == [kind])
            #expect(run.record.errors.first?.count == UInt64(clients))
            #expect(run.record.errors.first?.example.contains(words) == true)
            #expect(run.record.state == .aborted)
            #expect(run.record.books.allSatisfy { $0.balances })
        }

        // MARK: Elsewhere

        private static let reference: [UInt8] = [0x1C, 0, 18] + Array("other.example:1883".utf8)

        @Test(
            "[MQTT-4.11.0-1] a server that sends its clients elsewhere: CONNACK 0x9C, 0x9D",
            arguments: ["conn", "pub -q 1", "sub"],
            [0x9C, 0x9D] as [UInt8]
        )
        func redirect(_ command: String, _ code: UInt8) async throws {
            let answer: [UInt8] = [0x20, 24, 0, code, 21] + Self.reference
            // One that closes as it should, and one that leaves that to the client.
            for last in [[ScriptedPeer.Step.close], []] {
                try await withScriptedPeer([.expectCount(2), .send(answer)] + last) { peer in
                    let run = try await ClamorRun.of("\(command) -p \(peer.port) -c 2 --duration 1h")
                    let name = code == 0x9C ? "Use another server (0x9c)" : "Server moved (0x9d)"
                    Self.end(run, "connack 0x\(String(code, radix: 16))", "\(name), use other.example:1883", clients: 2)
                }
            }
        }

        @Test(
            "and one that does so later, or gives the session to another client: DISCONNECT",
            arguments: [
                ([0xE0, 23, 0x9C, 21] + reference, "disconnect 0x9c", "Use another server, use other.example:1883"),
                ([0xE0, 23, 0x9D, 21] + reference, "disconnect 0x9d", "Server moved, use other.example:1883"),
                ([0xE0, 1, 0x8E], "disconnect 0x8e", "Session taken over"),
                ([0xE0, 1, 0x8B], "disconnect 0x8b", "Server shutting down"),
            ] as [([UInt8], String, String)]
        )
        func goodbye(_ bytes: [UInt8], _ kind: String, _ words: String) async throws {
            try await withScriptedPeer([.expectCount(2), .send(Self.connack5 + bytes)]) { peer in
                let run = try await ClamorRun.of("conn -p \(peer.port) -c 2 --duration 1h")
                Self.end(run, kind, words, clients: 2)
            }
        }

        @Test("a packet above 1 MiB ends the run with its remedy", arguments: ["-V 4", "-V 5"])
        func largePacket(_ flags: String) async throws {
            let connack = flags == "-V 5" ? Self.connack5 : Self.connack311
            // A PUBLISH of 1 MiB and one byte.
            try await withScriptedPeer([.expectCount(2), .send(connack + [0x30, 0xFD, 0xFF, 0x3F])]) { peer in
                let run = try await ClamorRun.of("conn -p \(peer.port) -c 2 --duration 1h \(flags)")
                let words = "a packet of 1048577 bytes came, above the maximum packet size"
                Self.end(run, "protocol", words, clients: 2)
            }
        }

        @Test(
            "[3.1.1: MQTT-3.1.2-2] a 3.1.1 server that refuses version 5 ends the run with a hint",
            arguments: ["conn", "pub -q 1", "sub"]
        )
        func oldServer(_ command: String) async throws {
            try await withScriptedPeer([.expectCount(2), .send([0x20, 2, 0, 1]), .close]) { peer in
                let run = try await ClamorRun.of("\(command) -p \(peer.port) -c 2 --duration 1h")
                Self.end(run, "connack 0x01", "unsupported protocol version (0x01); try MQTT 3.1.1", clients: 2)
            }
        }

        @Test("a server of HTTP is called one, and the hint says what to do")
        func http() async throws {
            let answer = Array("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n".utf8)
            try await withScriptedPeer([.expectCount(2), .send(answer), .close]) { peer in
                let run = try await ClamorRun.of("conn -p \(peer.port) -c 2 --duration 1h")
                Self.end(run, "protocol", "as in an answer of HTTP", clients: 2)
                #expect(run.ending.output.contains("Hint  this port speaks HTTP; add --ws, or name the port of MQTT"))
            }
        }

        // MARK: Silence

        @Test(
            "a server that never answers, at whichever layer, or in part, costs --connect-timeout and no more",
            arguments: [
                ("", [], "no CONNACK within the connect timeout"),
                ("", [.expectCount(2), .send([0x20])], "no CONNACK within the connect timeout"),
                ("", [.stopReading], "no CONNACK within the connect timeout"),
                ("--proxy-protocol v1", [], "no CONNACK within the connect timeout"),
                ("-S --insecure", [], "TLS"), ("--ws", [], "WebSocket"),
                ("--ws", [.expectCount(2), .send(Array("HTTP/1.1 101 Switching".utf8))], "WebSocket"),
                ("--ws -S --insecure", [], "TLS"),
                ("--auth scram-sha-256 -u a -P b", [], "no CONNACK within the connect timeout"),
            ] as [(String, [ScriptedPeer.Step], String)]
        )
        func silence(_ flags: String, _ script: [ScriptedPeer.Step], _ words: String) async throws {
            try await withScriptedPeer(script) { peer in
                let run = try await ClamorRun.of(
                    "pub -p \(peer.port) -c 2 --connect-timeout 1s --duration 1h \(flags)"
                )
                Self.end(run, "timeout", words, clients: 2)
            }
        }

        @Test(
            "a server that acknowledges nothing, not even the end, costs --ack-timeout and --drain",
            arguments: [1, 2]
        )
        func unacknowledged(_ qos: Int) async throws {
            try await withScriptedPeer([.expectCount(2), .send(Self.connack5)]) { peer in
                let run = try await ClamorRun.of(
                    "pub -p \(peer.port) -c 2 -q \(qos) -L 10 --ack-timeout 50ms --drain 100ms"
                )
                #expect(run.status == 0, "\(run.ending.errors)")
                let books = try #require(run.record.books.first)
                #expect(books.balances)
                #expect(books.sent == 10)
                #expect(books.acked == 0)
                #expect(run.record.errors.contains { $0.kind == "timeout" })
            }
        }

        @Test("a server that takes nothing is left at the end of the drain")
        func full() async throws {
            try await withScriptedPeer([.expectCount(2), .send(Self.connack5), .stopReading]) { peer in
                let run = try await ClamorRun.of(
                    "pub -p \(peer.port) -c 2 -q 0 -s 64KiB -L 1000 --duration 3s --drain 100ms"
                )
                #expect(run.status == 69 && run.record.reasonCodes.contains("server-silent"))
                #expect(run.record.books.allSatisfy { $0.balances })
                #expect((run.record.books.first?.sent ?? 1_000) < 1_000)
                #expect((run.record.books.first?.offered ?? 0) > 0)
            }
        }

        @Test(
            "and one that answers no ping, or takes none, where nothing else has an end",
            arguments: ["conn --duration 1h", "pub -q 0 -s 64KiB -L 1000"]
        )
        func noPing(_ command: String) async throws {
            let last: [ScriptedPeer.Step] = command.hasPrefix("pub") ? [.stopReading] : []
            try await withScriptedPeer([.expectCount(2), .send(Self.connack5)] + last) { peer in
                let run = try await ClamorRun.of("\(command) -p \(peer.port) -c 2 -k 1 --drain 100ms")
                Self.end(run, "timeout", "no PINGRESP in time", clients: 2)
            }
        }

        // MARK: Wrong answers

        struct Wrong: Sendable, CustomTestStringConvertible {
            let testDescription: String
            let command: String
            let answer: [UInt8]
            let words: String

            init(_ name: String, _ command: String, _ answer: String, _ words: String) {
                self.testDescription = name
                self.command = command
                self.answer = hex(answer)
                self.words = words
            }
        }

        static let wrong = [
            Wrong("[MQTT-4.3.2-2] PUBREC at QoS 1", "pub -q 1", "5002 0001", "for a publish of another QoS (§4.3)"),
            Wrong("[MQTT-4.3.3-3] PUBACK at QoS 2", "pub -q 2", "4002 0001", "for a publish of another QoS (§4.3)"),
            Wrong("[MQTT-2.2.1-3] PUBACK of packet 0", "pub -q 1", "4002 0000", "not MQTT"),
            Wrong("a PUBACK that is cut", "pub -q 1", "4001 00", "not MQTT"),
            Wrong("a PUBACK with flags", "pub -q 1", "4202 0001", "not MQTT"),
            Wrong("a length of five bytes", "pub -q 1", "40ffffffff01", "not MQTT"),
            Wrong(
                "[MQTT-3.8.4-5] two codes for one filter",
                "sub",
                "9004 0001 0000",
                "SUBACK does not fit its SUBSCRIBE"
            ),
            Wrong("[MQTT-3.9.3-2] an undefined code", "sub", "9003 0001 03", "not MQTT"),
            Wrong("[MQTT-3.3.1-4] a PUBLISH at QoS 3", "sub", "3605 000161 0001", "not MQTT"),
            Wrong("a second CONNACK", "pub -q 1", "2002 0000", "a second CONNACK"),
            Wrong("a client's packet", "pub -q 1", "c000", "not MQTT"),
        ]

        @Test("a server that answers wrongly is left, and what it said wrong is named", arguments: wrong)
        func answers(_ wrong: Wrong) async throws {
            // Behind CONNACK the first byte is that of a PUBLISH or a SUBSCRIBE.
            let script: [ScriptedPeer.Step] = [
                .expectCount(Self.connectSize), .send(Self.connack311), .expectCount(1), .send(wrong.answer),
            ]
            try await withScriptedPeer(script) { peer in
                let run = try await ClamorRun.of(
                    "\(wrong.command) -p \(peer.port) -V 4 -c 1 --client-id c --duration 1h --drain 100ms"
                )
                Self.end(run, "protocol", wrong.words, clients: 1)
            }
        }

        @Test("an acknowledgement of what was never sent is no reason to go, and none to count")
        func stray() async throws {
            let script: [ScriptedPeer.Step] = [
                .expectCount(Self.connectSize), .send(Self.connack311), .expectCount(1),
                .send(hex("4002 7777 4002 0001")),
            ]
            try await withScriptedPeer(script) { peer in
                let run = try await ClamorRun.of(
                    "pub -p \(peer.port) -V 4 -c 1 --client-id c -q 1 -L 1 --drain 100ms"
                )
                #expect(run.status == 0, "\(run.ending.errors)")
                #expect(run.record.books.first?.acked == 1)
                #expect(run.record.books.allSatisfy { $0.balances })
            }
        }

        @Test(
            "[MQTT-4.12.0-5] a server that says yes without proof is not believed",
            arguments: [
                (connack5, "protocol", "CONNACK with another method than CONNECT"),
                ([0x20, 19, 0, 0, 16, 0x15, 0, 13] + Array("SCRAM-SHA-256".utf8), "auth", "the authentication failed"),
            ] as [([UInt8], String, String)]
        )
        func noProof(_ answer: [UInt8], _ kind: String, _ words: String) async throws {
            try await withScriptedPeer([.expectCount(2), .send(answer)]) { peer in
                let run = try await ClamorRun.of(
                    "conn -p \(peer.port) -c 2 --duration 1h --auth scram-sha-256 -u a -P b"
                )
                Self.end(run, kind, words, clients: 2)
            }
        }
    }
}
