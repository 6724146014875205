import MQTT
import MQTTCodec
import TestSupport
import Testing

@Suite("A client whose store refuses", .timeLimit(.minutes(10)))
struct ClientRefusalTests {
    private static let noRoom = MQTTStoreError.noRoom.description

    private static func message(_ payload: UInt8, _ qos: QoS) -> MQTTMessage {
        MQTTMessage(topic: "t", payload: [payload], qos: qos)
    }

    /// The PUBLISH of ``message(_:_:)``.
    private static func packet(_ payload: UInt8, _ qos: QoS, id: UInt8, dup: Bool = false) -> [UInt8] {
        [0x30 | qos.rawValue << 1 | (dup ? 8 : 0), 6, 0, 1, 0x74, 0, id, payload]
    }

    /// Runs `body` with a client on its first connection, and the events from then on.
    private static func withClient(
        window: Int = 16,
        _ body: (SessionPeer, MQTTClient, RefusingStore, AsyncStream<MQTTClientEvent>) async throws ->
            Void
    ) async throws {
        try await withScriptedPeer { peer in
            let (session, store) = (SessionPeer(peer), RefusingStore())
            let client = MQTTClient(session.configuration { $0.limits.window = window }, store: store)
            try await session.connect(client, number: 0, present: false)
            try await body(session, client, store, client.events)
            #expect(try await peer.mismatches().isEmpty)
            client.abort()
        }
    }

    @Test("a message that the store refuses is not sent, its call fails, and its place is free", arguments: QoS.kept)
    func insert(_ qos: QoS) async throws {
        try await Self.withClient(window: 1) { session, client, store, _ in
            store.refuse { if case .insert = $0 { .noRoom } else { nil } }
            let error = await failure { try await client.publish(Self.message(1, qos)) }
            #expect(error == .storeFailed(Self.noRoom))
            store.allow()
            let next: [ScriptedPeer.Step] = [.expect(Self.packet(2, .atLeastOnce, id: 2)), .send([0x40, 2, 0, 2])]
            try await session.peer.perform(next)
            #expect(try await client.publish(Self.message(2, .atLeastOnce)).packetID == 2)
            #expect(try await session.received(client, number: 0).count == 8)
            await store.untilCount(0)
        }
    }

    @Test("an identifier that the store refuses is given back, and nothing is overtaken", arguments: QoS.kept)
    func identifier(_ qos: QoS) async throws {
        try await withScriptedPeer { peer in
            let (session, store) = (SessionPeer(peer), RefusingStore())
            let (queued, watch) = AsyncStream.makeStream(of: Int.self)
            let client = MQTTClient(
                session.configuration { $0.hooks.buffered = { watch.yield($0.queued) } },
                store: store
            )
            var counts = queued.makeAsyncIterator()
            let first = Task { try await client.publish(Self.message(1, qos)) }
            while let count = await counts.next(), count < 1 {}
            let second = Task { try await client.publish(Self.message(2, .atLeastOnce)) }
            while let count = await counts.next(), count < 2 {}
            await store.untilCount(2)
            store.refuse { if case .advance(1, .published) = $0 { .noRoom } else { nil } }
            let events = client.events
            try await session.connect(client, number: 0, present: false)
            guard case .connected? = await events.one() else {
                Issue.record("not connected")
                return
            }
            #expect(await events.one() == .storeFailed(Self.noRoom))
            store.allow()
            try await peer.perform([.expectCount(16)])
            try await peer.untilScriptDone()
            let sent = try await session.received(client, number: 0)
            // The next two identifiers, or the next but two: that depends on how often the store was asked meanwhile.
            let (one, two) = (sent[6], sent[14])
            #expect(one > 2 && two == one + 1)
            #expect(sent == Self.packet(1, qos, id: one) + Self.packet(2, .atLeastOnce, id: two))
            try await peer.send([0x40, 2, 0, two])
            #expect(try await second.value.packetID == PacketID(rawValue: UInt16(two)))
            await store.untilCount(1)
            #expect(await store.load(client: "c").map(\.message.payload) == [[1]])
            client.abort()
            await client.shutDown()
            _ = await first.result
            #expect(try await peer.mismatches().isEmpty)
        }
    }

    @Test(
        "[MQTT-4.6.0-1] a message back in the queue is not overtaken when the store refuses to know that",
        arguments: QoS.kept
    )
    func queuedAgain(_ qos: QoS) async throws {
        try await withScriptedPeer { peer in
            let (session, gate) = (SessionPeer(peer), GatedStore())
            let store = RefusingStore(gate)
            let (flowing, watch) = AsyncStream.makeStream(of: Int.self)
            let client = MQTTClient(
                session.configuration(clean: true) { $0.hooks.buffered = { watch.yield($0.flowingOut) } },
                store: store
            )
            // Forgetting what there was is the first commit.
            gate.open.yield(true)
            try await session.connect(client, number: 0, present: false)
            var counts = flowing.makeAsyncIterator()
            var calls: [Task<MQTTPublishResult, any Error>] = []
            for number in 1...3 as ClosedRange<UInt8> {
                calls.append(Task { try await client.publish(Self.message(number, qos)) })
                while let count = await counts.next(), count < Int(number) {}
            }
            store.refuse { if case .advance(1, .queued) = $0 { .noRoom } else { nil } }
            let events = client.events
            try await peer.perform([.close])
            await client.until(.closed)
            for _ in 0..<100 { gate.open.yield(true) }
            while let event = await events.one(), event != .storeFailed(Self.noRoom) {}
            let packets = (1...3 as ClosedRange<UInt8>).map { Self.packet($0, qos, id: $0 + 3) }
            try await session.connect(client, number: 1, present: false, then: packets.map { .expect($0) })
            try await peer.untilScriptDone(1)
            #expect(try await peer.mismatches().isEmpty)
            gate.open.finish()
            client.abort()
            for call in calls { _ = await call.result }
        }
    }

    @Test("[MQTT-4.3.3-4] PUBREL waits until the store has taken PUBREC, and the user hears once why")
    func release() async throws {
        try await Self.withClient { session, client, store, events in
            store.refuse { if case .advance(_, .released) = $0 { .noRoom } else { nil } }
            try await session.peer.perform([.expect(Self.packet(1, .exactlyOnce, id: 1)), .send([0x50, 2, 0, 1])])
            async let result = client.publish(Self.message(1, .exactlyOnce))
            #expect(await events.one() == .storeFailed(Self.noRoom))
            await store.untilRefused(2)
            // Others get by meanwhile.
            let other: [ScriptedPeer.Step] = [.expect(Self.packet(2, .atLeastOnce, id: 2)), .send([0x40, 2, 0, 2])]
            try await session.peer.perform(other)
            #expect(try await client.publish(Self.message(2, .atLeastOnce)).packetID == 2)
            store.allow()
            try await session.peer.perform([.expect([0x62, 2, 0, 1]), .send([0x70, 2, 0, 1])])
            #expect(try await result.packetID == 1)
            await store.untilCount(0)
            client.abort()
            #expect(await events.one() == .closed)
        }
    }

    @Test("[MQTT-4.3.3-10] PUBREC waits until the store has taken the message, which is delivered once")
    func record() async throws {
        try await Self.withClient { session, client, store, events in
            store.refuse { if case .insert = $0 { .noRoom } else { nil } }
            try await session.peer.send(Self.packet(1, .exactlyOnce, id: 5))
            #expect(await events.one() == .storeFailed(Self.noRoom))
            try await session.peer.perform([.close])
            await client.until(.closed)
            let again: [ScriptedPeer.Step] = [
                .send(Self.packet(1, .exactlyOnce, id: 5, dup: true) + [0x30, 4, 0, 1, 0x74, 2])
            ]
            try await session.connect(client, number: 1, present: true, then: again)
            #expect(await client.take(2).map(\.payload) == [[1], [2]])
            #expect(try await session.received(client, number: 1).isEmpty)
            store.allow()
            try await session.peer.perform(
                [.expect([0x50, 2, 0, 5]), .send([0x62, 2, 0, 5]), .expect([0x70, 2, 0, 5])],
                on: 1
            )
            try await session.peer.untilScriptDone(1)
            await store.untilCount(0)
        }
    }

    @Test("[MQTT-4.3.3-9] a message that the store knows already is answered with PUBREC at once")
    func recordKnown() async throws {
        try await Self.withClient { session, _, store, _ in
            store.refuse { if case .insert = $0 { .duplicate(5) } else { nil } }
            try await session.peer.perform([.send(Self.packet(1, .exactlyOnce, id: 5)), .expect([0x50, 2, 0, 5])])
            try await session.peer.untilScriptDone()
        }
    }

    @Test("[MQTT-4.3.3-11] PUBCOMP waits until the store has forgotten the message")
    func complete() async throws {
        try await Self.withClient { session, client, store, events in
            store.refuse { if case .forget = $0 { .noRoom } else { nil } }
            let flow: [ScriptedPeer.Step] = [
                .send(Self.packet(1, .exactlyOnce, id: 5)), .expect([0x50, 2, 0, 5]), .send([0x62, 2, 0, 5]),
            ]
            try await session.peer.perform(flow)
            #expect(await events.one() == .storeFailed(Self.noRoom))
            #expect(try await session.received(client, number: 0) == [0x50, 2, 0, 5])
            store.allow()
            try await session.peer.perform([.expect([0x70, 2, 0, 5])])
            try await session.peer.untilScriptDone()
            #expect(await store.load(client: "c").isEmpty)
        }
    }

    @Test("a message that is done with is removed later, and its call ends at once", arguments: QoS.kept)
    func remove(_ qos: QoS) async throws {
        try await Self.withClient { session, client, store, events in
            store.refuse { if case .remove = $0 { .noRoom } else { nil } }
            let flow: [ScriptedPeer.Step] =
                qos == .atLeastOnce
                ? [.send([0x40, 2, 0, 1])]
                : [.send([0x50, 2, 0, 1]), .expect([0x62, 2, 0, 1]), .send([0x70, 2, 0, 1])]
            try await session.peer.perform([.expect(Self.packet(1, qos, id: 1))] + flow)
            #expect(try await client.publish(Self.message(1, qos)).packetID == 1)
            #expect(await events.one() == .storeFailed(Self.noRoom))
            #expect(await store.load(client: "c").count == 1)
            store.allow()
            await store.untilCount(0)
        }
    }

    @Test("a failing store is reported once, until it works again")
    func failing() async throws {
        try await Self.withClient { session, client, store, events in
            store.refuse { _ in .closed }
            let error = await failure { try await client.publish(Self.message(1, .atLeastOnce)) }
            #expect(error == .storeFailed("the store is closed"))
            #expect(await events.one() == .storeFailed("the store is closed"))
            await store.untilRefused(2)
            store.allow()
            // It was only put off.
            try await session.peer.perform([.expect(Self.packet(1, .atLeastOnce, id: 1)), .send([0x40, 2, 0, 1])])
            try await session.peer.untilScriptDone()
            await store.untilCount(0)
            client.abort()
            #expect(await events.one() == .closed)
        }
    }

    @Test("disconnect ends the calls that wait for a store to be read, and their messages go on", arguments: QoS.kept)
    func slowLoad(_ qos: QoS) async throws {
        try await withScriptedPeer { peer in
            let (session, store) = (SessionPeer(peer), SlowStore())
            let client = MQTTClient(session.configuration(), store: store)
            async let error = failure { try await client.publish(Self.message(1, qos)) }
            for await _ in store.asked { break }
            await client.disconnect()
            #expect(await error == .disconnected)
            store.answer.finish()
            try await session.connect(client, number: 0, present: false, then: [.expect(Self.packet(1, qos, id: 1))])
            try await peer.untilScriptDone()
            #expect(try await peer.mismatches().isEmpty)
            client.abort()
        }
    }

    @Test("[MQTT-2.2.1-3] of two messages with one identifier the store had not let go of the earlier")
    func identifierTwice() async throws {
        try await withScriptedPeer { peer in
            let (session, store) = (SessionPeer(peer), MQTTMemoryStore())
            let stored = (1...2 as ClosedRange<UInt8>).map {
                MQTTStoredMessage(
                    sequence: UInt64($0),
                    stage: .published(7),
                    message: Self.message($0, .atLeastOnce)
                )
            }
            await store.commit(stored.map { .insert($0) }, client: "c")
            let client = MQTTClient(session.configuration(), store: store)
            let again: [ScriptedPeer.Step] = [
                .expect(Self.packet(2, .atLeastOnce, id: 7, dup: true)), .send([0x40, 2, 0, 7]),
                .send([0x30, 4, 0, 1, 0x74, 2]),
            ]
            try await session.connect(client, number: 0, present: true, then: again)
            #expect(await client.take(1).count == 1)
            await store.untilCount(0)
            #expect(try await peer.mismatches().isEmpty)
            client.abort()
        }
    }
}
