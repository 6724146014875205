import MQTT
import MQTTCodec
import TestSupport
import Testing

/// Takes everything but what came from the server.
private final class DeafStore: MQTTMessageStore {
    let inner = MQTTMemoryStore()

    func load(client: String) async -> [MQTTStoredMessage] { await self.inner.load(client: client) }

    func commit(_ changes: [MQTTStoreChange], client: String) async throws {
        for change in changes {
            guard case .insert(let stored) = change, case .received = stored.stage else { continue }
            throw MQTTStoreError.tooManyMessages(limit: 0)
        }
        await self.inner.commit(changes, client: client)
    }
}

@Suite("SPEC A5, A8: what a client makes of its store", .timeLimit(.minutes(10)))
struct StoreRulesTests {
    private static let connect = connectBytes(MQTTClientConfiguration(port: 1, .v311, id: "c"))

    @Test(
        "[MQTT-3.1.2-4] a clean start forgets what the store has of the id, and sends nothing of it",
        arguments: ProtocolVersion.allCases
    )
    func cleanStart(_ version: ProtocolVersion) async throws {
        let store = GatedStore()
        let message = MQTTMessage(topic: "t", payload: [7], qos: .exactlyOnce)
        let stages: [MQTTStoredMessage.Stage] = [.published(1), .released(2), .queued, .received(9)]
        let old = stages.enumerated().map { MQTTStoredMessage(sequence: UInt64($0), stage: $1, message: message) }
        await store.inner.commit(old.map { .insert($0) }, client: "c")
        await store.inner.commit([.insert(old[0])], client: "other")
        #expect(await store.load(client: "c").count == 4)
        for _ in 0..<10 { store.open.yield(true) }
        // The id of a message that the store has: it is another one now.
        let new = wire(publish("t", [8], qos: .exactlyOnce, id: 9), version: version)
        let connect = connectBytes(MQTTClientConfiguration(port: 1, version, id: "c"))
        let script: [ScriptedPeer.Step] = [
            .expect(connect), .send(wire(.connAck(ConnAck()), version: version) + new), .expect([0x50, 2, 0, 9]),
            .expect([0xC0, 0]), .send([0xD0, 0]),
        ]
        try await withScriptedPeer(script) { peer in
            let client = MQTTClient(MQTTClientConfiguration(port: peer.port, version, id: "c"), store: store)
            try await client.connect()
            #expect(await client.take(1).map(\.payload) == [[8]])
            // The application has a message before the store does, which PUBREC waits for.
            try await peer.untilBytes(connect.count + 4)
            _ = try await client.ping()
            #expect(try await peer.mismatches().isEmpty)
            // The suite's limit ends a wait for what is not forgotten.
            while await !store.load(client: "c").isEmpty { await Task.yield() }
            #expect(await store.load(client: "other").count == 1)
            store.open.finish()
            client.abort()
        }
    }

    @Test("[MQTT-3.1.2-4] so does one with a store in memory, which several clients may share")
    func cleanStartInMemory() async throws {
        let store = MQTTMemoryStore()
        let message = MQTTMessage(topic: "t", payload: [7], qos: .exactlyOnce)
        let old = MQTTStoreChange.insert(MQTTStoredMessage(sequence: 1, stage: .published(1), message: message))
        for name in ["c", "other"] { await store.commit([old], client: name) }
        try await withScriptedPeer([.expect(Self.connect), .send([0x20, 2, 0, 0])]) { peer in
            let client = MQTTClient(MQTTClientConfiguration(port: peer.port, .v311, id: "c"), store: store)
            try await client.connect()
            #expect(await store.load(client: "c").isEmpty)
            #expect(await store.load(client: "other").count == 1)
            client.abort()
        }
    }

    @Test("[MQTT-3.1.3-2] without an identifier of its own a client uses no store", arguments: [false, true])
    func nobody(_ isClean: Bool) async throws {
        let store = GatedStore()
        let stored = MQTTStoredMessage(sequence: 1, stage: .queued, message: MQTTMessage(topic: "t", qos: .atLeastOnce))
        await store.inner.commit([.insert(stored)], client: "")
        store.open.finish()
        let client = MQTTClient(MQTTClientConfiguration(port: 1, id: "") { $0.cleanStart = isClean }, store: store)
        let error = MQTTClientError.invalid(
            "a store keeps messages under the client identifier: set clientID, or leave the store out"
        )
        #expect(await failure { try await client.publish(stored.message) } == error)
        #expect(await failure { try await client.connect() } == error)
        #expect(client.state == .created)
        await client.shutDown()
        // Another client's messages in the store stay.
        #expect(await store.load(client: "") == [stored])
    }

    @Test("a QoS 2 message that the store has no room for is delivered, and not recorded: no PUBREC, no silent loss")
    func inboundRefused() async throws {
        let store = DeafStore()
        let message: [UInt8] = [0x34, 6, 0, 1, 0x74, 0, 9, 1]
        var connect = Self.connect
        // No clean session.
        connect[9] = 0
        let script: [ScriptedPeer.Step] = [
            .expect(connect), .send([0x20, 2, 0, 0] + message), .expect([0xC0, 0]), .send([0xD0, 0]),
            .send([0x30, 4, 0, 1, 0x74, 2]), .expect([0xC0, 0]), .send([0xD0, 0]),
        ]
        try await withScriptedPeer(script) { peer in
            let client = MQTTClient(
                MQTTClientConfiguration(port: peer.port, .v311, id: "c") {
                    $0.cleanStart = false
                    $0.acknowledgement = .onReceipt
                },
                store: store
            )
            try await client.connect()
            #expect(await client.take(1).map(\.payload) == [[1]])
            _ = try await client.ping()
            // The connection goes on, and with it what needs no store.
            #expect(await client.take(1).map(\.payload) == [[2]])
            _ = try await client.ping()
            try await peer.untilScriptDone()
            #expect(try await peer.mismatches().isEmpty)
            #expect(await store.load(client: "c").isEmpty)
            client.abort()
        }
    }
}
