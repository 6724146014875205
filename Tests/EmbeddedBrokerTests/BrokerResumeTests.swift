import EmbeddedBroker
import MQTTCodec
import NIOCore
import Testing

@Suite("Sessions whose connections end early")
struct BrokerResumeTests {
    /// A client that comes back and is lost before the kernel takes anything for it.
    private static func comeAndGo(_ world: VirtualBroker, _ properties: Properties = []) {
        let client = world.open()
        client.answers = false
        world.broker.setWritable(client.id, false)
        let connect = Connect(
            version: .v5,
            clientID: "s",
            cleanStart: false,
            properties: properties + [.sessionExpiryInterval(.max)]
        )
        world.send(.connect(connect), from: client)
        #expect(world.take(client).isEmpty)
        world.lose(client)
    }

    @Test(
        "[MQTT-3.3.1-1] what one connection has handed out stays delivered when the next ends before it repeats it",
        arguments: [QoS.atLeastOnce, .exactlyOnce],
        [1, 2]
    )
    func staysDelivered(_ qos: QoS, _ times: Int) {
        let world = VirtualBroker()
        let (first, _) = world.keeper("s")
        world.subscribe(first, "t")
        let publisher = world.connect("p")
        let message = Publish(topic: "t", qos: qos, packetID: 7, properties: [.messageExpiryInterval(5)])
        world.send(.publish(message), from: publisher)
        let sent = world.publishes(first)
        #expect(sent.map(\.dup) == [false])
        world.lose(first)
        var once = CountPerQoS()
        once[qos.rawValue] = 1
        for _ in 0..<times {
            Self.comeAndGo(world)
            #expect(world.counters.delivered == once)
            #expect(world.counters.waiting == CountPerQoS())
            #expect(world.counters.resent == CountPerQoS())
        }
        // The interval is for what was never sent.
        world.advance(by: .seconds(10))
        let (last, _) = world.keeper("s")
        let again = world.publishes(last)
        #expect(again.map(\.dup) == [true])
        #expect(again.map(\.packetID) == sent.map(\.packetID))
        #expect(world.counters.resent == once)
        #expect(world.counters.expected == once)
        #expect(world.counters.expired == CountPerQoS())
    }

    @Test("[MQTT-4.6.0-1] a repetition that one connection did not hand out keeps its place on the next")
    func keepsItsPlace() {
        let world = VirtualBroker()
        let (first, _) = world.keeper("s")
        world.subscribe(first, "t")
        let publisher = world.connect("p")
        for text in ["0", "1", "2"] { world.publish("t", text, .atLeastOnce, from: publisher) }
        world.lose(first)
        Self.comeAndGo(world, [.receiveMaximum(1)])
        let (last, _) = world.keeper("s")
        #expect(world.publishes(last).map(\.text) == ["0", "1", "2"])
    }

    @Test("[MQTT-3.1.2-24] a CONNACK that is too large for the client costs the session nothing")
    func tooLargeAnswer() {
        let world = VirtualBroker()
        let (first, _) = world.keeper("s")
        world.subscribe(first, "t")
        let publisher = world.connect("p")
        world.publish("t", "0", .atLeastOnce, from: publisher)
        world.send(.publish(Publish(topic: "u", qos: .exactlyOnce, packetID: 9)), from: first)
        world.lose(first)
        world.publish("t", "1", .exactlyOnce, from: publisher)
        let stored = world.counters.storedBytes
        let small = world.open()
        let properties: Properties = [.sessionExpiryInterval(.max), .maximumPacketSize(4)]
        let connect = Connect(version: .v5, clientID: "s", cleanStart: false, properties: properties)
        world.send(.connect(connect), from: small)
        #expect(small.isClosed)
        #expect(world.counters.sessionsAway == 1)
        #expect(world.counters.storedBytes == stored)
        #expect(world.counters.waiting == CountPerQoS(0, 0, 1))
        let (last, answer) = world.keeper("s")
        #expect(answer.sessionPresent)
        #expect(world.publishes(last).map { $0.text + ($0.dup ? "d" : "") } == ["0d", "1"])
        // The receiver's half of QoS 2 is there too: known, so no 0x92.
        world.send(.pubRel(PubRel(9)), from: last)
        #expect(world.take(last) == [.pubComp(PubComp(9))])
        #expect(world.counters.waiting == CountPerQoS())
        #expect(world.counters.delivered == CountPerQoS(0, 1, 1))
    }
}
