import EmbeddedBroker
import MQTTCodec
import Testing

@Suite("A filter that is subscribed to again")
struct BrokerReplaceTests {
    @Test(
        "[MQTT-3.8.4-3] replaces the subscription: one copy, at the new QoS, with the new identifier",
        arguments: [QoS.atMostOnce, .atLeastOnce, .exactlyOnce],
        [QoS.atMostOnce, .atLeastOnce, .exactlyOnce]
    )
    func replaces(_ first: QoS, _ second: QoS) {
        let world = VirtualBroker()
        let client = world.connect("c")
        let publisher = world.connect("p")
        for (number, qos) in [first, second].enumerated() {
            let properties: Properties = [.subscriptionIdentifier(UInt32(number + 1))]
            world.send(
                .subscribe(Subscribe(1, [Subscription(filter: "t", qos: qos)], properties: properties)),
                from: client
            )
            #expect(world.take(client) == [.subAck(SubAck(1, codes: [qos.rawValue]))])
            world.publish("t", "\(number)", .exactlyOnce, from: publisher)
            let received = world.publishes(client)
            #expect(received.map(\.text) == ["\(number)"])
            #expect(received.map(\.qos) == [qos])
            #expect(received.map(\.properties.subscriptionIdentifiers) == [[UInt32(number + 1)]])
        }
        #expect(world.counters.subscriptions == 1)
    }
}
