import MQTT
import MQTTCodec
import NIOCore
import Testing

@Suite("A session, without IO")
struct MQTTSessionTests {
    private let start = NIODeadline.uptimeNanoseconds(1_000_000_000_000)

    private func at(_ milliseconds: Int64) -> NIODeadline { self.start + .milliseconds(milliseconds) }

    private func publish(_ sequence: UInt64, _ qos: QoS = .atLeastOnce, written: Int64 = 0) -> InFlightPublish {
        InFlightPublish(due: self.at(written), written: self.at(written), sequence: sequence, qos: qos)
    }

    private func connect(
        _ session: inout MQTTSession,
        _ connack: ConnAck = ConnAck(),
        at time: Int64 = 0
    )
        -> MQTTSession.ConnAckAction
    {
        _ = session.connect(clientID: "c", username: nil, password: nil, now: self.at(time))
        return session.received(connack, now: self.at(time))
    }

    private func properties(_ properties: Property...) -> Properties { Properties(properties) }

    @Test("behind DISCONNECT nothing is due for a PINGREQ without an answer, and acknowledgements still are")
    func unansweredPingAndDisconnect() {
        let options = SessionOptions(
            version: .v311,
            keepAlive: 5,
            ackTimeout: .seconds(30),
            pingTimeout: .seconds(2)
        )
        var session = MQTTSession(options)
        _ = self.connect(&session)
        #expect(session.timerFired(now: self.at(5_000)) { _ in } == .ping)
        #expect(session.deadline == self.at(7_000))
        session.disconnect()
        #expect(session.deadline == nil)

        _ = self.connect(&session)
        _ = session.publish(self.publish(1))
        session.beginPing(now: self.at(0))
        session.disconnect()
        #expect(session.deadline == self.at(30_000))
    }

    // MARK: CONNECT

    @Test(
        "[MQTT-3.2.2-4] a session of an earlier owner is taken up on request alone",
        arguments: [(ProtocolVersion.v311, true), (.v311, false), (.v5, true), (.v5, false)]
    )
    func takenUp(_ version: ProtocolVersion, _ takesUp: Bool) {
        var session = MQTTSession(SessionOptions(version: version, cleanStart: false, takesUpSession: takesUp))
        let answer = self.connect(&session, ConnAck(sessionPresent: true))
        #expect(answer == (takesUp ? .connected(resumed: true) : .sessionKept))
    }

    @Test(
        "after a clean start of MQTT 5 with an expiry interval the first session of 3.x is clean, and the next one is not",
        arguments: [ProtocolVersion.v31, .v311]
    )
    func olderVersion(_ version: ProtocolVersion) {
        var session = MQTTSession(SessionOptions(version: .v5, cleanStart: true, sessionExpiry: 90))
        #expect(self.connect(&session) == .connected(resumed: false))
        session.disconnect()
        session.adopt(SessionOptions(version: version, cleanStart: false))
        for isClean in [true, false] {
            let connect = session.connect(clientID: "c", username: nil, password: nil, now: self.at(0))
            #expect(connect.cleanStart == isClean)
            // 3.1 has no flag: the client itself must not believe in a session that the server has ended.
            #expect(session.received(ConnAck(), now: self.at(0)) == .connected(resumed: false))
            session.disconnect()
        }
    }

    @Test("CONNECT says what was configured", arguments: [ProtocolVersion.v31, .v311, .v5])
    func connectContent(_ version: ProtocolVersion) {
        let options = SessionOptions(
            version: version,
            cleanStart: false,
            keepAlive: 17,
            sessionExpiry: 90,
            maximumPacketSize: 5_000
        )
        var session = MQTTSession(options)
        let connect = session.connect(clientID: "me", username: "u", password: [1, 2], now: self.start)
        var expected = Connect(
            version: version,
            clientID: "me",
            cleanStart: false,
            keepAlive: 17,
            username: "u",
            password: [1, 2]
        )
        if version == .v5 {
            expected.properties = self.properties(.sessionExpiryInterval(90), .maximumPacketSize(5_000))
        }
        #expect(connect == expected)
        #expect(session.state == .connecting)
    }

    @Test("[MQTT-3.2.2-16] a client without an id keeps the one it was given")
    func assignedClientID() {
        var session = MQTTSession(SessionOptions(version: .v5))
        #expect(session.connect(clientID: "", username: nil, password: nil, now: self.start).clientID == "")
        let connack = ConnAck(properties: self.properties(.assignedClientIdentifier("yours")))
        #expect(session.received(connack, now: self.start) == .connected(resumed: false))
        #expect(session.connect(clientID: "", username: nil, password: nil, now: self.start).clientID == "yours")
        // A plain CONNACK takes nothing away.
        #expect(session.received(ConnAck(), now: self.start) == .connected(resumed: false))
        #expect(session.connect(clientID: "", username: nil, password: nil, now: self.start).clientID == "yours")
    }

    // MARK: CONNACK

    @Test("a refusal says its code", arguments: [(.v311, 5), (.v5, 0x87), (.v31, 2)] as [(ProtocolVersion, UInt8)])
    func refused(_ version: ProtocolVersion, _ code: UInt8) {
        var session = MQTTSession(SessionOptions(version: version))
        #expect(self.connect(&session, ConnAck(code: code)) == .refused(code))
        #expect(session.room == 0)
    }

    @Test(
        "[3.1.1: MQTT-3.1.2-2] a 3.1.1 refusal of version 5 is a refusal with a return code",
        arguments: 1...5 as ClosedRange<UInt8>
    )
    func refusedByVersion3(_ code: UInt8) {
        var session = MQTTSession(SessionOptions(version: .v5))
        #expect(self.connect(&session, .version3(code)) == .refused(code))
        #expect(session.room == 0)
    }

    @Test("[MQTT-3.2.0-2] a second CONNACK is a violation")
    func secondConnack() {
        var session = MQTTSession(SessionOptions(version: .v5))
        #expect(self.connect(&session) == .connected(resumed: false))
        guard case .violation(.protocolError, _) = session.received(ConnAck(), now: self.start) else {
            Issue.record("accepted")
            return
        }
    }

    @Test("[MQTT-3.2.2-4] session present ends the connection of a client that has none", arguments: [true, false])
    func sessionPresent(_ cleanStart: Bool) {
        var session = MQTTSession(SessionOptions(version: .v5, cleanStart: cleanStart))
        switch self.connect(&session, ConnAck(sessionPresent: true)) {
        // The server broke the rule only if a clean start was asked for.
        case .violation(.protocolError, _): #expect(cleanStart)
        case .sessionKept: #expect(!cleanStart)
        default: Issue.record("accepted")
        }
        // Once connected a client that does not start clean has one.
        #expect(self.connect(&session) == .connected(resumed: false))
        session.connectionLost { _, _ in }
        let again = self.connect(&session, ConnAck(sessionPresent: true))
        #expect((again == .connected(resumed: true)) == !cleanStart)
    }

    @Test("the limits are those of the last CONNACK, and the defaults where it is silent (§3.2.2.3)")
    func limits() {
        var session = MQTTSession(SessionOptions(version: .v5, keepAlive: 60))
        let connack = ConnAck(
            properties: self.properties(
                .receiveMaximum(9),
                .maximumQoS(1),
                .retainAvailable(false),
                .maximumPacketSize(400),
                .topicAliasMaximum(3),
                .wildcardSubscriptionAvailable(false),
                .subscriptionIdentifierAvailable(false),
                .sharedSubscriptionAvailable(false),
                .serverKeepAlive(5)
            )
        )
        #expect(self.connect(&session, connack) == .connected(resumed: false))
        var limits = MQTTSession.Limits()
        limits.receiveMaximum = 9
        limits.maximumQoS = .atLeastOnce
        limits.retainAvailable = false
        limits.maximumPacketSize = 400
        limits.topicAliasMaximum = 3
        limits.wildcardAvailable = false
        limits.subscriptionIdentifiersAvailable = false
        limits.sharedAvailable = false
        limits.keepAlive = 5
        #expect(session.limits == limits)
        #expect(session.room == 9)
        session.connectionLost { _, _ in }
        #expect(self.connect(&session) == .connected(resumed: false))
        limits = MQTTSession.Limits()
        limits.keepAlive = 60
        #expect(session.limits == limits)
        #expect(session.room == 16)
    }

    @Test("[MQTT-3.2.2-11] [MQTT-3.2.2-14] [MQTT-3.2.2-15] what is not allowed is refused with the server's reason")
    func refusals() {
        let open = MQTTSession.Limits()
        #expect(open.refusal(ofPublish: .exactlyOnce, retain: true, size: 268_435_460) == nil)
        #expect(open.refusal(of: [Subscription(filter: "$share/g/a/#", qos: .exactlyOnce)], hasIdentifier: true) == nil)
        var limits = MQTTSession.Limits()
        limits.maximumQoS = .atLeastOnce
        limits.retainAvailable = false
        limits.maximumPacketSize = 100
        #expect(limits.refusal(ofPublish: .exactlyOnce, retain: false, size: 10) == .qosNotSupported)
        #expect(limits.refusal(ofPublish: .atLeastOnce, retain: true, size: 10) == .retainNotSupported)
        #expect(limits.refusal(ofPublish: .atMostOnce, retain: false, size: 101) == .packetTooLarge)
        #expect(limits.refusal(ofPublish: .atLeastOnce, retain: false, size: 100) == nil)
        limits.sharedAvailable = false
        limits.wildcardAvailable = false
        limits.subscriptionIdentifiersAvailable = false
        let plain = Subscription(filter: "a/b", qos: .atMostOnce)
        #expect(limits.refusal(of: [plain]) == nil)
        #expect(limits.refusal(of: [plain], hasIdentifier: true) == .subscriptionIdentifiersNotSupported)
        #expect(
            limits.refusal(of: [plain, Subscription(filter: "$share/g/a", qos: .atMostOnce)])
                == .sharedSubscriptionsNotSupported
        )
        for filter in ["#", "a/+/b", "+"] {
            #expect(
                limits.refusal(of: [plain, Subscription(filter: filter, qos: .atMostOnce)])
                    == .wildcardSubscriptionsNotSupported
            )
        }
    }

    @Test(
        "[MQTT-3.3.4-7] the window is the smaller of the plan's and the server's",
        arguments: [(16, 20), (16, 3), (65_535, 65_535)]
    )
    func receiveMaximum(_ window: Int, _ maximum: Int) {
        var session = MQTTSession(SessionOptions(version: .v5, window: window))
        let connack = ConnAck(properties: self.properties(.receiveMaximum(UInt16(maximum))))
        #expect(self.connect(&session, connack) == .connected(resumed: false))
        #expect(session.room == min(window, maximum))
    }

    @Test("there is no room before CONNACK, after DISCONNECT or without a connection")
    func room() {
        var session = MQTTSession(SessionOptions(version: .v311))
        #expect(session.room == 0)
        #expect(session.subscribe(1) == nil)
        _ = session.connect(clientID: "c", username: nil, password: nil, now: self.start)
        #expect(session.room == 0)
        #expect(session.received(ConnAck(), now: self.start) == .connected(resumed: false))
        #expect(session.room == 16)
        #expect(session.subscribe(1) == 1)
        session.disconnect()
        #expect(session.room == 0)
        #expect(session.unsubscribe(1) == nil)
        session.connectionLost { _, _ in }
        #expect(session.room == 0)
    }

    // MARK: Requests

    @Test(
        "[MQTT-3.8.4-6] SUBACK has a code for each filter; UNSUBACK from 5.0 on",
        arguments: [ProtocolVersion.v311, .v5]
    )
    func answers(_ version: ProtocolVersion) throws {
        var session = MQTTSession(SessionOptions(version: version))
        #expect(self.connect(&session) == .connected(resumed: false))
        let subscribe = session.subscribe(2)
        let first = try #require(subscribe)
        #expect(session.received(SubAck(first, codes: [0])) == .mismatch)
        #expect(session.received(SubAck(first, codes: [0, 0x80])) == .answered)
        #expect(session.received(SubAck(first, codes: [0, 0x80])) == .unknown)
        let unsubscribe = session.unsubscribe(2)
        let second = try #require(unsubscribe)
        #expect(session.received(SubAck(second, codes: [0, 0])) == .mismatch)
        let codes: [UInt8] = version == .v5 ? [0, 17] : []
        if version == .v5 { #expect(session.received(UnsubAck(second, codes: [0])) == .mismatch) }
        #expect(session.received(UnsubAck(second, codes: codes)) == .answered)
    }

    // MARK: Time

    @Test("[MQTT-3.1.2-20] a ping is due when nothing was sent, or nothing received, for the keep-alive")
    func keepAlive() {
        var session = MQTTSession(SessionOptions(version: .v311, keepAlive: 10, pingTimeout: .seconds(4)))
        #expect(session.deadline == nil)
        #expect(self.connect(&session) == .connected(resumed: false))
        #expect(session.deadline == self.at(10_000))
        session.sent(now: self.at(3_000))
        #expect(session.deadline == self.at(10_000))
        session.received(now: self.at(4_000))
        #expect(session.deadline == self.at(13_000))
        #expect(session.timerFired(now: self.at(12_999)) { _ in } == .none)
        #expect(session.timerFired(now: self.at(13_000)) { _ in } == .ping)
        session.sent(now: self.at(13_000))
        #expect(session.deadline == self.at(17_000))
        #expect(session.timerFired(now: self.at(16_999)) { _ in } == .none)
        #expect(session.pingAnswered(now: self.at(13_500)) == .milliseconds(500))
        #expect(session.pingAnswered(now: self.at(13_600)) == nil)
        session.received(now: self.at(13_500))
        #expect(session.deadline == self.at(23_000))
    }

    @Test("without a PINGRESP in time the connection is dead", arguments: [(10, 4_000), (2, 2_000), (0, 4_000)])
    func pingTimeout(_ keepAlive: Int, _ wait: Int64) {
        let options = SessionOptions(version: .v5, keepAlive: UInt16(keepAlive), pingTimeout: .seconds(4))
        var session = MQTTSession(options)
        #expect(self.connect(&session) == .connected(resumed: false))
        if keepAlive == 0 { #expect(session.deadline == nil) }
        session.beginPing(now: self.at(100))
        #expect(session.deadline == self.at(100 + wait))
        #expect(session.timerFired(now: self.at(99 + wait)) { _ in } == .none)
        #expect(session.timerFired(now: self.at(100 + wait)) { _ in } == .pingTimedOut)
    }

    @Test("[MQTT-3.2.2-21] [MQTT-3.1.2-21] the server's keep-alive is the one that counts")
    func serverKeepAlive() {
        var session = MQTTSession(SessionOptions(version: .v5, keepAlive: 300))
        #expect(
            self.connect(&session, ConnAck(properties: self.properties(.serverKeepAlive(2))))
                == .connected(resumed: false)
        )
        #expect(session.deadline == self.at(2_000))
    }

    @Test("an acknowledgement is overdue after its timeout, counted from the write")
    func ackTimeout() {
        var session = MQTTSession(SessionOptions(version: .v5, keepAlive: 0, ackTimeout: .seconds(1)))
        #expect(self.connect(&session) == .connected(resumed: false))
        let first = self.publish(0, written: 100)
        let second = self.publish(1, .exactlyOnce, written: 700)
        _ = session.publish(first)
        _ = session.publish(second)
        #expect(session.deadline == self.at(1_100))
        var expired: [InFlightPublish] = []
        #expect(session.timerFired(now: self.at(1_099)) { expired.append($0) } == .none)
        #expect(expired.isEmpty)
        #expect(session.timerFired(now: self.at(1_100)) { expired.append($0) } == .none)
        #expect(expired == [first])
        #expect(session.deadline == self.at(1_700))
        // In the drain too.
        session.disconnect()
        #expect(session.timerFired(now: self.at(1_700)) { expired.append($0) } == .none)
        #expect(expired == [first, second])
        #expect(session.deadline == nil)
    }

    // MARK: Losing and resuming

    @Test("with a clean start a lost connection takes its flows with it")
    func lostClean() {
        var session = MQTTSession(SessionOptions(version: .v5, ackTimeout: .seconds(1)))
        #expect(self.connect(&session) == .connected(resumed: false))
        _ = session.publish(self.publish(0))
        _ = session.publish(self.publish(1, written: 500))
        _ = session.timerFired(now: self.at(1_000)) { _ in }
        #expect(session.receivedPublish(.exactlyOnce, id: 4) == .deliverAndRecord)
        var lost: [UInt64: Bool] = [:]
        session.connectionLost { lost[$0.sequence] = $1 }
        #expect(lost == [0: true, 1: false])
        #expect(self.connect(&session) == .connected(resumed: false))
        #expect(session.room == 16)
        #expect(session.receivedPublish(.exactlyOnce, id: 4) == .deliverAndRecord)
    }

    @Test(
        "[MQTT-3.2.2-5] without one they wait for the next CONNACK: sent again if the session is there, else lost",
        arguments: [true, false]
    )
    func lostKept(_ isPresent: Bool) {
        var session = MQTTSession(SessionOptions(version: .v311, cleanStart: false))
        #expect(self.connect(&session) == .connected(resumed: false))
        let ids = (0..<3).map { session.publish(self.publish($0, .exactlyOnce)) }
        _ = session.received(.pubRec, id: ids[1], reason: 0)
        #expect(session.receivedPublish(.exactlyOnce, id: 4) == .deliverAndRecord)
        session.connectionLost { _, _ in Issue.record("told of too early") }
        let action = self.connect(&session, ConnAck(sessionPresent: isPresent), at: 5_000)
        #expect(action == .connected(resumed: isPresent))
        if isPresent {
            var again: [(UInt16, UInt64, Bool)] = []
            session.resume(now: self.at(5_000)) { again.append(($0, $1.sequence, $2)) }
            #expect(again.map(\.0) == ids)
            #expect(again.map(\.1) == [0, 1, 2])
            #expect(again.map(\.2) == [false, true, false])
            #expect(session.room == 13)
            #expect(session.deadline == self.at(35_000))
            // The server sends its own again too: delivered before.
            #expect(session.receivedPublish(.exactlyOnce, id: 4) == .recordAgain)
        } else {
            var lost: [UInt64] = []
            session.discardState { publish, _ in lost.append(publish.sequence) }
            #expect(lost.sorted() == [0, 1, 2])
            #expect(session.room == 16)
            #expect(session.receivedPublish(.exactlyOnce, id: 4) == .deliverAndRecord)
        }
    }

    // MARK: Receiving

    @Test("[MQTT-4.3.3-10] [MQTT-4.3.3-11] QoS 2 is delivered once, and PUBREL always answered")
    func exactlyOnce() {
        var session = MQTTSession(SessionOptions(version: .v5))
        #expect(self.connect(&session) == .connected(resumed: false))
        #expect(session.receivedPublish(.atMostOnce, id: 0) == .deliver)
        #expect(session.receivedPublish(.atLeastOnce, id: 1) == .deliverAndAcknowledge)
        #expect(session.receivedPublish(.atLeastOnce, id: 1) == .deliverAndAcknowledge)
        #expect(session.receivedPublish(.exactlyOnce, id: 1) == .deliverAndRecord)
        #expect(session.receivedPublish(.exactlyOnce, id: 1) == .recordAgain)
        #expect(session.receivedPubRel(id: 1) == .success)
        #expect(session.receivedPubRel(id: 1) == .packetIdentifierNotFound)
        #expect(session.receivedPublish(.exactlyOnce, id: 1) == .deliverAndRecord)
    }
}
