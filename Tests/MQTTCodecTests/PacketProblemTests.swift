import MQTTCodec
import NIOCore
import Testing

@Suite("Strict validation")
struct PacketProblemTests {
    static let long = String(repeating: "x", count: 65_536)

    @Test("A2: protocolLevel is 3, 4 or 5", arguments: 0...255 as ClosedRange<UInt8>)
    func level(_ level: UInt8) {
        #expect((ProtocolVersion(rawValue: level) != nil) == (3...5).contains(level))
    }

    @Test("A2: a client id of none with a session to keep; client id, user name, password and will and their lengths")
    func limits() {
        let most = String(repeating: "x", count: 65_535)
        #expect(Connect(clientID: most, username: most, password: Array(most.utf8)).problem() == nil)
        #expect(Connect(clientID: "a", will: Will(topic: most, payload: Array(most.utf8))).problem() == nil)
        // Bytes are counted, not characters.
        #expect(Connect(clientID: String(repeating: "é", count: 32_768)).problem() == .clientIDTooLong(65_536))
    }

    @Test(
        "A2: CONNECT",
        arguments: [
            (Connect(clientID: ""), nil),
            (Connect(clientID: "", cleanStart: false), .clientIDEmpty),
            (Connect(version: .v5, clientID: "", cleanStart: false), nil),
            (Connect(version: .v31, clientID: ""), .clientIDEmpty),
            (Connect(version: .v31, clientID: "123456789012345678901234"), .clientIDTooLong(24)),
            (Connect(version: .v31, clientID: "12345678901234567890123"), nil),
            (Connect(clientID: Self.long), .clientIDTooLong(65_536)),
            (Connect(clientID: "a\0"), .nullCharacter),
            (Connect(clientID: "a", username: Self.long), .userNameTooLong(65_536)),
            (Connect(clientID: "a", username: "\0"), .nullCharacter),
            // Anonymous is fine: what is wrong is a password alone.
            (Connect(clientID: "a"), nil),
            (Connect(clientID: "a", password: [1]), .passwordWithoutUserName),
            (Connect(version: .v5, clientID: "a", password: [1]), nil),
            (Connect(clientID: "a", username: "u", password: Array(Self.long.utf8)), .passwordTooLong(65_536)),
            (Connect(clientID: "a", will: Will(topic: "w", payload: [])), nil),
            (Connect(clientID: "a", will: Will(topic: "", payload: [])), .willTopic(.empty)),
            (Connect(clientID: "a", will: Will(topic: "w/#", payload: [])), .willTopic(.wildcardInName)),
            (Connect(clientID: "a", will: Will(topic: "+", payload: [])), .willTopic(.wildcardInName)),
            (Connect(clientID: "a", will: Will(topic: "w\0", payload: [])), .willTopic(.nullCharacter)),
            (Connect(clientID: "a", will: Will(topic: Self.long, payload: [])), .willTopic(.tooLong(65_536))),
            (
                Connect(version: .v5, clientID: "a", will: Will(topic: "w", payload: [], properties: [.topicAlias(1)])),
                .properties(.propertyNotAllowed(.topicAlias))
            ),
            (
                Connect(
                    version: .v5,
                    clientID: "a",
                    will: Will(topic: "w", payload: [], properties: [.willDelayInterval(1), .responseTopic("r")])
                ),
                nil
            ),
            (
                Connect(clientID: "a", will: Will(topic: "w", payload: [], properties: [.willDelayInterval(1)])),
                .propertiesBeforeVersion5
            ),
            (
                Connect(version: .v5, clientID: "a", properties: [.authenticationData([1])]),
                .properties(.authDataWithoutMethod)
            ),
            (
                Connect(
                    version: .v5,
                    clientID: "a",
                    properties: [.sessionExpiryInterval(1), .sessionExpiryInterval(1)]
                ),
                .properties(.duplicateProperty(.sessionExpiryInterval))
            ),
            (
                Connect(clientID: "a", will: Will(topic: "w", payload: Array(Self.long.utf8))),
                .willPayloadTooLong(65_536)
            ),
            (Connect(clientID: "a", properties: [.receiveMaximum(1)]), .propertiesBeforeVersion5),
            (
                Connect(version: .v5, clientID: "a", properties: [.receiveMaximum(0)]),
                .properties(.propertyValue(.receiveMaximum))
            ),
        ] as [(Connect, PacketProblem?)]
    )
    func connect(_ packet: Connect, _ problem: PacketProblem?) {
        #expect(packet.problem() == problem)
    }

    @Test(
        "A2: PUBLISH; it is the topic that has no wildcards, not the will's",
        arguments: [
            (Publish(topic: "a"), .v311, nil),
            (Publish(topic: ""), .v311, .topic(.empty)),
            (Publish(topic: "", properties: [.topicAlias(1)]), .v5, nil),
            (Publish(topic: "a/+"), .v5, .topic(.wildcardInName)),
            (Publish(topic: "#"), .v311, .topic(.wildcardInName)),
            (Publish(topic: "", properties: [.topicAlias(1)]), .v311, .topic(.empty)),
            (Publish(topic: "", properties: [.userProperty("a", "b")]), .v5, .topic(.empty)),
            (Publish(topic: "a", properties: [.topicAlias(0)]), .v5, .properties(.topicAliasZero)),
            (
                Publish(topic: "a", properties: [.responseTopic("r/#")]), .v5,
                .properties(.propertyValue(.responseTopic))
            ),
            (
                Publish(topic: "a", properties: [.payloadFormatIndicator(2)]), .v5,
                .properties(.propertyValue(.payloadFormatIndicator))
            ),
            (Publish(topic: "a", properties: [.userProperty("a", "\0")]), .v5, .properties(.nullCharacter)),
            (Publish(topic: "a", properties: [.messageExpiryInterval(1)]), .v311, .propertiesBeforeVersion5),
            (Publish(topic: "a\0"), .v5, .topic(.nullCharacter)),
            (Publish(topic: Self.long), .v311, .topic(.tooLong(65_536))),
            (Publish(topic: "a", dup: true), .v311, .dupAtQoS0),
            (Publish(topic: "a", packetID: 1), .v311, .packetIDAtQoS0),
            (Publish(topic: "a", qos: .atLeastOnce), .v311, .packetIDMissing),
            (Publish(topic: "a", qos: .exactlyOnce, packetID: 1), .v311, nil),
            (
                Publish(topic: "a", properties: [.subscriptionIdentifier(1)]), .v5,
                .properties(.propertyOfOtherSide(.subscriptionIdentifier))
            ),
        ] as [(Publish, ProtocolVersion, PacketProblem?)]
    )
    func publish(_ packet: Publish, _ version: ProtocolVersion, _ problem: PacketProblem?) {
        #expect(packet.problem(as: version) == problem)
    }

    @Test(
        "A2: SUBSCRIBE; a filter that ends in # is a good one",
        arguments: [
            (Subscription(filter: "a/#"), .v311, nil),
            (Subscription(filter: "#"), .v5, nil),
            (Subscription(filter: "a#"), .v311, .filter(.wildcardNotAlone)),
            (Subscription(filter: ""), .v311, .filter(.empty)),
            (Subscription(filter: "a/+/b"), .v311, nil),
            (Subscription(filter: "a+/b"), .v5, .filter(.wildcardNotAlone)),
            (Subscription(filter: "#/a"), .v5, .filter(.multiLevelNotLast)),
            (Subscription(filter: "a\0"), .v5, .filter(.nullCharacter)),
            (Subscription(filter: Self.long), .v5, .filter(.tooLong(65_536))),
            (Subscription(filter: "$share//a"), .v5, .filter(.shareName)),
            (Subscription(filter: "$share/g+/a"), .v5, .filter(.shareName)),
            (Subscription(filter: "$share/g/a/#"), .v5, nil),
            (Subscription(filter: "$share/g/a", noLocal: true), .v5, .noLocalOnShared),
            (Subscription(filter: "$share/g"), .v5, .filter(.shareWithoutFilter)),
            (Subscription(filter: "a", retainAsPublished: true), .v311, .optionsBeforeVersion5),
        ] as [(Subscription, ProtocolVersion, PacketProblem?)]
    )
    func subscribe(_ subscription: Subscription, _ version: ProtocolVersion, _ problem: PacketProblem?) {
        #expect(Subscribe(1, [subscription]).problem(as: version) == problem)
    }

    @Test("A2: the whole packet within 268,435,455 bytes of remaining length, and within the server's maximum")
    func sizes() {
        let publish = Packet.publish(Publish(topic: "a", payload: ByteBuffer(repeating: 1, count: 100)))
        #expect(PacketProblem.size(of: publish, as: .v311, limit: 105) == nil)
        #expect(PacketProblem.size(of: publish, as: .v311, limit: 104) == .tooLarge(size: 105, limit: 104))
        #expect(PacketProblem.size(of: publish, as: .v5, limit: 105) == .tooLarge(size: 106, limit: 105))
        #expect(PacketProblem.size(of: publish, as: .v5, body: 100, limit: 50) == .tooLarge(size: 100, limit: 50))
        #expect(PacketProblem.size(of: publish, as: .v5, body: 100) == nil)
    }

    @Test("only reason strings and user properties may be left out ([MQTT-3.4.2-2])")
    func withoutReasons() {
        let says: Properties = [.userProperty("a", "b"), .authenticationMethod("m"), .reasonString("c")]
        #expect(Packet.pubAck(PubAck(1)).withoutReasons == nil)
        #expect(Packet.subscribe(Subscribe(1, [], properties: [.userProperty("a", "b")])).withoutReasons == nil)
        #expect(
            Packet.auth(Auth(reason: .continueAuthentication, properties: says)).withoutReasons
                == .auth(Auth(reason: .continueAuthentication, properties: [.authenticationMethod("m")]))
        )
        #expect(
            Packet.subAck(SubAck(1, codes: [1], properties: [.reasonString("x")])).withoutReasons
                == .subAck(SubAck(1, codes: [1]))
        )
    }

    @Test("A2: SUBSCRIBE and UNSUBSCRIBE with a filter at least, and sizes")
    func rest() {
        #expect(Subscribe(1, []).problem(as: .v5) == .noFilters)
        #expect(Unsubscribe(1, filters: []).problem(as: .v5) == .noFilters)
        #expect(Unsubscribe(1, filters: ["a", ""]).problem(as: .v311) == .filter(.empty))
        #expect(Unsubscribe(1, filters: ["a/#"]).problem(as: .v311) == nil)
        #expect(PacketProblem.size(100, limit: 100) == nil)
        #expect(PacketProblem.size(101, limit: 100) == .tooLarge(size: 101, limit: 100))
        #expect(PacketProblem.size(268_435_461) == .tooLarge(size: 268_435_461, limit: 268_435_460))
    }
}
