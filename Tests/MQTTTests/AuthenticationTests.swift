import MQTT
import MQTTCodec
import NIOCore
import NIOEmbedded
import SASL
import TestSupport
import Testing

/// Sends a fixed script of messages.
private struct ScriptedMechanism: SASLMechanism {
    let name = "TEST"
    var first: [UInt8]? = [1]

    mutating func begin() throws(SASLError) -> [UInt8]? { self.first }

    mutating func respond(to challenge: [UInt8]) throws(SASLError) -> [UInt8] {
        if challenge == [0xFF] { throw .malformed("not a challenge") }
        return challenge.map { $0 &+ 1 }
    }

    mutating func finish(_ data: [UInt8]?) throws(SASLError) {
        if data != [9] { throw .serverNotVerified }
    }
}

@Suite("Enhanced authentication, from the client's side (§4.12)")
struct AuthenticationTests {
    private static func auth(
        _ reason: ReasonCode,
        _ data: [UInt8]?,
        method: String? = "TEST"
    ) -> Packet {
        var properties = Properties()
        properties.authenticationMethod = method
        properties.authenticationData = data
        return .auth(Auth(reason: reason, properties: properties))
    }

    private static func connack(_ data: [UInt8]?, method: String? = "TEST") -> ConnAck {
        var properties = Properties()
        properties.authenticationMethod = method
        properties.authenticationData = data
        return ConnAck(properties: properties)
    }

    private func rig(_ first: [UInt8]? = [1]) throws -> ConnectionRig {
        let rig = try ConnectionRig(SessionOptions(version: .v5))
        rig.start(authenticator: MQTTAuthenticator { ScriptedMechanism(first: first) })
        return rig
    }

    private func connected() throws -> ConnectionRig {
        let rig = try self.rig()
        try rig.receive(.connAck(Self.connack([9])))
        _ = try rig.sent()
        return rig
    }

    @Test("CONNECT carries method and data, if the mechanism begins", arguments: [[1], nil] as [[UInt8]?])
    func connect(_ first: [UInt8]?) throws {
        let rig = try self.rig(first)
        var expected = Connect(version: .v5, clientID: "c", keepAlive: 300)
        expected.properties = [.authenticationMethod("TEST")]
        if let first { expected.properties.append(.authenticationData(first)) }
        #expect(try rig.sent() == [wire(.connect(expected))])
    }

    @Test("[MQTT-4.12.0-3] AUTH is answered with AUTH, and CONNACK's data is checked")
    func exchange() throws {
        let rig = try self.rig()
        _ = try rig.sent()
        try rig.receive(Self.auth(.continueAuthentication, [5]))
        try rig.receive(Self.auth(.continueAuthentication, nil))
        #expect(
            try rig.sent() == [
                wire(Self.auth(.continueAuthentication, [6])), wire(Self.auth(.continueAuthentication, [])),
            ]
        )
        try rig.receive(.connAck(Self.connack([9])))
        #expect(rig.observer.calls == [.connected(resumed: false)])
        #expect(try rig.sent().isEmpty)
    }

    @Test("a CONNACK that proves nothing is not accepted", arguments: [nil, [8]] as [[UInt8]?])
    func unproven(_ data: [UInt8]?) throws {
        let rig = try self.rig()
        _ = try rig.sent()
        try rig.receive(.connAck(Self.connack(data)))
        #expect(rig.observer.calls == [.ending(unsent: 0), .ended(.notAuthenticated(.serverNotVerified))])
        #expect(try rig.sent() == [hex("E002 80 00")])
        #expect(!rig.channel.isActive)
    }

    @Test("a refusal needs no proof")
    func refused() throws {
        let rig = try self.rig()
        let connack = ConnAck(code: ReasonCode.badAuthenticationMethod.rawValue)
        try rig.receive(.connAck(connack))
        #expect(rig.observer.end == .refused(connack))
    }

    @Test("a challenge that is none ends it, and DISCONNECT may say so before CONNACK ([MQTT-3.1.2-30])")
    func malformedChallenge() throws {
        let rig = try self.rig()
        _ = try rig.sent()
        try rig.receive(Self.auth(.continueAuthentication, [0xFF]))
        #expect(rig.observer.end == .notAuthenticated(.malformed("not a challenge")))
        #expect(try rig.sent() == [hex("E002 82 00")])
    }

    @Test(
        "[MQTT-4.12.0-5] another method than CONNECT's is a protocol error",
        arguments: [auth(.continueAuthentication, [5], method: "OTHER"), .connAck(connack([9], method: "OTHER"))]
            + [.connAck(connack(nil, method: nil))]
    )
    func otherMethod(_ packet: Packet) throws {
        let rig = try self.rig()
        _ = try rig.sent()
        try rig.receive(packet)
        guard case .violation(.protocolError, let words) = rig.observer.end else {
            Issue.record("\(rig.observer.calls)")
            return
        }
        #expect(words.contains("another method than CONNECT ([MQTT-4.12.0-5])"))
        #expect(try rig.sent() == [hex("E002 82 00")])
    }

    @Test("AUTH with success before CONNACK is a protocol error (§4.12)")
    func successTooEarly() throws {
        let rig = try self.rig()
        _ = try rig.sent()
        try rig.receive(Self.auth(.success, [9]))
        #expect(rig.observer.end == .violation(.protocolError, "AUTH with success before CONNACK (§4.12)"))
    }

    @Test(
        "[MQTT-4.12.0-6] who named no method gets neither AUTH nor a method",
        arguments: [auth(.continueAuthentication, [5]), .connAck(connack([9])), auth(.success, nil)]
    )
    func unasked(_ packet: Packet) throws {
        let rig = try ConnectionRig(.v5)
        rig.start()
        _ = try rig.sent()
        try rig.receive(packet)
        guard case .violation(.protocolError, let words) = rig.observer.end else {
            Issue.record("\(rig.observer.calls)")
            return
        }
        #expect(words.contains("not asked for ([MQTT-4.12.0-6])"))
    }

    @Test("AUTH on a connection without a method is answered with DISCONNECT 0x82")
    func unaskedLater() throws {
        let rig = try ConnectionRig(.v5)
        try rig.connect()
        try rig.receive(Self.auth(.continueAuthentication, [5]))
        #expect(rig.observer.end == .violation(.protocolError, "AUTH was not asked for ([MQTT-4.12.0-6])"))
        #expect(try rig.sent() == [hex("E002 82 00")])
    }

    @Test("re-authentication: AUTH 0x19, 0x18 both ways, success, and messages go on meanwhile (§4.12.1)")
    func again() throws {
        let rig = try self.connected()
        #expect(rig.connection.reauthenticate())
        #expect(!rig.connection.reauthenticate())
        try rig.receive(publish("a", [1], qos: .atLeastOnce, id: 3))
        try rig.receive(Self.auth(.continueAuthentication, [5]))
        try rig.receive(Self.auth(.success, [9]))
        #expect(
            try rig.sent() == [
                wire(Self.auth(.reAuthenticate, [1])), hex("4002 0003"), wire(Self.auth(.continueAuthentication, [6])),
            ]
        )
        #expect(rig.observer.calls.last == .reauthenticated)
        #expect(rig.connection.reauthenticate())
    }

    @Test("[MQTT-4.12.1-2] a re-authentication that fails ends the connection")
    func againFails() throws {
        let rig = try self.connected()
        #expect(rig.connection.reauthenticate())
        _ = try rig.sent()
        try rig.receive(Self.auth(.success, [7]))
        #expect(rig.observer.end == .notAuthenticated(.serverNotVerified))
        #expect(try rig.sent() == [hex("E002 80 00")])
    }

    @Test("AUTH that the server begins on its own is a protocol error")
    func serverBegins() throws {
        let rig = try self.connected()
        try rig.receive(Self.auth(.continueAuthentication, [5]))
        #expect(rig.observer.end == .violation(.protocolError, "AUTH outside an authentication (§4.12)"))
    }

    @Test("[MQTT-3.1.2-30] before CONNACK nothing leaves but AUTH and DISCONNECT")
    func nothingElse() throws {
        let rig = try self.rig()
        _ = try rig.sent()
        rig.connection.ping()
        #expect(rig.connection.subscribe([Subscription(filter: "a")]) == nil)
        #expect(rig.connection.unsubscribe(["a"]) == nil)
        #expect(rig.session.pointee.room == 0)
        #expect(try rig.sent().isEmpty)
        rig.connection.finish(Disconnect(reason: .disconnectWithWillMessage))
        #expect(try rig.sent() == [hex("E002 04 00")])
    }

    @Test("nothing is re-authenticated before CONNACK, or without a method")
    func tooEarly() throws {
        let early = try self.rig()
        #expect(!early.connection.reauthenticate())
        #expect(early.session.pointee.state == .connecting)
        let plain = try ConnectionRig(.v5)
        try plain.connect()
        #expect(!plain.connection.reauthenticate())
    }

    @Test("SCRAM end to end, against SCRAM's own server", arguments: SCRAMHash.allCases, [true, false])
    func scram(_ hash: SCRAMHash, _ isRight: Bool) throws {
        let credentials = try SCRAMCredentials(hash, password: "secret", salt: [1, 2, 3, 4])
        var server = SCRAMServer(hash) { $0 == "user" ? credentials : nil }
        let cache = SCRAMKeyCache()
        let password = isRight ? "secret" : "guess"
        let client = try SCRAMClient(hash, user: "user", password: password, cache: cache)
        let rig = try ConnectionRig(.v5)
        rig.start(authenticator: MQTTAuthenticator { client })
        func said() throws -> [UInt8] {
            let bytes = try #require(try rig.sent().first)
            var log = AuthenticationLog()
            var decoder = PacketDecoder(role: .server)
            let first = bytes.first == 0x10 ? bytes : wire(.connect(Connect(version: .v5, clientID: ""))) + bytes
            try first.withUnsafeBytes { try decoder.decode($0, into: &log) }
            return try #require(log.data)
        }
        guard case .challenge(let challenge) = server.received(try said()) else {
            Issue.record("no challenge")
            return
        }
        try rig.receive(Self.auth(.continueAuthentication, challenge, method: client.name))
        switch server.received(try said()) {
        case .accepted(let user, let data):
            #expect(isRight && user == "user")
            try rig.receive(.connAck(Self.connack(data, method: client.name)))
            #expect(rig.observer.calls == [.connected(resumed: false)])
        case .refused(let error): #expect(!isRight && error == .invalidProof)
        case .challenge: Issue.record("a challenge too many")
        }
    }
}

private struct AuthenticationLog: PacketSink {
    var data: [UInt8]?

    mutating func publish(_ view: PublishView) -> Bool { true }

    mutating func acknowledgement(
        _ type: PacketType,
        id: UInt16,
        reason: UInt8,
        rawProperties: UnsafeRawBufferPointer
    ) -> Bool { true }

    mutating func control(_ packet: Packet) -> Bool {
        switch packet {
        case .connect(let packet): self.data = packet.properties.authenticationData
        case .auth(let packet): self.data = packet.properties.authenticationData
        default: break
        }
        return true
    }
}
