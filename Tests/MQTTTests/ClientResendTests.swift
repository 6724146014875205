import MQTT
import MQTTCodec
import TestSupport
import Testing

@Suite("Messages that a client resends", .timeLimit(.minutes(10)))
struct ClientResendTests {
    private static func message(_ payload: UInt8, _ qos: QoS) -> MQTTMessage {
        MQTTMessage(topic: "t", payload: [payload], qos: qos)
    }

    /// A small message at QoS 1 in MQTT 5, with the peer's answer.
    private static func small(id: UInt8) -> [ScriptedPeer.Step] {
        [.expect([0x32, 7, 0, 1, 0x74, 0, id, 0, 9]), .send([0x40, 2, 0, id])]
    }

    // MARK: A server that takes less than before

    struct Limit: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let properties: Properties
        let message: MQTTMessage
        let reason: ReasonCode
    }

    private static let large = [UInt8](repeating: 7, count: 100)

    static let limits = [
        Limit(
            testDescription: "[MQTT-3.2.2-15] Maximum Packet Size, QoS 1",
            properties: [.maximumPacketSize(50)],
            message: MQTTMessage(topic: "t", payload: large, qos: .atLeastOnce),
            reason: .packetTooLarge
        ),
        Limit(
            testDescription: "[MQTT-3.2.2-15] Maximum Packet Size, QoS 2",
            properties: [.maximumPacketSize(50)],
            message: MQTTMessage(topic: "t", payload: large, qos: .exactlyOnce),
            reason: .packetTooLarge
        ),
        Limit(
            testDescription: "[MQTT-3.2.2-11] Maximum QoS",
            properties: [.maximumQoS(1)],
            message: MQTTMessage(topic: "t", payload: large, qos: .exactlyOnce),
            reason: .qosNotSupported
        ),
        Limit(
            testDescription: "[MQTT-3.2.2-14] Retain Available",
            properties: [.retainAvailable(false)],
            message: MQTTMessage(topic: "t", payload: large, qos: .atLeastOnce, retain: true),
            reason: .retainNotSupported
        ),
    ]

    @Test(
        "what the next server of the session does not take fails, and its place is free",
        arguments: limits,
        [false, true]
    )
    func takesLess(_ limit: Limit, _ isRestored: Bool) async throws {
        try await withScriptedPeer { peer in
            let (session, store) = (SessionPeer(peer, .v5), MQTTMemoryStore())
            let (delivered, told) = AsyncStream.makeStream(of: MQTTMessage.self)
            let configuration = session.configuration {
                $0.limits.window = 1
                $0.hooks.delivered = { message, _ in told.yield(message) }
            }
            var client = MQTTClient(configuration, store: store)
            try await session.connect(client, number: 0, present: false, then: [.expectCount(108), .close])
            let call = Task { [client] in await failure { try await client.publish(limit.message) } }
            await client.until(.closed)
            if isRestored {
                await client.shutDown()
                #expect(await call.value == .disconnected)
                client = MQTTClient(configuration, store: store)
            }
            var steps: [ScriptedPeer.Step] = []
            // The server may know the message: PUBREL ends that, and the answer says that it does not.
            if limit.message.qos == .exactlyOnce { steps = [.expect([0x62, 2, 0, 1]), .send([0x70, 3, 0, 1, 0x92])] }
            try await session.connect(
                client,
                number: 1,
                present: true,
                properties: limit.properties,
                then: steps + Self.small(id: 2)
            )
            if !isRestored { #expect(await call.value == .notAllowed(limit.reason)) }
            // There is room for one.
            let result = try await client.publish(Self.message(9, .atLeastOnce))
            #expect(result.packetID == 2)
            await store.untilCount(0)
            #expect(try await peer.mismatches().isEmpty)
            told.finish()
            #expect(await delivered.reduce(into: []) { $0.append($1) } == [Self.message(9, .atLeastOnce)])
            client.abort()
        }
    }

    @Test("[MQTT-3.2.2-15] what was never sent leaves no trace when it is too large at last", arguments: QoS.kept)
    func neverSent(_ qos: QoS) async throws {
        try await withScriptedPeer { peer in
            let (session, store) = (SessionPeer(peer, .v5), GatedStore())
            let client = MQTTClient(session.configuration { $0.limits.window = 1 }, store: store)
            try await session.connect(client, number: 0, present: false)
            async let error = failure {
                try await client.publish(MQTTMessage(topic: "t", payload: Self.large, qos: qos))
            }
            var begun = store.begun.makeAsyncIterator()
            await begun.next()
            _ = try await Self.pinged(client, peer)
            try await peer.perform([.close])
            await client.until(.closed)
            let limit: Properties = [.maximumPacketSize(50)]
            try await session.connect(client, number: 1, present: true, properties: limit, then: Self.small(id: 2))
            for _ in 0..<20 { store.open.yield(true) }
            #expect(await error == .notAllowed(.packetTooLarge))
            #expect(try await client.publish(Self.message(9, .atLeastOnce)).packetID == 2)
            #expect(try await peer.mismatches().isEmpty)
            store.open.finish()
            client.abort()
        }
    }

    /// Returns when all that was called before has been begun.
    private static func pinged(_ client: MQTTClient, _ peer: ScriptedPeer) async throws -> Duration {
        try await peer.perform([.expect([0xC0, 0]), .send([0xD0, 0])])
        return try await client.ping()
    }

    @Test(
        "[MQTT-3.3.4-7] [MQTT-4.4.0-1] what is held back when its commit returns goes out once, when there is room",
        arguments: QoS.kept
    )
    func heldBack(_ qos: QoS) async throws {
        try await withScriptedPeer { peer in
            let (session, store) = (SessionPeer(peer, .v5), GatedStore())
            let (flowing, watch) = AsyncStream.makeStream(of: Int.self)
            let client = MQTTClient(
                session.configuration { $0.hooks.buffered = { watch.yield($0.flowingOut) } },
                store: store
            )
            try await session.connect(client, number: 0, present: false)
            var counts = flowing.makeAsyncIterator()
            // The commit of the first is under way, and that of the second waits for it.
            let first = Task { try await client.publish(Self.message(1, .atLeastOnce)) }
            while let count = await counts.next(), count < 1 {}
            let second = Task { try await client.publish(Self.message(2, qos)) }
            while let count = await counts.next(), count < 2 {}
            try await peer.perform([.close])
            await client.until(.closed)
            // PUBREC comes behind a third commit, and so behind the second.
            let received = wire(publish("t", qos: .exactlyOnce, id: 9))
            let steps: [ScriptedPeer.Step] = [
                .expect([0x32, 7, 0, 1, 0x74, 0, 1, 0, 1]), .send(received), .expect([0x50, 2, 0, 9]),
                .send([0x40, 2, 0, 1]), .expect([0x30 | qos.rawValue << 1, 7, 0, 1, 0x74, 0, 2, 0, 2]),
            ]
            let end: [ScriptedPeer.Step] =
                qos == .atLeastOnce
                ? [.send([0x40, 2, 0, 2])]
                : [.send([0x50, 2, 0, 2]), .expect([0x62, 2, 0, 2]), .send([0x70, 2, 0, 2])]
            try await session.connect(
                client,
                number: 1,
                present: true,
                properties: [.receiveMaximum(1)],
                then: steps + end + [.expect([0xC0, 0]), .send([0xD0, 0])]
            )
            for _ in 0..<20 { store.open.yield(true) }
            #expect(try await first.value.packetID == 1)
            #expect(try await second.value.packetID == 2)
            _ = try await client.ping()
            #expect(try await peer.mismatches().isEmpty)
            store.open.finish()
            client.abort()
        }
    }

    // MARK: A session that is gone

    @Test(
        "[MQTT-3.2.2-5] what was never sent outlives the session, in its order, and is new",
        arguments: [false, true]
    )
    func unsent(_ isClean: Bool) async throws {
        try await withScriptedPeer { peer in
            let (session, store) = (SessionPeer(peer), GatedStore())
            let (flowing, watch) = AsyncStream.makeStream(of: Int.self)
            let client = MQTTClient(
                session.configuration(clean: isClean) {
                    $0.limits.window = 2
                    $0.hooks.buffered = { watch.yield($0.flowingOut + $0.queued) }
                },
                store: store
            )
            if isClean { store.open.yield(true) }
            try await session.connect(client, number: 0, present: false)
            var counts = flowing.makeAsyncIterator()
            var calls: [Task<MQTTPublishResult, any Error>] = []
            // Two have identifiers, and the third waits.
            for number in 1...3 as ClosedRange<UInt8> {
                calls.append(Task { try await client.publish(Self.message(number, .atLeastOnce)) })
                while let count = await counts.next(), count < Int(number) {}
            }
            try await peer.perform([.close])
            await client.until(.closed)
            let flow = (1...3 as ClosedRange<UInt8>).flatMap { number -> [ScriptedPeer.Step] in
                [.expect([0x32, 6, 0, 1, 0x74, 0, 2 + number, number]), .send([0x40, 2, 0, 2 + number])]
            }
            try await session.connect(client, number: 1, present: false, then: flow)
            for _ in 0..<40 { store.open.yield(true) }
            for (index, call) in calls.enumerated() {
                #expect(try await call.value.packetID == PacketID(rawValue: UInt16(3 + index)))
            }
            #expect(try await peer.mismatches().isEmpty)
            await store.inner.untilCount(0)
            store.open.finish()
            client.abort()
        }
    }

    @Test("disconnect drops what was not sent, unless it is to keep it", arguments: [false, true])
    func disconnects(_ keepsQueue: Bool) async throws {
        try await withScriptedPeer { peer in
            let (session, store) = (SessionPeer(peer), GatedStore())
            let client = MQTTClient(session.configuration(clean: true), store: store)
            store.open.yield(true)
            try await session.connect(client, number: 0, present: false)
            async let first = failure { try await client.publish(Self.message(1, .atLeastOnce)) }
            _ = try await Self.pinged(client, peer)
            async let gone: Void = client.disconnect(keepsQueue: keepsQueue)
            try await peer.untilEnd()
            try await peer.halfClose()
            await gone
            if !keepsQueue { #expect(await first == .disconnected) }
            // The identifier 1 was given to the first.
            let kept: [ScriptedPeer.Step] = [.expect([0x32, 6, 0, 1, 0x74, 0, 2, 1]), .send([0x40, 2, 0, 2])]
            let id: UInt8 = keepsQueue ? 3 : 2
            let steps =
                (keepsQueue ? kept : []) + [
                    .expect([0x32, 6, 0, 1, 0x74, 0, id, 2]), .send([0x40, 2, 0, id]),
                ]
            try await session.connect(client, number: 1, present: false, then: steps)
            for _ in 0..<40 { store.open.yield(true) }
            if keepsQueue { #expect(await first == nil) }
            #expect(try await client.publish(Self.message(2, .atLeastOnce)).packetID == PacketID(rawValue: UInt16(id)))
            #expect(try await peer.mismatches().isEmpty)
            store.open.finish()
            client.abort()
        }
    }

    // MARK: The store's key

    @Test("[MQTT-3.1.3-7] the store knows a client by the identifier that was configured, also an empty one")
    func assigned() async throws {
        try await withScriptedPeer { peer in
            let (session, store) = (SessionPeer(peer, .v5, id: ""), MQTTMemoryStore())
            let (queued, watch) = AsyncStream.makeStream(of: Int.self)
            let client = MQTTClient(
                session.configuration { $0.hooks.buffered = { watch.yield($0.queued) } },
                store: store
            )
            async let first = client.publish(Self.message(8, .atLeastOnce))
            for await count in queued where count == 1 { break }
            #expect(await store.load(client: "").map(\.stage) == [.queued])
            let sent: [ScriptedPeer.Step] = [.expect([0x32, 7, 0, 1, 0x74, 0, 1, 0, 8]), .close]
            try await session.connect(
                client,
                number: 0,
                present: false,
                properties: [.assignedClientIdentifier("given")],
                then: sent
            )
            await client.until(.closed)
            #expect(await store.load(client: "").map(\.stage) == [.published(1)])
            #expect(await store.load(client: "given").isEmpty)
            let again: [ScriptedPeer.Step] = [.expect([0x3A, 7, 0, 1, 0x74, 0, 1, 0, 8]), .send([0x40, 2, 0, 1])]
            try await session.connect(client, number: 1, present: true, id: "given", then: again)
            #expect(try await first.packetID == 1)
            await store.untilCount(0, client: "")
            #expect(try await peer.mismatches().isEmpty)
            client.abort()
        }
    }
}
