import EmbeddedBroker
import MQTT
import MQTTCodec
import TestSupport
import Testing

@Suite(
    "Properties of a server's answers (MQTT 5 §3.9.2.1, §3.11.2.1, §3.4.2.2, §3.14.2.2)",
    .timeLimit(.minutes(10))
)
struct ClientAnswerTests {
    private static let said: Properties = [.reasonString("why"), .userProperty("a", "1"), .userProperty("a", "2")]
    private static let more: Properties = [.reasonString("more")]

    @Test("those of SUBACK are in each result of its SUBSCRIBE, and in no other")
    func subscribing() async throws {
        let subAck = SubAck(1, codes: [1, 0x87], properties: Self.said)
        let script: [ScriptedPeer.Step] = [
            .expectCount(wire(.subscribe(Subscribe(1, ["a", "b"].map { Subscription(filter: $0) }))).count),
            .send(wire(.subAck(subAck))),
            .expectCount(wire(publish("t", qos: .atLeastOnce, id: 2)).count), .send([0x40, 2, 0, 2]),
        ]
        try await withScriptedPeer(accepting(then: script)) { peer in
            let client = MQTTClient(MQTTClientConfiguration(port: peer.port, id: "c"))
            try await client.connect()
            let results = try await client.subscribe(["a", "b"].map { Subscription(filter: $0) })
            #expect(
                results == [
                    MQTTSubscribeResult(filter: "a", reason: .grantedQoS1, properties: Self.said),
                    MQTTSubscribeResult(filter: "b", reason: .notAuthorized, properties: Self.said),
                ]
            )
            #expect(results[0].properties.userProperties.map(\.value) == ["1", "2"])
            #expect(
                try await client.publish(MQTTMessage(topic: "t", qos: .atLeastOnce)).properties == Properties()
            )
            client.abort()
        }
    }

    @Test("those of UNSUBACK are in each result of its UNSUBSCRIBE")
    func unsubscribing() async throws {
        let unsubAck = UnsubAck(1, codes: [0, 0x11], properties: Self.said)
        let script: [ScriptedPeer.Step] = [
            .expectCount(wire(.unsubscribe(Unsubscribe(1, filters: ["a", "b"]))).count),
            .send(wire(.unsubAck(unsubAck))),
        ]
        try await withScriptedPeer(accepting(then: script)) { peer in
            let client = MQTTClient(MQTTClientConfiguration(port: peer.port, id: "c"))
            try await client.connect()
            let results = try await client.unsubscribe(["a", "b"])
            #expect(results.map(\.filter) == ["a", "b"])
            #expect(results.map(\.reason) == [.success, .noSubscriptionExisted])
            #expect(results.map(\.properties) == [Self.said, Self.said])
            client.abort()
        }
    }

    struct Publication: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let qos: QoS
        let answers: [Packet]
        let result: MQTTPublishResult
    }

    static let publications = [
        Publication(
            testDescription: "PUBACK",
            qos: .atLeastOnce,
            answers: [.pubAck(PubAck(1, reason: .noMatchingSubscribers, properties: said))],
            result: MQTTPublishResult(reason: .noMatchingSubscribers, packetID: 1, properties: said)
        ),
        Publication(
            testDescription: "a refusing PUBACK",
            qos: .atLeastOnce,
            answers: [.pubAck(PubAck(1, reason: .quotaExceeded, properties: said))],
            result: MQTTPublishResult(reason: .quotaExceeded, packetID: 1, properties: said)
        ),
        Publication(
            testDescription: "PUBREC and PUBCOMP, and PUBREC's reason",
            qos: .exactlyOnce,
            answers: [
                .pubRec(PubRec(1, reason: .noMatchingSubscribers, properties: said)),
                .pubComp(PubComp(1, properties: more)),
            ],
            result: MQTTPublishResult(
                reason: .noMatchingSubscribers,
                packetID: 1,
                properties: more,
                recordedProperties: said
            )
        ),
        Publication(
            testDescription: "PUBREC alone has some",
            qos: .exactlyOnce,
            answers: [.pubRec(PubRec(1, properties: said)), .pubComp(PubComp(1))],
            result: MQTTPublishResult(packetID: 1, recordedProperties: said)
        ),
        Publication(
            testDescription: "a refusing PUBREC",
            qos: .exactlyOnce,
            answers: [.pubRec(PubRec(1, reason: .notAuthorized, properties: said))],
            result: MQTTPublishResult(reason: .notAuthorized, packetID: 1, properties: said)
        ),
        Publication(
            testDescription: "those of an unexpected acknowledgement are ignored",
            qos: .atLeastOnce,
            answers: [.pubAck(PubAck(9, properties: said)), .pubAck(PubAck(1))],
            result: MQTTPublishResult(packetID: 1)
        ),
    ]

    @Test("those of acknowledgements are in the result, or in the error", arguments: publications)
    func publishing(_ publication: Publication) async throws {
        // PUBLISH has 8 bytes, PUBREL 4.
        let steps = publication.answers.enumerated().flatMap { index, answer -> [ScriptedPeer.Step] in
            [.expectCount(index == 0 ? 8 : answer.type == .pubComp ? 4 : 0), .send(wire(answer))]
        }
        try await withScriptedPeer(accepting(then: steps)) { peer in
            let client = MQTTClient(MQTTClientConfiguration(port: peer.port, id: "c"))
            try await client.connect()
            let message = MQTTMessage(topic: "t", qos: publication.qos)
            if publication.result.reason.isError {
                let error = await failure { try await client.publish(message) }
                #expect(error == .rejected(publication.result))
                #expect(error?.reasonString == "why")
                #expect(error?.properties == Self.said)
            } else {
                #expect(try await client.publish(message) == publication.result)
            }
            client.abort()
        }
    }

    @Test("and it is not kept for who has the identifier later")
    func toldTooEarly() async throws {
        let script: [ScriptedPeer.Step] = [
            .send(wire(.pubAck(PubAck(1, properties: Self.said)))), .expectCount(2), .send([0xD0, 0]), .expectCount(8),
            .send(wire(.pubAck(PubAck(1)))),
        ]
        try await withScriptedPeer(accepting(then: script)) { peer in
            let client = MQTTClient(MQTTClientConfiguration(port: peer.port, id: "c"))
            try await client.connect()
            // The first PUBACK has come when PINGRESP has.
            _ = try await client.ping()
            let result = try await client.publish(MQTTMessage(topic: "t", qos: .atLeastOnce))
            #expect(result == MQTTPublishResult(packetID: 1))
            client.abort()
        }
    }

    @Test(
        "a call ends when no answer comes in time, and the connection stays",
        arguments: [
            (.qos1, .acknowledgement), (.qos2, .acknowledgement), (.subscribe, .suback), (.unsubscribe, .unsuback),
        ] as [(ClientFailureTests.Call, MQTTAwaited)]
    )
    func unanswered(_ call: ClientFailureTests.Call, _ awaited: MQTTAwaited) async throws {
        try await withScriptedPeer(accepting(then: [])) { peer in
            let client = MQTTClient(
                MQTTClientConfiguration(port: peer.port, id: "c") { $0.timeouts.acknowledgement = .milliseconds(100) }
            )
            try await client.connect()
            #expect(await failure { try await call.run(client) } == .timedOut(awaited))
            #expect(client.state == .connected)
            client.abort()
        }
    }

    @Test("DISCONNECT's reason string and server reference are kept for those who wait, and in the event")
    func disconnected() async throws {
        let goodbye: Properties = [.reasonString("moved"), .serverReference("b:1884"), .userProperty("x", "y")]
        let disconnect = Packet.disconnect(Disconnect(reason: .useAnotherServer, properties: goodbye))
        let script: [ScriptedPeer.Step] = [.expectCount(2), .send(wire(disconnect)), .close]
        try await withScriptedPeer(accepting(then: script)) { peer in
            let client = MQTTClient(MQTTClientConfiguration(port: peer.port, id: "c"))
            try await client.connect()
            var events = client.events.makeAsyncIterator()
            let error = await failure { try await client.ping() }
            #expect(error == .connectionLost(.disconnected(.useAnotherServer, goodbye)))
            #expect(error?.serverReference == "b:1884")
            #expect(error?.reasonString == "moved")
            #expect(await events.next() == .closedByServer(.connectionLost(.disconnected(.useAnotherServer, goodbye))))
        }
    }

    @Test("CONNACK's are kept too: where to go, and how long the session lasts (§3.2.2.3.2, §3.2.2.3.16)")
    func connack() async throws {
        try await withBroker(
            {
                var configuration = BrokerConfiguration(port: 0)
                configuration.limits.redirect = .init(to: "elsewhere:1")
                configuration.limits.explains = true
                return configuration
            }()
        ) { broker in
            let error = await failure { try await MQTTClient(MQTTClientConfiguration(port: broker.port)).connect() }
            #expect(error?.serverReference == "elsewhere:1")
            #expect(error?.reasonString != nil)
        }
        try await withBroker(
            {
                var configuration = BrokerConfiguration(port: 0)
                configuration.limits.maximumSessionExpiry = 5
                return configuration
            }()
        ) { broker in
            for (version, clean, expiry) in [(.v5, true, 5), (.v311, true, 0), (.v311, false, .max)]
                as [(ProtocolVersion, Bool, UInt32)]
            {
                let client = MQTTClient(
                    MQTTClientConfiguration(port: broker.port, version) {
                        $0.cleanStart = clean
                        $0.sessionExpiry = 100
                    }
                )
                let limits = try await client.connect().limits
                #expect(limits.sessionExpiry == expiry)
                await client.disconnect()
            }
        }
    }
}
