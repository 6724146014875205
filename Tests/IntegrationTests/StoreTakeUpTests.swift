import MQTT
import MQTTCodec
import MQTTSQLiteStore
import Measurement
import TestSupport
import Testing

extension Integration {
    @Suite("Files of an earlier run that need care")
    struct StoreTakeUpTests {
        private func message(_ text: String, _ qos: QoS, retain: Bool = false) -> MQTTMessage {
            MQTTMessage(topic: "old", payload: Array(text.utf8), qos: qos, retain: retain)
        }

        private static var long: String { String(repeating: "a", count: 40) }

        private func fill(_ folder: ScratchFolder, _ messages: [MQTTStoredMessage]) async throws {
            let store = try MQTTSQLiteStore(path: folder.path("flows"))
            try await store.commit(messages.map { .insert($0) }, client: "dev-1")
            try await store.close()
        }

        /// Of MQTT 5 there are no properties in it.
        private func packet(_ text: String, _ id: UInt8, dup: Bool, version: Int) -> [UInt8] {
            let body = [0, 3] + Array("old".utf8) + [0, id] + (version == 5 ? [0] : []) + Array(text.utf8)
            return [dup ? 0x3A : 0x32, UInt8(body.count)] + body
        }

        /// A run of one publisher with one message, against what `perform` has the server do; the file is empty then.
        private func run(
            _ file: ScratchFolder,
            version: Int,
            connack: [UInt8],
            _ perform: @escaping @Sendable (ScriptedPeer, _ connect: Int) async throws -> Void
        ) async throws -> ClamorRun {
            let connect = version == 5 ? 30 : 19
            let peer = try await ScriptedPeer(script: [.expectCount(connect), .send(connack)])
            let run = try await ClamorRun.of(
                """
                pub -p \(peer.port) -V \(version) -C false \(version == 5 ? "-x 60" : "") --client-id dev-%i -c 1 -q 1 -L 1 \
                -m x -t old --store sqlite:\(file.path("flows"))
                """
            ) { _ in
                try await perform(peer, connect)
                try await peer.untilEnd()
                try await peer.perform([.close])
            }
            #expect(try await peer.mismatches() == [])
            try await peer.shutdown()
            #expect(run.status == 0)
            #expect(run.record.count("publish_acked") == 1)
            #expect(run.record.books.allSatisfy { $0.balances })
            #expect(try await StoreRunTests.left(file) == [])
            return run
        }

        @Test("a store beside several streams of one client is refused: it keeps the numbers of one")
        func streams() async throws {
            let folder = try ScratchFolder()
            let streams = ["one", "two"].map { "{ name: \($0), topic: \($0), qos: 1, rate: 10/s }" }
            let group =
                "{ clients: 2, store: 'sqlite:\(folder.path("flows"))', publish: [\(streams.joined(separator: ", "))] }"
            let file = try folder.write("target: embedded\nduration: 1s\ngroups:\n  a: \(group)\n", to: "load.yaml")
            let ending = try await ClamorBinary.run(["run", file])
            let words =
                "store: keeps one stream of a client, and the messages of these have several; give each a group of its own"
            #expect(ending.status != 0 && ending.errors.contains(words), "\(ending.errors)")
        }

        @Test("--keep-sessions takes up what the server kept between two runs", arguments: [4, 5])
        func keptSessions(_ version: Int) async throws {
            _ = try await BrokerProgram.with { broker in
                let common = "-p \(broker.port) -V \(version) -t kept -q 1"
                let expiry = version == 5 ? "-x 60" : ""
                let sub = "sub \(common) -c 3 -C false --keep-sessions --client-id kept-%i \(expiry)"
                #expect(try await ClamorRun.of("\(sub) --duration 300ms").status == 0)
                #expect(try await ClamorRun.of("pub \(common) -c 1 -L 4").status == 0)
                let run = try await ClamorRun.of("\(sub) --duration 1s")
                #expect(run.status == 0)
                #expect(run.record.count("received", qos: 1) == 12)
            }
        }

        @Test("[MQTT-3.2.2-11] [MQTT-3.2.2-14] [MQTT-3.2.2-15] what this server does not take is refused, not sent")
        func limits() async throws {
            let file = try ScratchFolder()
            try await self.fill(
                file,
                [
                    .init(sequence: 0, stage: .published(1), message: self.message(Self.long, .atLeastOnce)),
                    .init(sequence: 1, stage: .published(2), message: self.message("b", .exactlyOnce)),
                    .init(sequence: 2, stage: .published(3), message: self.message("c", .atLeastOnce, retain: true)),
                    .init(sequence: 3, stage: .queued, message: self.message("d", .exactlyOnce)),
                    .init(sequence: 4, stage: .published(4), message: self.message("ok", .atLeastOnce)),
                    .init(sequence: 5, stage: .released(5), message: self.message("", .exactlyOnce)),
                ]
            )
            // QoS 1 at most, nothing retained, packets of 30 bytes at most.
            let connack: [UInt8] = [0x20, 12, 1, 0, 9, 0x24, 1, 0x25, 0, 0x27, 0, 0, 0, 30]
            // The second may be known to the server, which is to let go of its identifier.
            let expected =
                self.packet("ok", 4, dup: true, version: 5) + [0x62, 2, 0, 5, 0x62, 2, 0, 2]
                + self.packet("x", 7, dup: false, version: 5)
            let run = try await self.run(file, version: 5, connack: connack) { peer, connect in
                try await peer.untilBytes(connect + expected.count)
                #expect(try await Array(peer.received().dropFirst(connect)) == expected)
                try await peer.send([0x40, 2, 0, 4, 0x70, 2, 0, 5, 0x70, 3, 0, 2, 0x92, 0x40, 2, 0, 7])
            }
            #expect(run.record.perQoS("store_restored") == [0, 3, 3])
            #expect(run.record.perQoS("store_delivered") == [0, 1, 1])
            #expect(run.record.perQoS("store_refused") == [0, 2, 2])
            #expect(run.record.perQoS("store_dropped") == [0, 0, 0])
            let error = try #require(run.record.errors.first { $0.kind == "not allowed" })
            #expect(error.count == 4)
            #expect(error.example == "CONNACK does not allow a publish of an earlier run: Packet too large")
        }

        @Test("[MQTT-3.3.4-7] what is not taken makes room for what the receive maximum holds back")
        func heldBack() async throws {
            let file = try ScratchFolder()
            try await self.fill(
                file,
                [
                    .init(sequence: 0, stage: .published(1), message: self.message("one", .atLeastOnce)),
                    .init(sequence: 1, stage: .published(2), message: self.message(Self.long, .atLeastOnce)),
                    .init(sequence: 2, stage: .published(3), message: self.message("three", .atLeastOnce)),
                ]
            )
            // One message at a time, packets of 30 bytes at most.
            let connack: [UInt8] = [0x20, 11, 1, 0, 8, 0x21, 0, 1, 0x27, 0, 0, 0, 30]
            let one = self.packet("one", 1, dup: true, version: 5)
            let three = self.packet("three", 3, dup: true, version: 5)
            let new = self.packet("x", 4, dup: false, version: 5)
            let run = try await self.run(file, version: 5, connack: connack) { peer, connect in
                try await peer.untilBytes(connect + one.count)
                try await peer.send([0x40, 2, 0, 1])
                try await peer.untilBytes(connect + one.count + three.count)
                try await peer.send([0x40, 2, 0, 3])
                try await peer.untilBytes(connect + one.count + three.count + new.count)
                #expect(try await Array(peer.received().dropFirst(connect)) == one + three + new)
                try await peer.send([0x40, 2, 0, 4])
            }
            #expect(run.record.perQoS("store_delivered") == [0, 2, 0])
            #expect(run.record.perQoS("store_refused") == [0, 1, 0])
        }

        @Test("of two messages under one identifier the earlier was done with")
        func twice() async throws {
            let file = try ScratchFolder()
            try await self.fill(
                file,
                [
                    .init(sequence: 0, stage: .published(1), message: self.message("one", .atLeastOnce)),
                    .init(sequence: 1, stage: .published(1), message: self.message("two", .atLeastOnce)),
                ]
            )
            let expected = self.packet("two", 1, dup: true, version: 4) + self.packet("x", 2, dup: false, version: 4)
            let run = try await self.run(file, version: 4, connack: [0x20, 2, 1, 0]) { peer, connect in
                try await peer.untilBytes(connect + expected.count)
                #expect(try await Array(peer.received().dropFirst(connect)) == expected)
                try await peer.send([0x40, 2, 0, 1, 0x40, 2, 0, 2])
            }
            #expect(run.record.perQoS("store_restored") == [0, 1, 0])
            #expect(run.record.perQoS("store_delivered") == [0, 1, 0])
        }

        @Test("a publisher that was a subscriber lets go of what it had recorded")
        func role() async throws {
            let file = try ScratchFolder()
            let recorded = MQTTStoredMessage(sequence: 3, stage: .received(5), message: self.message("", .exactlyOnce))
            try await self.fill(file, [recorded])
            let new = self.packet("x", 1, dup: false, version: 4)
            let completed: [UInt8] = [0x70, 2, 0, 5]
            _ = try await self.run(file, version: 4, connack: [0x20, 2, 1, 0, 0x62, 2, 0, 5]) { peer, connect in
                try await peer.untilBytes(connect + new.count + 4)
                let bytes = try await Array(peer.received().dropFirst(connect))
                #expect([new + completed, completed + new].contains(bytes))
                try await peer.send([0x40, 2, 0, 1])
            }
        }

        @Test("a subscriber that was a publisher ends the flows that it had, and subscribes")
        func publisherBefore() async throws {
            let file = try ScratchFolder()
            try await self.fill(
                file,
                [
                    .init(sequence: 0, stage: .published(1), message: self.message("one", .atLeastOnce)),
                    .init(sequence: 1, stage: .released(2), message: self.message("", .exactlyOnce)),
                ]
            )
            let subscribe: [UInt8] = [0x82, 8, 0, 3, 0, 3] + Array("old".utf8) + [2]
            let peer = try await ScriptedPeer(script: [
                .expectCount(19), .send([0x20, 2, 1, 0]),
                .expect(self.packet("one", 1, dup: true, version: 4) + [0x62, 2, 0, 2] + subscribe),
                .send([0x40, 2, 0, 1, 0x70, 2, 0, 2, 0x90, 3, 0, 3, 2]),
                // The last PINGREQ.
                .expect([0xC0, 0]), .send([0xD0, 0]),
            ])
            let run = try await ClamorRun.of(
                "sub -p \(peer.port) -V 4 -C false --client-id dev-%i -q 2 -t old --duration 500ms "
                    + "--store sqlite:\(file.path("flows"))"
            ) { _ in
                try await peer.untilEnd()
                try await peer.perform([.close])
            }
            #expect(try await peer.mismatches() == [])
            try await peer.shutdown()
            #expect(run.status == 0)
            #expect(run.record.perQoS("store_restored") == [0, 1, 1])
            #expect(run.record.perQoS("store_delivered") == [0, 1, 1])
            #expect(try await StoreRunTests.left(file) == [])
        }

        @Test(
            "what was queued goes first, within the window, and a lost session is no matter",
            arguments: ["-C true", "-C false -x 60"]
        )
        func queued(_ session: String) async throws {
            let file = try ScratchFolder()
            let path = file.path("flows")
            let queued = (0..<40).map { number in
                MQTTStoredMessage(
                    sequence: UInt64(number) + 7,
                    stage: .queued,
                    message: self.message("\(number)", number.isMultiple(of: 2) ? .atLeastOnce : .exactlyOnce)
                )
            }
            try await self.fill(file, queued)
            let run = try await ClamorRun.of(
                "pub -h embedded \(session) --client-id dev-%i -c 1 -q 1 -F 3 -L 5 -s 64 --store sqlite:\(path)"
            )
            #expect(run.status == 0)
            #expect(run.ending.errors == "")
            #expect(run.record.perQoS("store_restored") == [0, 20, 20])
            #expect(run.record.perQoS("store_delivered") == [0, 20, 20])
            #expect(run.record.count("publish_acked") == 5)
            #expect(try await StoreRunTests.left(file) == [])
        }
    }
}
