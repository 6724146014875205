import MQTT
import MQTTCodec
import NIOCore
import NIOEmbedded
import SASL
import TestSupport
import Testing

@Suite("Hostile servers end in the right error, within the deadline")
struct HostileServerTests {
    static let versions: [ProtocolVersion] = [.v31, .v311, .v5]

    @Test("a server that never answers is left at the deadline", arguments: Self.versions)
    func neverAnswers(_ version: ProtocolVersion) throws {
        let rig = try ConnectionRig(version)
        rig.start(within: .seconds(3))
        #expect(rig.observer.timer == rig.now + .seconds(3))
        rig.advance(.seconds(3))
        rig.connection.timerFired(now: rig.now)
        #expect(rig.observer.end == .connackTimedOut)
        #expect(!rig.channel.isActive)
    }

    @Test("a CONNACK that trickles in is not waited for any longer", arguments: Self.versions)
    func trickles(_ version: ProtocolVersion) throws {
        let rig = try ConnectionRig(version)
        rig.start(within: .seconds(3))
        for byte in wire(.connAck(ConnAck()), version: version).dropLast() {
            rig.advance(.milliseconds(700))
            try rig.receive([byte])
            rig.connection.timerFired(now: rig.now)
        }
        rig.advance(.seconds(3))
        rig.connection.timerFired(now: rig.now)
        #expect(rig.observer.calls == [.ending(unsent: 0), .ended(.connackTimedOut)])
    }

    @Test("a server that goes on challenging is left at the deadline")
    func challengesForEver() throws {
        struct Patient: SASLMechanism {
            let name = "X"
            mutating func begin() throws(SASLError) -> [UInt8]? { nil }
            mutating func respond(to challenge: [UInt8]) throws(SASLError) -> [UInt8] { challenge }
            mutating func finish(_ data: [UInt8]?) throws(SASLError) {}
        }
        let rig = try ConnectionRig(.v5)
        rig.start(within: .seconds(3), authenticator: MQTTAuthenticator { Patient() })
        for _ in 0..<6 {
            rig.advance(.milliseconds(500))
            try rig.receive(.auth(Auth(reason: .continueAuthentication, properties: [.authenticationMethod("X")])))
            rig.connection.timerFired(now: rig.now)
        }
        #expect(rig.observer.end == .connackTimedOut)
    }

    @Test("bytes that trickle in keep no dead server alive: PINGRESP has its own time")
    func tricklesPing() throws {
        let rig = try ConnectionRig(SessionOptions(version: .v311, keepAlive: 5, pingTimeout: .seconds(2)))
        try rig.connect()
        rig.advance(.seconds(5))
        rig.connection.timerFired(now: rig.now)
        // A PUBLISH that never comes to its end.
        try rig.receive([0x30, 0x7F])
        for _ in 0..<4 {
            rig.advance(.milliseconds(500))
            try rig.receive([0])
            rig.connection.timerFired(now: rig.now)
        }
        #expect(rig.observer.end == .pingTimedOut)
    }

    @Test("a dead server is found however often the client pings: the time of the first unanswered PINGREQ counts")
    func pingsOften() throws {
        let rig = try ConnectionRig(SessionOptions(version: .v311, keepAlive: 60, pingTimeout: .seconds(2)))
        try rig.connect()
        for _ in 0..<2 {
            #expect(rig.observer.end == nil)
            rig.connection.ping()
            rig.advance(.seconds(1))
            rig.connection.timerFired(now: rig.now)
        }
        #expect(rig.observer.end == .pingTimedOut)
    }

    @Test(
        "a length beyond the limit is refused with its first bytes, before anything is kept",
        arguments: [
            (.v311, "30 FFFFFF7F", .packetTooLarge(size: 268_435_460)),
            (.v5, "30 FFFFFF7F", .packetTooLarge(size: 268_435_460)),
            (.v5, "30 FFFFFFFF", .remainingLengthTooLong), (.v311, "30 FFFFFFFF", .remainingLengthTooLong),
            (.v5, "30 8000", .remainingLengthNotMinimal),
        ] as [(ProtocolVersion, String, DecodeError)]
    )
    func oversize(_ version: ProtocolVersion, _ bytes: String, _ error: DecodeError) throws {
        let rig = try ConnectionRig(SessionOptions(version: version, maximumPacketSize: 1_000))
        try rig.connect()
        try rig.receive(hex(bytes))
        #expect(rig.observer.end == .malformed(error))
        let reason = error == .remainingLengthTooLong || error == .remainingLengthNotMinimal ? "81" : "95"
        #expect(try rig.sent() == (version == .v5 ? [hex("E002 \(reason) 00")] : []))
    }

    @Test(
        "[3.1.1: MQTT-3.1.2-2] a 3.1.1 refusal of version 5 ends as a refusal, and nothing is sent",
        arguments: 1...5 as ClosedRange<UInt8>
    )
    func refusedByVersion3(_ code: UInt8) throws {
        for (head, tail) in [0x20, 2, 0, code].everyCut {
            let rig = try ConnectionRig(.v5)
            rig.start()
            _ = try rig.sent()
            try rig.receive(head)
            try rig.receive(tail)
            #expect(rig.observer.end == .refused(.version3(code)))
            #expect(try rig.sent() == [])
        }
    }

    @Test(
        "[3.1.1: MQTT-3.1.2-2] no other CONNACK of two bytes is taken in version 5",
        arguments: [(0, 0), (0, 6), (1, 1), (0, 0x84)] as [(UInt8, UInt8)]
    )
    func otherShortConnack(_ flags: UInt8, _ code: UInt8) throws {
        let rig = try ConnectionRig(.v5)
        rig.start()
        try rig.receive([0x20, 2, flags, code])
        guard case .malformed = rig.observer.end else {
            Issue.record("\(rig.observer.end as Any)")
            return
        }
    }

    @Test("an oversize CONNACK is refused too")
    func oversizeConnack() throws {
        let rig = try ConnectionRig(SessionOptions(version: .v5, maximumPacketSize: 100))
        rig.start()
        try rig.receive(hex("20 FFFF7F"))
        #expect(rig.observer.end == .malformed(.packetTooLarge(size: 2_097_155)))
    }

    @Test("[MQTT-3.2.0-2] a second CONNACK ends it with 0x82", arguments: Self.versions)
    func secondConnack(_ version: ProtocolVersion) throws {
        let rig = try ConnectionRig(version)
        try rig.connect()
        try rig.receive(.connAck(ConnAck()), publish("late"))
        #expect(rig.observer.end == .violation(.protocolError, "a second CONNACK"))
        #expect(rig.observer.messages.isEmpty)
    }

    @Test("wrong acknowledgements: unknown ones are passed over, of another flow they end it", arguments: Self.versions)
    func wrongAcknowledgements(_ version: ProtocolVersion) throws {
        let rig = try ConnectionRig(version)
        try rig.connect()
        _ = rig.begin(1, qos: .atLeastOnce)
        try rig.receive(
            .pubAck(PubAck(2)),
            .pubComp(PubComp(2)),
            .subAck(SubAck(7, codes: [0])),
            .unsubAck(UnsubAck(7, codes: version == .v5 ? [0] : [])),
            .pingResp
        )
        #expect(rig.channel.isActive)
        #expect(rig.observer.calls.count == 1)
        try rig.receive(.pubRec(PubRec(1)))
        #expect(rig.observer.end == .violation(.protocolError, "PUBREC for a publish of another QoS (§4.3)"))
    }

    @Test("a take-over says that it is one ([MQTT-3.1.4-3])")
    func takeOver() throws {
        let rig = try ConnectionRig(.v5)
        try rig.connect()
        _ = rig.begin(1, qos: .atLeastOnce)
        let goodbye = Disconnect(reason: .sessionTakenOver)
        try rig.receive(.disconnect(goodbye))
        #expect(
            rig.observer.calls.dropFirst() == [
                .ending(unsent: 0), .abandoned(1, .connectionLost(timedOutBefore: false)),
                .ended(.disconnected(goodbye)),
            ]
        )
    }

    @Test("a redirect keeps its server reference and its words (§4.11)", arguments: [0x9C, 0x9D] as [UInt8])
    func redirect(_ code: UInt8) throws {
        let says: Properties = [.serverReference("other:1883"), .reasonString("move"), .userProperty("a", "b")]
        let connack = ConnAck(code: code, properties: says)
        let refused = try ConnectionRig(.v5)
        try refused.connect(connack)
        #expect(refused.observer.end == .refused(connack))
        let rig = try ConnectionRig(.v5)
        try rig.connect()
        let goodbye = Disconnect(reason: try #require(ReasonCode(rawValue: code)), properties: says)
        try rig.receive(.disconnect(goodbye))
        #expect(rig.observer.end == .disconnected(goodbye))
    }

    @Test("what CONNACK says beside its code reaches the owner (§3.2.2.3)")
    func connackProperties() throws {
        let connack = ConnAck(
            properties: [
                .responseInformation("re/"), .reasonString("hello"), .userProperty("a", "1"), .userProperty("a", "2"),
                .assignedClientIdentifier("you"),
            ]
        )
        let rig = try ConnectionRig(.v5)
        try rig.connect(connack)
        #expect(rig.observer.connack == connack)
    }

    @Test("the server's keep-alive is kept in place of the client's ([MQTT-3.2.2-21])", arguments: [0, 7] as [UInt16])
    func serverKeepAlive(_ seconds: UInt16) throws {
        let rig = try ConnectionRig(SessionOptions(version: .v5, keepAlive: 60))
        try rig.connect(ConnAck(properties: [.serverKeepAlive(seconds)]))
        rig.advance(.seconds(7))
        rig.connection.timerFired(now: rig.now)
        #expect(try rig.sent() == (seconds == 7 ? [hex("C000")] : []))
    }
}
