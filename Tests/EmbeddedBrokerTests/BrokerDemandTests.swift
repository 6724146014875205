import EmbeddedBroker
import MQTTCodec
import SASL
import Testing

@Suite("A broker that demands SCRAM")
struct BrokerDemandTests {
    struct Attempt: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let name: String?
        let method: String?
        /// CONNACK of 3.1.1 and of 5; 0 where the exchange begins.
        let codes: (UInt8, UInt8)

        init(_ name: String, user: String? = nil, method: String? = nil, _ codes: (UInt8, UInt8)) {
            self.testDescription = name
            self.name = user
            self.method = method
            self.codes = codes
        }
    }

    static let attempts = [
        Attempt("no user", (5, 0x8C)), Attempt("the right password", user: "ann", (5, 0x8C)),
        Attempt("another mechanism", method: "SCRAM-SHA-1", (5, 0x8C)),
        Attempt("an unknown mechanism", method: "PLAIN", (5, 0x8C)),
        Attempt("the mechanism", method: "SCRAM-SHA-256", (5, 0)),
    ]

    @Test("refuses other mechanisms, even with the right password (§4.12)", arguments: attempts)
    func demand(_ attempt: Attempt) {
        for version in ProtocolVersion.allCases {
            let world = VirtualBroker {
                $0.access = BrokerAccess(
                    users: ["ann": BrokerAccess.User(password: Array("secret".utf8))],
                    allowsAnonymous: true
                )
                $0.access.scram = .sha256
            }
            var connect = Connect(version: version, clientID: "c", username: attempt.name)
            if attempt.name != nil { connect.password = Array("secret".utf8) }
            if version == .v5 { connect.properties.authenticationMethod = attempt.method }
            let client = world.open(version)
            world.send(.connect(connect), from: client)
            let code = version == .v5 ? attempt.codes.1 : attempt.codes.0
            guard code == 0 else {
                #expect(world.take(client) == [.connAck(ConnAck(code: code))])
                #expect(client.isClosed)
                #expect(world.counters.connectsRefused == 1)
                continue
            }
            #expect(world.take(client).map(\.type) == [.auth])
            #expect(!client.isClosed)
        }
    }
}
