import EmbeddedBroker
import MQTTCodec
import NIOCore
import Testing

@Suite("Expiry of sessions and messages, on a manual clock")
struct BrokerExpiryTests {
    @Test("a session ends as long after its connection as was asked for, to the nanosecond (§3.1.2.11.2)")
    func sessionExpires() {
        let world = VirtualBroker()
        let (client, _) = world.keeper("s", expiry: 10)
        world.subscribe(client, "t")
        world.advance(by: .seconds(60))
        world.lose(client)
        let publisher = world.connect("p")
        world.publish("t", "x", .atLeastOnce, from: publisher)
        world.advance(by: .seconds(10) - .nanoseconds(1))
        #expect(world.counters.sessionsAway == 1)
        #expect(world.counters.waiting == CountPerQoS(0, 1))
        world.advance(by: .nanoseconds(1))
        #expect(world.counters.sessionsAway == 0)
        #expect(world.counters.sessionsExpired == 1)
        #expect(world.counters.undelivered == CountPerQoS(0, 1))
        world.publish("t", "y", .atLeastOnce, from: publisher)
        #expect(world.counters.expected == CountPerQoS(0, 1))
        #expect(!world.keeper("s", expiry: 10).answer.sessionPresent)
    }

    @Test("a session that never expires does not, and one that was resumed begins anew")
    func never() {
        let world = VirtualBroker()
        world.lose(world.keeper("ever").client)
        world.lose(world.keeper("once", .v311).client)
        world.lose(world.keeper("s", expiry: 10).client)
        world.advance(by: .seconds(9))
        let (again, answer) = world.keeper("s", expiry: 10)
        #expect(answer.sessionPresent)
        world.advance(by: .seconds(9))
        world.lose(again)
        world.advance(by: .seconds(9))
        #expect(world.keeper("s", expiry: 10).answer.sessionPresent)
        world.advance(by: .hours(1_000))
        #expect(world.keeper("ever").answer.sessionPresent)
        #expect(world.keeper("once", .v311).answer.sessionPresent)
    }

    @Test(
        "DISCONNECT changes the expiry: shorter, longer, or to nothing (§3.14.2.2.2)",
        arguments: [5, 20, 0] as [UInt32]
    )
    func changed(_ seconds: UInt32) {
        let world = VirtualBroker()
        let (client, _) = world.keeper("s", expiry: 10)
        world.send(.disconnect(Disconnect(properties: [.sessionExpiryInterval(seconds)])), from: client)
        #expect(client.isClosed)
        #expect(world.counters.disconnects == ["client": 1])
        for (after, isThere) in [(4, seconds > 4), (6, seconds > 6), (19, seconds > 19), (21, false)] as [(Int64, Bool)]
        {
            let other = VirtualBroker()
            let (client, _) = other.keeper("s", expiry: 10)
            other.send(.disconnect(Disconnect(properties: [.sessionExpiryInterval(seconds)])), from: client)
            other.advance(by: .seconds(after))
            #expect(other.keeper("s", expiry: 10).answer.sessionPresent == isThere, "after \(after) s")
        }
    }

    @Test("[MQTT-3.14.2-2] an expiry in DISCONNECT where CONNECT had none is a protocol error")
    func changedFromZero() {
        let world = VirtualBroker()
        let client = world.connect("s")
        world.send(.disconnect(Disconnect(properties: [.sessionExpiryInterval(1)])), from: client)
        #expect(world.take(client) == [.disconnect(Disconnect(reason: .protocolError))])
        #expect(world.counters.disconnects == ["protocol": 1])
        let other = world.connect("s")
        world.send(.disconnect(Disconnect(properties: [.sessionExpiryInterval(0)])), from: other)
        #expect(world.take(other).isEmpty)
    }

    @Test("the server may shorten an expiry, and says so (§3.2.2.3.2)")
    func maximum() {
        let world = VirtualBroker { $0.limits.maximumSessionExpiry = 5 }
        let (client, answer) = world.keeper("s", expiry: 10)
        #expect(answer.properties.sessionExpiryInterval == 5)
        world.lose(client)
        world.advance(by: .seconds(6))
        #expect(!world.keeper("s", expiry: 3).answer.sessionPresent)
    }

    @Test("[MQTT-3.3.2-5] [MQTT-3.3.2-6] a waiting message is dropped when due, else goes with what is left")
    func messages() {
        let world = VirtualBroker()
        let (first, _) = world.keeper("s")
        world.subscribe(first, "t")
        world.lose(first)
        let publisher = world.connect("p")
        for (index, seconds) in [UInt32(5), 30, .max].enumerated() {
            let properties: Properties = [.contentType("c"), .messageExpiryInterval(seconds)]
            let message = Publish(
                topic: "t",
                payload: ByteBuffer(string: "\(index)"),
                qos: .atLeastOnce,
                packetID: 1,
                properties: properties
            )
            world.send(.publish(message), from: publisher)
        }
        world.advance(by: .seconds(10))
        let (second, _) = world.keeper("s")
        let received = world.publishes(second)
        #expect(received.map(\.text) == ["1", "2"])
        #expect(received.map(\.properties.messageExpiryInterval) == [20, .max - 10])
        #expect(received.map(\.properties.contentType) == ["c", "c"])
        #expect(world.counters.expired == CountPerQoS(0, 1))
        #expect(world.counters.expected == CountPerQoS(0, 3))
    }

    @Test("[MQTT-3.3.2-6] a message that waits for the window ages too")
    func window() {
        let world = VirtualBroker()
        let client = world.connect("s", .v5, keepAlive: 0, [.receiveMaximum(1)])
        client.answers = false
        world.subscribe(client, "t")
        let publisher = world.connect("p")
        for seconds: UInt32 in [100, 3, 100] {
            world.send(
                .publish(
                    Publish(topic: "t", qos: .atLeastOnce, packetID: 1, properties: [.messageExpiryInterval(seconds)])
                ),
                from: publisher
            )
        }
        let first = world.publishes(client)
        #expect(first.map(\.properties.messageExpiryInterval) == [100])
        world.advance(by: .seconds(4))
        world.send(.pubAck(PubAck(PacketID(rawValue: first.first?.id ?? 1) ?? 1)), from: client)
        #expect(world.publishes(client).map(\.properties.messageExpiryInterval) == [96])
        #expect(world.counters.expired == CountPerQoS(0, 1))
        #expect(world.counters.waiting == CountPerQoS())
        #expect(world.counters.expected == CountPerQoS(0, 3))
    }

    @Test("[MQTT-3.3.2-6] a retained message is sent with what is left, and not at all when nothing is")
    func retained() {
        let world = VirtualBroker()
        let publisher = world.connect("p")
        world.send(
            .publish(
                Publish(
                    topic: "t",
                    payload: ByteBuffer(string: "x"),
                    retain: true,
                    properties: [.messageExpiryInterval(10)]
                )
            ),
            from: publisher
        )
        let reader = world.connect("r")
        world.advance(by: .milliseconds(2_500))
        world.subscribe(reader, "t")
        world.send(.subscribe(Subscribe(2, [Subscription(filter: "t")])), from: reader)
        #expect(world.publishes(reader).map(\.properties.messageExpiryInterval) == [8])
        world.advance(by: .seconds(8))
        world.send(.subscribe(Subscribe(3, [Subscription(filter: "t")])), from: reader)
        #expect(world.publishes(reader).isEmpty)
    }

    @Test("what waits for one client is bounded by messages, by bytes, and by all together", arguments: 0..<3)
    func bounds(_ which: Int) {
        let world = VirtualBroker { configuration in
            switch which {
            case 0: configuration.sessionQueueMessages = 3
            case 1: configuration.sessionQueueBytes = 3 * 132
            default: configuration.storedBytes = 3 * 132
            }
        }
        let (client, _) = world.keeper("s")
        world.subscribe(client, "t")
        world.lose(client)
        let publisher = world.connect("p")
        // 108 bytes of packet, 24 of queue.
        for _ in 0..<5 { world.publish("t", String(repeating: "x", count: 100), .atLeastOnce, from: publisher) }
        #expect(world.counters.queueFull == CountPerQoS(0, 2))
        #expect(world.counters.waiting == CountPerQoS(0, 3))
        #expect(world.counters.storedBytes == 3 * 132)
        #expect(world.publishes(world.keeper("s").client).count == 3)
        #expect(world.counters.expected == CountPerQoS(0, 5))
    }
}
