import EmbeddedBroker
import MQTT
import MQTTCodec
import Synchronization
import TestSupport
import Testing

@Suite("A client that gives its topics aliases (MQTT 5 §3.3.2.3.4)", .timeLimit(.minutes(10)))
struct ClientAliasTests {
    /// A PUBLISH as a server sees it; no name is an empty topic.
    private static func packet(_ topic: String, _ alias: UInt16?, _ number: UInt8) -> [UInt8] {
        var properties = Properties()
        properties.topicAlias = alias
        return wire(publish(topic, [number], properties: properties))
    }

    private static func connack(_ aliases: UInt16, sessionPresent: Bool = false, size: UInt32? = nil) -> [UInt8] {
        var properties = Properties()
        if aliases > 0 { properties.topicAliasMaximum = aliases }
        properties.maximumPacketSize = size
        return wire(.connAck(ConnAck(sessionPresent: sessionPresent, properties: properties)))
    }

    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let wanted: UInt16
        let allowed: UInt16
        let topics: [String]
        let sent: [(topic: String, alias: UInt16?)]
    }

    static let cases = [
        Case(
            testDescription: "off unless asked for",
            wanted: 0,
            allowed: 5,
            topics: ["a", "a"],
            sent: [("a", nil), ("a", nil)]
        ),
        Case(
            testDescription: "[MQTT-3.2.2-18] none where CONNACK allows none",
            wanted: 5,
            allowed: 0,
            topics: ["a", "a"],
            sent: [("a", nil), ("a", nil)]
        ),
        Case(
            testDescription: "[MQTT-3.2.2-17] within the server's maximum; the topic unused for the longest time goes",
            wanted: 5,
            allowed: 2,
            topics: ["a", "a", "b", "a", "c", "b", "c", "c"],
            sent: [("a", 1), ("", 1), ("b", 2), ("", 1), ("c", 2), ("b", 1), ("", 2), ("", 2)]
        ),
        Case(
            testDescription: "within its own maximum",
            wanted: 1,
            allowed: 9,
            topics: ["a", "a", "b", "b", "a"],
            sent: [("a", 1), ("", 1), ("b", 1), ("", 1), ("a", 1)]
        ),
        Case(
            testDescription: "[MQTT-4.7.3-4] topics that only look the same are two",
            wanted: 5,
            allowed: 5,
            topics: ["\u{E9}", "e\u{301}", "\u{E9}"],
            sent: [("\u{E9}", 1), ("e\u{301}", 2), ("", 1)]
        ),
    ]

    @Test("at QoS 0", arguments: cases)
    func atMostOnce(_ test: Case) async throws {
        let packets = test.sent.enumerated().map { Self.packet($1.topic, $1.alias, UInt8($0)) }
        let connect = connectBytes(MQTTClientConfiguration(port: 1, id: "c"))
        let script: [ScriptedPeer.Step] =
            [.expect(connect), .send(Self.connack(test.allowed))] + packets.map { .expect($0) }
        try await withScriptedPeer(script) { peer in
            let client = MQTTClient(
                MQTTClientConfiguration(port: peer.port, id: "c") { $0.outboundTopicAliases = test.wanted }
            )
            try await client.connect()
            for (number, topic) in test.topics.enumerated() {
                try await client.publish(MQTTMessage(topic: topic, payload: [UInt8(number)]))
            }
            try await peer.untilBytes(connect.count + packets.map(\.count).reduce(0, +))
            #expect(try await peer.mismatches() == [])
            client.abort()
        }
    }

    @Test("before MQTT 5 there are none", arguments: [ProtocolVersion.v31, .v311])
    func older(_ version: ProtocolVersion) async throws {
        try await withBroker { broker in
            let client = MQTTClient(
                MQTTClientConfiguration(port: broker.port, version) { $0.outboundTopicAliases = 5 }
            )
            try await client.connect()
            try await client.subscribe([Subscription(filter: "t", qos: .exactlyOnce)])
            for qos in QoS.allCases { try await client.publish(MQTTMessage(topic: "t", qos: qos)) }
            #expect(await client.take(3).map(\.topic) == ["t", "t", "t"])
            await client.disconnect()
        }
    }

    @Test(
        "[MQTT-3.3.2-7] what goes out again on another connection names its topic, whatever that server allows",
        arguments: [0, 3] as [UInt16]
    )
    func resend(_ allowed: UInt16) async throws {
        let size = connectBytes(MQTTClientConfiguration(port: 1, id: "c")).count
        func packet(_ topic: String, _ alias: UInt16?, id: PacketID, dup: Bool = false) -> [UInt8] {
            var properties = Properties()
            properties.topicAlias = alias
            return wire(
                .publish(
                    Publish(topic: topic, qos: .atLeastOnce, dup: dup, packetID: id, properties: properties)
                )
            )
        }
        try await withScriptedPeer([.expectCount(size)]) { peer in
            let client = MQTTClient(
                MQTTClientConfiguration(port: peer.port, id: "c") {
                    $0.outboundTopicAliases = 5
                    $0.cleanStart = false
                }
            )
            async let first = client.connect()
            try await peer.untilConnections(1)
            try await peer.perform([
                .send(Self.connack(5)), .expect(packet("t", 1, id: 1)), .send([0x40, 2, 0, 1]),
                .expect(packet("", 1, id: 2)), .close,
            ])
            _ = try await first
            try await client.publish(MQTTMessage(topic: "t", qos: .atLeastOnce))
            async let second = client.publish(MQTTMessage(topic: "t", qos: .atLeastOnce))
            await client.until(.closed)

            async let again = client.connect()
            try await peer.untilConnections(2)
            let expected = packet("t", allowed == 0 ? nil : 1, id: 2, dup: true)
            try await peer.perform(
                [
                    .send(Self.connack(allowed, sessionPresent: true)), .expect(expected), .send([0x40, 2, 0, 2]),
                    .expect(packet(allowed == 0 ? "t" : "", allowed == 0 ? nil : 1, id: 3)), .send([0x40, 2, 0, 3]),
                ],
                on: 1
            )
            #expect(try await again.sessionPresent)
            #expect(try await second == MQTTPublishResult(packetID: 2))
            try await client.publish(MQTTMessage(topic: "t", qos: .atLeastOnce))
            #expect(try await peer.mismatches() == [])
            client.abort()
        }
    }

    @Test("[MQTT-3.2.2-15] a packet that an alias would make too large goes without one, and introduces none")
    func tooLarge() async throws {
        // With the alias and its property it may grow by five bytes.
        let whole = Self.packet("topic", nil, 0)
        let connect = connectBytes(MQTTClientConfiguration(port: 1, id: "c"))
        for (limit, aliases) in [(whole.count + 4, false), (whole.count + 5, true)] {
            let packets =
                aliases ? [Self.packet("topic", 1, 0), Self.packet("", 1, 0)] : [whole, whole]
            let script: [ScriptedPeer.Step] =
                [.expect(connect), .send(Self.connack(3, size: UInt32(limit)))] + packets.map { .expect($0) }
            try await withScriptedPeer(script) { peer in
                let client = MQTTClient(
                    MQTTClientConfiguration(port: peer.port, id: "c") { $0.outboundTopicAliases = 3 }
                )
                try await client.connect()
                for _ in packets { try await client.publish(MQTTMessage(topic: "topic", payload: [0])) }
                try await peer.untilBytes(connect.count + packets.map(\.count).reduce(0, +))
                #expect(try await peer.mismatches() == [])
                client.abort()
            }
        }
    }

    /// Sends messages at all QoS over four topics with two aliases, and returns topics received and bytes sent.
    private func roundTrip(_ port: Int, wanted: UInt16) async throws -> (topics: [String], bytes: Int) {
        let count = Counter()
        let client = MQTTClient(
            MQTTClientConfiguration(port: port) {
                $0.outboundTopicAliases = wanted
                $0.hooks.sending = { if $0.type == .publish { count.add($0.bytes.count) } }
            }
        )
        try await client.connect()
        try await client.subscribe([Subscription(filter: "long/#", qos: .exactlyOnce)])
        for number in 0..<24 {
            let topic = "long/name/of/a/topic/\([0, 0, 0, 1, 1, 2][number % 6])"
            let qos = QoS(rawValue: UInt8(number % 3)) ?? .atMostOnce
            try await client.publish(MQTTMessage(topic: topic, qos: qos))
        }
        let topics = await client.take(24).map(\.topic)
        await client.disconnect()
        return (topics, count.value)
    }

    private func check(_ port: Int) async throws {
        let plain = try await self.roundTrip(port, wanted: 0)
        let short = try await self.roundTrip(port, wanted: 2)
        #expect(plain.topics.count == 24)
        #expect(plain.topics.sorted() == short.topics.sorted())
        #expect(short.bytes < plain.bytes)
    }

    @Test("the embedded broker understands them, and less is sent")
    func embedded() async throws {
        try await withBroker { try await self.check($0.port) }
    }

    @Test(
        "mosquitto understands them, and less is sent",
        .enabled(if: Mosquitto.isInstalled, Comment(rawValue: Mosquitto.missing))
    )
    func mosquitto() async throws {
        try await Mosquitto.with { try await self.check($0.port) }
    }

    struct Own: Sendable, CustomTestStringConvertible {
        let testDescription: String
        var wanted: UInt16 = 0
        var qos = QoS.atMostOnce
        var alias: UInt16 = 1
        let error: MQTTClientError?
    }

    static let own = [
        Own(testDescription: "allowed at QoS 0", error: nil),
        Own(
            testDescription: "[MQTT-3.2.2-17] above what the server allows",
            alias: 11,
            error: .notAllowed(.topicAliasInvalid)
        ),
        Own(
            testDescription: "[MQTT-3.3.2-7] at QoS 1",
            qos: .atLeastOnce,
            error: .invalid(
                "a message at QoS 1 or 2 may go out again on another connection, where its topic alias is not known "
                    + "([MQTT-3.3.2-7]): leave the property out"
            )
        ),
        Own(
            testDescription: "beside the client's own",
            wanted: 1,
            error: .invalid(
                "the client chooses the topic aliases here (outboundTopicAliases): leave the property out"
            )
        ),
    ]

    @Test("a message with an alias of its own", arguments: own)
    func ownAlias(_ own: Own) async throws {
        try await withBroker { broker in
            let client = MQTTClient(
                MQTTClientConfiguration(port: broker.port) { $0.outboundTopicAliases = own.wanted }
            )
            try await client.connect()
            let message = MQTTMessage(topic: "t", qos: own.qos, properties: [.topicAlias(own.alias)])
            #expect(await failure { try await client.publish(message) } == own.error)
            _ = try await client.ping()
            await client.disconnect()
        }
    }
}

/// A sum that is added to on an event loop, and read by a test.
final class Counter: Sendable {
    private let sum = Mutex(0)

    var value: Int { self.sum.withLock { $0 } }
    func add(_ amount: Int) { self.sum.withLock { $0 += amount } }
}
