import EmbeddedBroker
import MQTT
import MQTTCodec
import TestSupport
import Testing

@Suite("A client and a broker")
struct ClientFlowTests {
    @Test("connect says what the server said", arguments: ProtocolVersion.allCases)
    func connects(_ version: ProtocolVersion) async throws {
        try await withBroker { broker in
            let client = MQTTClient(MQTTClientConfiguration(port: broker.port, version, id: "abc"))
            #expect(client.state == .created)
            let result = try await client.connect()
            #expect(client.state == .connected)
            #expect(result.clientID == "abc")
            #expect(!result.sessionPresent)
            #expect(result.limits.keepAlive == 60)
            #expect(
                await failure { try await client.connect() } == .alreadyConnected
            )
            await client.disconnect()
            #expect(client.state == .closed)
            // Once more with the same client.
            try await client.connect()
            await client.disconnect()
        }
    }

    @Test(
        "a message of each QoS goes out and comes back, the call returning when it is acknowledged",
        arguments: ProtocolVersion.allCases,
        QoS.allCases
    )
    func roundTrip(_ version: ProtocolVersion, _ qos: QoS) async throws {
        try await withBroker { broker in
            let client = MQTTClient(MQTTClientConfiguration(port: broker.port, version))
            try await client.connect()
            let granted = try await client.subscribe([Subscription(filter: "a/#", qos: .exactlyOnce)])
            #expect(granted == [MQTTSubscribeResult(filter: "a/#", reason: .grantedQoS2)])
            let message = MQTTMessage(topic: "a/b", payload: [1, 2, 3], qos: qos)
            let result = try await client.publish(message)
            #expect(result.reason == .success)
            #expect((result.packetID == nil) == (qos == .atMostOnce))
            let received = await client.take(1)
            #expect(received.map(\.message) == [message])
            #expect(received.first?.topic == "a/b")
            await client.disconnect()
        }
    }

    @Test("[MQTT-4.6.0-1] messages queued beyond the window arrive in the order of the calls", arguments: QoS.kept)
    func order(_ qos: QoS) async throws {
        try await withBroker { broker in
            let subscriber = MQTTClient(MQTTClientConfiguration(port: broker.port))
            try await subscriber.connect()
            try await subscriber.subscribe([Subscription(filter: "t", qos: qos)])
            let (queued, watch) = AsyncStream.makeStream(of: Int.self)
            let configuration = MQTTClientConfiguration(port: broker.port) {
                $0.hooks.buffered = { watch.yield($0.queued) }
            }
            let client = MQTTClient(configuration)
            try await withThrowingTaskGroup(of: Void.self) { group in
                var counts = queued.makeAsyncIterator()
                for number in 0..<100 {
                    let message = MQTTMessage(topic: "t", payload: [UInt8(number)], qos: qos)
                    group.addTask { try await client.publish(message) }
                    while let count = await counts.next(), count <= number {}
                }
                try await client.connect()
                try await group.waitForAll()
            }
            #expect(await subscriber.take(100).map { Int($0.payload[0]) } == Array(0..<100))
            await client.disconnect()
            await subscriber.disconnect()
        }
    }

    @Test("the codes of SUBACK and UNSUBACK are reported per filter, in order (SPEC A10)")
    func subscriptions() async throws {
        try await withBroker { broker in
            let client = MQTTClient(MQTTClientConfiguration(port: broker.port))
            try await client.connect()
            let results = try await client.subscribe([
                Subscription(filter: "z", qos: .exactlyOnce), Subscription(filter: "a/+", qos: .atMostOnce),
                Subscription(filter: "m/#", qos: .atLeastOnce),
            ])
            #expect(results.map(\.filter) == ["z", "a/+", "m/#"])
            #expect(results.map(\.granted) == [.exactlyOnce, .atMostOnce, .atLeastOnce])
            let ended = try await client.unsubscribe(["m/#", "nothing", "z"])
            #expect(ended.map(\.reason) == [.success, .noSubscriptionExisted, .success])
            #expect(ended.map(\.filter) == ["m/#", "nothing", "z"])
            await client.disconnect()
        }
    }

    @Test("ping tells how long PINGRESP took")
    func ping() async throws {
        try await withBroker { broker in
            let client = MQTTClient(MQTTClientConfiguration(port: broker.port))
            #expect(await failure { try await client.ping() } == .notConnected)
            try await client.connect()
            #expect(try await client.ping() > .zero)
            await client.disconnect()
        }
    }

    @Test("QoS 1 and 2 published before the connection go out with it, in order (SPEC A8)")
    func offline() async throws {
        try await withBroker { broker in
            let subscriber = MQTTClient(MQTTClientConfiguration(port: broker.port))
            try await subscriber.connect()
            try await subscriber.subscribe([Subscription(filter: "t", qos: .exactlyOnce)])
            let client = MQTTClient(MQTTClientConfiguration(port: broker.port))
            let none = MQTTMessage(topic: "t")
            #expect(
                await failure { try await client.publish(none) } == .notConnected
            )
            async let first = client.publish(MQTTMessage(topic: "t", payload: [1], qos: .atLeastOnce))
            async let second = client.publish(MQTTMessage(topic: "t", payload: [2], qos: .exactlyOnce))
            try await client.connect()
            _ = try await (first, second)
            #expect(Set(await subscriber.take(2).map(\.payload)) == [[1], [2]])
            await client.disconnect()
            await subscriber.disconnect()
        }
    }
}
