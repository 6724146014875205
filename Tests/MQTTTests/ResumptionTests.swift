import MQTT
import MQTTCodec
import NIOCore
import NIOEmbedded
import TestSupport
import Testing

@Suite("Sessions that outlive a connection")
struct ResumptionTests {
    private func flow(_ sequence: UInt64, _ qos: QoS) -> InFlightPublish {
        let time = NIODeadline.uptimeNanoseconds(1)
        return InFlightPublish(due: time, written: time, sequence: sequence, qos: qos)
    }

    private func resends(_ rig: ConnectionRig) -> [RecordingObserver.Call] {
        rig.observer.calls.filter { if case .resend = $0 { true } else { false } }
    }

    // MARK: From a store

    @Test("[MQTT-4.4.0-1] what a store kept goes out again under its identifiers, in its order")
    func restore() throws {
        let rig = try ConnectionRig(SessionOptions(version: .v5, cleanStart: false, sessionExpiry: 100))
        // In the order of the store, not of the identifiers, and in one slot of a ring of 16 two of them.
        rig.session.pointee.restore(
            outbound: [
                (65_535, self.flow(1, .exactlyOnce), true), (1, self.flow(2, .atLeastOnce), false),
                (17, self.flow(3, .exactlyOnce), false),
            ],
            inbound: [5, 21]
        )
        try rig.connect(ConnAck(sessionPresent: true))
        #expect(rig.observer.calls == [.resend(id: 1, 2), .resend(id: 17, 3), .connected(resumed: true)])
        #expect(try rig.sent() == [hex("6202 FFFF")])
        // A message that was recorded is not delivered again.
        try rig.receive(publish("a", qos: .exactlyOnce, id: 21, dup: true), publish("a", qos: .exactlyOnce, id: 6))
        #expect(rig.observer.messages.count == 1)
        // No identifier is given twice.
        let taken = (0..<5).map { rig.begin(UInt64(10 + $0), qos: .atLeastOnce) }
        #expect(Set(taken + [65_535, 1, 17]).count == 8)
        try rig.receive(.pubComp(PubComp(65_535)), .pubAck(PubAck(1)))
        #expect(
            rig.observer.calls.suffix(2) == [
                .acknowledged(.pubComp, reason: 0, sequence: 1, finished: true, timedOut: false),
                .acknowledged(.pubAck, reason: 0, sequence: 2, finished: true, timedOut: false),
            ]
        )
    }

    @Test("[MQTT-3.2.2-5] without a session on the server's side a store's messages are reported, and dropped")
    func restoreInVain() throws {
        let rig = try ConnectionRig(SessionOptions(version: .v5, cleanStart: false))
        rig.session.pointee.restore(outbound: [(7, self.flow(1, .exactlyOnce), false)], inbound: [5])
        try rig.connect()
        #expect(
            rig.observer.calls == [
                .abandoned(1, .connectionLost(timedOutBefore: false)), .connected(resumed: false),
            ]
        )
        try rig.receive(publish("a", qos: .exactlyOnce, id: 5))
        #expect(rig.observer.messages.count == 1)
    }

    @Test(
        "[MQTT-3.1.2-4] a clean start ends what a store kept: nothing goes out again, nothing is taken for a repetition",
        arguments: ProtocolVersion.allCases
    )
    func restoreCleanly(_ version: ProtocolVersion) throws {
        let rig = try ConnectionRig(SessionOptions(version: version))
        rig.session.pointee.restore(
            outbound: [(7, self.flow(1, .atLeastOnce), false), (8, self.flow(2, .exactlyOnce), true)],
            inbound: [5]
        )
        try rig.connect()
        let lost = [1, 2].map { RecordingObserver.Call.abandoned($0, .connectionLost(timedOutBefore: false)) }
        #expect(rig.observer.calls == lost + [.connected(resumed: false)])
        #expect(try rig.sent().isEmpty)
        try rig.receive(publish("a", qos: .exactlyOnce, id: 5))
        #expect(rig.observer.messages.count == 1)
    }

    @Test("all 65,535 identifiers can be restored")
    func restoreAll() throws {
        let options = SessionOptions(version: .v311, cleanStart: false, window: 65_535)
        let rig = try ConnectionRig(options)
        let all = (1...65_535 as ClosedRange<UInt16>).map { ($0, self.flow(UInt64($0), .atLeastOnce), false) }
        rig.session.pointee.restore(outbound: all.shuffled(), inbound: Array(1...65_535))
        #expect(rig.session.pointee.window.inFlight == 65_535)
        #expect(rig.session.pointee.inboundCount == 65_535)
        try rig.connect(ConnAck(sessionPresent: true))
        #expect(self.resends(rig).count == 65_535)
        #expect(rig.connection.subscribe([Subscription(filter: "a")]) == nil)
    }

    // MARK: Releases that wait

    @Test("PUBREL waits until the owner has written down that PUBREC came", arguments: [ProtocolVersion.v311, .v5])
    func defersReleases(_ version: ProtocolVersion) throws {
        let rig = try ConnectionRig(SessionOptions(version: version, defersReleases: true))
        try rig.connect()
        let id = rig.begin(8, qos: .exactlyOnce)
        #expect(!rig.connection.release(id))
        try rig.receive(.pubRec(PubRec(1)), .pubRec(PubRec(1)))
        #expect(
            rig.observer.calls.dropFirst() == [
                .acknowledged(.pubRec, reason: 0, sequence: 8, finished: false, timedOut: false)
            ]
        )
        #expect(try rig.sent().isEmpty)
        #expect(rig.connection.release(id))
        #expect(!rig.connection.release(id))
        try rig.receive(.pubRec(PubRec(1)))
        #expect(try rig.sent() == [hex("6202 0001"), hex("6202 0001")])
        try rig.receive(.pubComp(PubComp(1)))
        #expect(rig.session.pointee.window.inFlight == 0)
    }

    @Test("messages released without a connection go out with the next one; unreleased messages wait")
    func releasesMeanwhile() throws {
        let rig = try ConnectionRig(SessionOptions(version: .v5, cleanStart: false, defersReleases: true))
        try rig.connect()
        for sequence in 1...3 as ClosedRange<UInt64> { _ = rig.begin(sequence, qos: .exactlyOnce) }
        try rig.receive(.pubRec(PubRec(1)), .pubRec(PubRec(2)))
        rig.connection.abort()
        #expect(!rig.connection.release(1))
        let next = try rig.again()
        try next.connect(ConnAck(sessionPresent: true))
        #expect(next.observer.calls == [.resend(id: 3, 3), .connected(resumed: true)])
        #expect(try next.sent() == [hex("6202 0001")])
        #expect(next.connection.release(2))
        #expect(try next.sent() == [hex("6202 0002")])
    }

    @Test("PUBCOMP for a flow whose PUBREL is still here is a protocol error")
    func pubCompTooEarly() throws {
        let rig = try ConnectionRig(SessionOptions(version: .v5, defersReleases: true))
        try rig.connect()
        _ = rig.begin(1, qos: .exactlyOnce)
        try rig.receive(.pubRec(PubRec(1)), .pubComp(PubComp(1)))
        guard case .violation(.protocolError, _) = rig.observer.end else {
            Issue.record("\(rig.observer.calls)")
            return
        }
    }

    // MARK: The receive maximum

    @Test("[MQTT-3.3.4-7] a resumed session sends no more again than the new receive maximum lets it")
    func receiveMaximum() throws {
        let rig = try ConnectionRig(SessionOptions(version: .v5, cleanStart: false))
        try rig.connect()
        for sequence in 1...5 as ClosedRange<UInt64> {
            _ = rig.begin(sequence, qos: sequence == 3 ? .exactlyOnce : .atLeastOnce)
        }
        rig.connection.abort()
        let next = try rig.again()
        try next.connect(ConnAck(sessionPresent: true, properties: [.receiveMaximum(2)]))
        #expect(self.resends(next) == [.resend(id: 1, 1), .resend(id: 2, 2)])
        #expect(next.session.pointee.room == 0)
        try next.receive(.pubAck(PubAck(2)))
        #expect(self.resends(next).last == .resend(id: 3, 3))
        // PUBREC frees no place, PUBCOMP does.
        try next.receive(.pubRec(PubRec(3)))
        #expect(self.resends(next).count == 3)
        try next.receive(.pubComp(PubComp(3)), .pubAck(PubAck(1)))
        #expect(self.resends(next).suffix(2) == [.resend(id: 4, 4), .resend(id: 5, 5)])
        try next.receive(.pubAck(PubAck(4)), .pubAck(PubAck(5)))
        #expect(next.session.pointee.room == 2)
        #expect(next.session.pointee.window.heldBack == 0)
    }

    // MARK: Whose session it is

    @Test(
        "[MQTT-3.2.2-4] session present ends the connection of a client that kept nothing, or wants none",
        arguments: [(true, false), (true, true), (false, false)]
    )
    func presentWithoutState(_ cleanStart: Bool, _ isRestored: Bool) throws {
        let rig = try ConnectionRig(SessionOptions(version: .v311, cleanStart: cleanStart))
        if isRestored { rig.session.pointee.restore(outbound: [(7, self.flow(1, .atLeastOnce), false)], inbound: []) }
        try rig.connect(ConnAck(sessionPresent: true))
        guard cleanStart else { return #expect(rig.observer.end == .sessionKept) }
        guard case .violation(.protocolError, _) = rig.observer.end else {
            Issue.record("\(rig.observer.calls)")
            return
        }
    }

    @Test("3.1 has no session present: who kept a session goes on with it")
    func resumesIn31() throws {
        let rig = try ConnectionRig(SessionOptions(version: .v31, cleanStart: false))
        try rig.connect()
        #expect(rig.observer.calls == [.connected(resumed: false)])
        _ = rig.begin(1, qos: .atLeastOnce)
        rig.connection.abort()
        let next = try rig.again()
        try next.connect()
        #expect(next.observer.calls == [.resend(id: 1, 1), .connected(resumed: true)])
    }

    @Test(
        "the session expiry in force is the server's, if it says one (§3.2.2.3.2)",
        arguments: [
            (.v5, true, nil, nil, 0), (.v5, false, 60, nil, 60), (.v5, false, 60, 10, 10), (.v5, false, nil, 5, 5),
            (.v311, true, nil, nil, 0), (.v31, false, nil, nil, .max),
        ] as [(ProtocolVersion, Bool, UInt32?, UInt32?, UInt32)]
    )
    func expiry(
        _ version: ProtocolVersion,
        _ clean: Bool,
        _ asked: UInt32?,
        _ told: UInt32?,
        _ inForce: UInt32
    ) throws {
        let rig = try ConnectionRig(SessionOptions(version: version, cleanStart: clean, sessionExpiry: asked))
        try rig.connect(ConnAck(properties: Properties(told.map { [.sessionExpiryInterval($0)] } ?? [])))
        #expect(rig.session.pointee.limits.sessionExpiry == inForce)
    }

    @Test("a DISCONNECT that ends the session ends its flows too (§3.14.2.2.2)")
    func goodbyeEndsSession() throws {
        let rig = try ConnectionRig(SessionOptions(version: .v5, cleanStart: false, sessionExpiry: 60))
        try rig.connect()
        _ = rig.begin(1, qos: .atLeastOnce)
        let goodbye = Disconnect(properties: [.sessionExpiryInterval(0), .userProperty("a", "b")])
        rig.connection.finish(goodbye)
        #expect(try rig.sent() == [wire(.disconnect(goodbye))])
        rig.channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
        #expect(rig.observer.calls.contains(.abandoned(1, .connectionLost(timedOutBefore: false))))
    }

    @Test("a session that ends with its owner begins clean, lasts over a loss, and ends at the server (§3.14.2.2.2)")
    func endsWithOwner() throws {
        let rig = try ConnectionRig(
            SessionOptions(version: .v5, cleanStart: false, sessionExpiry: 60, sessionEndsWithOwner: true)
        )
        func connect(_ rig: ConnectionRig) -> Connect {
            rig.session.pointee.connect(clientID: "c", username: nil, password: nil, now: rig.now)
        }
        #expect(connect(rig).cleanStart)
        try rig.connect()
        _ = rig.begin(1, qos: .atLeastOnce)
        rig.connection.abort()
        let next = try rig.again()
        #expect(!connect(next).cleanStart)
        try next.connect(ConnAck(sessionPresent: true))
        #expect(next.observer.calls == [.resend(id: 1, 1), .connected(resumed: true)])
        next.connection.finishForGood()
        #expect(try next.sent().last == wire(.disconnect(Disconnect(properties: [.sessionExpiryInterval(0)]))))
    }

    @Test(
        "other sessions end by an empty DISCONNECT",
        arguments: [
            SessionOptions(version: .v5, cleanStart: false, sessionExpiry: 60),
            SessionOptions(version: .v5, cleanStart: false, sessionEndsWithOwner: true),
            SessionOptions(version: .v311, cleanStart: false, sessionEndsWithOwner: true),
        ]
    )
    func outlivesOwner(_ options: SessionOptions) throws {
        let rig = try ConnectionRig(options)
        #expect(
            rig.session.pointee.connect(clientID: "c", username: nil, password: nil, now: rig.now).cleanStart
                == options.sessionEndsWithOwner
        )
        try rig.connect()
        rig.connection.finishForGood()
        #expect(try rig.sent() == [wire(.disconnect(Disconnect()), version: options.version)])
    }

    // MARK: Again on a connection that stands

    @Test("[MQTT-4.4.0-1] MQTT 5 never sends again on a connection that stands")
    func neverInVersion5() throws {
        let rig = try ConnectionRig(SessionOptions(version: .v5, keepAlive: 0, dupTimeout: .seconds(20)))
        try rig.connect()
        _ = rig.begin(1, qos: .atLeastOnce)
        rig.advance(.minutes(10))
        rig.connection.timerFired(now: rig.now)
        #expect(self.resends(rig).isEmpty)
        #expect(try rig.sent().isEmpty)
    }

    @Test("before it dupTimeout sends again, PUBREL too; 3.1 marks it", arguments: [ProtocolVersion.v31, .v311])
    func again(_ version: ProtocolVersion) throws {
        let options = SessionOptions(version: version, keepAlive: 0, dupTimeout: .seconds(20))
        let rig = try ConnectionRig(options)
        try rig.connect()
        rig.observer.onResend = { [unowned rig] id, flow in
            rig.connection.write(publish("t", qos: flow.qos, id: PacketID(rawValue: id), dup: true))
        }
        _ = rig.begin(1, qos: .exactlyOnce)
        rig.advance(.seconds(5))
        _ = rig.begin(2, qos: .atLeastOnce)
        try rig.receive(.pubRec(PubRec(1)))
        _ = try rig.sent()
        rig.advance(.seconds(14))
        rig.connection.timerFired(now: rig.now)
        #expect(try rig.sent().isEmpty)
        let pubRel = version == .v31 ? hex("6A02 0001") : hex("6202 0001")
        let again = wire(publish("t", qos: .atLeastOnce, id: 2, dup: true), version: version)
        var sent: [[UInt8]] = []
        // Each at its own 20 s, 40 s and 60 s.
        for _ in 0..<60 {
            rig.advance(.seconds(1))
            rig.connection.timerFired(now: rig.now)
            sent += try rig.sent()
        }
        #expect(sent == [pubRel, again, pubRel, again, pubRel, again])
        try rig.receive(.pubComp(PubComp(1)), .pubAck(PubAck(2)))
        rig.advance(.minutes(5))
        rig.connection.timerFired(now: rig.now)
        #expect(try rig.sent().isEmpty)
    }

    @Test("the timer that is asked for is the one that is needed")
    func timers() throws {
        let rig = try ConnectionRig(SessionOptions(version: .v311, keepAlive: 0, dupTimeout: .seconds(20)))
        try rig.connect()
        rig.advance(.hours(1))
        let start = rig.now
        _ = rig.begin(1, qos: .atLeastOnce)
        #expect(rig.session.pointee.deadline == start + .seconds(20))
        rig.advance(.seconds(20))
        rig.connection.timerFired(now: rig.now)
        #expect(self.resends(rig).count == 1)
        #expect(rig.session.pointee.deadline == start + .seconds(30))
        rig.advance(.seconds(10))
        rig.connection.timerFired(now: rig.now)
        #expect(rig.observer.calls.last == .abandoned(1, .timedOut))
        #expect(rig.session.pointee.deadline == start + .seconds(40))
    }
}
