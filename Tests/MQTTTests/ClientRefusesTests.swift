import MQTT
import MQTTCodec
import TestSupport
import Testing

@Suite("QoS 2 messages that are refused, over connections", .timeLimit(.minutes(10)))
struct ClientRefusesTests {
    private static let received: [UInt8] = [0x34, 7, 0, 1, 0x74, 0, 5, 0, 1]
    private static let repeated: [UInt8] = [0x3C, 7, 0, 1, 0x74, 0, 5, 0, 1]

    @Test(
        "[MQTT-4.3.3-9] a refusal without a connection answers the message when it comes again, and ends its flow",
        arguments: [false, true]
    )
    func refusedBetween(_ isConnecting: Bool) async throws {
        try await withScriptedPeer { peer in
            let session = SessionPeer(peer, .v5)
            let client = MQTTClient(
                session.configuration {
                    $0.acknowledgement = .manual
                    // A refused message counts no more.
                    $0.receiveMaximum = 1
                }
            )
            try await session.connect(client, number: 0, present: false, then: [.send(Self.received), .close])
            let message = try #require(await client.take(1).first)
            await client.until(.closed)
            if !isConnecting { message.acknowledge(.quotaExceeded) }
            async let connected = client.connect()
            try await peer.untilConnections(2)
            try await peer.perform([.expectCount(session.connectSize(client))], on: 1)
            try await peer.untilScriptDone(1)
            if isConnecting { message.acknowledge(.quotaExceeded) }
            let steps: [ScriptedPeer.Step] = [
                .send(wire(.connAck(ConnAck(sessionPresent: true))) + Self.repeated),
                .expect(wire(.pubRec(PubRec(5, reason: .quotaExceeded)))),
                // The identifier is free for another message.
                .send([0x34, 7, 0, 1, 0x74, 0, 5, 0, 9]),
            ]
            try await peer.perform(steps, on: 1)
            _ = try await connected
            let other = try #require(await client.take(1).first)
            #expect(other.payload == [9])
            other.acknowledge()
            try await peer.perform(
                [.expect([0x50, 2, 0, 5]), .send([0x62, 2, 0, 5]), .expect([0x70, 2, 0, 5])],
                on: 1
            )
            try await peer.untilScriptDone(1)
            #expect(try await peer.mismatches().isEmpty)
            client.abort()
        }
    }

    @Test("before MQTT 5 a refusal cannot be said: the message counts as taken, in the store too")
    func refusedBefore5() async throws {
        try await withScriptedPeer { peer in
            let (session, store) = (SessionPeer(peer), MQTTMemoryStore())
            let client = MQTTClient(session.configuration { $0.acknowledgement = .manual }, store: store)
            let message: [UInt8] = [0x34, 6, 0, 1, 0x74, 0, 5, 1]
            try await session.connect(client, number: 0, present: false, then: [.send(message)])
            try #require(await client.take(1).first).acknowledge(.quotaExceeded)
            try await peer.perform([.expect([0x50, 2, 0, 5])])
            try await peer.untilScriptDone()
            #expect(await store.load(client: "c").map(\.stage) == [.received(5)])
            client.abort()
        }
    }

    @Test("[MQTT-4.3.3-4] a message of ours that is refused when it comes again has no PUBREL, and its place is free")
    func refusedAgain() async throws {
        try await withScriptedPeer { peer in
            let (session, store) = (SessionPeer(peer, .v5), MQTTMemoryStore())
            let client = MQTTClient(session.configuration { $0.limits.window = 1 }, store: store)
            let sent: [ScriptedPeer.Step] = [.expect([0x34, 7, 0, 1, 0x74, 0, 1, 0, 7]), .close]
            try await session.connect(client, number: 0, present: false, then: sent)
            async let error = failure {
                try await client.publish(MQTTMessage(topic: "t", payload: [7], qos: .exactlyOnce))
            }
            await client.until(.closed)
            let again: [ScriptedPeer.Step] = [
                .expect([0x3C, 7, 0, 1, 0x74, 0, 1, 0, 7]), .send([0x50, 3, 0, 1, 0x97]),
                .expect([0x34, 7, 0, 1, 0x74, 0, 2, 0, 8]), .send([0x50, 2, 0, 2]), .expect([0x62, 2, 0, 2]),
                .send([0x70, 2, 0, 2]),
            ]
            try await session.connect(client, number: 1, present: true, then: again)
            #expect(await error == .rejected(MQTTPublishResult(reason: .quotaExceeded, packetID: 1)))
            try await client.publish(MQTTMessage(topic: "t", payload: [8], qos: .exactlyOnce))
            await store.untilCount(0)
            #expect(try await peer.mismatches().isEmpty)
            client.abort()
        }
    }

    @Test("[MQTT-4.3.3-11] PUBREL that comes again, before the store has forgotten the message, has one PUBCOMP")
    func releasedAgain() async throws {
        try await withScriptedPeer { peer in
            let (session, store) = (SessionPeer(peer, .v5), GatedStore())
            let client = MQTTClient(session.configuration(), store: store)
            store.open.yield(true)
            let flow: [ScriptedPeer.Step] = [
                .send(Self.received), .expect([0x50, 2, 0, 5]), .send([0x62, 2, 0, 5]), .close,
            ]
            try await session.connect(client, number: 0, present: false, then: flow)
            await client.until(.closed)
            let again: [ScriptedPeer.Step] = [.send([0x62, 2, 0, 5, 0x30, 5, 0, 1, 0x74, 0, 2])]
            try await session.connect(client, number: 1, present: true, then: again)
            #expect(await client.take(2).map(\.payload) == [[1], [2]])
            #expect(try await session.received(client, number: 1).isEmpty)
            for _ in 0..<4 { store.open.yield(true) }
            try await peer.perform([.expect([0x70, 2, 0, 5])], on: 1)
            try await peer.untilScriptDone(1)
            // It is over, for both sides.
            try await peer.perform(
                [.send([0x62, 2, 0, 5]), .expect(wire(.pubComp(PubComp(5, reason: .packetIdentifierNotFound))))],
                on: 1
            )
            try await peer.untilScriptDone(1)
            #expect(try await peer.mismatches().isEmpty)
            store.open.finish()
            client.abort()
        }
    }
}
