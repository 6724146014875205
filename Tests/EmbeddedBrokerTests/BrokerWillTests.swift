import EmbeddedBroker
import MQTTCodec
import NIOCore
import Testing

@Suite("Wills")
struct BrokerWillTests {
    private func connect(
        _ world: VirtualBroker,
        _ clientID: String = "w",
        version: ProtocolVersion = .v5,
        clean: Bool = false,
        expiry: UInt32? = nil,
        will: Will = Will(topic: "will", payload: Array("gone".utf8), qos: .atLeastOnce)
    ) -> (client: VirtualBroker.Client, answer: ConnAck) {
        var connect = Connect(version: version, clientID: clientID, cleanStart: clean, keepAlive: 2, will: will)
        connect.properties.sessionExpiryInterval = expiry
        return world.connect(with: connect)
    }

    enum End: CaseIterable, Sendable {
        case normal, withWill, error, lost, silent, takenOver, wrong, reset, shutDown
    }

    @Test("[MQTT-3.1.2-8] [MQTT-3.14.4-3] goes out at every end but DISCONNECT 0x00", arguments: End.allCases)
    func ends(_ end: End) throws {
        let world = try VirtualBroker(end == .reset ? "disconnect-every 1s" : "")
        let (client, _) = self.connect(world)
        let reader = world.subscriber("r", "will")
        switch end {
        case .normal: world.send(.disconnect(Disconnect()), from: client)
        case .withWill: world.send(.disconnect(Disconnect(reason: .disconnectWithWillMessage)), from: client)
        case .error: world.send(.disconnect(Disconnect(reason: .unspecifiedError)), from: client)
        case .lost: world.lose(client)
        case .silent: world.advance(by: .seconds(4))
        case .takenOver: _ = world.connect("w")
        case .wrong: world.send(bytes: [0x00, 0x00], from: client)
        case .reset: world.advance(by: .seconds(1))
        case .shutDown: world.broker.shutDown(now: world.now)
        }
        let isSent = end != .normal && end != .shutDown
        #expect(world.payloads(reader) == (isSent ? ["gone"] : []))
        #expect(world.counters.wills == CountPerQoS(0, isSent ? 1 : 0))
        #expect(world.counters.expected == CountPerQoS(0, isSent ? 1 : 0))
    }

    @Test("[MQTT-3.1.2-8] 3.1.1: DISCONNECT discards it, a lost connection sends it", arguments: [false, true])
    func version311(_ says: Bool) {
        let world = VirtualBroker()
        let (client, _) = self.connect(world, version: .v311, clean: true)
        let reader = world.subscriber("r", "will")
        if says { world.send(.disconnect(Disconnect()), from: client) } else { world.lose(client) }
        #expect(world.payloads(reader) == (says ? [] : ["gone"]))
    }

    @Test("goes out as what it is: topic, payload, QoS, retained, with its properties [MQTT-3.1.2-14] [MQTT-3.1.2-15]")
    func asItIs() {
        let world = VirtualBroker()
        let properties: Properties = [
            .payloadFormatIndicator(1), .messageExpiryInterval(50), .contentType("c"), .responseTopic("a"),
            .correlationData([1, 2]), .userProperty("k", "v"),
        ]
        let will = Will(
            topic: "will",
            payload: [1, 2, 3],
            qos: .exactlyOnce,
            retain: true,
            properties: properties + [.willDelayInterval(0)]
        )
        let (client, _) = self.connect(world, will: will)
        let reader = world.subscriber("r", "will")
        world.lose(client)
        let live = world.publishes(reader)
        #expect(live.count == 1)
        #expect(live.first?.qos == .exactlyOnce)
        #expect(live.first?.retain == false)
        #expect(live.first?.properties == properties)
        let late = world.connect("l")
        world.send(.subscribe(Subscribe(1, [Subscription(filter: "#")])), from: late)
        let retained = world.publishes(late)
        #expect(retained.map(\.retain) == [true])
        #expect(retained.first.map { Array($0.payload.readableBytesView) } == [1, 2, 3])
        #expect(retained.first?.properties == properties)
    }

    private static func delayed(_ seconds: UInt32) -> Will {
        Will(topic: "will", payload: Array("gone".utf8), qos: .atLeastOnce, properties: [.willDelayInterval(seconds)])
    }

    @Test("waits for its delay, or for the session's end where that comes first (§3.1.3.2.2)")
    func delay() {
        for (delay, expiry, sent) in [(5, 100, 5), (5, 3, 3), (5, 0, 0), (0, 100, 0), (5, .max, 5)]
            as [(UInt32, UInt32, Int64)]
        {
            let world = VirtualBroker()
            let (client, _) = self.connect(world, expiry: expiry, will: Self.delayed(delay))
            let reader = world.subscriber("r", "will")
            world.lose(client)
            if sent > 0 {
                world.advance(by: .seconds(sent) - .nanoseconds(1))
                #expect(world.payloads(reader).isEmpty, "delay \(delay), expiry \(expiry)")
                world.advance(by: .nanoseconds(1))
            }
            #expect(world.payloads(reader) == ["gone"], "delay \(delay), expiry \(expiry)")
            world.advance(by: .seconds(200))
            #expect(world.payloads(reader).isEmpty)
        }
    }

    @Test("[MQTT-3.1.3-9] is not sent when the client is back in time")
    func backInTime() {
        let world = VirtualBroker()
        let (first, _) = self.connect(world, expiry: 100, will: Self.delayed(5))
        let reader = world.subscriber("r", "will")
        world.lose(first)
        world.advance(by: .seconds(4))
        let (second, answer) = world.keeper("w", expiry: 20)
        #expect(answer.sessionPresent)
        world.advance(by: .seconds(10))
        #expect(world.payloads(reader).isEmpty)
        // The new connection has none, so that the session's end has none to publish (§3.1.3.2.2).
        world.lose(second)
        world.advance(by: .seconds(30))
        #expect(world.counters.sessionsExpired == 1)
        #expect(world.payloads(reader).isEmpty)
    }

    @Test(
        "a take-over sends a will without delay, and one with a delay only if it starts clean",
        arguments: [false, true]
    )
    func takeOver(_ clean: Bool) {
        let world = VirtualBroker()
        _ = self.connect(world, expiry: 100, will: Self.delayed(5))
        let reader = world.subscriber("r", "will")
        _ = world.connect(with: Connect(version: .v5, clientID: "w", cleanStart: clean, keepAlive: 0))
        #expect(world.payloads(reader) == (clean ? ["gone"] : []))
        world.advance(by: .seconds(10))
        #expect(world.payloads(reader).isEmpty)
    }

    @Test("goes to the client's own session too, where that lasts")
    func toItself() {
        let world = VirtualBroker()
        let (first, _) = self.connect(world, expiry: 100)
        world.subscribe(first, "will")
        world.lose(first)
        #expect(world.publishes(world.keeper("w").client).map(\.text) == ["gone"])
    }
}
