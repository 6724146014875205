import EmbeddedBroker
import FaultLines
import MQTTCodec
import NIOCore
import Testing

@Suite("Messages to one client (P2P)")
struct BrokerP2PTests {
    private static let id = "GID_x@@@001"
    private static let topic = "door/p2p/GID_x@@@001"

    private func world(_ faults: String = "") throws -> VirtualBroker {
        let plan = try FaultPlan.parse(line: faults)
        return VirtualBroker {
            $0.p2pRoots = ["gate", "door"]
            $0.faults = plan
        }
    }

    struct Pair: Sendable, CustomTestStringConvertible {
        let publisher: ProtocolVersion
        let receiver: ProtocolVersion
        let qos: QoS
        var testDescription: String { "\(publisher) \(qos) to \(receiver)" }
    }

    static let pairs = ProtocolVersion.allCases.flatMap { publisher in
        ProtocolVersion.allCases.flatMap { receiver in
            QoS.allCases.map { Pair(publisher: publisher, receiver: receiver, qos: $0) }
        }
    }

    @Test("reach a client that subscribed to nothing, at QoS 1 at most, and no other", arguments: pairs)
    func delivers(_ pair: Pair) throws {
        let world = try self.world()
        let receiver = world.connect(Self.id, pair.receiver)
        let others = [
            world.subscriber("a", "door/#"), world.subscriber("b", Self.topic), world.subscriber("c", "+/p2p/+"),
            world.subscriber("d", "#"), world.subscriber("e", "$share/g/door/#"), world.connect("GID_x@@@002"),
        ]
        let publisher = world.connect("p", pair.publisher)
        for number in 1...3 {
            world.publish(
                Self.topic,
                "\(number)",
                pair.qos,
                id: PacketID(integerLiteral: UInt16(number)),
                from: publisher
            )
        }
        let received = world.publishes(receiver)
        #expect(received.map(\.text) == ["1", "2", "3"])
        #expect(received.allSatisfy { $0.topic == Self.topic && $0.qos == min(pair.qos, .atLeastOnce) && !$0.retain })
        for other in others { #expect(world.publishes(other) == []) }
        var expected = CountPerQoS()
        expected[pair.qos.rawValue] = 3
        #expect(world.counters.delivered == expected)
        #expect(world.counters.expected == expected)
    }

    @Test("reach the addressed client once, whatever it subscribed to, and after it unsubscribed")
    func once() throws {
        let world = try self.world()
        let receiver = world.connect(Self.id)
        world.subscribe(receiver, "door/#", .exactlyOnce, [.subscriptionIdentifier(5)])
        world.subscribe(receiver, Self.topic)
        #expect(world.counters.subscriptions == 2)
        let publisher = world.connect("p")
        world.publish(Self.topic, "1", .exactlyOnce, from: publisher)
        let received = world.publishes(receiver)
        #expect(received.map(\.text) == ["1"])
        #expect(received.allSatisfy { $0.qos == .atLeastOnce && $0.properties.isEmpty })
        world.send(.unsubscribe(Unsubscribe(2, filters: ["door/#", Self.topic])), from: receiver)
        world.publish(Self.topic, "2", from: publisher)
        #expect(world.payloads(receiver) == ["2"])
        #expect(world.counters.subscriptions == 0)
    }

    @Test("reach their own sender")
    func own() throws {
        let world = try self.world()
        let client = world.connect(Self.id)
        world.send(.publish(Publish(topic: Self.topic, payload: ByteBuffer(string: "me"))), from: client)
        #expect(world.payloads(client) == ["me"])
    }

    @Test(
        "reach any client id of one level, below each root",
        arguments: [("a", "door/p2p/a"), ("é €", "door/p2p/é €"), ("p2p", "gate/p2p/p2p"), ("@@@", "gate/p2p/@@@")]
    )
    func addresses(_ id: String, _ topic: String) throws {
        let world = try self.world()
        let receiver = world.connect(id)
        world.publish(topic, "1", .atLeastOnce, from: world.connect("sender"))
        #expect(world.publishes(receiver).map(\.topic) == [topic])
    }

    @Test(
        "are those of exactly three levels below a root; other topics go to their subscribers",
        arguments: [
            "door", "door/p2p", "door/p2p/", "door/p2p/a/", "door/p2p/a/b", "door/P2P/a", "door/x/a", "other/p2p/a",
            "/door/p2p/a", "doors/p2p/a", "p2p/a",
        ]
    )
    func others(_ topic: String) throws {
        let world = try self.world()
        let addressed = ["a", "a/", "a/b", "b"].map { world.connect($0) }
        let reader = world.subscriber("r", "#")
        world.publish(topic, "1", .exactlyOnce, from: world.connect("p"))
        let received = world.publishes(reader)
        #expect(received.map(\.topic) == [topic])
        #expect(received.map(\.qos) == [.exactlyOnce])
        for client in addressed { #expect(world.publishes(client) == []) }
    }

    @Test("are off without a root")
    func off() {
        let world = VirtualBroker()
        let addressed = world.connect(Self.id)
        let reader = world.subscriber("r", "door/#")
        let publisher = world.connect("p")
        world.send(.publish(Publish(topic: Self.topic, qos: .atLeastOnce, packetID: 1)), from: publisher)
        world.send(.publish(Publish(topic: "door/p2p/none", qos: .atLeastOnce, packetID: 2)), from: publisher)
        #expect(world.take(publisher) == [.pubAck(PubAck(1)), .pubAck(PubAck(2))])
        #expect(world.publishes(reader).map(\.topic) == [Self.topic, "door/p2p/none"])
        #expect(world.publishes(addressed) == [])
    }

    // MARK: Clients that are away

    @Test("wait in a session that outlives its connection, except at QoS 0", arguments: [ProtocolVersion.v311, .v5])
    func away(_ version: ProtocolVersion) throws {
        let world = try self.world()
        let (first, _) = world.keeper(Self.id, version)
        world.lose(first)
        let publisher = world.connect("p")
        for (number, qos) in [QoS.atLeastOnce, .exactlyOnce, .atMostOnce, .atLeastOnce].enumerated() {
            world.publish(Self.topic, "\(number)", qos, from: publisher)
        }
        #expect(world.counters.waiting == CountPerQoS(0, 2, 1))
        let (second, answer) = world.keeper(Self.id, version)
        #expect(answer.sessionPresent)
        let received = world.publishes(second)
        #expect(received.map(\.text) == ["0", "1", "3"])
        #expect(received.allSatisfy { $0.qos == .atLeastOnce && $0.topic == Self.topic })
        #expect(world.counters.notDeliveredOffline == CountPerQoS(1))
        #expect(world.counters.expected == CountPerQoS(1, 2, 1))
        world.publish(Self.topic, "live", from: publisher)
        #expect(world.payloads(second) == ["live"])
    }

    @Test("are lost with a session that ended with its connection, and reach the next one", arguments: [false, true])
    func cleanSession(_ says: Bool) throws {
        let world = try self.world()
        let first = world.connect(Self.id)
        let publisher = world.connect("p")
        world.publish(Self.topic, "1", .atLeastOnce, from: publisher)
        #expect(world.payloads(first) == ["1"])
        if says { world.send(.disconnect(Disconnect()), from: first) } else { world.lose(first) }
        world.publish(Self.topic, "2", .atLeastOnce, from: publisher)
        // Only a lost connection misses its messages.
        #expect(world.counters.notDeliveredOffline == CountPerQoS(0, says ? 0 : 1))
        let second = world.connect(Self.id)
        world.publish(Self.topic, "3", .atLeastOnce, from: publisher)
        #expect(world.payloads(second) == ["3"])
        #expect(world.counters.expected == CountPerQoS(0, says ? 2 : 3))
    }

    @Test("follow the client id when another connection takes it over", arguments: [false, true])
    func takenOver(_ isKept: Bool) throws {
        let world = try self.world()
        let first = isKept ? world.keeper(Self.id).client : world.connect(Self.id)
        let publisher = world.connect("p")
        world.publish(Self.topic, "1", from: publisher)
        let second = isKept ? world.keeper(Self.id).client : world.connect(Self.id)
        world.publish(Self.topic, "2", from: publisher)
        #expect(world.payloads(first) == ["1"])
        #expect(world.payloads(second) == ["2"])
        #expect(first.isClosed)
    }

    @Test("[MQTT-3.1.2-4] are discarded by a clean start, which receives what comes later")
    func cleanStart() throws {
        let world = try self.world()
        let (first, _) = world.keeper(Self.id)
        world.lose(first)
        let publisher = world.connect("p")
        world.publish(Self.topic, "1", .atLeastOnce, from: publisher)
        let second = world.connect(Self.id)
        world.publish(Self.topic, "2", .atLeastOnce, from: publisher)
        #expect(world.payloads(second) == ["2"])
        #expect(world.counters.undelivered == CountPerQoS(0, 1))
        #expect(world.counters.expected == CountPerQoS(0, 2))
    }

    // MARK: Answers

    enum Absence: CaseIterable, Sendable { case never, left, lost, expired }

    @Test("to a client without a session have no matching subscriber (§3.4.2.1, §3.5.2.1)", arguments: Absence.allCases)
    func nobody(_ absence: Absence) throws {
        let world = try self.world()
        let publisher = world.connect("p")
        func answers() -> [Packet] {
            world.send(.publish(Publish(topic: Self.topic)), from: publisher)
            world.send(.publish(Publish(topic: Self.topic, qos: .atLeastOnce, packetID: 5)), from: publisher)
            world.send(.publish(Publish(topic: Self.topic, qos: .exactlyOnce, packetID: 6)), from: publisher)
            world.send(.pubRel(PubRel(6)), from: publisher)
            return world.take(publisher)
        }
        switch absence {
        case .never: break
        case .left: world.send(.disconnect(Disconnect()), from: world.connect(Self.id))
        case .lost: world.lose(world.connect(Self.id))
        case .expired:
            world.lose(world.keeper(Self.id, .v5, expiry: 60).client)
            #expect(answers() == [.pubAck(PubAck(5)), .pubRec(PubRec(6)), .pubComp(PubComp(6))])
            world.advance(by: .seconds(61))
        }
        #expect(
            answers() == [
                .pubAck(PubAck(5, reason: .noMatchingSubscribers)), .pubRec(PubRec(6, reason: .noMatchingSubscribers)),
                .pubComp(PubComp(6)),
            ]
        )
        #expect(!publisher.isClosed)
        _ = world.connect(Self.id)
        #expect(answers() == [.pubAck(PubAck(5)), .pubRec(PubRec(6)), .pubComp(PubComp(6))])
    }

    @Test("have the plain answers before MQTT 5, and so has any other topic", arguments: ProtocolVersion.allCases)
    func plainAnswers(_ version: ProtocolVersion) throws {
        let world = try self.world()
        let publisher = world.connect("p", version)
        let topic = version == .v5 ? "nobody/reads" : Self.topic
        world.send(.publish(Publish(topic: topic, qos: .atLeastOnce, packetID: 5)), from: publisher)
        world.send(.publish(Publish(topic: topic, qos: .exactlyOnce, packetID: 6)), from: publisher)
        #expect(world.take(publisher) == [.pubAck(PubAck(5)), .pubRec(PubRec(6))])
        #expect(Array(publisher.bytes.suffix(8)) == [0x40, 2, 0, 5, 0x50, 2, 0, 6])
    }

    @Test("[MQTT-4.3.3-10] are delivered once for each QoS 2 packet identifier")
    func repeated() throws {
        let world = try self.world()
        let receiver = world.connect(Self.id)
        let publisher = world.connect("p")
        let message = Publish(topic: Self.topic, payload: ByteBuffer(string: "x"), qos: .exactlyOnce, packetID: 9)
        var again = message
        again.dup = true
        world.send(.publish(message), from: publisher)
        world.send(.publish(again), from: publisher)
        #expect(world.take(publisher) == [.pubRec(PubRec(9)), .pubRec(PubRec(9))])
        #expect(world.payloads(receiver) == ["x"])
    }

    // MARK: With the rest of the broker

    @Test("are not retained, and leave a retained message as it is")
    func retain() throws {
        let world = try self.world()
        let receiver = world.connect(Self.id)
        let publisher = world.connect("p")
        world.publish(Self.topic, "1", .atLeastOnce, retain: true, from: publisher)
        world.publish("door/x", "2", retain: true, from: publisher)
        #expect(world.publishes(receiver).map(\.retain) == [false])
        #expect(world.counters.retained == 1)
        let late = world.connect("late")
        world.send(.subscribe(Subscribe(1, [Subscription(filter: "door/#", qos: .atMostOnce)])), from: late)
        #expect(world.publishes(late).map(\.topic) == ["door/x"])
    }

    @Test("are dropped and doubled by faults as those of a subscription are")
    func faults() throws {
        let world = try self.world("drop 50% duplicate 1")
        let receiver = world.connect(Self.id)
        let publisher = world.connect("p")
        for number in 1...10 { world.publish(Self.topic, "\(number)", .atLeastOnce, from: publisher) }
        let dropped = world.counters.dropped.qos1
        #expect(dropped == 5)
        #expect(world.payloads(receiver).count == 10)
        #expect(world.counters.duplicated == CountPerQoS(0, 5))
        #expect(world.counters.expected == CountPerQoS(0, 10))
    }

    @Test("may be wills")
    func will() throws {
        let world = try self.world()
        let receiver = world.connect(Self.id)
        let connect = Connect(
            version: .v5,
            clientID: "w",
            keepAlive: 0,
            will: Will(topic: Self.topic, payload: Array("gone".utf8), qos: .exactlyOnce, retain: true)
        )
        world.lose(world.connect(with: connect).client)
        #expect(world.payloads(receiver) == ["gone"])
        #expect(world.counters.retained == 0)
    }

    @Test("need the sender's permission, and none of the receiver's")
    func rules() throws {
        let user = BrokerAccess.User(password: [], publishes: [try TopicFilter(validating: "door/x")], subscribes: [])
        let world = VirtualBroker {
            $0.p2pRoots = ["door"]
            $0.access.users = ["a": user]
        }
        func client(_ id: String, user: String?) -> VirtualBroker.Client {
            world.connect(
                with: Connect(version: .v5, clientID: id, keepAlive: 0, username: user, password: user.map { _ in [] })
            ).client
        }
        let receiver = client(Self.id, user: "a")
        let publisher = client("p", user: nil)
        world.send(.publish(Publish(topic: Self.topic, qos: .atLeastOnce, packetID: 5)), from: publisher)
        #expect(world.take(publisher) == [.pubAck(PubAck(5))])
        #expect(world.publishes(receiver).count == 1)
        world.send(.publish(Publish(topic: Self.topic, qos: .atLeastOnce, packetID: 5)), from: receiver)
        #expect(world.take(receiver) == [.pubAck(PubAck(5, reason: .notAuthorized))])
    }

    @Test("keep to a lower Maximum QoS of the broker")
    func maximumQoS() {
        let world = VirtualBroker {
            $0.p2pRoots = ["door"]
            $0.limits.maximumQoS = 0
        }
        let receiver = world.connect(with: Connect(version: .v5, clientID: Self.id, keepAlive: 0)).client
        let connect = Connect(
            version: .v5,
            clientID: "w",
            keepAlive: 0,
            will: Will(topic: Self.topic, payload: [], qos: .atMostOnce)
        )
        world.lose(world.connect(with: connect).client)
        #expect(world.publishes(receiver).map(\.qos) == [.atMostOnce])
    }
}
