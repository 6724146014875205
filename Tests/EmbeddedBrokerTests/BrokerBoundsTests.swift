import EmbeddedBroker
import MQTTCodec
import NIOCore
import Testing

@Suite("Bounds on the memory of one client")
struct BrokerBoundsTests {
    @Test("a client that does not read its answers is not read either, until it does")
    func choked() {
        let world = VirtualBroker { $0.highWaterMark = 1_000 }
        let client = world.connect("c")
        client.answers = false
        world.broker.setWritable(client.id, false)
        for _ in 0..<300 {
            world.send(.publish(Publish(topic: "t", qos: .atLeastOnce, packetID: 1)), from: client)
        }
        #expect(world.actions == [.pauseReading(client.id)])
        #expect(world.counters.clientsChoked == 1)
        world.broker.setWritable(client.id, true)
        world.advance(by: .seconds(1))
        #expect(world.actions == [.pauseReading(client.id), .resumeReading(client.id)])
        #expect(world.take(client).count == 300)
    }

    @Test("retained messages have a common bound: one beyond it is not kept, and the one before it goes")
    func retained() {
        // Each topic has a node of 256 bytes.
        let world = VirtualBroker { $0.retainedBytes = 3 * 256 + 100 }
        let client = world.connect("c")
        func retain(_ topic: String, _ bytes: Int) {
            let message = Publish(
                topic: topic,
                payload: ByteBuffer(repeating: 1, count: bytes),
                qos: .atMostOnce,
                retain: true
            )
            world.send(.publish(message), from: client)
        }
        for topic in ["a", "b", "c"] { retain(topic, 40) }
        #expect(world.counters.retained == 2 && world.counters.retainedFull == 1)
        retain("a", 1)
        retain("c", 40)
        #expect(world.counters.retained == 3 && world.counters.retainedFull == 1)
        retain("b", 90)
        #expect(world.counters.retained == 2 && world.counters.retainedFull == 2)
        world.send(.subscribe(Subscribe(1, [Subscription(filter: "#")])), from: client)
        #expect(world.take(client).count == 3)
    }

    @Test("a SUBSCRIBE with many filters is granted the first 1,024 of them", arguments: [ProtocolVersion.v311, .v5])
    func filters(_ version: ProtocolVersion) {
        let world = VirtualBroker()
        let client = world.connect("c", version)
        let all = (0..<1_026).map { Subscription(filter: "t/\($0)", qos: .atLeastOnce) }
        world.send(.subscribe(Subscribe(1, all)), from: client)
        guard case .subAck(let answer)? = world.take(client).first else {
            Issue.record("no SUBACK")
            return
        }
        let refused: UInt8 = version == .v5 ? 0x97 : 0x80
        #expect(answer.codes == Array(repeating: 1, count: 1_024) + [refused, refused])
    }

    @Test("subscriptions have a common bound, and an ended one makes room", arguments: [ProtocolVersion.v311, .v5])
    func subscriptions(_ version: ProtocolVersion) {
        // One of a level and one byte costs 256 + 3 + 200 bytes.
        let world = VirtualBroker { $0.subscriptionBytes = 3 * 459 }
        let (one, other) = (world.connect("a", version), world.connect("b", version))
        let refused: UInt8 = version == .v5 ? 0x97 : 0x80
        func codes(_ filters: [String], of client: VirtualBroker.Client) -> [UInt8]? {
            world.send(.subscribe(Subscribe(1, filters.map { Subscription(filter: $0) })), from: client)
            guard case .subAck(let answer)? = world.take(client).first else { return nil }
            return answer.codes
        }
        #expect(codes(["p", "q"], of: one) == [0, 0])
        #expect(codes(["p", "q"], of: other) == [0, refused])
        #expect(codes(["q", "p"], of: one) == [0, 0])
        world.send(.unsubscribe(Unsubscribe(2, filters: ["p"])), from: one)
        _ = world.take(one)
        #expect(codes(["q"], of: other) == [0])
        #expect(codes(["r"], of: other) == [refused])
    }

    @Test(
        "sessions have a common bound: a client that has one comes back, and another is refused",
        arguments: [(ProtocolVersion.v311, UInt8(0x03)), (.v5, 0x97)]
    )
    func sessions(_ version: ProtocolVersion, _ code: UInt8) {
        let world = VirtualBroker { $0.maximumSessions = 2 }
        for id in ["a", "b", "a"] { _ = world.connect(id, version) }
        let other = world.open(version)
        world.send(.connect(Connect(version: version, clientID: "c")), from: other)
        guard case .connAck(let answer)? = world.take(other).first else {
            Issue.record("no CONNACK")
            return
        }
        #expect(answer.code == code && world.counters.connectsRefused == 1)
    }

    @Test("clients that do not read have a common bound: each has an equal part of it")
    func queues() {
        let world = VirtualBroker {
            $0.highWaterMark = 1_000
            $0.queuesLimit = 20_000
        }
        let readers = (0..<5).map { world.connect("r\($0)") }
        for reader in readers {
            world.send(.subscribe(Subscribe(1, [Subscription(filter: "t")])), from: reader)
            _ = world.take(reader)
            world.broker.setWritable(reader.id, false)
        }
        let publisher = world.connect("p")
        for _ in 0..<100 {
            world.send(.publish(Publish(topic: "t", payload: ByteBuffer(repeating: 1, count: 500))), from: publisher)
        }
        for reader in readers { world.broker.setWritable(reader.id, true) }
        world.advance(by: .seconds(1))
        let came = readers.map { world.take($0).count }
        // A message has 506 bytes; the first ones came while fewer clients were behind.
        #expect(came.allSatisfy { (7...10).contains($0) }, "\(came)")
        #expect(world.counters.queueFull.total == UInt64(500 - came.reduce(0, +)))
    }

    @Test("what a client that is behind has not taken is dropped with its end, and counted")
    func behindAtEnd() {
        let world = VirtualBroker { $0.highWaterMark = 1_000 }
        let reader = world.subscriber("r", "t", .atMostOnce)
        world.broker.setWritable(reader.id, false)
        let publisher = world.connect("p")
        for _ in 0..<10 { world.publish("t", String(repeating: "x", count: 500), from: publisher) }
        #expect(world.counters.delivered == CountPerQoS(10))
        world.send(bytes: [0xC1, 0], from: reader)
        #expect(world.take(reader) == [.disconnect(Disconnect(reason: .malformedPacket))])
        #expect(world.counters.delivered == CountPerQoS())
        #expect(world.counters.undelivered == CountPerQoS(10))
    }

    @Test("[MQTT-3.1.2-24] an answer larger than the client takes loses its words, or is not sent at all")
    func answers() {
        for (maximum, isFull) in [(100, true), (20, false)] as [(UInt32, Bool)] {
            let world = VirtualBroker {
                $0.limits.explains = true
                $0.access = BrokerAccess(users: ["u": .init(password: [1], subscribes: [])])
            }
            var connect = Connect(version: .v5, clientID: "c", properties: [.maximumPacketSize(maximum)])
            let words: Properties = isFull ? [.reasonString("Not authorized")] : []
            #expect(world.connect(with: connect).answer == ConnAck(code: 0x87, properties: words))
            connect.username = "u"
            connect.password = [1]
            let (client, _) = world.connect(with: connect)
            world.send(.subscribe(Subscribe(1, [Subscription(filter: "t")])), from: client)
            #expect(world.take(client) == [.subAck(SubAck(1, codes: [0x87], properties: words))])
            // A SUBACK of 22 bytes, of which none can go.
            let filters = (0..<17).map { Subscription(filter: "t\($0)") }
            world.send(.subscribe(Subscribe(1, filters)), from: client)
            let answer = world.take(client)
            if isFull {
                #expect(answer.map(\.type) == [.subAck])
            } else {
                #expect(answer == [.disconnect(Disconnect(reason: .packetTooLarge))])
            }
        }
        let world = VirtualBroker()
        let client = world.open(.v5)
        let connect = Connect(version: .v5, clientID: "c", properties: [.maximumPacketSize(4)])
        world.send(.connect(connect), from: client)
        #expect(world.take(client).isEmpty)
        #expect(client.isClosed)
        #expect(world.counters.clientsNow == 0)
    }

    @Test("[MQTT-3.1.2-29] who does not ask for words gets them in CONNACK and DISCONNECT alone")
    func problemInformation() {
        let world = VirtualBroker {
            $0.limits.explains = true
            $0.access = BrokerAccess(users: ["u": .init(password: [1], subscribes: [])])
        }
        let properties: Properties = [.requestProblemInformation(false)]
        let connect = Connect(version: .v5, clientID: "c", username: "u", password: [1], properties: properties)
        let (client, _) = world.connect(with: connect)
        world.send(.subscribe(Subscribe(1, [Subscription(filter: "t")])), from: client)
        #expect(world.take(client) == [.subAck(SubAck(1, codes: [0x87]))])
        world.send(bytes: [0xC1, 0], from: client)
        let goodbye = Disconnect(reason: .malformedPacket, properties: [.reasonString("Malformed Packet")])
        #expect(world.take(client) == [.disconnect(goodbye)])
    }

    @Test("topics that come once do not fill the memory: the routes are bounded by bytes")
    func topicCache() {
        let world = VirtualBroker()
        let client = world.connect("p")
        let tail = String(repeating: "x", count: 60_000)
        var most = 0
        for number in 0..<1_300 {
            world.publish("\(number)\(tail)", "", from: client)
            most = max(most, world.broker.routeBytes)
        }
        #expect(most > 60 << 20)
        #expect(most <= 64 << 20)
    }

    @Test("a large message leaves no large memory behind, wherever it went")
    func sharedFrames() {
        let world = VirtualBroker()
        let subscriber = world.subscriber("s", "t", .atMostOnce)
        let publisher = world.connect("p")
        for isWritable in [true, false] {
            world.broker.setWritable(subscriber.id, isWritable)
            world.publish("t", String(repeating: "x", count: 8 << 20), from: publisher)
        }
        world.advance(by: .seconds(1))
        let capacity = world.broker.frameBytes
        #expect(capacity <= 1 << 20)
    }

    @Test("$SYS counts sessions and what they hold, and no leading wildcard takes it [MQTT-4.7.2-1]")
    func statistics() {
        let world = VirtualBroker()
        let (away, _) = world.keeper("s", expiry: 5)
        world.subscribe(away, "t")
        world.lose(away)
        world.publish("t", "x", .atLeastOnce, from: world.connect("p"))
        let reader = world.connect("r")
        let everything = world.subscriber("e", "+/broker/#", .atMostOnce)
        func value(_ name: String) -> String? {
            world.send(.subscribe(Subscribe(1, [Subscription(filter: "$SYS/broker/\(name)")])), from: reader)
            return world.publishes(reader).first?.text
        }
        #expect(value("clients/connected") == "3")
        #expect(value("clients/inactive") == "1")
        #expect(value("clients/disconnected") == "1")
        #expect(value("clients/total") == "4")
        #expect(value("clients/expired") == "0")
        #expect(value("messages/stored") == "1")
        #expect(value("store/messages/count") == "1")
        #expect(value("store/messages/bytes") != "0")
        world.advance(by: .seconds(5))
        _ = world.take(reader)
        #expect(value("clients/expired") == "1")
        #expect(value("clients/total") == "3")
        #expect(value("messages/stored") == "0")
        #expect(world.take(everything).isEmpty)
    }

    @Test("entries of wills do not pile up, whether their sessions end or not", arguments: [UInt32.max, 900])
    func willDelays(_ expiry: UInt32) {
        let world = VirtualBroker()
        let will = Will(topic: "w", payload: [], properties: [.willDelayInterval(800)])
        let properties: Properties = [.sessionExpiryInterval(expiry)]
        let connect = Connect(version: .v5, clientID: "s", cleanStart: false, will: will, properties: properties)
        for _ in 0..<3_000 { world.lose(world.connect(with: connect).client) }
        #expect(world.broker.dueEntries <= 1_028)
        world.advance(by: .seconds(801))
        #expect(world.counters.wills == CountPerQoS(1))
    }

    @Test(
        "§2.1.4: a message that MQTT 5 makes too large for any packet is counted, and not written",
        arguments: [0, 1, 2],
        [true, false]
    )
    func largest(_ qos: UInt8, _ isHere: Bool) {
        let world = VirtualBroker { $0.sessionQueueBytes = 1 << 40 }
        let (subscriber, _) = world.keeper("s")
        world.subscribe(subscriber, "t")
        if !isHere { world.lose(subscriber) }
        // The largest payload of 3.1.1, in memory that is never read.
        let count = 268_435_455 - 3 - (qos > 0 ? 2 : 0)
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 16)
        defer { memory.deallocate() }
        let nothing = UnsafeRawBufferPointer(start: nil, count: 0)
        Array("t".utf8).withUnsafeBytes { topic in
            let payload = UnsafeRawBufferPointer(memory)
            let message = MessageView(topic: topic, payload: payload, properties: nothing, qos: qos, retain: false)
            let source = MessageSource(session: -1, connection: -1)
            world.broker.distribute(message, from: source, now: world.now)
        }
        var one = CountPerQoS()
        one[qos] = 1
        #expect(world.counters.expected == one)
        #expect(world.counters.tooLarge == (isHere || qos > 0 ? one : CountPerQoS()))
        #expect(world.counters.queueFull == CountPerQoS())
        let capacity = world.broker.frameBytes
        #expect(capacity <= 1 << 20)
    }

    @Test("entries of clients that came back in time do not pile up, and what is due comes in order")
    func dueQueue() {
        let world = VirtualBroker()
        for _ in 0..<3_000 { world.lose(world.keeper("s", expiry: 1_000).client) }
        #expect(world.broker.dueEntries <= 1_028)
        #expect(world.counters.sessionsAway == 1)

        var queue = DueQueue()
        for number in 0..<500 {
            let due = NIODeadline.uptimeNanoseconds(UInt64(number &* 7_919 % 251))
            queue.add(DueQueue.Entry(due: due, session: 0, ticket: UInt64(number)))
        }
        queue.keep { $0.ticket % 3 != 0 }
        var taken: [(NIODeadline, UInt64)] = []
        while let entry = queue.popDue(at: .uptimeNanoseconds(200)) { taken.append((entry.due, entry.ticket)) }
        #expect(taken.count > 200)
        #expect(taken.indices.dropFirst().allSatisfy { taken[$0 - 1] < taken[$0] })
        #expect(queue.nextDue.map { $0 > .uptimeNanoseconds(200) } != false)
    }
}
