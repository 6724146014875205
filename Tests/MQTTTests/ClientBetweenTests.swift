import MQTT
import MQTTCodec
import TestSupport
import Testing

@Suite("A client's messages between two connections")
struct ClientBetweenTests {
    private static let connectSize = connectBytes(MQTTClientConfiguration(port: 1, .v311, id: "c")).count

    private static func configuration(
        _ peer: ScriptedPeer,
        _ acknowledgement: MQTTAcknowledgement = .onReceipt
    ) -> MQTTClientConfiguration {
        MQTTClientConfiguration(port: peer.port, .v311, id: "c") {
            $0.cleanStart = false
            $0.acknowledgement = acknowledgement
        }
    }

    /// Connects, with a session or without.
    private static func connect(
        _ client: MQTTClient,
        _ peer: ScriptedPeer,
        number: Int,
        present: Bool,
        then steps: [ScriptedPeer.Step]
    ) async throws {
        async let connected = client.connect()
        try await peer.untilConnections(number + 1)
        let answer: [ScriptedPeer.Step] = [.expectCount(Self.connectSize), .send([0x20, 2, present ? 1 : 0, 0])]
        try await peer.perform(answer + steps, on: number)
        _ = try await connected
    }

    /// Opens the store for two commits: when the second is done the client has heard of the first.
    private static func commitTwice(_ store: GatedStore) async {
        store.open.yield(true)
        store.open.yield(true)
        while await store.inner.load(client: "c").count < 2 { await Task.yield() }
        store.open.finish()
    }

    @Test("[MQTT-4.3.3-4] PUBREL goes out when the commit of PUBREC returned between two connections")
    func releasedBetween() async throws {
        try await withScriptedPeer { peer in
            let store = GatedStore()
            let client = MQTTClient(Self.configuration(peer), store: store)
            let steps: [ScriptedPeer.Step] = [
                .expect([0x34, 6, 0, 1, 0x74, 0, 1, 7]), .send([0x50, 2, 0, 1]), .close,
            ]
            try await Self.connect(client, peer, number: 0, present: false, then: steps)
            async let first = failure {
                try await client.publish(MQTTMessage(topic: "t", payload: [7], qos: .exactlyOnce))
            }
            store.open.yield(true)
            await client.until(.closed)
            async let second = failure {
                try await client.publish(MQTTMessage(topic: "t", payload: [8], qos: .atLeastOnce))
            }
            await Self.commitTwice(store)
            let before = try await peer.byteCount()
            try await Self.connect(client, peer, number: 1, present: true, then: [])
            try await peer.untilBytes(before + Self.connectSize + 4)
            #expect(try await peer.received(1).dropFirst(Self.connectSize).prefix(4) == [0x62, 2, 0, 1])
            #expect(try await peer.mismatches().isEmpty)
            client.abort()
            await client.shutDown()
            _ = await (first, second)
        }
    }

    @Test("[MQTT-4.3.3-9] PUBREC answers the repeated message when its commit returned between two connections")
    func recordedBetween() async throws {
        try await withScriptedPeer { peer in
            let store = GatedStore()
            let client = MQTTClient(Self.configuration(peer), store: store)
            let steps: [ScriptedPeer.Step] = [.send([0x34, 6, 0, 1, 0x74, 0, 5, 1]), .close]
            try await Self.connect(client, peer, number: 0, present: false, then: steps)
            await client.until(.closed)
            async let own = failure {
                try await client.publish(MQTTMessage(topic: "t", payload: [8], qos: .atLeastOnce))
            }
            await Self.commitTwice(store)
            let again: [UInt8] = [0x3C, 6, 0, 1, 0x74, 0, 5, 1, 0x30, 4, 0, 1, 0x74, 2]
            try await Self.connect(client, peer, number: 1, present: true, then: [.send(again)])
            #expect(await client.take(2).map(\.payload) == [[1], [2]])
            client.abort()
            try await peer.untilEnd(of: 1)
            #expect(try await peer.received(1).contains([0x50, 2, 0, 5]))
            await client.shutDown()
            _ = await own
        }
    }

    @Test(
        "a QoS 1 message that waits in the inbox is kept, unless the server sends it again",
        arguments: [
            (MQTTAcknowledgement.onReceipt, true), (.onReceipt, false), (.whenTaken, true), (.whenTaken, false),
        ]
    )
    func inbox(_ acknowledgement: MQTTAcknowledgement, _ isResumed: Bool) async throws {
        try await withScriptedPeer { peer in
            let client = MQTTClient(Self.configuration(peer, acknowledgement))
            let steps: [ScriptedPeer.Step] = [.send([0x32, 6, 0, 1, 0x74, 0, 5, 1]), .close]
            try await Self.connect(client, peer, number: 0, present: false, then: steps)
            await client.until(.closed)
            let other: [ScriptedPeer.Step] = [.send([0x30, 4, 0, 1, 0x74, 2])]
            try await Self.connect(client, peer, number: 1, present: isResumed, then: other)
            let isKept = acknowledgement == .onReceipt || !isResumed
            #expect(await client.take(1).map(\.payload) == [[isKept ? 1 : 2]])
            client.abort()
        }
    }

    @Test("a QoS 2 message that the server released before it was acknowledged leaves nothing in the store")
    func releasedEarly() async throws {
        try await withScriptedPeer { peer in
            let store = MQTTMemoryStore()
            let client = MQTTClient(Self.configuration(peer, .manual), store: store)
            let steps: [ScriptedPeer.Step] = [
                .send([0x34, 6, 0, 1, 0x74, 0, 5, 1, 0x62, 2, 0, 5]), .expect([0x70, 2, 0, 5]),
            ]
            try await Self.connect(client, peer, number: 0, present: false, then: steps)
            try await peer.untilScriptDone()
            try #require(await client.take(1).first).acknowledge()
            // A turn of the loop later.
            try await client.publish(MQTTMessage(topic: "t"))
            #expect(await store.load(client: "c").isEmpty)
            #expect(try await peer.mismatches().isEmpty)
            client.abort()
        }
    }
}
