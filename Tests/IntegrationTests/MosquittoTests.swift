import Foundation
import Measurement
import TestSupport
import Testing

extension Integration {
    @Suite("Against mosquitto", .enabled(if: Mosquitto.isInstalled, "\(Mosquitto.missing)"))
    struct MosquittoTests {
        @Test("publish_sent is what $SYS and an independent subscriber counted, to the message", arguments: [3, 4, 5])
        func counts(_ version: Int) async throws {
            try await Mosquitto.with { broker in
                // Every third client publishes at QoS 2. Only those, for mosquitto 2.0.11 stalls a long QoS 2 queue.
                let filters = stride(from: 3, through: 90, by: 3).flatMap { ["-t", "clamor/\($0)"] }
                try await broker.withSubscriber(["-q", "2", "-F", "%t %q"] + filters + ["-t", "clamor/end"]) {
                    subscriber in
                    let run = try await ClamorRun.of(
                        "pub -p \(broker.port) -V \(version) -c 90 -q 0,1,2 -s 64 -I 0 --duration 3s -L 30000"
                    )
                    #expect(run.status == 0)
                    let sent = run.record.perQoS("publish_sent")
                    #expect(sent.allSatisfy { $0 > 0 })
                    // mosquitto 2.0.11 does not count QoS 2; no other client has published.
                    let counted = try await broker.counter("$SYS/broker/publish/messages/received")
                    #expect([sent[0] + sent[1], sent.reduce(0, +)].contains(counted), "\(sent)")

                    // All of them first, then one more that has to be the next.
                    try await subscriber.lines { $0.count > sent[2] }
                    let last = try broker.client("mosquitto_pub", ["-q", "2", "-t", "clamor/end", "-m", "end"])
                    _ = try await last.ended()
                    let lines = try await subscriber.lines { $0.last == "clamor/end 2" }
                    // Behind the $SYS message that tells of the subscription.
                    #expect(lines.dropFirst().count { $0.hasSuffix(" 2") } == sent[2] + 1)
                    #expect(run.record.count("publish_acked", qos: 1) == sent[1])
                    #expect(run.record.count("publish_acked", qos: 2) == sent[2])
                    #expect(run.record.count("publish_confirmed", qos: 0) == sent[0])
                }
            }
        }

        /// Of each message, so many copies are delivered.
        private static let topologies: [(flags: String, copies: Int)] = [
            ("pair -q 0,1,2", 1), ("fan-in -q 0,1,2", 1), ("shared -q 0,1,2", 1), ("fan-out -q 0", 4),
            ("fan-out -q 1", 4), ("fan-out -q 2", 4),
        ]

        @Test(
            "pubsub receives all that is expected, in every topology",
            arguments: topologies,
            [3, 4, 5]
        )
        func topology(_ topology: (flags: String, copies: Int), _ version: Int) async throws {
            try await Mosquitto.with { broker in
                let run = try await ClamorRun.of(
                    """
                    pubsub -p \(broker.port) -V \(version) --topology \(topology.flags) -c 4 -s 64 \
                    --rate 600/s -L 180
                    """
                )
                #expect(run.status == 0)
                #expect(run.record.isSound, "\(run.record.reasonCodes)")
                #expect(run.record.count("delivery_expected") == 180 * topology.copies)
                #expect(run.record.count("received") == 180 * topology.copies)
                #expect(run.record.perQoS("delivery_lost") == [0, 0, 0])
                #expect(run.record.perQoS("delivery_duplicated") == [0, 0, 0])
            }
        }

        /// The sum of what happened to the messages is what was due, and no objective calls it a success.
        @Test("a broker that hangs for good: what it did not answer is in every figure", arguments: [1, 2])
        func hangs(_ qos: Int) async throws {
            try await Mosquitto.with { broker in
                let run = try await ClamorRun.of(
                    "pubsub -p \(broker.port) -c 20 -q \(qos) --rate 500/s -d 6s --drain 1s",
                    "--threshold",
                    "delivery_lost == 0",
                    "--threshold",
                    "publish_ack_duration p99 < 250ms",
                    "--threshold",
                    "error_rate < 0.1%"
                ) { run in
                    try await run.lines { $0.count { $0.contains(" measure ") } >= 2 }
                    broker.program.send(SIGSTOP)
                }
                #expect(run.status == 99, "\(run.ending.errors)")
                #expect(run.record.thresholds.map(\.state) == [.undecided, .broken, .broken])
                let books = try #require(run.record.books.first { $0.qos == qos })
                #expect(books.balances)
                #expect(books.offered == 3_000 && books.timedOut == 0)
                let outstanding = try #require(books.outstanding)
                #expect(outstanding > 300)
                #expect(run.record.count("publish_outstanding") == Int(outstanding))
                #expect(books.lost == 0 && books.deliveryOutstanding ?? 0 > 0)
                let leg: Labels = ["leg": qos == 1 ? "puback" : "pubcomp"]
                let reading = try #require(run.record.duration("publish_ack_duration", leg))
                #expect(reading.count == books.offered && reading.answered == books.acked)
                #expect(reading.unanswered?.outstanding == outstanding)
                #expect(reading.isBound(\.p99) && reading.p99 > 1)
                #expect(run.ending.output.contains("≥ "))
                #expect(run.ending.output.contains("outstanding when the drain ended; give it more time"))
                let sentence = try #require(run.record.findings?.sentence)
                #expect(!sentence.contains("nothing broke"))
                if run.record.state == .valid { #expect(sentence.contains("of 3,000 messages were not answered")) }
            }
        }

        @Test("a broker that hangs for good ends a run without objectives too: 69", arguments: [0, 1])
        func hangsUnwatched(_ qos: Int) async throws {
            try await Mosquitto.with { broker in
                let line = "pubsub -p \(broker.port) -c 20 -q \(qos) --rate 500/s -d 6s --drain 1s"
                let run = try await ClamorRun.of(line) { run in
                    try await run.lines { $0.count { $0.contains(" measure ") } >= 2 }
                    broker.program.send(SIGSTOP)
                }
                #expect(run.status == 69, "\(run.ending.errors)")
                #expect(run.ending.errors.hasPrefix("clamor: the server stopped answering at "))
                #expect(run.record.verdict?.reasons.last?.code == "server-silent")
                #expect(run.record.findings?.sentence.hasPrefix("the server stopped answering at ") == true)
                #expect(run.record.books.allSatisfy { $0.lost == 0 && $0.deliveryOutstanding ?? 0 > 0 })
            }
        }

        @Test("conn holds its clients, and the broker counted as many")
        func connections() async throws {
            try await Mosquitto.with { broker in
                // Long enough for a round of $SYS.
                let run = try await ClamorRun.of("conn -p \(broker.port) -c 300 --duration 5s")
                #expect(run.status == 0)
                #expect(run.record.duration("connect_duration", ["phase": "total"])?.count == 300)
                #expect(try await broker.counter("$SYS/broker/clients/maximum") == 300)
            }
        }

        @Test("placeholders stand for what they say, as an independent subscriber sees it")
        func placeholders() async throws {
            try await Mosquitto.with { broker in
                try await broker.withSubscriber(["-v", "-t", "site/#"]) { subscriber in
                    let run = try await ClamorRun.of(
                        "pub -p \(broker.port) -c 2 -n 6 -L 4 -q 1 -t site/%i/%c/%u/%s --client-id dev-%i -u user%i -m",
                        "i=%i c=%c u=%u s=%s r=%rand_3 t=%t"
                    )
                    #expect(run.status == 0)
                    let lines = try await subscriber.lines { $0.count >= 5 }.dropFirst()
                    // Client numbers 7 and 8, two messages each.
                    let texts = lines.map { $0.split(separator: " r=")[0] }.sorted()
                    let expected = [7, 8].flatMap { client in
                        [0, 1].map { message in
                            "site/\(client)/dev-\(client)/user\(client)/\(message) "
                                + "i=\(client) c=dev-\(client) u=user\(client) s=\(message)"
                        }
                    }
                    #expect(texts.map(String.init) == expected)
                    for line in lines {
                        let tail = line.split(separator: " ").suffix(2).map { $0.split(separator: "=")[1] }
                        #expect((1...3).contains(Int(tail[0]) ?? 0))
                        let seconds = (Double(tail[1]) ?? 0) / 1e9
                        #expect(abs(seconds - Date().timeIntervalSince1970) < 600)
                    }
                }
            }
        }

        @Test("a message file is sent as it is, its placeholders filled in")
        func template() async throws {
            try await Mosquitto.with { broker in
                let folder = try ScratchFolder()
                let path = try folder.write("{\"id\": %i}", to: "message.json")
                try await broker.withSubscriber(["-v", "-t", "t"]) { subscriber in
                    let run = try await ClamorRun.of("pub -p \(broker.port) -c 1 -L 1 -q 1 -t t -m template://\(path)")
                    #expect(run.status == 0)
                    #expect(try await subscriber.lines { $0.count >= 2 }[1] == "t {\"id\": 1}")
                    #expect(!run.record.ledger.on)
                }
            }
        }

        @Test("-r leaves a retained message, which a later run counts as such")
        func retained() async throws {
            try await Mosquitto.with { broker in
                let publisher = try await ClamorRun.of("pub -p \(broker.port) -c 3 -L 3 -q 1 -r -t kept/%i")
                #expect(publisher.status == 0)
                let run = try await ClamorRun.of("sub -p \(broker.port) -c 1 -q 1 -t kept/+ --duration 3s")
                #expect(run.record.count("received", ["retained": "true"]) == 3)
                #expect(run.record.count("received", ["retained": "false"]) == 0)
            }
        }
    }
}
