import EmbeddedBroker
import FaultInjection
import MQTTCodec
import NIOCore
import Testing

@Suite("Injected faults, on a manual clock")
struct BrokerFaultsTests {
    @Test("of any run of messages the share is dropped, evenly, and each drop is counted by QoS")
    func drop() throws {
        let world = try VirtualBroker("drop 25%")
        let subscriber = world.subscriber("s", "t")
        let publisher = world.connect("p")
        for number in 1...12 {
            world.publish("t", "\(number)", number <= 4 ? .atMostOnce : .atLeastOnce, from: publisher)
        }
        #expect(world.payloads(subscriber) == ["1", "2", "3", "5", "6", "7", "9", "10", "11"])
        let counters = world.broker.counters
        #expect(counters.dropped == CountPerQoS(1, 2, 0))
        #expect(counters.delivered == CountPerQoS(3, 6, 0))
        #expect(counters.acknowledgementsSent.puback == 8)
        #expect(counters.expected == CountPerQoS(4, 8, 0))
    }

    @Test("over many subscriptions of few messages the share holds too")
    func dropSpread() throws {
        let world = try VirtualBroker("drop 10%")
        let subscribers = (0..<200).map { world.subscriber("s\($0)", "t/\($0)", .atMostOnce) }
        let publisher = world.connect("p")
        for index in subscribers.indices {
            for _ in 0..<5 { world.publish("t/\(index)", "x", from: publisher) }
        }
        // 1,000 messages, 5 to each: none would be dropped if every subscription began at the same phase.
        let dropped = world.broker.counters.dropped.total
        #expect((95...105).contains(dropped))
        #expect(subscribers.map { UInt64(world.payloads($0).count) }.reduce(0, +) == 1_000 - dropped)
    }

    @Test("every Nth comes twice, as a message of its own at QoS 2 too", arguments: QoS.allCases)
    func duplicate(_ qos: QoS) throws {
        let world = try VirtualBroker("duplicate 3")
        let subscriber = world.subscriber("s", "t")
        let publisher = world.connect("p")
        for number in 1...7 { world.publish("t", "\(number)", qos, from: publisher) }
        #expect(world.payloads(subscriber) == ["1", "2", "3", "3", "4", "5", "6", "6", "7"])
        var expected = CountPerQoS()
        expected[qos.rawValue] = 2
        #expect(world.broker.counters.duplicated == expected)
        #expect(world.broker.counters.expected.total == 7)
    }

    @Test("every Nth goes behind the next of the same publisher, others between them notwithstanding")
    func reorder() throws {
        let world = try VirtualBroker("reorder 4")
        let subscriber = world.subscriber("s", "t/+")
        let a = world.connect("a")
        let b = world.connect("b")
        for number in 1...4 {
            world.publish("t/a", "a\(number)", .atLeastOnce, from: a)
            world.publish("t/b", "b\(number)", .atMostOnce, from: b)
        }
        // b2 is the fourth message and b4 the eighth; b4 has no successor yet.
        #expect(world.payloads(subscriber) == ["a1", "b1", "a2", "a3", "b3", "b2", "a4"])
        #expect(world.broker.counters.waiting == CountPerQoS(1))
        world.advance(by: .milliseconds(100))
        #expect(world.payloads(subscriber) == ["b4"])
        let counters = world.broker.counters
        #expect(counters.reordered == CountPerQoS(1))
        #expect(counters.reorderReleased == CountPerQoS(1))
        #expect(counters.expected == CountPerQoS(4, 4))
    }

    @Test("a held message goes out when its publisher leaves")
    func reorderEnd() throws {
        let world = try VirtualBroker("reorder 1")
        let subscriber = world.subscriber("s", "t")
        let publisher = world.connect("p")
        for number in 1...3 { world.publish("t", "\(number)", from: publisher) }
        #expect(world.payloads(subscriber) == ["2", "1"])
        world.send(.disconnect(Disconnect()), from: publisher)
        #expect(world.payloads(subscriber) == ["3"])
        #expect(world.broker.counters.reorderReleased == CountPerQoS(1))
        world.advance(by: .seconds(1))
        #expect(world.payloads(subscriber).isEmpty)
    }

    @Test("a delay holds its message alone, to the nanosecond, and who passes it is counted")
    func delay() throws {
        let world = try VirtualBroker("delay 20ms delay-every 2")
        let subscriber = world.subscriber("s", "t")
        let publisher = world.connect("p")
        for number in 1...3 {
            world.publish("t", "\(number)", .atLeastOnce, from: publisher)
            world.advance(by: .milliseconds(1))
        }
        #expect(world.payloads(subscriber) == ["1", "3"])
        world.advance(by: .milliseconds(18) - .nanoseconds(1))
        #expect(world.payloads(subscriber).isEmpty)
        world.advance(by: .nanoseconds(1))
        #expect(world.payloads(subscriber) == ["2"])
        let counters = world.broker.counters
        #expect(counters.delayed == CountPerQoS(0, 1))
        #expect(counters.reordered == CountPerQoS(0, 1))
        #expect(counters.delayHolds.count == 1)
        #expect(counters.delayHolds.p50 == 20_000_000)
    }

    @Test(
        "what a fault holds for a client that goes is booked as undelivered",
        arguments: ["delay 20ms", "reorder 1"]
    )
    func heldForLost(_ line: String) throws {
        let world = try VirtualBroker(line)
        let subscriber = world.subscriber("s", "t")
        world.publish("t", "x", .exactlyOnce, from: world.connect("p"))
        #expect(world.broker.counters.waiting == CountPerQoS(0, 0, 1))
        world.lose(subscriber)
        world.advance(by: .seconds(1))
        #expect(world.broker.counters.undelivered == CountPerQoS(0, 0, 1))
        #expect(world.broker.counters.expected == CountPerQoS(0, 0, 1))
    }

    @Test("drop, duplicate, reorder and delay together lose nothing from the books")
    func together() throws {
        let world = try VirtualBroker("drop 7% duplicate 5 reorder 3 delay 4ms delay-every 6")
        let plain = world.subscriber("s", "t/+")
        let members = [world.subscriber("m", "$share/g/t/+"), world.subscriber("n", "$share/g/t/+")]
        let publishers = QoS.allCases.map { ($0, world.connect("p\($0)")) }
        var received: UInt64 = 0
        for number in 0..<300 {
            let (qos, publisher) = publishers[number % 3]
            world.publish("t/\(qos)", "\(number)", qos, from: publisher)
            world.advance(by: .milliseconds(1))
            received += UInt64(([plain] + members).map { world.payloads($0).count }.reduce(0, +))
        }
        world.advance(by: .seconds(1))
        received += UInt64(([plain] + members).map { world.payloads($0).count }.reduce(0, +))
        let counters = world.broker.counters
        #expect(counters.expected == CountPerQoS(200, 200, 200))
        #expect(counters.waiting == CountPerQoS())
        #expect(counters.delivered.total == received)
        #expect(counters.delivered.total == 600 - counters.dropped.total + counters.duplicated.total)
        #expect(counters.dropped.total > 30 && counters.duplicated.total > 90 && counters.reordered.total > 90)
    }

    @Test("the stall happens once, counted from the first CONNECT, and no client counts as silent because of it")
    func stall() throws {
        let world = try VirtualBroker("stall 2s@10s")
        world.advance(by: .seconds(3))
        let start = world.now
        let client = world.connect("c", keepAlive: 1)
        for _ in 0..<12 {
            world.advance(by: .seconds(1))
            if !client.isClosed { world.send(.pingReq, from: client) }
        }
        #expect(world.actions == [.stall(until: start + .seconds(12))])
    }

    @Test("connections are reset one after the other, and what they miss is counted")
    func disconnect() throws {
        let world = try VirtualBroker("disconnect-every 1s")
        let publisher = world.connect("p")
        let first = world.subscriber("s", "t")
        let second = world.subscriber("u", "t")
        world.advance(by: .seconds(2))
        #expect(world.actions == [.reset(publisher.id), .reset(first.id)])
        world.publish("t", "x", .atLeastOnce, from: world.connect("q"))
        #expect(world.payloads(second) == ["x"])
        let counters = world.broker.counters
        #expect(counters.disconnected == 2)
        #expect(counters.notDeliveredOffline == CountPerQoS(0, 1))
        #expect(counters.expected == CountPerQoS(0, 2))
    }

    @Test(
        "a refusal is given in the words of the client's version",
        arguments: [
            ("5", .v311, 5), ("5", .v5, 0x87), ("0x87", .v31, 5), ("0x97", .v5, 0x97), ("0x97", .v311, 3),
            ("137", .v5, 0x89),
        ] as [(String, ProtocolVersion, UInt8)]
    )
    func refuse(_ code: String, _ version: ProtocolVersion, _ answer: UInt8) throws {
        let world = try VirtualBroker("refuse \(code)")
        let client = world.open(version)
        world.send(.connect(Connect(version: version, clientID: "c")), from: client)
        #expect(world.take(client) == [.connAck(ConnAck(code: answer))])
        #expect(client.isClosed)
        #expect(world.broker.counters.refused == 1)
    }
}
