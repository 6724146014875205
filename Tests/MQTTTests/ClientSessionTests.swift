import MQTT
import MQTTCodec
import NIOCore
import TestSupport
import Testing

@Suite("A client whose session outlives its connection")
struct ClientSessionTests {
    private static let message = MQTTMessage(topic: "t", payload: [7], qos: .atLeastOnce)
    private static let twice = MQTTMessage(topic: "t", payload: [7], qos: .exactlyOnce)

    private static func configuration(
        _ peer: ScriptedPeer,
        clean: Bool = false,
        _ change: (inout MQTTClientConfiguration) -> Void = { _ in }
    ) -> MQTTClientConfiguration {
        MQTTClientConfiguration(port: peer.port, .v311, id: "c") {
            $0.cleanStart = clean
            change(&$0)
        }
    }

    private static func connack(present: Bool) -> ScriptedPeer.Step { .send([0x20, 2, present ? 1 : 0, 0]) }

    private static let connectSize = connectBytes(MQTTClientConfiguration(port: 1, .v311, id: "c")).count

    /// Runs `body` with a peer that takes any CONNECT and leaves the rest to the test.
    private static func withPeer(_ body: (ScriptedPeer) async throws -> Void) async throws {
        try await withScriptedPeer([.expectCount(Self.connectSize)]) { peer in
            try await body(peer)
            #expect(try await peer.mismatches().isEmpty)
        }
    }

    /// Connects, with the answer given.
    private static func connect(
        _ client: MQTTClient,
        _ peer: ScriptedPeer,
        number: Int,
        present: Bool,
        then steps: [ScriptedPeer.Step] = []
    ) async throws {
        async let connected = client.connect()
        try await peer.untilConnections(number + 1)
        try await peer.perform([Self.connack(present: present)] + steps, on: number)
        #expect(try await connected.sessionPresent == present)
    }

    @Test("[MQTT-4.4.0-1] what was not acknowledged goes out again with DUP and its identifier, and the call waits on")
    func resends() async throws {
        try await Self.withPeer { peer in
            let client = MQTTClient(Self.configuration(peer))
            let sent: [ScriptedPeer.Step] = [.expect([0x32, 6, 0, 1, 0x74, 0, 1, 7]), .close]
            try await Self.connect(client, peer, number: 0, present: false, then: sent)
            async let result = client.publish(Self.message)
            await client.until(.closed)
            let again: [ScriptedPeer.Step] = [.expect([0x3A, 6, 0, 1, 0x74, 0, 1, 7]), .send([0x40, 2, 0, 1])]
            try await Self.connect(client, peer, number: 1, present: true, then: again)
            #expect(try await result == MQTTPublishResult(packetID: 1))
            client.abort()
        }
    }

    @Test("[MQTT-4.3.3-6] behind PUBREC it is PUBREL that goes out again")
    func resendsRelease() async throws {
        try await Self.withPeer { peer in
            let client = MQTTClient(Self.configuration(peer))
            let sent: [ScriptedPeer.Step] = [
                .expect([0x34, 6, 0, 1, 0x74, 0, 1, 7]), .send([0x50, 2, 0, 1]), .expect([0x62, 2, 0, 1]), .close,
            ]
            try await Self.connect(client, peer, number: 0, present: false, then: sent)
            async let result = client.publish(Self.twice)
            await client.until(.closed)
            let again: [ScriptedPeer.Step] = [.expect([0x62, 2, 0, 1]), .send([0x70, 2, 0, 1])]
            try await Self.connect(client, peer, number: 1, present: true, then: again)
            #expect(try await result == MQTTPublishResult(packetID: 1))
            client.abort()
        }
    }

    @Test("[MQTT-3.2.2-5] a server that lost the session ends what was under way", arguments: QoS.kept)
    func sessionLost(_ qos: QoS) async throws {
        try await Self.withPeer { peer in
            let client = MQTTClient(Self.configuration(peer))
            try await Self.connect(client, peer, number: 0, present: false, then: [.expectCount(8), .close])
            async let error = failure { try await client.publish(MQTTMessage(topic: "t", payload: [7], qos: qos)) }
            await client.until(.closed)
            try await Self.connect(client, peer, number: 1, present: false)
            #expect(await error == .sessionLost)
            client.abort()
        }
    }

    @Test("without a session what had been sent fails with its connection; what had not goes out with the next")
    func cleanSession() async throws {
        try await Self.withPeer { peer in
            let client = MQTTClient(Self.configuration(peer, clean: true) { $0.limits.window = 1 })
            try await Self.connect(client, peer, number: 0, present: false, then: [.expectCount(8)])
            async let first = failure { try await client.publish(Self.message) }
            try await peer.untilScriptDone()
            async let second = client.publish(MQTTMessage(topic: "u", payload: [8], qos: .atLeastOnce))
            // The window is full: whether it is queued before or behind the end, it was not sent.
            try await peer.perform([.close])
            #expect(await first == .connectionLost(.closedByServer))
            let fresh: [ScriptedPeer.Step] = [.expect([0x32, 6, 0, 1, 0x75, 0, 2, 8]), .send([0x40, 2, 0, 2])]
            try await Self.connect(client, peer, number: 1, present: false, then: fresh)
            #expect(try await second.packetID == 2)
            client.abort()
        }
    }

    @Test("another client with the same store takes up what the first one left (SPEC A9)")
    func secondClient() async throws {
        try await Self.withPeer { peer in
            let store = MQTTMemoryStore()
            do {
                let client = MQTTClient(Self.configuration(peer), store: store)
                try await Self.connect(client, peer, number: 0, present: false, then: [.expectCount(8)])
                async let error = failure { try await client.publish(Self.twice) }
                try await peer.untilBytes(Self.connectSize + 8)
                client.abort()
                await client.until(.closed)
                await client.disconnect()
                #expect(await error == .disconnected)
            }
            let left = await store.load(client: "c")
            #expect(left == [MQTTStoredMessage(sequence: 1, stage: .published(1), message: Self.twice)])
            let (delivered, told) = AsyncStream.makeStream(of: MQTTMessage.self)
            let configuration = Self.configuration(peer) { $0.hooks.delivered = { message, _ in told.yield(message) } }
            let client = MQTTClient(configuration, store: store)
            let flow: [ScriptedPeer.Step] = [
                .expect([0x3C, 6, 0, 1, 0x74, 0, 1, 7]), .send([0x50, 2, 0, 1]), .expect([0x62, 2, 0, 1]),
                .send([0x70, 2, 0, 1]),
            ]
            try await Self.connect(client, peer, number: 1, present: true, then: flow)
            var iterator = delivered.makeAsyncIterator()
            #expect(await iterator.next() == Self.twice)
            client.abort()
            await client.until(.closed)
            #expect(await store.load(client: "c").isEmpty)
        }
    }

    @Test("[MQTT-4.3.3-10] a QoS 2 message that the store knows is not delivered again, by another client either")
    func knownMessage() async throws {
        try await Self.withPeer { peer in
            let store = MQTTMemoryStore()
            let message: [UInt8] = [0x34, 6, 0, 1, 0x74, 0, 9, 1]
            let client = MQTTClient(Self.configuration(peer), store: store)
            let first: [ScriptedPeer.Step] = [.send(message), .expect([0x50, 2, 0, 9]), .close]
            try await Self.connect(client, peer, number: 0, present: false, then: first)
            #expect(await client.take(1).count == 1)
            await client.until(.closed)
            #expect(await store.load(client: "c").map(\.stage) == [.received(9)])
            let second = MQTTClient(Self.configuration(peer), store: store)
            let again: [ScriptedPeer.Step] = [
                .send([0x3C] + message[1...]), .expect([0x50, 2, 0, 9]), .send([0x62, 2, 0, 9]),
                .expect([0x70, 2, 0, 9]), .send([0x30, 4, 0, 1, 0x74, 2]),
            ]
            try await Self.connect(second, peer, number: 1, present: true, then: again)
            #expect(await second.take(1).map(\.payload) == [[2]])
            #expect(await store.load(client: "c").isEmpty)
            second.abort()
        }
    }

    // MARK: The store

    @Test("a message, and its PUBREL, is sent only behind the commit that holds it")
    func commitsFirst() async throws {
        try await Self.withPeer { peer in
            let store = GatedStore()
            let client = MQTTClient(Self.configuration(peer), store: store)
            try await Self.connect(client, peer, number: 0, present: false)
            async let result = client.publish(Self.twice)
            // PINGREQ comes first, though the call was the later one: and so it is with PUBREL.
            for step in 0..<2 {
                let before = try await peer.byteCount()
                async let pinged = client.ping()
                try await peer.untilBytes(before + 2)
                #expect(try await peer.received().suffix(2) == [0xC0, 0])
                try await peer.send([0xD0, 0])
                _ = try await pinged
                store.open.yield(true)
                if step == 0 {
                    try await peer.untilBytes(before + 10)
                    #expect(try await peer.received().suffix(8) == [0x34, 6, 0, 1, 0x74, 0, 1, 7])
                    try await peer.send([0x50, 2, 0, 1])
                } else {
                    try await peer.untilBytes(before + 6)
                    #expect(try await peer.received().suffix(4) == [0x62, 2, 0, 1])
                    try await peer.send([0x70, 2, 0, 1])
                }
            }
            #expect(try await result.packetID == 1)
            store.open.finish()
            client.abort()
        }
    }

    @Test("a store that fails fails the publish, in its own words")
    func brokenStore() async throws {
        try await Self.withPeer { peer in
            let store = GatedStore()
            let client = MQTTClient(Self.configuration(peer), store: store)
            try await Self.connect(client, peer, number: 0, present: false)
            store.open.yield(false)
            #expect(await failure { try await client.publish(Self.message) } == .storeFailed("no space left"))
            store.open.finish()
            client.abort()
        }
    }

    @Test(
        "as many messages wait as allowed, in number and in bytes, and not one more (SPEC A9)",
        arguments: [true, false]
    )
    func full(_ byCount: Bool) async throws {
        let (queued, watch) = AsyncStream.makeStream(of: Int.self)
        let configuration = MQTTClientConfiguration(port: 1) {
            if byCount { $0.limits.messages = 3 } else { $0.limits.bytes = 6 }
            $0.hooks.buffered = { watch.yield($0.queued) }
        }
        let client = MQTTClient(configuration)
        await withTaskGroup(of: MQTTClientError?.self) { group in
            var counts = queued.makeAsyncIterator()
            for number in 1...3 {
                group.addTask { await failure { try await client.publish(Self.message) } }
                while let count = await counts.next(), count < number {}
            }
            #expect(await failure { try await client.publish(Self.message) } == .storeFull)
            await client.shutDown()
            for await error in group { #expect(error == .disconnected || error == .shutDown) }
        }
    }

    @Test("§3.3.2.3.3 a message that expired while it waited is not sent")
    func expired() async throws {
        try await withScriptedPeer(accepting(then: [])) { peer in
            let client = MQTTClient(MQTTClientConfiguration(port: peer.port, id: "c"))
            var message = Self.message
            message.properties.messageExpiryInterval = 0
            let old = message
            try await client.connect()
            #expect(await failure { try await client.publish(old) } == .expired)
            client.abort()
        }
    }
}
