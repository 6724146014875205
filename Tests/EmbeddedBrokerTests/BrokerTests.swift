import EmbeddedBroker
import MQTTCodec
import NIOCore
import Testing

@Suite("The broker as calls and answers")
struct BrokerTests {
    struct Pair: Sendable, CustomTestStringConvertible {
        let publisher: ProtocolVersion
        let subscriber: ProtocolVersion
        let published: QoS
        let granted: QoS
        var testDescription: String { "\(publisher) \(published) to \(subscriber) \(granted)" }
    }

    static let pairs = ProtocolVersion.allCases.flatMap { publisher in
        ProtocolVersion.allCases.flatMap { subscriber in
            QoS.allCases.flatMap { published in
                QoS.allCases.map {
                    Pair(publisher: publisher, subscriber: subscriber, published: published, granted: $0)
                }
            }
        }
    }

    @Test("a message arrives once at the lower QoS of the two, from and to every version", arguments: pairs)
    func delivers(_ pair: Pair) {
        let world = VirtualBroker()
        let subscriber = world.subscriber("s", "a/+", pair.granted, pair.subscriber)
        let publisher = world.connect("p", pair.publisher)
        for number in 1...3 {
            world.publish(
                "a/b",
                "\(number)",
                pair.published,
                id: PacketID(integerLiteral: UInt16(number)),
                from: publisher
            )
        }
        let publishes = world.take(subscriber).compactMap { packet -> Publish? in
            if case .publish(let publish) = packet { publish } else { nil }
        }
        #expect(publishes.map { String(buffer: $0.payload) } == ["1", "2", "3"])
        #expect(publishes.allSatisfy { $0.qos == min(pair.published, pair.granted) && !$0.retain && $0.topic == "a/b" })
        var expected = CountPerQoS()
        expected[pair.published.rawValue] = 3
        #expect(world.broker.counters.received == expected)
        #expect(world.broker.counters.delivered == expected)
        #expect(world.broker.counters.expected == expected)
    }

    @Test("each QoS is answered with its own packets, also without a subscriber [MQTT-4.5.0-2]")
    func acknowledges() {
        let world = VirtualBroker()
        let client = world.connect("p")
        world.send(.publish(Publish(topic: "t")), from: client)
        world.send(.publish(Publish(topic: "t", qos: .atLeastOnce, packetID: 5)), from: client)
        world.send(.publish(Publish(topic: "t", qos: .exactlyOnce, packetID: 6)), from: client)
        world.send(.pubRel(PubRel(6)), from: client)
        world.send(.pubRel(PubRel(6)), from: client)
        world.send(.pingReq, from: client)
        #expect(
            world.take(client) == [
                .pubAck(PubAck(5)), .pubRec(PubRec(6)), .pubComp(PubComp(6)),
                .pubComp(PubComp(6, reason: .packetIdentifierNotFound)), .pingResp,
            ]
        )
    }

    @Test("a QoS 2 packet id is delivered once until it is released [MQTT-4.3.3-10]")
    func exactlyOnce() {
        let world = VirtualBroker()
        let subscriber = world.subscriber("s", "t")
        let publisher = world.connect("p")
        let message = Publish(topic: "t", payload: ByteBuffer(string: "x"), qos: .exactlyOnce, packetID: 9)
        var again = message
        again.dup = true
        world.send(.publish(message), from: publisher)
        world.send(.publish(again), from: publisher)
        #expect(world.take(publisher) == [.pubRec(PubRec(9)), .pubRec(PubRec(9))])
        #expect(world.payloads(subscriber) == ["x"])
        world.send(.pubRel(PubRel(9)), from: publisher)
        world.send(.publish(message), from: publisher)
        #expect(world.payloads(subscriber) == ["x"])
        let counters = world.broker.counters
        #expect(counters.received == CountPerQoS(0, 0, 2))
        #expect(counters.receivedDUP == CountPerQoS(0, 0, 1))
        #expect(counters.receivedRepeated == CountPerQoS(0, 0, 1))
    }

    @Test("no more than the client's Receive Maximum is in flight, and the rest follows in order")
    func window() {
        let world = VirtualBroker()
        let subscriber = world.connect("s", .v5, keepAlive: 0, [.receiveMaximum(2)])
        subscriber.answers = false
        world.send(.subscribe(Subscribe(1, [Subscription(filter: "#", qos: .exactlyOnce)])), from: subscriber)
        _ = world.take(subscriber)
        let publisher = world.connect("p")
        for number in 1...5 {
            world.publish("t", "\(number)", number == 2 ? .exactlyOnce : .atLeastOnce, from: publisher)
        }
        let first = world.take(subscriber)
        #expect(first.count == 2)
        #expect(world.broker.counters.waiting == CountPerQoS(0, 3, 0))
        guard case .publish(let one)? = first.first, case .publish(let two)? = first.last, let a = one.packetID,
            let b = two.packetID
        else {
            Issue.record("two PUBLISH expected")
            return
        }
        world.send(.pubAck(PubAck(a)), from: subscriber)
        #expect(world.payloads(subscriber) == ["3"])
        world.send(.pubRec(PubRec(b)), from: subscriber)
        #expect(world.take(subscriber) == [.pubRel(PubRel(b))])
        world.send(.pubComp(PubComp(b)), from: subscriber)
        #expect(world.payloads(subscriber) == ["4"])
        // Messages queued when the client disconnected are in the books.
        world.lose(subscriber)
        let counters = world.broker.counters
        #expect(counters.undelivered == CountPerQoS(0, 1, 0))
        #expect(counters.delivered == CountPerQoS(0, 3, 1))
        #expect(counters.expected == CountPerQoS(0, 4, 1))
    }

    @Test("an acknowledgement of the wrong kind ends the connection")
    func wrongAcknowledgement() {
        let world = VirtualBroker()
        let subscriber = world.subscriber("s", "t")
        subscriber.answers = false
        world.publish("t", "x", .atLeastOnce, from: world.connect("p"))
        guard case .publish(let publish)? = world.take(subscriber).first, let id = publish.packetID else {
            Issue.record("PUBLISH expected")
            return
        }
        world.send(.pubComp(PubComp(id)), from: subscriber)
        #expect(world.take(subscriber) == [.disconnect(Disconnect(reason: .protocolError))])
        #expect(subscriber.isClosed)
    }

    @Test("retained: kept, replaced, deleted by an empty one, sent as the subscription says")
    func retained() {
        let world = VirtualBroker()
        let publisher = world.connect("p")
        world.publish("r/1", "old", .atLeastOnce, retain: true, from: publisher)
        world.publish("r/1", "new", .atLeastOnce, retain: true, from: publisher)
        world.publish("r/2", "gone", retain: true, from: publisher)
        world.publish("r/2", "", retain: true, from: publisher)
        let subscriber = world.connect("s")
        func subscribe(_ subscription: Subscription) -> [Publish] {
            world.send(.subscribe(Subscribe(1, [subscription])), from: subscriber)
            return world.take(subscriber).compactMap { packet -> Publish? in
                if case .publish(let publish) = packet { publish } else { nil }
            }
        }
        let found = subscribe(Subscription(filter: "r/#", qos: .exactlyOnce))
        #expect(found.map { String(buffer: $0.payload) } == ["new"])
        #expect(found.first?.retain == true)
        #expect(found.first?.qos == .atLeastOnce)
        #expect(subscribe(Subscription(filter: "r/#", retainHandling: .sendIfNew)).isEmpty)
        #expect(subscribe(Subscription(filter: "r/+", retainHandling: .sendIfNew)).count == 1)
        #expect(subscribe(Subscription(filter: "+/1", retainHandling: .doNotSend)).isEmpty)
        #expect(subscribe(Subscription(filter: "$share/g/r/1")).isEmpty)
        #expect(world.broker.counters.deliveredRetained == CountPerQoS(0, 2, 0))
        #expect(world.broker.counters.retained == 1)
    }

    @Test(
        "the retain flag of a live message goes on only with Retain As Published [MQTT-3.3.1-12]",
        arguments: [false, true]
    )
    func retainAsPublished(_ asPublished: Bool) {
        let world = VirtualBroker()
        let subscriber = world.connect("s")
        let subscription = Subscription(filter: "t", retainAsPublished: asPublished)
        world.send(.subscribe(Subscribe(1, [subscription])), from: subscriber)
        _ = world.take(subscriber)
        world.publish("t", "x", retain: true, from: world.connect("p"))
        #expect(
            world.take(subscriber).map { if case .publish(let p) = $0 { p.retain } else { false } } == [asPublished]
        )
    }

    @Test("No Local keeps a client's own messages from it, and from it alone")
    func noLocal() {
        let world = VirtualBroker()
        let client = world.connect("c")
        let other = world.subscriber("o", "t")
        world.send(.subscribe(Subscribe(1, [Subscription(filter: "t", noLocal: true)])), from: client)
        world.publish("t", "mine", from: client)
        #expect(world.payloads(client).isEmpty)
        world.publish("t", "theirs", from: other)
        #expect(world.payloads(client) == ["theirs"])
    }

    @Test("overlapping filters give one copy, at the highest QoS, with every identifier [MQTT-3.3.4-3]")
    func overlap() {
        let world = VirtualBroker()
        let client = world.connect("c")
        for (number, filter) in [(200, "a/#"), (3, "a/+")] as [(UInt32, String)] {
            let subscription = Subscription(filter: filter, qos: number == 3 ? .atLeastOnce : .atMostOnce)
            world.send(
                .subscribe(Subscribe(1, [subscription], properties: [.subscriptionIdentifier(number)])),
                from: client
            )
        }
        _ = world.take(client)
        world.publish("a/b", "x", .exactlyOnce, from: world.connect("p"))
        let publishes = world.take(client)
        guard publishes.count == 1, case .publish(let publish)? = publishes.first else {
            Issue.record("one PUBLISH expected, not \(publishes)")
            return
        }
        #expect(publish.qos == .atLeastOnce)
        #expect(publish.properties.subscriptionIdentifiers.sorted() == [3, 200])
    }

    @Test("properties go on to MQTT 5 as they came, and not to 3.1.1")
    func properties() {
        let world = VirtualBroker()
        let five = world.subscriber("5", "t")
        let four = world.subscriber("4", "t", .exactlyOnce, .v311)
        let properties: Properties = [.contentType("text"), .userProperty("k", "1"), .userProperty("k", "2")]
        world.send(.publish(Publish(topic: "t", properties: properties)), from: world.connect("p"))
        #expect(world.take(five) == [.publish(Publish(topic: "t", properties: properties))])
        #expect(world.take(four) == [.publish(Publish(topic: "t"))])
    }

    @Test("a share group gives each message to one member, in turn, and a plain subscriber all")
    func share() {
        let world = VirtualBroker()
        let members = (1...3).map { world.subscriber("m\($0)", "$share/g/t/+", .atLeastOnce) }
        let other = world.subscriber("h", "$share/h/t/+")
        let plain = world.subscriber("s", "t/#")
        let publisher = world.connect("p")
        for number in 1...6 { world.publish("t/x", "\(number)", .atLeastOnce, from: publisher) }
        #expect(members.map { world.payloads($0) } == [["1", "4"], ["2", "5"], ["3", "6"]])
        #expect(world.payloads(other).count == 6)
        #expect(world.payloads(plain).count == 6)
        world.lose(members[1])
        for number in 7...10 { world.publish("t/x", "\(number)", .atLeastOnce, from: publisher) }
        #expect(world.payloads(members[0]) == ["7", "9"])
        #expect(world.payloads(members[2]) == ["8", "10"])
        #expect(world.broker.counters.notDeliveredOffline == CountPerQoS())
        world.lose(members[0])
        world.lose(members[2])
        world.publish("t/x", "11", .atLeastOnce, from: publisher)
        // Once for the group, not once for each of its members.
        #expect(world.broker.counters.notDeliveredOffline == CountPerQoS(0, 1, 0))
    }

    @Test("what a lost client misses is counted until it subscribes anew, and not after a DISCONNECT")
    func offline() {
        let world = VirtualBroker()
        let publisher = world.connect("p")
        let first = world.subscriber("s", "t")
        world.lose(first)
        world.publish("t", "1", .atLeastOnce, from: publisher)
        let second = world.connect("s")
        world.publish("t", "2", .exactlyOnce, from: publisher)
        #expect(world.payloads(second).isEmpty)
        world.send(.subscribe(Subscribe(1, [Subscription(filter: "t")])), from: second)
        _ = world.take(second)
        world.publish("t", "3", from: publisher)
        #expect(world.payloads(second) == ["3"])
        world.send(.disconnect(Disconnect()), from: second)
        world.publish("t", "4", from: publisher)
        let counters = world.broker.counters
        #expect(counters.notDeliveredOffline == CountPerQoS(0, 1, 1))
        #expect(counters.expected == CountPerQoS(1, 1, 1))
        #expect(counters.subscriptions == 0)
        #expect(counters.disconnects == ["closed": 1, "client": 1])
    }

    @Test("unsubscribing answers per filter and ends delivery")
    func unsubscribe() {
        let world = VirtualBroker()
        let client = world.subscriber("s", "t")
        world.send(.unsubscribe(Unsubscribe(2, filters: ["t", "u"])), from: client)
        #expect(world.take(client) == [.unsubAck(UnsubAck(2, codes: [0, 0x11]))])
        world.publish("t", "x", from: world.connect("p"))
        #expect(world.payloads(client).isEmpty)
        #expect(world.broker.counters.expected == CountPerQoS())
    }
}
