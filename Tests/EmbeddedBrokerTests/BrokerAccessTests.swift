import EmbeddedBroker
import MQTTCodec
import NIOCore
import SASL
import Testing

@Suite("Authorization of clients")
struct BrokerAccessTests {
    private static let users: [String: BrokerAccess.User] = [
        "ann": BrokerAccess.User(password: Array("secret".utf8)), "bob": BrokerAccess.User(password: [0, 0xFF]),
    ]

    private static func world(anonymous: Bool = false) -> VirtualBroker {
        VirtualBroker { $0.access = BrokerAccess(users: Self.users, allowsAnonymous: anonymous) }
    }

    struct Login: Sendable {
        let name: String?
        let password: [UInt8]?
        let anonymous: Bool
        /// CONNACK of 3.1.1 and of 5.
        let codes: (UInt8, UInt8)

        init(_ name: String?, _ password: [UInt8]?, anonymous: Bool = false, _ codes: (UInt8, UInt8)) {
            self.name = name
            self.password = password
            self.anonymous = anonymous
            self.codes = codes
        }
    }

    static let logins = [
        Login("ann", Array("secret".utf8), (0, 0)), Login("bob", [0, 0xFF], (0, 0)),
        Login("ann", Array("secreT".utf8), (4, 0x86)), Login("ann", Array("secre".utf8), (4, 0x86)),
        Login("ann", nil, (4, 0x86)), Login("eve", Array("secret".utf8), (4, 0x86)),
        Login(nil, nil, (5, 0x87)), Login(nil, nil, anonymous: true, (0, 0)),
        Login("ann", [], anonymous: true, (4, 0x86)),
    ]

    @Test("user and password are checked, and refused in the words of each version (§3.1.4)", arguments: logins)
    func passwords(_ login: Login) {
        for version in ProtocolVersion.allCases {
            let world = Self.world(anonymous: login.anonymous)
            let connect = Connect(version: version, clientID: "c", username: login.name, password: login.password)
            let (client, answer) = world.connect(with: connect)
            let code = version == .v5 ? login.codes.1 : login.codes.0
            #expect(answer.code == code)
            #expect(client.isClosed == (code != 0))
            #expect(world.counters.connectsRefused == (code == 0 ? 0 : 1))
        }
    }

    @Test(
        "[MQTT-3.1.4-6] what came behind a CONNECT is not processed when that is refused, and is when not",
        arguments: [false, true]
    )
    func pipelined(_ isRight: Bool) {
        let world = Self.world()
        let client = world.open(.v5)
        var bytes = ByteBuffer()
        let password = Array((isRight ? "secret" : "wrong").utf8)
        Packet.connect(Connect(version: .v5, clientID: "c", username: "ann", password: password))
            .encode(as: .v5, into: &bytes)
        Packet.subscribe(Subscribe(1, [Subscription(filter: "t")])).encode(as: .v5, into: &bytes)
        Packet.publish(Publish(topic: "t", qos: .atLeastOnce, packetID: 2)).encode(as: .v5, into: &bytes)
        client.answers = false
        world.send(bytes: Array(bytes.readableBytesView), from: client)
        let types = world.take(client).map(\.type)
        #expect(types == (isRight ? [.connAck, .subAck, .pubAck, .publish] : [.connAck]))
        #expect(world.counters.received.total == (isRight ? 1 : 0))
        #expect(client.isClosed != isRight)
    }

    @Test("a user's rules: 0x87 to PUBLISH and SUBSCRIBE beyond them, before 5 as that can say it")
    func rules() throws {
        let mine = [try TopicFilter(validating: "mine/#")]
        for version in [ProtocolVersion.v311, .v5] {
            let world = VirtualBroker {
                $0.access.users["u"] = BrokerAccess.User(password: [1], publishes: mine, subscribes: mine)
            }
            let all = world.subscriber("r", "#")
            let connect = Connect(version: version, clientID: "c", username: "u", password: [1])
            let (client, _) = world.connect(with: connect)
            for (index, topic) in ["mine/a", "yours/a"].enumerated() {
                let id = PacketID(rawValue: UInt16(index + 1)) ?? 1
                world.send(.publish(Publish(topic: topic, qos: .atLeastOnce, packetID: id)), from: client)
                world.send(.publish(Publish(topic: topic, qos: .exactlyOnce, packetID: id)), from: client)
                world.send(.publish(Publish(topic: topic)), from: client)
            }
            let no: ReasonCode = version == .v5 ? .notAuthorized : .success
            #expect(
                world.take(client) == [
                    .pubAck(PubAck(1)), .pubRec(PubRec(1)), .pubAck(PubAck(2, reason: no)),
                    .pubRec(PubRec(2, reason: no)),
                ]
            )
            #expect(world.publishes(all).map(\.topic) == ["mine/a", "mine/a", "mine/a"])
            #expect(world.counters.turnedDown == CountPerQoS(1, 1, 1))
            let filters = ["mine/#", "mine/a", "#", "yours/a"].map { Subscription(filter: $0) }
            world.send(.subscribe(Subscribe(9, filters)), from: client)
            let code: UInt8 = version == .v5 ? 0x87 : 0x80
            #expect(world.take(client) == [.subAck(SubAck(9, codes: [0, 0, code, code]))])
            #expect(world.counters.expected == CountPerQoS(1, 1, 1))
        }
    }

    @Test(
        "%c in a rule stands for the client id, unless that reaches other levels",
        arguments: [("me", "up/me"), ("+", nil), ("#", nil), ("a/b", nil), ("/", nil)] as [(String, String?)]
    )
    func ownTopics(_ clientID: String, granted: String?) throws {
        let own = [try TopicFilter(validating: "up/%c")]
        let world = VirtualBroker {
            $0.access.users["u"] = BrokerAccess.User(password: [1], publishes: own, subscribes: own)
        }
        let connect = Connect(version: .v5, clientID: clientID, username: "u", password: [1])
        let (client, _) = world.connect(with: connect)
        let names = ["up/me", "up/you", "up/a/b", "up//", "up/%c"]
        for topic in names {
            world.send(.publish(Publish(topic: topic, qos: .atLeastOnce, packetID: 1)), from: client)
        }
        let answers = names.map { Packet.pubAck(PubAck(1, reason: $0 == granted ? .success : .notAuthorized)) }
        #expect(world.take(client) == answers)
        let filters = names + ["up/+", "up/#", "#"]
        world.send(.subscribe(Subscribe(1, filters.map { Subscription(filter: $0) })), from: client)
        #expect(world.take(client) == [.subAck(SubAck(1, codes: filters.map { $0 == granted ? 0 : 0x87 }))])
        for topic in ["up/me", "up/you"] {
            var testament = connect
            testament.will = Will(topic: topic, payload: [])
            #expect(world.connect(with: testament).answer.code == (topic == granted ? 0 : 0x87))
        }
    }

    // MARK: Guesses

    private static func guarded() -> VirtualBroker {
        VirtualBroker {
            $0.access = BrokerAccess(users: Self.users)
            $0.access.refusalDelay = .seconds(1)
        }
    }

    private func login(
        _ world: VirtualBroker,
        _ password: String = "wrong",
        from peer: String
    ) -> VirtualBroker.Client {
        let client = world.open(from: peer)
        let connect = Connect(version: .v5, clientID: "of \(peer)", username: "ann", password: Array(password.utf8))
        world.send(.connect(connect), from: client)
        return client
    }

    @Test("wrong credentials are answered late and counted, and the right ones at once")
    func late() {
        let world = Self.guarded()
        let wrong = self.login(world, from: "a")
        let right = self.login(world, "secret", from: "a")
        #expect(world.take(right) == [.connAck(ConnAck())])
        // Packets after the CONNECT are not processed.
        world.send(.pingReq, from: wrong)
        world.advance(by: .milliseconds(999))
        #expect(world.take(wrong).isEmpty)
        #expect(!wrong.isClosed)
        world.advance(by: .milliseconds(1))
        #expect(world.take(wrong) == [.connAck(ConnAck(code: 0x86))])
        #expect(wrong.isClosed)
        let guesses = [world.broker.takeGuesses(), world.broker.takeGuesses()]
        #expect(guesses == [["a": 1], [:]])
        #expect(world.counters.connectsRefused == 1)
    }

    @Test("with eight answers due to an address, its logins are not checked; a client that leaves gains nothing")
    func guessing() {
        let world = Self.guarded()
        for number in 0..<8 {
            let client = self.login(world, from: "a")
            // The connection's id is used again.
            if number.isMultiple(of: 2) { world.lose(client) }
        }
        for password in ["secret", "wrong"] {
            let client = self.login(world, password, from: "a")
            #expect(world.take(client) == [.connAck(ConnAck(code: 0x89))])
            #expect(client.isClosed)
        }
        let other = self.login(world, "secret", from: "b")
        #expect(world.take(other) == [.connAck(ConnAck())])
        world.advance(by: .seconds(1))
        #expect(world.take(other).isEmpty)
        #expect(!other.isClosed)
        #expect(world.take(self.login(world, "secret", from: "a")) == [.connAck(ConnAck())])
        let guesses = world.broker.takeGuesses()
        #expect(guesses == ["a": 8])
    }

    @Test("proofs of exchanges that had begun before are not checked either")
    func lateProofs() throws {
        let world = Self.guarded()
        var proofs: [(client: VirtualBroker.Client, packet: Packet)] = []
        let cache = SCRAMKeyCache()
        for _ in 0..<9 {
            let client = world.open(from: "a")
            var scram = try SCRAMClient(.sha256, user: "ann", password: "wrong", cache: cache)
            let first = try #require(try scram.begin())
            let hello: Properties = [.authenticationMethod(scram.name), .authenticationData(first)]
            world.send(.connect(Connect(version: .v5, clientID: "c", properties: hello)), from: client)
            guard case .auth(let challenge)? = world.take(client).first else {
                Issue.record("AUTH expected")
                return
            }
            let proof = try scram.respond(to: challenge.properties.authenticationData ?? [])
            let properties: Properties = [.authenticationMethod(scram.name), .authenticationData(proof)]
            proofs.append((client, .auth(Auth(reason: .continueAuthentication, properties: properties))))
        }
        for proof in proofs { world.send(proof.packet, from: proof.client) }
        #expect(world.take(proofs[8].client) == [.connAck(ConnAck(code: 0x89))])
        for proof in proofs[..<8] { #expect(world.take(proof.client).isEmpty) }
        world.advance(by: .seconds(1))
        for proof in proofs[..<8] { #expect(world.take(proof.client) == [.connAck(ConnAck(code: 0x87))]) }
    }

    @Test("beyond 1,024 answers that are due the oldest one is sent, and further addresses are counted as others")
    func mostGuesses() {
        let world = Self.guarded()
        let clients = (0...1_024).map { self.login(world, from: "\($0)") }
        #expect(clients.map(\.isClosed) == [true] + Array(repeating: false, count: 1_024))
        let guesses = world.broker.takeGuesses()
        #expect(guesses.count == 1_025)
        #expect(guesses["others"] == 1)
        #expect(guesses["1024"] == nil)
    }

    @Test("a payload that is not the UTF-8 it says it is: 0x99 (§3.3.2.3.2)")
    func payloadFormat() {
        let world = VirtualBroker { $0.limits.checksPayloadFormat = true }
        let (client, _) = world.connect(with: Connect(version: .v5, clientID: "c"))
        func publish(_ bytes: [UInt8], _ qos: QoS, _ format: UInt8) {
            let properties: Properties = [.payloadFormatIndicator(format)]
            let id: PacketID? = qos == .atMostOnce ? nil : 1
            let publish = Publish(
                topic: "t",
                payload: ByteBuffer(bytes: bytes),
                qos: qos,
                packetID: id,
                properties: properties
            )
            world.send(.publish(publish), from: client)
        }
        publish([0xFF], .atLeastOnce, 0)
        publish([0xC3, 0xA9], .atLeastOnce, 1)
        publish([0xFF], .atLeastOnce, 1)
        publish([0xFF], .exactlyOnce, 1)
        publish([0xFF], .atMostOnce, 1)
        #expect(
            world.take(client) == [
                .pubAck(PubAck(1)), .pubAck(PubAck(1)), .pubAck(PubAck(1, reason: .payloadFormatInvalid)),
                .pubRec(PubRec(1, reason: .payloadFormatInvalid)),
                .disconnect(Disconnect(reason: .payloadFormatInvalid)),
            ]
        )
    }

    // MARK: Enhanced authentication

    /// Goes through the exchange; what the broker says last is left for the caller.
    private func exchange(
        _ world: VirtualBroker,
        _ client: VirtualBroker.Client,
        _ scram: inout SCRAMClient,
        first: Packet
    ) throws -> Packet? {
        world.send(first, from: client)
        guard case .auth(let challenge)? = world.take(client).first else { return nil }
        #expect(challenge.reason == .continueAuthentication)
        #expect(challenge.properties.authenticationMethod == scram.name)
        let answer = try scram.respond(to: challenge.properties.authenticationData ?? [])
        let properties: Properties = [.authenticationMethod(scram.name), .authenticationData(answer)]
        world.send(.auth(Auth(reason: .continueAuthentication, properties: properties)), from: client)
        return world.take(client).first
    }

    @Test(
        "[MQTT-4.12.0-1] SCRAM: AUTH both ways, CONNACK with the server's proof, and again when asked",
        arguments: [SCRAMHash.sha1, .sha256]
    )
    func scram(_ hash: SCRAMHash) throws {
        let world = Self.world()
        let client = world.open(.v5)
        client.answers = false
        var scram = try SCRAMClient(hash, user: "ann", password: "secret", cache: SCRAMKeyCache())
        let first = try #require(try scram.begin())
        let properties: Properties = [.authenticationMethod(scram.name), .authenticationData(first)]
        let connect = Packet.connect(Connect(version: .v5, clientID: "c", properties: properties))
        guard case .connAck(let answer)? = try self.exchange(world, client, &scram, first: connect) else {
            Issue.record("CONNACK expected")
            return
        }
        #expect(answer.code == 0)
        #expect(answer.properties.authenticationMethod == hash.mechanism)
        try scram.finish(answer.properties.authenticationData)

        var again = try SCRAMClient(hash, user: "ann", password: "secret", cache: SCRAMKeyCache())
        let data = try #require(try again.begin())
        let renewal = Auth(
            reason: .reAuthenticate,
            properties: [.authenticationMethod(hash.mechanism), .authenticationData(data)]
        )
        guard case .auth(let done)? = try self.exchange(world, client, &again, first: .auth(renewal)) else {
            Issue.record("AUTH expected")
            return
        }
        #expect(done.reason == .success)
        try again.finish(done.properties.authenticationData)
        world.send(.pingReq, from: client)
        #expect(world.take(client) == [.pingResp])
    }

    @Test("a wrong password ends the exchange: CONNACK 0x87 [MQTT-4.12.0-1], DISCONNECT 0x87 [MQTT-4.12.1-2]")
    func wrongPassword() throws {
        let world = Self.world()
        let client = world.open(.v5)
        var scram = try SCRAMClient(.sha256, user: "ann", password: "wrong", cache: SCRAMKeyCache())
        let first = try #require(try scram.begin())
        let properties: Properties = [.authenticationMethod(scram.name), .authenticationData(first)]
        let connect = Packet.connect(Connect(version: .v5, clientID: "c", properties: properties))
        #expect(try self.exchange(world, client, &scram, first: connect) == .connAck(ConnAck(code: 0x87)))
        #expect(client.isClosed)
        #expect(world.counters.connects == 0)
        #expect(world.counters.connectsRefused == 1)
    }

    struct Wrong: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let packet: Packet
        let code: UInt8
    }

    static let wrong = [
        Wrong(testDescription: "PUBLISH", packet: .publish(Publish(topic: "t")), code: 0x82),
        Wrong(testDescription: "PUBACK", packet: .pubAck(PubAck(1)), code: 0x82),
        Wrong(testDescription: "PUBREC", packet: .pubRec(PubRec(1)), code: 0x82),
        Wrong(
            testDescription: "PUBREC with an error",
            packet: .pubRec(PubRec(1, reason: .unspecifiedError)),
            code: 0x82
        ),
        Wrong(testDescription: "PUBREL", packet: .pubRel(PubRel(1)), code: 0x82),
        Wrong(testDescription: "PUBCOMP", packet: .pubComp(PubComp(1)), code: 0x82),
        Wrong(testDescription: "PINGREQ", packet: .pingReq, code: 0x82),
        Wrong(
            testDescription: "another method [MQTT-4.12.0-5]",
            packet: .auth(
                Auth(
                    reason: .continueAuthentication,
                    properties: [.authenticationMethod("SCRAM-SHA-1"), .authenticationData([1])]
                )
            ),
            code: 0x82
        ),
        Wrong(
            testDescription: "re-authentication before CONNACK",
            packet: .auth(Auth(reason: .reAuthenticate, properties: [.authenticationMethod("SCRAM-SHA-256")])),
            code: 0x82
        ),
    ]

    @Test("[MQTT-3.1.2-30] between CONNECT and CONNACK only AUTH and DISCONNECT are in order", arguments: wrong)
    func between(_ wrong: Wrong) throws {
        let world = Self.world()
        let client = world.open(.v5)
        let properties: Properties = [.authenticationMethod("SCRAM-SHA-256")]
        world.send(.connect(Connect(version: .v5, clientID: "c", properties: properties)), from: client)
        // Without data the client is asked for it.
        #expect(world.take(client) == [.auth(Auth(reason: .continueAuthentication, properties: properties))])
        world.send(wrong.packet, from: client)
        #expect(world.take(client) == [.connAck(ConnAck(code: wrong.code))])
        #expect(client.isClosed)
        #expect(world.counters.acknowledgementsSent.pubrel == 0)
        #expect(world.counters.acknowledgementsSent.pubcomp == 0)
        #expect(world.counters.received.total <= 1)
        #expect(world.counters.expected == CountPerQoS())
    }

    @Test("an exchange that is not gone on with ends, as does one with DISCONNECT; an unknown method is 0x8C")
    func abandoned() {
        let world = Self.world()
        let method: Properties = [.authenticationMethod("SCRAM-SHA-256")]
        let silent = world.open(.v5)
        world.send(.connect(Connect(version: .v5, clientID: "c", properties: method)), from: silent)
        let leaving = world.open(.v5)
        world.send(.connect(Connect(version: .v5, clientID: "d", properties: method)), from: leaving)
        world.send(.disconnect(Disconnect()), from: leaving)
        #expect(leaving.isClosed)
        world.advance(by: .seconds(11))
        #expect(silent.isClosed)
        let (_, answer) = world.connect(
            with: Connect(version: .v5, clientID: "e", properties: [.authenticationMethod("X")])
        )
        #expect(answer.code == 0x8C)
        #expect(world.counters.clientsNow == 0)
    }

    @Test("[MQTT-4.12.0-6] AUTH without a method in CONNECT is a protocol error")
    func uncalledFor() {
        let world = VirtualBroker()
        let client = world.connect("c")
        let properties: Properties = [.authenticationMethod("SCRAM-SHA-256")]
        world.send(.auth(Auth(reason: .reAuthenticate, properties: properties)), from: client)
        #expect(world.take(client) == [.disconnect(Disconnect(reason: .protocolError))])
    }
}
