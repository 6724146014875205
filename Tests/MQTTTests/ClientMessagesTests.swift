import EmbeddedBroker
import MQTT
import MQTTCodec
import Synchronization
import TestSupport
import Testing

@Suite("Messages that a client receives")
struct ClientMessagesTests {
    private static func message(_ qos: QoS, id: PacketID = 5, _ payload: UInt8 = 1) -> ScriptedPeer.Step {
        .send(wire(publish("t", [payload], qos: qos, id: qos == .atMostOnce ? nil : id)))
    }

    private static let ping: [ScriptedPeer.Step] = [.expect([0xC0, 0]), .send([0xD0, 0])]

    private static func withClient(
        _ acknowledgement: MQTTAcknowledgement,
        _ script: [ScriptedPeer.Step],
        _ body: (MQTTClient, ScriptedPeer) async throws -> Void
    ) async throws {
        try await withScriptedPeer(accepting(then: script)) { peer in
            let client = MQTTClient(
                MQTTClientConfiguration(port: peer.port, id: "c") { $0.acknowledgement = acknowledgement }
            )
            try await client.connect()
            try await body(client, peer)
            try await peer.untilScriptDone()
            #expect(try await peer.mismatches().isEmpty)
            client.abort()
        }
    }

    private static func answer(_ qos: QoS) -> [UInt8] { [qos == .atLeastOnce ? 0x40 : 0x50, 2, 0, 5] }

    @Test("on receipt: acknowledged although no caller takes the message", arguments: QoS.kept)
    func onReceipt(_ qos: QoS) async throws {
        try await Self.withClient(.onReceipt, [Self.message(qos), .expect(Self.answer(qos))]) { _, peer in
            try await peer.untilScriptDone()
        }
    }

    @Test("when taken: not acknowledged before, and at once then", arguments: QoS.kept)
    func whenTaken(_ qos: QoS) async throws {
        let script = [Self.message(qos)] + Self.ping + [.expect(Self.answer(qos))]
        try await Self.withClient(.whenTaken, script) { client, _ in
            // Answered behind the message, so that has come.
            _ = try await client.ping()
            #expect(await client.take(1).map(\.payload) == [[1]])
        }
    }

    @Test("newMessageWithFeedback (SPEC A4): acknowledged when told, and once", arguments: QoS.kept)
    func manual(_ qos: QoS) async throws {
        let script =
            [Self.message(qos)] + Self.ping + [.expect(Self.answer(qos))] + Self.ping
        try await Self.withClient(.manual, script) { client, _ in
            let message = try #require(await client.take(1).first)
            _ = try await client.ping()
            message.acknowledge()
            message.acknowledge()
            _ = try await client.ping()
        }
    }

    @Test("[MQTT-3.4.2-1] a message can be refused with a reason", arguments: QoS.kept)
    func refused(_ qos: QoS) async throws {
        let answer: [UInt8] = [qos == .atLeastOnce ? 0x40 : 0x50, 4, 0, 5, 0x97, 0]
        try await Self.withClient(.manual, [Self.message(qos), .expect(answer)]) { client, _ in
            try #require(await client.take(1).first).acknowledge(.quotaExceeded)
        }
    }

    @Test("[MQTT-4.3.3-10] a repeated QoS 2 message is recorded again, and delivered once")
    func repeated() async throws {
        let again = wire(publish("t", [1], qos: .exactlyOnce, id: 5, dup: true))
        let script: [ScriptedPeer.Step] =
            [
                Self.message(.exactlyOnce), .expect([0x50, 2, 0, 5]), .send(again), .expect([0x50, 2, 0, 5]),
                .send([0x62, 2, 0, 5]), .expect([0x70, 2, 0, 5]), Self.message(.atMostOnce, 2),
            ]
        try await Self.withClient(.whenTaken, script) { client, _ in
            #expect(await client.take(2).map(\.payload) == [[1], [2]])
        }
    }

    @Test("the socket is not read while the inbox is full")
    func backPressure() async throws {
        let count = 20_000
        let stream = (0..<count).flatMap { _ in wire(publish("t", Array(repeating: 7, count: 994))) }
        let size = stream.count / count
        let perRead = 65_536 / size + 2
        try await withScriptedPeer(accepting(then: [.send(stream)])) { peer in
            let received = Mutex(0)
            let configuration = MQTTClientConfiguration(port: peer.port, id: "c") {
                $0.limits.inbox = 10
                $0.hooks.received = { if $0.type == .publish { received.withLock { $0 += 1 } } }
            }
            let client = MQTTClient(configuration)
            try await client.connect()
            var taken = 0
            var ahead = 0
            for await _ in client.messages {
                ahead = max(ahead, received.withLock { $0 } - taken)
                taken += 1
                if taken == count { break }
            }
            // The read that fills it is decoded to its end.
            #expect(ahead <= 10 + perRead)
            #expect(taken == count)
            client.abort()
        }
    }

    @Test("a task may publish between two messages, however full the inbox is")
    func echo() async throws {
        try await withBroker { broker in
            let source = MQTTClient(MQTTClientConfiguration(port: broker.port))
            let echo = MQTTClient(MQTTClientConfiguration(port: broker.port) { $0.limits.inbox = 1 })
            try await source.connect()
            try await source.subscribe([Subscription(filter: "out", qos: .atLeastOnce)])
            try await echo.connect()
            try await echo.subscribe([Subscription(filter: "in")])
            let task = Task {
                for await message in echo.messages {
                    try await echo.publish(MQTTMessage(topic: "out", payload: message.payload, qos: .atLeastOnce))
                }
            }
            for number in 0..<300 {
                try await source.publish(MQTTMessage(topic: "in", payload: [UInt8(number & 0xFF)]))
            }
            #expect(await source.take(300).map { Int($0.payload[0]) } == (0..<300).map { $0 & 0xFF })
            task.cancel()
            _ = await task.result
            await echo.disconnect()
            await source.disconnect()
        }
    }

    @Test("a cancelled reader goes without, and takes nothing from the others")
    func cancelledReader() async throws {
        try await Self.withClient(.onReceipt, Self.ping + [Self.message(.atMostOnce)]) { client, _ in
            let reader = Task { await client.take(1).count }
            reader.cancel()
            #expect(await reader.value == 0)
            _ = try await client.ping()
            #expect(await client.take(1).count == 1)
        }
    }

    @Test("several readers share the messages")
    func readers() async throws {
        try await withBroker { broker in
            let client = MQTTClient(MQTTClientConfiguration(port: broker.port))
            try await client.connect()
            try await client.subscribe([Subscription(filter: "t")])
            async let first = client.take(50)
            async let second = client.take(50)
            for number in 0..<100 { try await client.publish(MQTTMessage(topic: "t", payload: [UInt8(number)])) }
            #expect(Set((await first + (await second)).map { $0.payload[0] }) == Set(0..<100))
            await client.disconnect()
        }
    }

    @Test("sending, received, ignore, delivered, buffered: what the hooks see, in order (SPEC A4)")
    func hooks() async throws {
        try await withBroker { broker in
            let log = Mutex<[String]>([])
            let note: @Sendable (String) -> Void = { line in log.withLock { $0.append(line) } }
            let dropped = Mutex(false)
            let (drops, drop) = AsyncStream.makeStream(of: Void.self)
            let configuration = MQTTClientConfiguration(port: broker.port, .v311) {
                $0.hooks.sending = { note("> \($0.type) \($0.packetID?.rawValue ?? 0) \($0.qos.rawValue)") }
                $0.hooks.received = { note("< \($0.type) \($0.packetID?.rawValue ?? 0)") }
                $0.hooks.ignore = { trace in
                    guard trace.type == .pubAck else { return false }
                    let isFirst = dropped.withLock { wasDropped in
                        defer { wasDropped = true }
                        return !wasDropped
                    }
                    if isFirst { drop.yield() }
                    return isFirst
                }
                $0.hooks.delivered = { message, id in note("delivered \(message.topic) \(id)") }
            }
            let client = MQTTClient(configuration)
            try await client.connect()
            let message = MQTTMessage(topic: "a", qos: .atLeastOnce)
            // Its PUBACK is dropped.
            async let unanswered = failure { try await client.publish(message) }
            for await _ in drops { break }
            try await client.publish(message)
            await client.disconnect()
            #expect(await unanswered == .disconnected)
            let expected = [
                "> connect 0 0", "< connAck 0", "> publish 1 1", "< pubAck 1", "> publish 2 1", "< pubAck 2",
                "delivered a 2", "> disconnect 0 0",
            ]
            #expect(log.withLock { $0 } == expected)
        }
    }
}
