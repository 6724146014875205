import EmbeddedBroker
import MQTTCodec
import NIOCore
import Testing

@Suite("Retained messages for new subscriptions come in parts, and other clients are served between them")
struct BrokerRetainedTests {
    /// More than one turn of the loop has room for.
    private static let count = 5_000
    /// More than a turn has ever.
    private static let most = 2_000

    /// A broker with retained messages `old` on `t/0`, `t/1` and so on.
    private static func world(
        _ count: Int = Self.count,
        _ configure: (inout BrokerConfiguration) -> Void = { _ in }
    ) -> VirtualBroker {
        let world = VirtualBroker(configure)
        let publisher = world.connect("p")
        for number in 0..<count { world.publish("t/\(number)", "old", retain: true, from: publisher) }
        return world
    }

    private static func subscribe(_ client: VirtualBroker.Client, _ filters: String..., in world: VirtualBroker) {
        let subscriptions = filters.map { Subscription(filter: $0, qos: .atMostOnce) }
        world.send(.subscribe(Subscribe(9, subscriptions)), from: client)
    }

    /// The PUBLISH packets of the next turns, until none comes; each turn has some, and not too many.
    private static func rest(_ client: VirtualBroker.Client, in world: VirtualBroker) -> [Publish] {
        var came: [Publish] = []
        while true {
            world.advance(by: .milliseconds(1))
            let more = world.publishes(client)
            if more.isEmpty { return came }
            #expect(more.count < Self.most)
            came += more
        }
    }

    private static func owes(_ world: VirtualBroker) -> Bool {
        let owes = world.broker.owesRetained
        return owes
    }

    @Test("SUBACK is first, each turn has a part, each message comes once, and a PINGREQ is answered before the last")
    func parts() {
        let world = Self.world()
        let (reader, other) = (world.connect("r"), world.connect("o"))
        Self.subscribe(reader, "t/#", in: world)
        let packets = world.take(reader)
        #expect(packets.first == .subAck(SubAck(9, codes: [0])))
        #expect((2..<Self.most).contains(packets.count))
        world.send(.pingReq, from: other)
        #expect(world.take(other) == [.pingResp])
        #expect(Self.owes(world))
        let first: [Publish] = packets.compactMap { if case .publish(let publish) = $0 { publish } else { nil } }
        let all = first + Self.rest(reader, in: world)
        #expect(all.map(\.topic) == (0..<Self.count).map { "t/\($0)" })
        #expect(all.allSatisfy { $0.retain && $0.text == "old" })
        #expect(world.counters.deliveredRetained.total == UInt64(Self.count))
        #expect(!Self.owes(world))
    }

    @Test("a small store is sent with SUBACK, and a SUBSCRIBE of the same filter brings it again [MQTT-3.8.4-3]")
    func small() {
        let world = Self.world(3)
        let reader = world.connect("r")
        for _ in 0..<2 {
            Self.subscribe(reader, "t/+", in: world)
            #expect(world.take(reader).map(\.type) == [.subAck, .publish, .publish, .publish])
        }
    }

    @Test("what changes meanwhile comes once and in order: the old message never behind the new one")
    func changes() {
        let world = Self.world()
        let (reader, publisher) = (world.connect("r"), world.connect("q"))
        Self.subscribe(reader, "t/#", in: world)
        var came = world.publishes(reader)
        let last = Self.count - 1
        #expect(came.contains { $0.topic == "t/0" } && !came.contains { $0.topic == "t/\(last)" })
        for topic in ["t/0", "t/\(last)", "t/new/below", "t"] {
            world.publish(topic, "new", retain: true, from: publisher)
        }
        world.publish("t/\(last - 1)", "", retain: true, from: publisher)
        came += Self.rest(reader, in: world)
        let texts = Dictionary(grouping: came, by: \.topic).mapValues { $0.map(\.text) }
        #expect(texts["t/0"] == ["old", "new"])
        #expect(texts["t/\(last)"] == ["new"])
        #expect(texts["t/\(last - 1)"] == [""])
        #expect(texts["t/new/below"] == ["new"] && texts["t"] == ["new"])
        #expect(texts.count == Self.count + 2)
        #expect(texts.filter { $0.value == ["old"] }.count == Self.count - 3)
        // A live message has no RETAIN (§3.3.1.3).
        #expect(came.allSatisfy { $0.retain == ($0.text == "old") })
    }

    @Test("topics that go and come back during a search are not found twice, whatever takes their place")
    func reused() {
        let world = Self.world()
        let (reader, publisher) = (world.connect("r"), world.connect("q"))
        Self.subscribe(reader, "t/+", in: world)
        var came = world.publishes(reader)
        let removed = Self.count - 1_000..<Self.count
        for number in removed { world.publish("t/\(number)", "", retain: true, from: publisher) }
        for number in removed { world.publish("u/\(number)", "other", retain: true, from: publisher) }
        came += world.publishes(reader)
        came += Self.rest(reader, in: world)
        #expect(came.filter { $0.text == "old" }.map(\.topic) == (0..<removed.lowerBound).map { "t/\($0)" })
        #expect(came.filter { $0.text != "old" }.map(\.topic) == removed.map { "t/\($0)" })
        let later = world.connect("l")
        Self.subscribe(later, "u/#", in: world)
        let found = world.publishes(later) + Self.rest(later, in: world)
        #expect(Set(found.map(\.topic)) == Set(removed.map { "u/\($0)" }))
        #expect(found.count == removed.count)
    }

    @Test("an UNSUBSCRIBE ends it; the next SUBSCRIBE begins again", arguments: [true, false])
    func unsubscribes(_ isForGood: Bool) {
        let world = Self.world()
        let reader = world.connect("r")
        Self.subscribe(reader, "t/#", in: world)
        _ = world.take(reader)
        world.send(.unsubscribe(Unsubscribe(3, filters: ["t/#"])), from: reader)
        #expect(world.take(reader).map(\.type) == [.unsubAck])
        if isForGood {
            world.advance(by: .seconds(1))
            #expect(world.take(reader).isEmpty)
            #expect(!Self.owes(world))
        }
        Self.subscribe(reader, "t/#", in: world)
        let came = world.publishes(reader) + Self.rest(reader, in: world)
        #expect(came.count == Self.count)
    }

    @Test("a second SUBSCRIBE of the filter begins again")
    func again() {
        let world = Self.world()
        let reader = world.connect("r")
        Self.subscribe(reader, "t/#", in: world)
        _ = world.take(reader)
        Self.subscribe(reader, "t/#", in: world)
        #expect(world.take(reader).first == .subAck(SubAck(9, codes: [0])))
        #expect(Set(Self.rest(reader, in: world).map(\.topic)).count == Self.count)
        #expect(!Self.owes(world))
    }

    @Test("the end of a connection ends it, unless the session goes on, and for no other client")
    func ends() {
        let world = Self.world()
        let (leaver, _) = world.keeper("l")
        let (reader, stayer) = (world.connect("r"), world.connect("s"))
        for client in [leaver, reader] { Self.subscribe(client, "t/#", in: world) }
        // Its place is taken by a subscription of another client.
        world.send(.unsubscribe(Unsubscribe(3, filters: ["t/#"])), from: reader)
        Self.subscribe(stayer, "t/#", in: world)
        let before = world.publishes(leaver).count
        #expect(before > 0 && before < Self.count)
        world.lose(leaver)
        world.lose(reader)
        #expect(world.publishes(stayer).count + Self.rest(stayer, in: world).count == Self.count)
        let (back, answer) = world.keeper("l")
        #expect(answer.sessionPresent)
        #expect(Self.rest(back, in: world).count == Self.count - before)
        #expect(!Self.owes(world))
    }

    @Test("filters of one SUBSCRIBE come one after the other, those of several clients in turn")
    func filters() {
        let world = Self.world(2_000)
        let (first, second) = (world.connect("a"), world.connect("b"))
        let filters = ["t/#", "t/+", "+/#", "+/+", "#"]
        for client in [first, second] {
            let subscriptions = filters.map { Subscription(filter: $0, qos: .atMostOnce) }
            world.send(.subscribe(Subscribe(9, subscriptions)), from: client)
        }
        var came = [first, second].map { world.publishes($0).count }
        #expect(came[0] > 0 && came[1] == 0)
        for _ in 0..<4 {
            world.advance(by: .milliseconds(1))
            let more = [first, second].map { world.publishes($0).count }
            #expect(more.reduce(0, +) < Self.most && more.contains(0))
            came = zip(came, more).map { $0 + $1 }
        }
        #expect(came.allSatisfy { $0 > 0 })
        world.advance(by: .seconds(1))
        came = zip(came, [first, second].map { world.publishes($0).count }).map { $0 + $1 }
        #expect(came == [10_000, 10_000])
    }

    @Test("a client that does not read is sent no more than the high-water mark, and the rest when it reads")
    func unread() {
        let world = Self.world { $0.highWaterMark = 10_000 }
        let reader = world.connect("r")
        world.broker.setWritable(reader.id, false)
        Self.subscribe(reader, "t/#", in: world)
        world.advance(by: .seconds(10))
        // A packet has 14 bytes.
        #expect((600...800).contains(world.counters.deliveredRetained.total))
        world.broker.setWritable(reader.id, true)
        world.advance(by: .seconds(10))
        #expect(world.publishes(reader).count == Self.count)
        #expect(!Self.owes(world))
    }

    @Test("a large store of large messages is bounded by bytes too")
    func large() {
        let world = VirtualBroker { $0.highWaterMark = 1 << 30 }
        let publisher = world.connect("p")
        let text = String(repeating: "x", count: 100_000)
        for number in 0..<100 { world.publish("t/\(number)", text, retain: true, from: publisher) }
        let reader = world.connect("r")
        Self.subscribe(reader, "#", in: world)
        var most = world.publishes(reader).count
        var all = most
        while Self.owes(world) {
            world.advance(by: .milliseconds(1))
            let more = world.publishes(reader).count
            most = max(most, more)
            all += more
        }
        // 2 MiB, and one message.
        #expect(most <= 22)
        #expect(all == 100)
    }

    @Test("messages whose time has passed are left out, and $SYS comes behind the rest")
    func others() {
        let world = VirtualBroker()
        let publisher = world.connect("p")
        for (topic, seconds) in [("a", 1), ("b", 100)] as [(String, UInt32)] {
            let message = Publish(
                topic: topic,
                payload: ByteBuffer(string: "x"),
                qos: .atMostOnce,
                retain: true,
                properties: [.messageExpiryInterval(seconds)]
            )
            world.send(.publish(message), from: publisher)
        }
        world.advance(by: .seconds(2))
        let reader = world.connect("r")
        Self.subscribe(reader, "+", "$SYS/broker/version", in: world)
        #expect(world.publishes(reader).map(\.topic) == ["b", "$SYS/broker/version"])
    }
}
