import EmbeddedBroker
import MQTTCodec
import NIOCore
import Testing

@Suite("Sessions that outlive their connections")
struct BrokerSessionTests {
    struct Return: Sendable, CustomTestStringConvertible {
        let version: ProtocolVersion
        let cleanFirst: Bool
        let expiry: UInt32?
        let cleanAgain: Bool
        let isPresent: Bool
        var testDescription: String {
            "\(version), clean \(cleanFirst), expiry \(expiry.map(String.init) ?? "none"), again clean \(cleanAgain)"
        }

        init(_ version: ProtocolVersion, _ cleanFirst: Bool, _ expiry: UInt32?, _ cleanAgain: Bool, _ isPresent: Bool) {
            self.version = version
            self.cleanFirst = cleanFirst
            self.expiry = expiry
            self.cleanAgain = cleanAgain
            self.isPresent = isPresent
        }
    }

    static let returns = [
        Return(.v311, false, nil, false, true), Return(.v311, false, nil, true, false),
        Return(.v311, true, nil, false, false), Return(.v311, true, nil, true, false),
        Return(.v5, false, nil, false, false), Return(.v5, false, 0, false, false),
        Return(.v5, false, 60, false, true), Return(.v5, true, 60, false, true), Return(.v5, true, 60, true, false),
        Return(.v5, true, .max, false, true), Return(.v31, false, nil, false, false),
    ]

    @Test("[MQTT-3.2.2-2] [MQTT-3.2.2-3] session present says whether there was one to go on with", arguments: returns)
    func sessionPresent(_ case: Return) {
        let world = VirtualBroker()
        var connect = Connect(version: `case`.version, clientID: "c", cleanStart: `case`.cleanFirst, keepAlive: 0)
        connect.properties.sessionExpiryInterval = `case`.expiry
        let first = world.connect(with: connect)
        #expect(!first.answer.sessionPresent)
        world.lose(first.client)
        connect.cleanStart = `case`.cleanAgain
        let second = world.connect(with: connect)
        #expect(second.answer.sessionPresent == `case`.isPresent)
        #expect(second.answer.code == 0)
    }

    @Test(
        "what came at QoS 1 and 2 while the client was away comes in order, what came at QoS 0 is counted",
        arguments: [ProtocolVersion.v31, .v311, .v5]
    )
    func queued(_ version: ProtocolVersion) {
        let world = VirtualBroker()
        let (first, _) = world.keeper("s", version)
        world.subscribe(first, "t/#")
        world.send(.disconnect(Disconnect()), from: first)
        #expect(world.counters.sessionsAway == 1)
        let publisher = world.connect("p")
        for (number, qos) in [QoS.atLeastOnce, .exactlyOnce, .atMostOnce, .atLeastOnce].enumerated() {
            world.publish("t/\(number)", "\(number)", qos, from: publisher)
        }
        #expect(world.counters.waiting == CountPerQoS(0, 2, 1))
        #expect(world.counters.storedBytes > 0)
        let (second, answer) = world.keeper("s", version)
        #expect(answer.sessionPresent == (version != .v31))
        let received = world.publishes(second)
        #expect(received.map(\.text) == ["0", "1", "3"])
        #expect(received.map(\.topic) == ["t/0", "t/1", "t/3"])
        #expect(received.map(\.qos) == [.atLeastOnce, .exactlyOnce, .atLeastOnce])
        #expect(received.allSatisfy { !$0.dup && !$0.retain })
        #expect(world.counters.notDeliveredOffline == CountPerQoS(1))
        #expect(world.counters.delivered == CountPerQoS(0, 2, 1))
        #expect(world.counters.expected == CountPerQoS(1, 2, 1))
        #expect(world.counters.storedBytes == 0)
        // The subscriptions are there without being made anew.
        world.publish("t", "live", from: publisher)
        #expect(world.payloads(second) == ["live"])
    }

    @Test(
        "[MQTT-4.4.0-1] what was in flight comes again with DUP and its identifier, PUBREL too, in order [MQTT-4.6.0-1]"
    )
    func resumed() {
        let world = VirtualBroker()
        let (first, _) = world.keeper("s")
        world.subscribe(first, "t")
        let publisher = world.connect("p")
        for (number, qos) in [QoS.atLeastOnce, .exactlyOnce, .exactlyOnce, .atLeastOnce].enumerated() {
            world.publish("t", "\(number)", qos, from: publisher)
        }
        let sent = world.publishes(first)
        guard sent.count == 4, let one = sent[1].packetID, let three = sent[3].packetID else {
            Issue.record("four PUBLISH expected, not \(sent)")
            return
        }
        // 3 is done, 1 is at PUBREL.
        world.send(.pubAck(PubAck(three)), from: first)
        world.send(.pubRec(PubRec(one)), from: first)
        #expect(world.take(first) == [.pubRel(PubRel(one))])
        world.lose(first)
        world.publish("t", "later", .atLeastOnce, from: publisher)
        let (second, answer) = world.keeper("s")
        #expect(answer.sessionPresent)
        let again = world.take(second)
        func repeated(_ publish: Publish) -> Packet {
            var publish = publish
            publish.dup = true
            return .publish(publish)
        }
        #expect(again.count == 4)
        #expect(Array(again.prefix(3)) == [repeated(sent[0]), repeated(sent[2]), .pubRel(PubRel(one))])
        guard case .publish(let later)? = again.last else {
            Issue.record("the new message expected last")
            return
        }
        #expect(later.text == "later")
        #expect(!later.dup)
        #expect(![sent[0].id, sent[1].id, sent[2].id].contains(later.id))
        world.send(.pubComp(PubComp(one)), from: second)
        #expect(world.counters.resent == CountPerQoS(0, 1, 1))
        #expect(world.counters.delivered == CountPerQoS(0, 3, 2))
        #expect(world.counters.expected == CountPerQoS(0, 3, 2))
        #expect(!second.isClosed)
    }

    @Test("[MQTT-3.3.4-9] the Receive Maximum of the new connection holds for what comes again")
    func receiveMaximum() {
        let world = VirtualBroker()
        let (first, _) = world.keeper("s")
        world.subscribe(first, "t", .atLeastOnce)
        let publisher = world.connect("p")
        for number in 0..<4 { world.publish("t", "\(number)", .atLeastOnce, from: publisher) }
        world.lose(first)
        for number in 4..<6 { world.publish("t", "\(number)", .atLeastOnce, from: publisher) }
        let (second, _) = world.keeper("s", .v5, expiry: .max, [.receiveMaximum(2)])
        var seen: [String] = []
        for _ in 0..<6 {
            let burst = world.publishes(second)
            #expect(burst.count <= 2)
            for publish in burst {
                seen.append(publish.text + (publish.dup ? "d" : ""))
                world.send(.pubAck(PubAck(PacketID(rawValue: publish.id) ?? 1)), from: second)
            }
        }
        #expect(seen == ["0d", "1d", "2d", "3d", "4", "5"])
        #expect(world.counters.waiting == CountPerQoS())
    }

    @Test("what lay in the output when the connection broke is not delivered, and comes without DUP")
    func notHandedOut() {
        let world = VirtualBroker()
        let (first, _) = world.keeper("s")
        world.subscribe(first, "t")
        world.broker.setWritable(first.id, false)
        let publisher = world.connect("p")
        world.publish("t", "0", .atLeastOnce, from: publisher)
        world.publish("t", "1", .atMostOnce, from: publisher)
        world.publish("t", "2", .exactlyOnce, from: publisher)
        #expect(world.counters.delivered == CountPerQoS(1, 1, 1))
        world.lose(first)
        #expect(world.counters.delivered == CountPerQoS())
        #expect(world.counters.waiting == CountPerQoS(0, 1, 1))
        #expect(world.counters.undelivered == CountPerQoS(1))
        let (second, _) = world.keeper("s")
        #expect(world.publishes(second).map { $0.text + "\($0.dup)" } == ["0false", "2false"])
        #expect(world.counters.delivered == CountPerQoS(0, 1, 1))
        #expect(world.counters.resent == CountPerQoS())
        #expect(world.counters.expected == CountPerQoS(1, 1, 1))
    }

    @Test(
        "[MQTT-3.1.4-3] a take-over keeps the session: 0x8E to the old, everything to the new",
        arguments: [ProtocolVersion.v311, .v5]
    )
    func takeOver(_ version: ProtocolVersion) {
        let world = VirtualBroker()
        let (first, _) = world.keeper("s", version)
        world.subscribe(first, "t")
        let publisher = world.connect("p")
        world.publish("t", "0", .exactlyOnce, from: publisher)
        let sent = world.publishes(first)
        #expect(sent.count == 1)
        // The receiver's half of QoS 2 goes over too.
        let up = Publish(topic: "up", payload: ByteBuffer(string: "u"), qos: .exactlyOnce, packetID: 5)
        let reader = world.subscriber("r", "up")
        world.send(.publish(up), from: first)
        #expect(world.take(first) == [.pubRec(PubRec(5))])
        let (second, answer) = world.keeper("s", version)
        #expect(world.take(first) == (version == .v5 ? [.disconnect(Disconnect(reason: .sessionTakenOver))] : []))
        #expect(first.isClosed)
        #expect(answer.sessionPresent)
        #expect(world.publishes(second).map { $0.text + "\($0.dup)" } == ["0true"])
        // [MQTT-4.3.3-10]
        var again = up
        again.dup = true
        world.send(.publish(again), from: second)
        world.send(.pubRel(PubRel(5)), from: second)
        #expect(world.take(second) == [.pubRec(PubRec(5)), .pubComp(PubComp(5))])
        #expect(world.payloads(reader) == ["u"])
        #expect(world.counters.sessionsAway == 0)
    }

    @Test("[MQTT-3.1.2-4] a clean start forgets subscriptions and messages, and the books know")
    func cleanStart() {
        let world = VirtualBroker()
        let (first, _) = world.keeper("s")
        world.subscribe(first, "t")
        world.lose(first)
        let publisher = world.connect("p")
        world.publish("t", "0", .atLeastOnce, from: publisher)
        let second = world.connect("s")
        world.publish("t", "1", .atLeastOnce, from: publisher)
        #expect(world.take(second).isEmpty)
        #expect(world.counters.undelivered == CountPerQoS(0, 1))
        #expect(world.counters.expected == CountPerQoS(0, 1))
        #expect(world.counters.subscriptions == 0)
        #expect(world.counters.storedBytes == 0)
    }

    @Test("a session is resumed in another version: properties go, and come back empty")
    func otherVersion() {
        let world = VirtualBroker()
        let (first, _) = world.keeper("s", .v5)
        world.subscribe(first, "t", .atLeastOnce, [.subscriptionIdentifier(7)])
        let publisher = world.connect("p")
        let message = Publish(
            topic: "t",
            payload: ByteBuffer(string: "x"),
            qos: .atLeastOnce,
            packetID: 1,
            properties: [.contentType("c"), .userProperty("k", "v")]
        )
        world.send(.publish(message), from: publisher)
        world.lose(first)
        world.send(.publish(message), from: publisher)
        let (second, _) = world.keeper("s", .v311)
        let received = world.publishes(second)
        #expect(received.map(\.text) == ["x", "x"])
        #expect(received.map(\.dup) == [true, false])
        world.lose(second)
        world.publish("t", "y", .atLeastOnce, from: publisher)
        let (third, _) = world.keeper("s", .v5)
        #expect(world.publishes(third).map { $0.text + "\($0.properties.entries.count)" } == ["x0", "x0", "y0"])
    }

    @Test("a share's message waits with a member that is away only when no member is here")
    func share() {
        let world = VirtualBroker()
        let (away, _) = world.keeper("a")
        world.subscribe(away, "$share/g/t")
        let here = world.subscriber("h", "$share/g/t")
        world.lose(away)
        let publisher = world.connect("p")
        for number in 0..<3 { world.publish("t", "\(number)", .atLeastOnce, from: publisher) }
        #expect(world.payloads(here) == ["0", "1", "2"])
        world.send(.disconnect(Disconnect()), from: here)
        world.publish("t", "3", .atLeastOnce, from: publisher)
        world.publish("t", "4", .atMostOnce, from: publisher)
        #expect(world.publishes(world.keeper("a").client).map(\.text) == ["3"])
        #expect(world.counters.expected == CountPerQoS(1, 4))
    }
}
