import MQTTCodec
import NIOCore
import Testing

@Suite("Strict validation")
struct PacketProblemTests {
    static let long = String(repeating: "x", count: 65_536)

    @Test(
        "CONNECT",
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
        "PUBLISH",
        arguments: [
            (Publish(topic: "a"), .v311, nil),
            (Publish(topic: ""), .v311, .topic(.empty)),
            (Publish(topic: "", properties: [.topicAlias(1)]), .v5, nil),
            (Publish(topic: "a/+"), .v5, .topic(.wildcardInName)),
            (Publish(topic: "a\0"), .v5, .topic(.nullCharacter)),
            (Publish(topic: Self.long), .v311, .topic(.tooLong(65_536))),
            (Publish(topic: "a", dup: true), .v311, .dupAtQoS0),
            (Publish(topic: "a", packetID: 1), .v311, .packetIDAtQoS0),
            (Publish(topic: "a", qos: .atLeastOnce), .v311, .packetIDMissing),
            (Publish(topic: "a", qos: .exactlyOnce, packetID: 1), .v311, nil),
            (
                Publish(topic: "a", properties: [.subscriptionIdentifier(1)]), .v5,
                .properties(.propertyNotAllowed(.subscriptionIdentifier))
            ),
        ] as [(Publish, ProtocolVersion, PacketProblem?)]
    )
    func publish(_ packet: Publish, _ version: ProtocolVersion, _ problem: PacketProblem?) {
        #expect(packet.problem(as: version) == problem)
    }

    @Test(
        "SUBSCRIBE; a filter that ends in # is a good one",
        arguments: [
            (Subscription(filter: "a/#"), .v311, nil),
            (Subscription(filter: "#"), .v5, nil),
            (Subscription(filter: "a#"), .v311, .filter(.wildcardNotAlone)),
            (Subscription(filter: "$share/g/a", noLocal: true), .v5, .noLocalOnShared),
            (Subscription(filter: "$share/g"), .v5, .filter(.shareWithoutFilter)),
            (Subscription(filter: "a", retainAsPublished: true), .v311, .optionsBeforeVersion5),
        ] as [(Subscription, ProtocolVersion, PacketProblem?)]
    )
    func subscribe(_ subscription: Subscription, _ version: ProtocolVersion, _ problem: PacketProblem?) {
        #expect(Subscribe(1, [subscription]).problem(as: version) == problem)
    }

    @Test("no filters at all, and sizes")
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
