import MQTTCodec
import TestSupport
import Testing

@Suite("Properties as they come over the wire (§2.2.2.2)")
struct PropertyDecodingTests {
    /// The packets of a scope, each with these properties.
    private static func packets(_ scope: PropertyScope, _ properties: Properties) -> [Packet] {
        switch scope {
        case .connect: [.connect(Connect(version: .v5, clientID: "c", properties: properties))]
        case .will:
            [
                .connect(
                    Connect(version: .v5, clientID: "c", will: Will(topic: "w", payload: [], properties: properties))
                )
            ]
        case .connAck: [.connAck(ConnAck(properties: properties))]
        case .publishToServer, .publishToClient: [.publish(Publish(topic: "a", properties: properties))]
        case .acknowledgement:
            [
                .pubAck(PubAck(1, properties: properties)), .pubRec(PubRec(1, properties: properties)),
                .pubRel(PubRel(1, properties: properties)), .pubComp(PubComp(1, properties: properties)),
            ]
        case .subscribe: [.subscribe(Subscribe(1, [Subscription(filter: "a")], properties: properties))]
        case .subAck: [.subAck(SubAck(1, codes: [0], properties: properties))]
        case .unsubscribe: [.unsubscribe(Unsubscribe(1, filters: ["a"], properties: properties))]
        case .unsubAck: [.unsubAck(UnsubAck(1, codes: [0], properties: properties))]
        case .disconnectToServer, .disconnectToClient: [.disconnect(Disconnect(properties: properties))]
        case .auth: [.auth(Auth(reason: .continueAuthentication, properties: properties))]
        }
    }

    private static func decoder(_ scope: PropertyScope) throws -> PacketDecoder {
        switch scope {
        case .connect, .will: PacketDecoder(role: .server)
        case .publishToServer, .subscribe, .unsubscribe, .disconnectToServer: try connectedServer(.v5)
        default: PacketDecoder(role: .client(.v5))
        }
    }

    @Test("B7: each is read where it belongs, and refused where it does not", arguments: PropertyScope.allCases)
    func allowed(_ scope: PropertyScope) throws {
        // §3.15.2.2.2: AUTH always has a method.
        let method: Properties = scope == .auth ? [.authenticationMethod("m")] : []
        for (property, scopes) in PropertyTableTests.table {
            let isMethod = scope == .auth && property.id == .authenticationMethod
            let properties = isMethod ? method : Properties(method.entries + [property])
            for packet in Self.packets(scope, properties) {
                let result = outcome(try Self.decoder(scope), [packet.bytes(as: .v5)])
                if scopes.contains(scope) {
                    #expect(result.error == nil, "\(property.id) in \(packet.type)")
                    #expect(result.packets == [packet])
                } else {
                    let error = PropertyTableTests.refusal(of: property.id, in: scope)
                    #expect(result.error == error, "\(property.id) in \(packet.type)")
                    #expect(result.packets == [])
                }
            }
        }
    }

    @Test("B1: twice is refused for all but user properties, and subscription identifiers to a client")
    func twice() throws {
        for (property, scopes) in PropertyTableTests.table {
            for scope in scopes {
                let method: [Property] =
                    scope == .auth && property.id != .authenticationMethod ? [.authenticationMethod("m")] : []
                for packet in Self.packets(scope, Properties(method + [property, property])) {
                    let result = outcome(try Self.decoder(scope), [packet.bytes(as: .v5)])
                    if property.id == .userProperty
                        || (property.id == .subscriptionIdentifier && scope == .publishToClient)
                    {
                        #expect(result.packets == [packet])
                    } else {
                        #expect(result.error == .duplicateProperty(property.id), "\(property.id) in \(packet.type)")
                    }
                }
            }
        }
    }
}
