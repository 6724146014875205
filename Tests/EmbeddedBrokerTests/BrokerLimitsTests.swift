import EmbeddedBroker
import MQTTCodec
import NIOCore
import Testing

@Suite("The broker's limits, and its answers beyond them")
struct BrokerLimitsTests {
    @Test("[MQTT-3.2.2-9] and its neighbours: CONNACK says what is not granted, and no more")
    func announced() {
        let world = VirtualBroker {
            $0.limits.maximumQoS = 1
            $0.limits.retainAvailable = false
            $0.limits.topicAliasMaximum = 7
            $0.limits.wildcardsAvailable = false
            $0.limits.subscriptionIdentifiersAvailable = false
            $0.limits.sharedAvailable = false
            $0.limits.serverKeepAlive = 9
            $0.limits.responseInformation = "answers/here"
        }
        let connect = Connect(version: .v5, clientID: "c", properties: [.requestResponseInformation(true)])
        let expected: Properties = [
            .maximumQoS(1), .retainAvailable(false), .topicAliasMaximum(7), .wildcardSubscriptionAvailable(false),
            .subscriptionIdentifierAvailable(false), .sharedSubscriptionAvailable(false), .serverKeepAlive(9),
            .responseInformation("answers/here"),
        ]
        #expect(world.connect(with: connect).answer == ConnAck(properties: expected))
        let silent = world.connect(with: Connect(version: .v5, clientID: "d")).answer
        #expect(silent.properties.responseInformation == nil)
        #expect(world.connect(with: Connect(version: .v311, clientID: "e")).answer == ConnAck())
    }

    struct Excess: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let limits: BrokerLimits
        let packet: Packet
        let reason: ReasonCode
        /// The answer in 3.1.1; nil: the connection is closed.
        let before5: Packet?

        init(
            _ name: String,
            _ limit: (inout BrokerLimits) -> Void,
            _ packet: Packet,
            _ reason: ReasonCode,
            before5: Packet? = nil
        ) {
            self.testDescription = name
            var limits = BrokerLimits()
            limit(&limits)
            self.limits = limits
            self.packet = packet
            self.reason = reason
            self.before5 = before5
        }
    }

    static let excesses = [
        Excess(
            "[MQTT-3.2.2-11] QoS 2 where 1 is the most",
            { $0.maximumQoS = 1 },
            .publish(Publish(topic: "t", qos: .exactlyOnce, packetID: 1)),
            .qosNotSupported
        ),
        Excess(
            "[MQTT-3.2.2-14] RETAIN where it is not available",
            { $0.retainAvailable = false },
            .publish(Publish(topic: "t", retain: true)),
            .retainNotSupported
        ),
        Excess(
            "a wildcard where there is none (§3.2.2.3.11)",
            { $0.wildcardsAvailable = false },
            .subscribe(Subscribe(1, [Subscription(filter: "a/+")])),
            .wildcardSubscriptionsNotSupported,
            before5: .subAck(SubAck(1, codes: [0x80]))
        ),
        Excess(
            "a share where there is none (§3.2.2.3.13)",
            { $0.sharedAvailable = false },
            .subscribe(Subscribe(1, [Subscription(filter: "$share/g/a")])),
            .sharedSubscriptionsNotSupported,
            before5: .subAck(SubAck(1, codes: [0x80]))
        ),
    ]

    @Test("more than was granted ends the connection with its own reason", arguments: excesses)
    func excess(_ excess: Excess) {
        for version in [ProtocolVersion.v5, .v311] {
            let world = VirtualBroker { $0.limits = excess.limits }
            let (client, _) = world.connect(with: Connect(version: version, clientID: "c"))
            world.send(excess.packet, from: client)
            if version == .v5 {
                #expect(world.take(client) == [.disconnect(Disconnect(reason: excess.reason))])
            } else {
                #expect(world.take(client) == (excess.before5.map { [$0] } ?? []))
            }
            #expect(client.isClosed == (version == .v5 || excess.before5 == nil))
        }
    }

    @Test("a subscription identifier where there is none is 0xA1 (§3.2.2.3.12)")
    func identifier() {
        let world = VirtualBroker { $0.limits.subscriptionIdentifiersAvailable = false }
        let (second, _) = world.connect(with: Connect(version: .v5, clientID: "d"))
        let packet = Subscribe(1, [Subscription(filter: "t")], properties: [.subscriptionIdentifier(1)])
        world.send(.subscribe(packet), from: second)
        #expect(world.take(second) == [.disconnect(Disconnect(reason: .subscriptionIdentifiersNotSupported))])
    }

    @Test("[MQTT-3.2.2-10] a subscription above the maximum is granted at the maximum", arguments: [0, 1] as [UInt8])
    func granted(_ maximum: UInt8) {
        let world = VirtualBroker { $0.limits.maximumQoS = maximum }
        let (client, _) = world.connect(with: Connect(version: .v5, clientID: "c"))
        world.send(.subscribe(Subscribe(1, [Subscription(filter: "t", qos: .exactlyOnce)])), from: client)
        #expect(world.take(client) == [.subAck(SubAck(1, codes: [maximum]))])
    }

    @Test(
        "[MQTT-3.2.2-12] [MQTT-3.2.2-13] a will above what is granted refuses the CONNECT",
        arguments: [(true, .qosNotSupported), (false, .retainNotSupported)] as [(Bool, ReasonCode)]
    )
    func will(_ isQoS: Bool, _ reason: ReasonCode) {
        let world = VirtualBroker {
            $0.limits.maximumQoS = isQoS ? 0 : 2
            $0.limits.retainAvailable = isQoS
        }
        let will = Will(topic: "w", payload: [], qos: .atLeastOnce, retain: !isQoS)
        let (client, answer) = world.connect(with: Connect(version: .v5, clientID: "c", will: will))
        #expect(answer == ConnAck(code: reason.rawValue))
        #expect(client.isClosed)
    }

    @Test("[MQTT-3.2.2-21] the server's keep-alive counts, not the client's")
    func keepAlive() {
        let world = VirtualBroker { $0.limits.serverKeepAlive = 2 }
        let (client, _) = world.connect(with: Connect(version: .v5, clientID: "c", keepAlive: 0))
        let (old, _) = world.connect(with: Connect(version: .v311, clientID: "d", keepAlive: 0))
        world.advance(by: .seconds(4))
        #expect(world.take(client) == [.disconnect(Disconnect(reason: .keepAliveTimeout))])
        #expect(!old.isClosed)
    }

    @Test(
        "a redirect names the other server (§4.13.2)",
        arguments: [(false, 0x9C), (true, 0x9D)] as [(Bool, UInt8)]
    )
    func redirect(_ isPermanent: Bool, _ code: UInt8) {
        let world = VirtualBroker { $0.limits.redirect = .init(to: "b.example:1884", isPermanent: isPermanent) }
        let (client, answer) = world.connect(with: Connect(version: .v5, clientID: "c"))
        #expect(answer == ConnAck(code: code, properties: [.serverReference("b.example:1884")]))
        #expect(client.isClosed)
        #expect(world.connect(with: Connect(version: .v311, clientID: "c")).answer == ConnAck(code: 3))
    }

    // MARK: Topic aliases

    private func aliased(_ alias: UInt16, _ topic: String, _ text: String = "x", qos: QoS = .atMostOnce) -> Packet {
        let properties: Properties = [.contentType("c"), .topicAlias(alias), .userProperty("k", "v")]
        return .publish(
            Publish(
                topic: topic,
                payload: ByteBuffer(string: text),
                qos: qos,
                packetID: qos == .atMostOnce ? nil : 3,
                properties: properties
            )
        )
    }

    @Test("[MQTT-3.3.2-7] [MQTT-3.3.2-12] an alias stands for its topic, can be set anew, and does not go on")
    func aliases() {
        let world = VirtualBroker { $0.limits.topicAliasMaximum = 2 }
        let reader = world.subscriber("r", "#")
        let (client, answer) = world.connect(with: Connect(version: .v5, clientID: "c"))
        #expect(answer.properties.topicAliasMaximum == 2)
        for (alias, topic, text) in [
            (1, "a", "0"), (2, "b", "1"), (1, "", "2"), (2, "", "3"), (1, "c", "4"), (1, "", "5"),
        ] as [(UInt16, String, String)] {
            world.send(self.aliased(alias, topic, text, qos: text == "3" ? .exactlyOnce : .atMostOnce), from: client)
        }
        let received = world.publishes(reader)
        #expect(received.map { "\($0.topic)\($0.text)" } == ["a0", "b1", "a2", "b3", "c4", "c5"])
        #expect(received.allSatisfy { $0.properties == [.contentType("c"), .userProperty("k", "v")] })
    }

    @Test(
        "an alias that may not be, or that stands for nothing, ends the connection [MQTT-3.3.2-8] [MQTT-3.3.2-9]",
        arguments: [(3, "t", .topicAliasInvalid), (0, "t", .topicAliasInvalid), (1, "", .protocolError)]
            as [(UInt16, String, ReasonCode)]
    )
    func wrongAlias(_ alias: UInt16, _ topic: String, _ reason: ReasonCode) {
        let world = VirtualBroker { $0.limits.topicAliasMaximum = 2 }
        let (client, _) = world.connect(with: Connect(version: .v5, clientID: "c"))
        world.send(self.aliased(alias, topic), from: client)
        #expect(world.take(client) == [.disconnect(Disconnect(reason: reason))])
    }

    @Test("[MQTT-3.3.2-10] an alias ends with its connection")
    func aliasEnds() {
        let world = VirtualBroker { $0.limits.topicAliasMaximum = 2 }
        let (first, _) = world.keeper("c")
        world.send(self.aliased(1, "t"), from: first)
        world.lose(first)
        let (second, _) = world.keeper("c")
        world.send(self.aliased(1, ""), from: second)
        #expect(world.take(second) == [.disconnect(Disconnect(reason: .protocolError))])
    }

    @Test("[MQTT-3.1.2-26] [MQTT-3.1.2-27] aliases towards a client keep to its maximum")
    func ownAliases() {
        let world = VirtualBroker { $0.limits.setsTopicAliases = true }
        let reader = world.connect("r", .v5, keepAlive: 0, [.topicAliasMaximum(1)])
        world.subscribe(reader, "#", .atLeastOnce)
        let publisher = world.connect("p")
        for (topic, text) in [("a", "0"), ("b", "1"), ("a", "2")] {
            world.publish(topic, text, .atLeastOnce, from: publisher)
        }
        let received = world.publishes(reader)
        #expect(received.map(\.topic) == ["a", "b", ""])
        #expect(received.map(\.properties.topicAlias) == [1, nil, 1])
        #expect(received.map(\.text) == ["0", "1", "2"])
    }
}
