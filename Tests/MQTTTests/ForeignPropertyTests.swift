import MQTT
import MQTTCodec
import TestSupport
import Testing

@Suite("§2.2.2.2 A packet of the server with a property that its type does not have")
struct ForeignPropertyTests {
    /// A property that only CONNACK has.
    private static let foreign: Properties = [.serverKeepAlive(1)]

    /// The packet with the property; `nil` for types without properties, and for types that a server never sends.
    private static func packet(_ type: PacketType) -> Packet? {
        switch type {
        case .connAck: .connAck(ConnAck(properties: [.topicAlias(1)]))
        case .publish: .publish(Publish(topic: "a", properties: self.foreign))
        case .pubAck: .pubAck(PubAck(1, properties: self.foreign))
        case .pubRec: .pubRec(PubRec(1, properties: self.foreign))
        case .pubRel: .pubRel(PubRel(1, properties: self.foreign))
        case .pubComp: .pubComp(PubComp(1, properties: self.foreign))
        case .subAck: .subAck(SubAck(1, codes: [0], properties: self.foreign))
        case .unsubAck: .unsubAck(UnsubAck(1, codes: [0], properties: self.foreign))
        case .disconnect: .disconnect(Disconnect(properties: self.foreign))
        case .auth: .auth(Auth(reason: .continueAuthentication, properties: self.foreign))
        case .connect, .subscribe, .unsubscribe, .pingReq, .pingResp: nil
        }
    }

    @Test("is malformed: the client sends DISCONNECT 0x81", arguments: PacketType.allCases.filter { packet($0) != nil })
    func refused(_ type: PacketType) throws {
        let packet = try #require(Self.packet(type))
        for isCareful in [false, true] {
            let rig = try ConnectionRig(SessionOptions(version: .v5, topicAliasMaximum: isCareful ? 1 : 0))
            try rig.connect()
            try rig.receive(packet)
            #expect(
                rig.observer.end == .malformed(.propertyNotAllowed(type == .connAck ? .topicAlias : .serverKeepAlive))
            )
            #expect(try rig.sent() == [hex("E002 81 00")])
        }
    }

    @Test(
        "before CONNACK the client closes without a packet",
        arguments: PacketType.allCases.filter { packet($0) != nil }
    )
    func refusedBeforeConnack(_ type: PacketType) throws {
        let rig = try ConnectionRig(.v5)
        rig.start()
        _ = try rig.sent()
        try rig.receive(try #require(Self.packet(type)))
        guard case .malformed(let error) = rig.observer.end else {
            Issue.record("\(rig.observer.end as Any)")
            return
        }
        #expect(error.reason == .malformedPacket)
        #expect(try rig.sent() == [])
    }
}
