import EmbeddedBroker
import MQTTCodec
import NIOCore
import Testing

@Suite("Connections of the broker")
struct BrokerConnectTests {
    @Test(
        "an empty client id is taken or refused as each version says",
        arguments: [
            (.v31, true, 2), (.v31, false, 2), (.v311, true, 0), (.v311, false, 2), (.v5, true, 0), (.v5, false, 0),
        ] as [(ProtocolVersion, Bool, UInt8)]
    )
    func emptyClientID(_ version: ProtocolVersion, _ clean: Bool, _ code: UInt8) {
        let world = VirtualBroker()
        let client = world.open(version)
        world.send(.connect(Connect(version: version, clientID: "", cleanStart: clean)), from: client)
        guard case .connAck(let answer)? = world.take(client).first else {
            Issue.record("CONNACK expected")
            return
        }
        #expect(answer.code == code)
        // [MQTT-3.2.2-16]
        #expect((answer.properties.assignedClientIdentifier != nil) == (version == .v5))
        #expect(client.isClosed == (code != 0))
    }

    @Test("3.1 allows 23 characters of client id", arguments: [(23, 0), (24, 2)] as [(Int, UInt8)])
    func longClientID(_ length: Int, _ code: UInt8) {
        let world = VirtualBroker()
        let client = world.open(.v31)
        world.send(.connect(Connect(version: .v31, clientID: String(repeating: "x", count: length))), from: client)
        #expect(world.take(client) == [.connAck(ConnAck(code: code))])
    }

    @Test(
        "a second client of the same id takes the first one's place [MQTT-3.1.4-3]",
        arguments: ProtocolVersion.allCases
    )
    func takeOver(_ version: ProtocolVersion) {
        let world = VirtualBroker()
        let first = world.connect("c", version)
        let second = world.connect("c", .v5)
        #expect(world.take(first) == (version == .v5 ? [.disconnect(Disconnect(reason: .sessionTakenOver))] : []))
        #expect(first.isClosed)
        #expect(!second.isClosed)
        #expect(world.broker.counters.disconnects == ["takeover": 1])
        #expect(world.broker.counters.clientsNow == 1)
    }

    @Test("1.5 keep-alives of silence end a client, a packet in time does not [MQTT-3.1.2-22]")
    func keepAlive() {
        let world = VirtualBroker()
        let silent = world.connect("silent", keepAlive: 2)
        let alive = world.connect("alive", keepAlive: 2)
        let without = world.connect("without")
        for _ in 0..<2 {
            world.advance(by: .milliseconds(1_450))
            world.send(.pingReq, from: alive)
        }
        #expect(!silent.isClosed)
        world.advance(by: .milliseconds(650))
        #expect(world.take(silent) == [.disconnect(Disconnect(reason: .keepAliveTimeout))])
        #expect(silent.isClosed)
        #expect(!alive.isClosed)
        #expect(!without.isClosed)
    }

    @Test("a connection that never says CONNECT is closed")
    func noConnect() {
        let world = VirtualBroker()
        let client = world.open()
        world.advance(by: .seconds(11))
        #expect(client.isClosed)
    }

    struct Broken: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let bytes: [UInt8]
        let reason: ReasonCode

        init(_ name: String, _ bytes: [UInt8], _ reason: ReasonCode) {
            self.testDescription = name
            self.bytes = bytes
            self.reason = reason
        }
    }

    static let broken = [
        Broken("packet type 0", [0x00, 0], .malformedPacket),
        Broken("reserved flags of PUBREL", [0x60, 2, 0, 1], .malformedPacket),
        Broken("QoS 3", [0x36, 4, 0, 1, 0x74, 0], .malformedPacket),
        Broken("fifth length byte", [0x30, 0xFF, 0xFF, 0xFF, 0xFF, 1], .malformedPacket),
        Broken("SUBACK to a server", [0x90, 4, 0, 1, 0, 0], .protocolError),
        Broken("packet id 0", [0x32, 6, 0, 1, 0x74, 0, 0, 0], .protocolError),
        Broken("SUBSCRIBE without a filter", [0x82, 3, 0, 1, 0], .protocolError),
        Broken(
            "No Local on a share",
            [0x82, 15, 0, 1, 0, 0, 9] + Array("$share/g/t".utf8.prefix(9)) + [4],
            .malformedPacket
        ),
        Broken("a topic alias where none is allowed", [0x30, 7, 0, 1, 0x74, 3, 0x23, 0, 1], .topicAliasInvalid),
        Broken("AUTH without a method in CONNECT", [0xF0, 8, 0x19, 6, 0x15, 0, 3] + Array("abc".utf8), .protocolError),
        Broken("a subscription identifier from a client", [0x30, 6, 0, 1, 0x74, 2, 0x0B, 1], .protocolError),
        Broken("larger than allowed", [0x30, 0xE9, 7] + Array(repeating: 0, count: 1_001), .packetTooLarge),
    ]

    @Test("what breaks a rule ends the connection, in MQTT 5 with the reason, before without a word", arguments: broken)
    func refuses(_ broken: Broken) {
        for version in [ProtocolVersion.v5, .v311] {
            let world = VirtualBroker { $0.maximumPacketSize = 1_000 }
            let client = world.open(version)
            world.send(.connect(Connect(version: version, clientID: "c")), from: client)
            _ = world.take(client)
            world.send(bytes: broken.bytes, from: client)
            if version == .v5 {
                #expect(world.take(client) == [.disconnect(Disconnect(reason: broken.reason))])
                #expect(client.isClosed)
            } else {
                #expect(world.take(client).allSatisfy { $0.type != .disconnect })
            }
        }
    }

    @Test(
        "§3.2.2.3.6 CONNACK says the largest packet, 1 MiB unless more is allowed",
        arguments: [
            (BrokerConfiguration(port: 0).maximumPacketSize, 1_048_576), (5_000, 5_000), (268_435_460, nil),
        ] as [(Int, UInt32?)]
    )
    func announcesMaximumPacketSize(_ size: Int, _ announced: UInt32?) {
        let world = VirtualBroker { $0.maximumPacketSize = size }
        let connect = Connect(version: .v5, clientID: "c")
        #expect(world.connect(with: connect).answer.properties.maximumPacketSize == announced)
    }

    @Test("more QoS 2 in flight than our Receive Maximum is 0x93 [MQTT-3.3.4-9]")
    func receiveMaximum() {
        let world = VirtualBroker { $0.receiveMaximum = 2 }
        let client = world.open()
        world.send(.connect(Connect(version: .v5, clientID: "c")), from: client)
        #expect(world.take(client) == [.connAck(ConnAck(properties: [.receiveMaximum(2)]))])
        for id: PacketID in [1, 2, 3] {
            world.send(.publish(Publish(topic: "t", qos: .exactlyOnce, packetID: id)), from: client)
        }
        #expect(world.take(client).last == .disconnect(Disconnect(reason: .receiveMaximumExceeded)))
    }

    @Test("before CONNECT nothing is in order, and an unknown level gets 3.1.1's answer [MQTT-3.1.2-2]")
    func beforeConnect() {
        let world = VirtualBroker()
        let early = world.open(.v311)
        world.send(.pingReq, from: early)
        #expect(world.take(early).isEmpty)
        #expect(early.isClosed)
        let future = world.open(.v311)
        world.send(bytes: [0x10, 13, 0, 4] + Array("MQTT".utf8) + [6, 2, 0, 60, 0, 1, 0x63], from: future)
        #expect(world.take(future) == [.connAck(ConnAck(code: 1))])
        #expect(future.isClosed)
    }

    @Test("a message larger than the subscriber's Maximum Packet Size is not sent [MQTT-3.1.2-24]")
    func clientMaximumPacketSize() {
        let world = VirtualBroker()
        let client = world.connect("s", .v5, keepAlive: 0, [.maximumPacketSize(20)])
        world.send(.subscribe(Subscribe(1, [Subscription(filter: "t")])), from: client)
        let publisher = world.connect("p")
        world.publish("t", String(repeating: "x", count: 14), from: publisher)
        world.publish("t", String(repeating: "x", count: 15), from: publisher)
        #expect(world.payloads(client).map(\.utf8.count) == [14])
        #expect(world.broker.counters.tooLarge == CountPerQoS(1))
        #expect(world.broker.counters.expected == CountPerQoS(2))
    }

    @Test("publishers to a slow subscriber are not read until it has caught up, and nothing is lost")
    func backPressure() {
        let world = VirtualBroker { $0.highWaterMark = 10_000 }
        let subscriber = world.subscriber("s", "t")
        let publisher = world.connect("p")
        let bystander = world.connect("b")
        world.broker.setWritable(subscriber.id, false)
        for _ in 0..<12 { world.publish("t", String(repeating: "x", count: 1_000), from: publisher) }
        world.publish("u", "x", from: bystander)
        #expect(world.actions == [.pauseReading(publisher.id)])
        world.broker.setWritable(subscriber.id, true)
        world.advance(by: .seconds(1))
        world.publish("u", "x", from: bystander)
        #expect(world.actions == [.pauseReading(publisher.id), .resumeReading(publisher.id)])
        #expect(world.payloads(subscriber).count == 12)
        #expect(world.broker.counters.publishersPaused == 1)
    }

    @Test("[MQTT-3.2.2-16] an assigned client id is unique, whether its owner is connected or not")
    func assignedID() {
        let world = VirtualBroker()
        let here = world.connect("clamor-auto-1")
        world.lose(world.keeper("clamor-auto-2").client)
        let (client, answer) = world.connect(with: Connect(version: .v5, clientID: ""))
        #expect(answer.properties.assignedClientIdentifier == "clamor-auto-3")
        #expect(!answer.sessionPresent)
        #expect(!client.isClosed)
        #expect(!here.isClosed)
        #expect(world.counters.sessionsAway == 1)
    }

    @Test("a client whose connection is broken below MQTT gets nothing more, and its will goes out")
    func brokenBelow() {
        let world = VirtualBroker()
        let watcher = world.subscriber("w", "will")
        let will = Will(topic: "will", payload: Array("gone".utf8))
        let (client, _) = world.connect(with: Connect(version: .v5, clientID: "c", will: will))
        world.subscribe(client, "t", .atMostOnce)
        world.broker.broken(client.id, now: world.now)
        world.publish("t", "x", from: watcher)
        #expect(world.counters.delivered == CountPerQoS(1))
        #expect(world.counters.notDeliveredOffline == CountPerQoS(1))
        #expect(world.counters.disconnects == ["protocol": 1])
        #expect(world.payloads(client).isEmpty)
        #expect(client.isClosed)
        world.broker.broken(world.open().id, now: world.now)
        #expect(world.counters.disconnects == ["protocol": 1])
    }

    @Test("$SYS tells the counts each second, and at once to a new subscriber")
    func statistics() {
        let world = VirtualBroker()
        let publisher = world.connect("p")
        let client = world.connect("s")
        world.publish("t", "x", .atLeastOnce, from: publisher)
        world.publish("t", "x", .exactlyOnce, from: publisher)
        world.send(
            .subscribe(Subscribe(1, [Subscription(filter: "$SYS/broker/publish/messages/received/#")])),
            from: client
        )
        #expect(world.payloads(client).sorted() == ["0", "1", "1", "2"])
        world.publish("t", "x", from: publisher)
        world.advance(by: .seconds(1))
        #expect(world.payloads(client).sorted() == ["1", "1", "1", "3"])
        let all = world.subscriber("a", "#")
        world.advance(by: .seconds(1))
        #expect(world.payloads(all).isEmpty)
    }
}
