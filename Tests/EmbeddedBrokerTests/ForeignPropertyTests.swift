import EmbeddedBroker
import MQTTCodec
import Testing

@Suite("§2.2.2.2 A packet of the client with a property that its type does not have")
struct ForeignPropertyTests {
    /// A property that only CONNACK has.
    private static let foreign: Properties = [.serverKeepAlive(1)]

    /// The packet with the property; `nil` for types without properties, and for types that a client never sends.
    private static func packet(_ type: PacketType) -> Packet? {
        switch type {
        case .connect: .connect(Connect(version: .v5, clientID: "c", properties: self.foreign))
        case .publish: .publish(Publish(topic: "a", properties: self.foreign))
        case .pubAck: .pubAck(PubAck(1, properties: self.foreign))
        case .pubRec: .pubRec(PubRec(1, properties: self.foreign))
        case .pubRel: .pubRel(PubRel(1, properties: self.foreign))
        case .pubComp: .pubComp(PubComp(1, properties: self.foreign))
        case .subscribe: .subscribe(Subscribe(1, [Subscription(filter: "a")], properties: self.foreign))
        case .unsubscribe: .unsubscribe(Unsubscribe(1, filters: ["a"], properties: self.foreign))
        case .disconnect: .disconnect(Disconnect(properties: self.foreign))
        case .auth: .auth(Auth(reason: .continueAuthentication, properties: self.foreign))
        case .connAck, .subAck, .unsubAck, .pingReq, .pingResp: nil
        }
    }

    @Test(
        "is malformed: the broker sends DISCONNECT 0x81",
        arguments: PacketType.allCases.filter { $0 != .connect && packet($0) != nil }
    )
    func refused(_ type: PacketType) throws {
        let world = VirtualBroker()
        let client = world.connect("c")
        world.send(try #require(Self.packet(type)), from: client)
        #expect(world.take(client) == [.disconnect(Disconnect(reason: .malformedPacket))])
        #expect(client.isClosed)
    }

    @Test(
        "in CONNECT or its will it is malformed: the broker sends CONNACK 0x81",
        arguments: [
            Connect(version: .v5, clientID: "c", properties: foreign),
            Connect(version: .v5, clientID: "c", will: Will(topic: "w", payload: [], properties: foreign)),
        ]
    )
    func refusedConnect(_ connect: Connect) {
        let world = VirtualBroker()
        let client = world.open(.v5)
        world.send(.connect(connect), from: client)
        #expect(world.take(client) == [.connAck(ConnAck(code: ReasonCode.malformedPacket.rawValue))])
        #expect(client.isClosed)
        #expect(world.counters.connectsRefused == 1)
    }
}
