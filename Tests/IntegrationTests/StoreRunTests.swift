import Foundation
import MQTT
import MQTTCodec
import MQTTSQLiteStore
import Measurement
import TestSupport
import Testing

extension Integration {
    /// The messages that clients keep in a file, and their use by later runs.
    ///
    /// A busy host may limit even the smallest run; the store is not the cause.
    @Suite("--store sqlite:PATH")
    struct StoreRunTests {
        /// One client, one message in flight: a commit for each step, and the last removal's.
        @Test("there is a commit for each step of a flow, and removals ride along", arguments: [(1, 6), (2, 11)])
        func commits(_ qos: Int, _ commits: Int) async throws {
            let file = try ScratchFolder()
            let run = try await ClamorRun.of(
                "pub -h embedded -c 1 -F 1 -q \(qos) -L 5 -s 64 --store sqlite:\(file.path("flows"))"
            )
            #expect(run.status == 0)
            #expect(run.record.isSound, "\(run.record.reasonCodes)")
            #expect(run.record.count("publish_acked", qos: qos) == 5)
            #expect(run.record.count("store_messages", qos: qos) == 5)
            #expect(run.record.count("store_changes") == (qos == 1 ? 10 : 15))
            // Over all phases: the measured one ends with the send of the last message, before its later steps.
            #expect(try run.samples("store_commit_duration") == commits)
            #expect(try await Self.left(file) == [])
        }

        @Test(
            "both sides count the same, and nothing is left",
            .enabled(if: Mosquitto.isInstalled, Comment(rawValue: Mosquitto.missing)),
            arguments: ["embedded", "mosquitto"],
            [3, 4, 5]
        )
        func counts(_ server: String, _ version: Int) async throws {
            func perform(_ target: String) async throws {
                let file = try ScratchFolder()
                let session = version == 5 ? "-x 60 -C false" : "-C false"
                let run = try await ClamorRun.of(
                    """
                    pubsub \(target) -V \(version) -c 6 -q 0,1,2 -s 64 -L 1200 --prefix s \(session) \
                    --store sqlite:\(file.path("flows"))
                    """
                )
                #expect(run.status == 0)
                #expect(run.record.isSound, "\(run.record.reasonCodes)")
                #expect(run.record.count("publish_sent") == 1_200)
                #expect(run.record.count("publish_acked") == 800)
                #expect(run.record.perQoS("store_messages") == [0, 400, 400])
                #expect(run.record.count("store_recorded") == 400)
                #expect(run.record.count("delivery_expected") == 1_200)
                #expect(run.record.count("received") == 1_200)
                #expect(run.record.perQoS("delivery_lost") == [0, 0, 0])
                #expect(run.record.perQoS("delivery_duplicated") == [0, 0, 0])
                #expect(run.record.books.allSatisfy { $0.balances })
                #expect(run.record.count("store_restored") == 0)
                // No more commits than changes, and more than none.
                let commits = try #require(run.record.duration("store_commit_duration")?.count)
                #expect(commits > 0 && commits < UInt64(run.record.count("store_changes")))
                #expect(try await Self.left(file) == [])
            }
            guard server == "mosquitto" else { return try await perform("-h embedded") }
            try await Mosquitto.with { try await perform("-p \($0.port)") }
        }

        @Test("what a socket does not take at once follows, and each message is counted once")
        func large() async throws {
            let file = try ScratchFolder()
            let run = try await ClamorRun.of(
                "pub -h embedded -c 4 -q 1,2 -s 300000 -F 40 -L 320 --store sqlite:\(file.path("flows"))"
            )
            #expect(run.status == 0)
            #expect(run.record.perQoS("publish_sent") == [0, 160, 160])
            #expect(run.record.perQoS("publish_acked") == [0, 160, 160])
            #expect(run.record.count("payload_bytes_sent") == 320 * 300_000)
            #expect(run.record.isSound, "\(run.record.reasonCodes)")
            #expect(try await Self.left(file) == [])
        }

        /// The clients that the file has something of.
        static func left(_ folder: ScratchFolder) async throws -> [String] {
            let store = try MQTTSQLiteStore(path: folder.path("flows"))
            let clients = try await store.clients()
            try await store.close()
            return clients.sorted()
        }
    }

    @Suite("A file of an earlier run")
    struct StoreResumeTests {
        private func message(_ text: String, _ qos: QoS, _ properties: Properties = Properties()) -> MQTTMessage {
            MQTTMessage(topic: "old", payload: Array(text.utf8), qos: qos, properties: properties)
        }

        private func fill(_ folder: ScratchFolder, _ client: String, _ messages: [MQTTStoredMessage]) async throws {
            let store = try MQTTSQLiteStore(path: folder.path("flows"))
            try await store.commit(messages.map { .insert($0) }, client: client)
            try await store.close()
        }

        private func packet(_ text: String, _ qos: UInt8, _ id: UInt8, dup: Bool) -> [UInt8] {
            let body = [0, 3] + Array("old".utf8) + [0, id] + Array(text.utf8)
            return [0x30 | (dup ? 8 : 0) | qos << 1, UInt8(body.count)] + body
        }

        @Test("[MQTT-4.4.0-1] goes out first, in order, with DUP or as PUBREL, and is counted apart")
        func order() async throws {
            let file = try ScratchFolder()
            try await self.fill(
                file,
                "dev-1",
                [
                    .init(sequence: 4, stage: .released(9), message: self.message("", .exactlyOnce)),
                    .init(sequence: 5, stage: .published(2), message: self.message("five", .atLeastOnce)),
                    .init(sequence: 8, stage: .published(1), message: self.message("eight", .exactlyOnce)),
                    .init(sequence: 9, stage: .queued, message: self.message("nine", .atLeastOnce)),
                ]
            )
            let connect = 2 + 10 + 2 + 5
            let again: [UInt8] =
                [0x62, 2, 0, 9] + self.packet("five", 1, 2, dup: true) + self.packet("eight", 2, 1, dup: true)
            // [MQTT-4.3.2-2] It was never sent, so this is its first time, behind the commit of its identifier.
            let nine = self.packet("nine", 1, 3, dup: false)
            let new = [UInt8]([0x32, 8, 0, 3]) + Array("old".utf8) + [0, 4] + Array("x".utf8)
            let peer = try await ScriptedPeer(script: [
                .expectCount(connect), .send([0x20, 2, 1, 0]), .expect(again),
                .send([0x40, 2, 0, 2, 0x50, 2, 0, 1, 0x70, 2, 0, 9]),
            ])
            let run = try await ClamorRun.of(
                """
                pub -p \(peer.port) -V 4 -C false --client-id dev-%i -c 1 -q 1 -L 1 -m x -t old \
                --store sqlite:\(file.path("flows"))
                """
            ) { _ in
                // The one PUBREL that PUBREC brings comes in between, or before or behind.
                let rest = 4 + nine.count + new.count
                try await peer.untilBytes(connect + again.count + rest)
                let bytes = try await peer.received().suffix(rest)
                let release: [UInt8] = [0x62, 2, 0, 1]
                #expect([release + nine + new, nine + release + new, nine + new + release].contains(Array(bytes)))
                try await peer.send([0x70, 2, 0, 1, 0x40, 2, 0, 3, 0x40, 2, 0, 4])
                try await peer.untilEnd()
                try await peer.perform([.close])
            }
            #expect(try await peer.mismatches() == [])
            try await peer.shutdown()
            #expect(run.status == 0)
            #expect(run.ending.errors == "")
            #expect(run.record.perQoS("store_restored") == [0, 2, 2])
            #expect(run.record.perQoS("store_delivered") == [0, 2, 2])
            #expect(run.record.perQoS("store_messages") == [0, 1, 0])
            // None of it in the run's own books.
            #expect(run.record.count("publish_sent") == 1)
            #expect(run.record.count("publish_acked") == 1)
            #expect(run.record.count("publish_resent") == 0)
            #expect(run.record.isSound, "\(run.record.reasonCodes)")
            #expect(try await StoreRunTests.left(file) == [])
        }

        @Test("[MQTT-4.3.3-10] a QoS 2 message that was recorded is not received once more")
        func recorded() async throws {
            let file = try ScratchFolder()
            let recorded = MQTTStoredMessage(sequence: 3, stage: .received(5), message: self.message("", .exactlyOnce))
            try await self.fill(file, "dev-1", [recorded])
            let subscribe = 2 + 2 + 2 + 3 + 1
            let peer = try await ScriptedPeer(script: [
                .expectCount(2 + 10 + 2 + 5), .send([0x20, 2, 1, 0]), .expectCount(subscribe),
                // One that was recorded, and one that was not.
                .send([0x90, 3, 0, 1, 2]), .send(self.packet("five", 2, 5, dup: true)),
                .send(self.packet("six", 2, 6, dup: false)), .expect([0x50, 2, 0, 5]), .expect([0x50, 2, 0, 6]),
                .send([0x62, 2, 0, 6, 0x62, 2, 0, 5]), .expect([0x70, 2, 0, 6, 0x70, 2, 0, 5]),
                // The last PINGREQ.
                .expect([0xC0, 0]), .send([0xD0, 0]),
            ])
            let run = try await ClamorRun.of(
                "sub -p \(peer.port) -V 4 -C false --client-id dev-%i -q 2 -t old --duration 0 "
                    + "--store sqlite:\(file.path("flows"))"
            ) { program in
                try await peer.untilBytes(19 + subscribe + 8 + 8)
                program.send(SIGINT)
                try await peer.untilEnd()
                try await peer.perform([.close])
            }
            #expect(try await peer.mismatches() == [])
            try await peer.shutdown()
            #expect(run.record.count("received") == 1)
            #expect(run.record.count("store_recorded") == 1)
            #expect(try await StoreRunTests.left(file) == [])
        }

        @Test("[MQTT-3.3.2-6] its expiry interval went on while no process had it")
        func expiry() async throws {
            let file = try ScratchFolder()
            let interval = Properties([.messageExpiryInterval(1_000)])
            // Stored ten minutes ago, by a clock that says so.
            let path = file.path("flows")
            let store = try MQTTSQLiteStore(StoreFile(path: path, now: { StoreSystem.now() - 600 }))
            let stored = MQTTStoredMessage(
                sequence: 0,
                stage: .published(1),
                message: self.message("", .atLeastOnce, interval)
            )
            try await store.commit([.insert(stored)], client: "dev-1")
            try await store.close()
            let peer = try await ScriptedPeer(script: [.expectCount(30), .send([0x20, 3, 1, 0, 0])])
            let run = try await ClamorRun.of(
                """
                pub -p \(peer.port) -C false -x 60 --client-id dev-%i -c 1 -q 1 -L 1 -m x -t new \
                --drain 4s --ack-timeout 4s --store sqlite:\(path)
                """
            ) { _ in
                try await peer.untilBytes(30 + 15)
                let publish = Array(try await peer.received().dropFirst(30).prefix(15))
                // DUP, topic, identifier, five bytes of properties.
                let front: [UInt8] = [0x3A, 13, 0, 3] + Array("old".utf8) + [0, 1, 5, 2]
                #expect(Array(publish.prefix(11)) == front)
                let left = publish.suffix(4).reduce(0) { $0 << 8 | Int($1) }
                // At most as many seconds as this test may take are gone beyond the ten minutes.
                #expect((280...400).contains(left))
                try await peer.perform([.send([0x40, 2, 0, 1])])
                try await peer.untilEnd()
                try await peer.perform([.close])
            }
            try await peer.shutdown()
            #expect(run.record.count("store_delivered") == 1)
        }

        @Test(
            "[MQTT-3.2.2-5] is dropped, and told of with its count, when the session is gone",
            arguments: ["-C false -x 60", "-C true", "-C true -V 4", "-C true -V 3"]
        )
        func gone(_ session: String) async throws {
            let file = try ScratchFolder()
            try await self.fill(
                file,
                "dev-1",
                [
                    .init(sequence: 0, stage: .published(1), message: self.message("a", .atLeastOnce)),
                    .init(sequence: 1, stage: .released(2), message: self.message("b", .exactlyOnce)),
                ]
            )
            try await self.fill(
                file,
                "dev-2",
                [.init(sequence: 0, stage: .published(1), message: self.message("c", .exactlyOnce))]
            )
            try await self.fill(
                file,
                "another",
                [.init(sequence: 0, stage: .published(1), message: self.message("d", .exactlyOnce))]
            )
            let path = file.path("flows")
            let run = try await ClamorRun.of(
                "pub -h embedded \(session) --client-id dev-%i -c 2 -q 1 -L 10 -s 64 --store sqlite:\(path)"
            )
            #expect(run.status == 0)
            #expect(
                run.ending.errorLines == [
                    "clamor: --store: \(path) also holds messages of 1 client id that is not in this run; they stay there",
                    "clamor: --store: 3 messages of an earlier run were dropped, for the server has no session for them "
                        + "([MQTT-3.2.2-5])",
                ]
            )
            #expect(run.record.perQoS("store_restored") == [0, 1, 2])
            #expect(run.record.perQoS("store_dropped") == [0, 1, 2])
            #expect(run.record.count("publish_acked") == 10)
            #expect(run.record.isSound, "\(run.record.reasonCodes)")
            #expect(try await StoreRunTests.left(file) == ["another"])
        }

        @Test(
            "of a run that was killed: a second run delivers the rest, QoS 2 exactly once",
            .enabled(if: Mosquitto.isInstalled, "\(Mosquitto.missing)"),
            arguments: [1, 2, 3, 4]
        )
        func killed(_ round: Int) async throws {
            let file = try ScratchFolder()
            let path = file.path("flows")
            // The second run's publishers, with those of the first.
            let clients = """
                --client-id dev-%i -c 6 -q 1,2 -C false -x 600 -t kept/%i -F 20 --threads \(1 + round % 2) \
                --store sqlite:\(path)
                """
            try await Mosquitto.with { broker in
                try await broker.withSubscriber(["-q", "2", "-F", "%t %p", "-t", "kept/+"]) { subscriber in
                    let folder = try ScratchFolder()
                    let line = "pub -p \(broker.port) \(clients) --rate 3000/s -L 1000000 -m"
                    let arguments = ClamorRun.arguments(line, ["first %s"], in: folder)
                    try await ClamorBinary.with(arguments) { program in
                        try await subscriber.lines { $0.count > 200 * round }
                        program.send(SIGKILL)
                        _ = try await program.ended()
                    }
                    // The messages in flight, according to the file.
                    let rest = try await Self.kept(path)
                    let run = try await ClamorRun.of(
                        "pub -p \(broker.port) \(clients) -L 60 -m",
                        "second %s"
                    )
                    #expect(run.status == 0)
                    #expect(run.record.count("store_restored") == rest.count)
                    #expect(run.record.count("store_delivered") == rest.count)
                    #expect(run.record.count("publish_acked") == 60)
                    #expect(run.record.isSound, "\(run.record.reasonCodes)")
                    #expect(try await StoreRunTests.left(file) == [])
                    let lines = try await subscriber.lines { $0.count { $0.contains(" second ") } >= 60 }.dropFirst()
                    for client in 1...6 {
                        let mine = lines.filter { $0.hasPrefix("kept/\(client) ") }
                        let distinct = mine.reduce(into: [String]()) { if !$0.contains($1) { $0.append($1) } }
                        // In order and without a gap, to the last one that the file had.
                        let first = distinct.count { $0.contains(" first ") }
                        let expected =
                            (0..<first).map { "kept/\(client) first \($0)" }
                            + (0..<10).map { "kept/\(client) second \($0)" }
                        #expect(distinct == expected)
                        for (topic, payload) in rest where topic == "kept/\(client)" {
                            #expect(distinct.contains("\(topic) \(payload)"))
                        }
                        // Every second client publishes at QoS 2.
                        if client.isMultiple(of: 2) { #expect(mine.count == distinct.count) }
                    }
                }
            }
        }

        /// Topic and payload of all messages that were not released, of clients 1 to 6.
        private static func kept(_ path: String) async throws -> [(String, String)] {
            let store = try MQTTSQLiteStore(path: path)
            var messages: [(String, String)] = []
            for client in 1...6 {
                for stored in try await store.load(client: "dev-\(client)") {
                    messages.append((stored.message.topic, String(decoding: stored.message.payload, as: UTF8.self)))
                }
            }
            try await store.close()
            return messages
        }
    }
}
