import MQTT
import MQTTCodec
import TestSupport
import Testing

@Suite("SPEC A10, B3: what a server grants, and what it does not", .timeLimit(.minutes(10)))
struct ServerGrantsTests {
    struct Excess: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let connack: Properties
        let reason: ReasonCode
        let call: @Sendable (MQTTClient) async throws -> Void

        init(
            _ name: String,
            _ connack: Properties,
            _ reason: ReasonCode,
            _ call: @escaping @Sendable (MQTTClient) async throws -> Void
        ) {
            self.testDescription = name
            self.connack = connack
            self.reason = reason
            self.call = call
        }
    }

    static let excesses = [
        Excess("[MQTT-3.2.2-11] QoS 1 where 0 is the most", [.maximumQoS(0)], .qosNotSupported) { client in
            try await client.publish(MQTTMessage(topic: "t", qos: .atLeastOnce))
        },
        Excess("[MQTT-3.2.2-11] QoS 2 where 1 is the most", [.maximumQoS(1)], .qosNotSupported) { client in
            try await client.publish(MQTTMessage(topic: "t", qos: .exactlyOnce))
        },
        Excess("[MQTT-3.2.2-14] RETAIN at QoS 0", [.retainAvailable(false)], .retainNotSupported) { client in
            try await client.publish(MQTTMessage(topic: "t", retain: true))
        },
        Excess("[MQTT-3.2.2-14] RETAIN at QoS 1", [.retainAvailable(false)], .retainNotSupported) { client in
            try await client.publish(MQTTMessage(topic: "t", qos: .atLeastOnce, retain: true))
        },
        Excess("[MQTT-3.2.2-15] 31 bytes of PUBLISH where 30 are the most", [.maximumPacketSize(30)], .packetTooLarge) {
            client in
            // 2 of header, 3 of topic, 1 of properties.
            try await client.publish(MQTTMessage(topic: "t", payload: Array(repeating: 7, count: 25)))
        },
        Excess("[MQTT-3.2.2-15] the same at QoS 1", [.maximumPacketSize(30)], .packetTooLarge) { client in
            try await client.publish(
                MQTTMessage(topic: "t", payload: Array(repeating: 7, count: 23), qos: .atLeastOnce)
            )
        },
        Excess("[MQTT-3.2.2-15] SUBSCRIBE", [.maximumPacketSize(12)], .packetTooLarge) { client in
            try await client.subscribe([Subscription(filter: "aaaaa")])
        },
        Excess("[MQTT-3.2.2-15] UNSUBSCRIBE", [.maximumPacketSize(12)], .packetTooLarge) { client in
            try await client.unsubscribe(["aaaaaa"])
        },
        Excess(
            "§3.2.2.3.11 a wildcard",
            [.wildcardSubscriptionAvailable(false)],
            .wildcardSubscriptionsNotSupported
        ) { client in
            try await client.subscribe([Subscription(filter: "a"), Subscription(filter: "b/#")])
        },
        Excess(
            "§3.2.2.3.12 a subscription identifier",
            [.subscriptionIdentifierAvailable(false)],
            .subscriptionIdentifiersNotSupported
        ) { client in
            try await client.subscribe([Subscription(filter: "a")], identifier: 1)
        },
        Excess(
            "§3.2.2.3.13 a shared subscription",
            [.sharedSubscriptionAvailable(false)],
            .sharedSubscriptionsNotSupported
        ) { client in
            try await client.subscribe([Subscription(filter: "$share/g/a")])
        },
    ]

    @Test("what CONNACK does not grant is not sent, and the call says why", arguments: excesses)
    func excess(_ excess: Excess) async throws {
        let connect = connectBytes(MQTTClientConfiguration(port: 1, .v5, id: "c"))
        let connack = wire(.connAck(ConnAck(properties: excess.connack)))
        try await withScriptedPeer([.expect(connect), .send(connack), .expect([0xC0, 0]), .send([0xD0, 0])]) { peer in
            let client = MQTTClient(MQTTClientConfiguration(port: peer.port, .v5, id: "c"))
            try await client.connect()
            #expect(await failure { try await excess.call(client) } == .notAllowed(excess.reason))
            // PINGREQ is the next that comes.
            _ = try await client.ping()
            #expect(try await peer.mismatches().isEmpty)
            client.abort()
        }
    }

    @Test(
        "[MQTT-3.9.3-1] SUBACK is mapped to the filters in their order; what is refused is no QoS",
        arguments: [
            (.v31, [2, 1, 0], [.grantedQoS2, .grantedQoS1, .success]),
            (.v311, [0, 0x80, 1], [.success, .unspecifiedError, .grantedQoS1]),
            (.v5, [0x87, 1, 0x97], [.notAuthorized, .grantedQoS1, .quotaExceeded]),
        ] as [(ProtocolVersion, [UInt8], [ReasonCode])]
    )
    func grants(_ version: ProtocolVersion, _ codes: [UInt8], _ reasons: [ReasonCode]) async throws {
        let connect = connectBytes(MQTTClientConfiguration(port: 1, version, id: "c"))
        let filters = ["z", "a", "m"].map { Subscription(filter: $0, qos: .exactlyOnce) }
        let script: [ScriptedPeer.Step] = [
            .expect(connect), .send(wire(.connAck(ConnAck()), version: version)),
            .expect(wire(.subscribe(Subscribe(1, filters)), version: version)),
            .send(wire(.subAck(SubAck(1, codes: codes)), version: version)),
        ]
        try await withScriptedPeer(script) { peer in
            let client = MQTTClient(MQTTClientConfiguration(port: peer.port, version, id: "c"))
            try await client.connect()
            let results = try await client.subscribe(filters)
            #expect(results.map(\.filter) == ["z", "a", "m"])
            #expect(results.map(\.reason) == reasons)
            #expect(results.map(\.granted) == codes.map { QoS(rawValue: $0) })
            #expect(try await peer.mismatches().isEmpty)
            client.abort()
        }
    }

    enum Request: CaseIterable {
        case subscribe, unsubscribe, ping, qos0

        func run(_ client: MQTTClient) async throws(MQTTClientError) {
            switch self {
            case .subscribe: _ = try await client.subscribe([Subscription(filter: "t")])
            case .unsubscribe: _ = try await client.unsubscribe(["t"])
            case .ping: _ = try await client.ping()
            case .qos0: _ = try await client.publish(MQTTMessage(topic: "t"))
            }
        }
    }

    @Test("without a connection a request fails, before the first and behind the last", arguments: Request.allCases)
    func notConnected(_ request: Request) async throws {
        try await withScriptedPeer(accepting(then: [])) { peer in
            let client = MQTTClient(MQTTClientConfiguration(port: peer.port, id: "c"))
            #expect(await failure { try await request.run(client) } == .notConnected)
            try await client.connect()
            try await peer.perform([.close])
            await client.until(.closed)
            #expect(await failure { try await request.run(client) } == .notConnected)
        }
    }

    @Test("§3.14.2: DISCONNECT carries reason, expiry, words and user properties, and is the last packet")
    func goodbye() async throws {
        let says: Properties = [.sessionExpiryInterval(7), .reasonString("bye"), .userProperty("k", "v")]
        let goodbye = wire(.disconnect(Disconnect(reason: .disconnectWithWillMessage, properties: says)))
        var connect = Connect(version: .v5, clientID: "c", keepAlive: 60)
        connect.properties = [.sessionExpiryInterval(90), .maximumPacketSize(1_048_576)]
        let script: [ScriptedPeer.Step] = [
            .expect(wire(.connect(connect))), .send(wire(.connAck(ConnAck()))), .expectCount(65_542),
            .expect(goodbye), .halfClose,
        ]
        try await withScriptedPeer(script) { peer in
            let client = MQTTClient(MQTTClientConfiguration(port: peer.port, .v5, id: "c") { $0.sessionExpiry = 90 })
            try await client.connect()
            // 65,542 bytes; all that was written goes out before it.
            let message = MQTTMessage(topic: "t", payload: Array(repeating: 7, count: 65_534))
            try await client.publish(message)
            await client.disconnect(.disconnectWithWillMessage, properties: says)
            try await peer.untilEnd()
            #expect(try await peer.mismatches().isEmpty)
            #expect(client.state == .closed)
        }
    }
}
