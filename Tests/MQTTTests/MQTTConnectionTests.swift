import LoopContext
import MQTT
import MQTTCodec
import NIOCore
import NIOEmbedded
import TestSupport
import Testing
import Transport

@Suite("A connection on a channel")
struct MQTTConnectionTests {
    static let versions: [ProtocolVersion] = [.v31, .v311, .v5]

    // MARK: Coming up

    @Test("[MQTT-3.1.0-1] CONNECT is the first packet, and CONNACK brings the connection up", arguments: versions)
    func connects(_ version: ProtocolVersion) throws {
        let rig = try ConnectionRig(version)
        rig.start(within: .seconds(3))
        let connect = Connect(
            version: version,
            clientID: "c",
            cleanStart: true,
            keepAlive: 300,
            username: nil,
            password: nil
        )
        #expect(try rig.sent() == [wire(.connect(connect), version: version)])
        #expect(rig.observer.timer == rig.now + .seconds(3))
        #expect(rig.observer.calls.isEmpty)
        try rig.receive(.connAck(ConnAck()))
        #expect(rig.observer.calls == [.connected(resumed: false)])
        #expect(try rig.sent().isEmpty)
    }

    @Test(
        "a refusal ends the connection with its code",
        arguments: [(.v31, 4), (.v311, 5), (.v5, 0x87)] as [(ProtocolVersion, UInt8)]
    )
    func refused(_ version: ProtocolVersion, _ code: UInt8) throws {
        let rig = try ConnectionRig(version)
        try rig.connect(ConnAck(code: code))
        #expect(rig.observer.calls == [.ending(unsent: 0), .ended(.refused(ConnAck(code: code)))])
        #expect(!rig.channel.isActive)
        #expect(try rig.sent().isEmpty)
    }

    @Test("without a CONNACK in time the connection is given up")
    func connackTimeout() throws {
        let rig = try ConnectionRig(.v311)
        rig.start(within: .seconds(3))
        rig.advance(.milliseconds(2_999))
        rig.connection.timerFired(now: rig.now)
        #expect(rig.channel.isActive)
        rig.advance(.milliseconds(1))
        rig.connection.timerFired(now: rig.now)
        #expect(rig.observer.end == .connackTimedOut)
        #expect(!rig.channel.isActive)
    }

    @Test(
        "[MQTT-3.2.0-1] anything but CONNACK first is a violation",
        arguments: [
            publish("a"), .pubAck(PubAck(1)), .pubRec(PubRec(1)), .pubRel(PubRel(1)), .pubComp(PubComp(1)),
            .subAck(SubAck(1, codes: [0])), .unsubAck(UnsubAck(1, codes: [0])), .pingResp,
        ]
    )
    func connackFirst(_ packet: Packet) throws {
        let rig = try ConnectionRig(.v5)
        rig.start()
        _ = try rig.sent()
        try rig.receive(packet, .connAck(ConnAck()))
        guard case .violation(.protocolError, _) = rig.observer.end else {
            Issue.record("\(rig.observer.calls)")
            return
        }
        #expect(rig.observer.calls.count == 2)
        #expect(try rig.sent().isEmpty)
    }

    @Test("[MQTT-3.2.0-2] a second CONNACK is a violation", arguments: versions)
    func secondConnack(_ version: ProtocolVersion) throws {
        let rig = try ConnectionRig(version)
        try rig.connect()
        try rig.receive(.connAck(ConnAck()))
        guard case .violation(.protocolError, _) = rig.observer.end else {
            Issue.record("\(rig.observer.calls)")
            return
        }
        let goodbye = wire(.disconnect(Disconnect(reason: .protocolError)))
        #expect(try rig.sent() == (version == .v5 ? [goodbye] : []))
    }

    @Test("[MQTT-3.2.2-4] session present for a client that has none ends it")
    func sessionPresent() throws {
        let rig = try ConnectionRig(.v5)
        try rig.connect(ConnAck(sessionPresent: true))
        guard case .violation(.protocolError, _) = rig.observer.end else {
            Issue.record("\(rig.observer.calls)")
            return
        }
    }

    // MARK: Reading and answering

    @Test("the answers to one read, and what the owner adds, leave in one write", arguments: versions)
    func oneWrite(_ version: ProtocolVersion) throws {
        let rig = try ConnectionRig(version)
        try rig.connect()
        let added = wire(publish("mine"), version: version)
        rig.observer.onReadEnded = { [unowned rig] in
            rig.connection.append(added.count) { memory in
                memory.copyBytes(from: added)
                return added.count
            }
        }
        try rig.receive(
            publish("a", [1]),
            publish("b", [2], qos: .atLeastOnce, id: 7),
            publish("c", [3], qos: .exactlyOnce, id: 8),
            publish("c", [3], qos: .exactlyOnce, id: 8, dup: true),
            .pubRel(PubRel(8))
        )
        #expect(
            rig.observer.messages == [
                .message(topic: "a", payload: [1], qos: .atMostOnce, dup: false),
                .message(topic: "b", payload: [2], qos: .atLeastOnce, dup: false),
                .message(topic: "c", payload: [3], qos: .exactlyOnce, dup: false),
            ]
        )
        let answers = hex("4002 0007 5002 0008 5002 0008 7002 0008")
        #expect(try rig.sent() == [answers + added])
        #expect(rig.observer.packets == [1, 5])
        #expect(
            rig.observer.wrote == wire(
                .connect(
                    Connect(
                        version: version,
                        clientID: "c",
                        cleanStart: true,
                        keepAlive: 300,
                        username: nil,
                        password: nil
                    )
                ),
                version: version
            ).count + answers.count + added.count
        )
    }

    @Test("acknowledgements reach the owner with the publish they are for")
    func acknowledgements() throws {
        let rig = try ConnectionRig(.v5)
        try rig.connect()
        let first = rig.begin(100, qos: .atLeastOnce)
        let second = rig.begin(101, qos: .exactlyOnce)
        let third = rig.begin(102, qos: .exactlyOnce)
        #expect([first, second, third] == [1, 2, 3])
        try rig.receive(
            .pubRec(PubRec(2)),
            .pubAck(PubAck(1, reason: .noMatchingSubscribers)),
            .pubRec(PubRec(3, reason: .quotaExceeded)),
            .pubRec(PubRec(2)),
            .pubComp(PubComp(2)),
            .pubAck(PubAck(9))
        )
        #expect(
            rig.observer.calls.dropFirst() == [
                .acknowledged(.pubRec, reason: 0, sequence: 101, finished: false, timedOut: false),
                .acknowledged(.pubAck, reason: 0x10, sequence: 100, finished: true, timedOut: false),
                .acknowledged(.pubRec, reason: 0x97, sequence: 102, finished: true, timedOut: false),
                .acknowledged(.pubComp, reason: 0, sequence: 101, finished: true, timedOut: false),
            ]
        )
        // PUBREL once for each PUBREC that succeeded.
        #expect(try rig.sent() == [hex("6202 0002 6202 0002")])
        #expect(rig.session.pointee.window.inFlight == 0)
    }

    @Test("[MQTT-4.3.3-11] PUBREL of an unknown flow is answered with PUBCOMP, PUBREC of one with PUBREL, 0x92 in 5.0")
    func unknownFlows() throws {
        let rig = try ConnectionRig(.v5)
        try rig.connect()
        try rig.receive(.pubRec(PubRec(5)), .pubRel(PubRel(6)))
        #expect(try rig.sent() == [hex("6204 0005 92 00 7004 0006 92 00")])
        let old = try ConnectionRig(.v311)
        try old.connect()
        try old.receive(.pubRec(PubRec(5)), .pubRel(PubRel(6)))
        #expect(try old.sent() == [hex("6202 0005 7002 0006")])
        #expect(old.channel.isActive)
    }

    @Test("an acknowledgement of the other QoS ends the connection", arguments: versions)
    func wrongFlow(_ version: ProtocolVersion) throws {
        let rig = try ConnectionRig(version)
        try rig.connect()
        let id = rig.begin(5, qos: .exactlyOnce)
        try rig.receive(
            publish("a", qos: .atLeastOnce, id: 4),
            .pubAck(PubAck(PacketID(rawValue: id) ?? 1)),
            publish("b")
        )
        guard case .violation(.protocolError, _) = rig.observer.end else {
            Issue.record("\(rig.observer.calls)")
            return
        }
        // Nothing behind the violation is delivered, and the owner hears what became of its publish.
        #expect(rig.observer.messages.count == 1)
        #expect(rig.observer.calls.contains(.abandoned(5, .connectionLost(timedOutBefore: false))))
        #expect(try rig.sent() == (version == .v5 ? [hex("4002 0004 E002 82 00")] : []))
        #expect(!rig.channel.isActive)
    }

    @Test("an empty topic stands for no alias that this side has announced (§3.3.2.3.4)")
    func topicAlias() throws {
        let rig = try ConnectionRig(.v5)
        try rig.connect()
        try rig.receive(publish("", properties: Properties([.topicAlias(1)])))
        guard case .violation(.topicAliasInvalid, _) = rig.observer.end else {
            Issue.record("\(rig.observer.calls)")
            return
        }
        #expect(try rig.sent() == [hex("E002 94 00")])
    }

    // MARK: Requests

    @Test("SUBSCRIBE and UNSUBSCRIBE are reported with their codes; an unexpected answer is ignored")
    func requests() throws {
        let rig = try ConnectionRig(.v5)
        try rig.connect()
        let filters = [Subscription(filter: "a/#", qos: .exactlyOnce), Subscription(filter: "b", qos: .atMostOnce)]
        #expect(rig.connection.subscribe(filters) == 1)
        #expect(rig.connection.unsubscribe(["a/#"]) == 2)
        #expect(
            try rig.sent() == [
                wire(.subscribe(Subscribe(1, filters))), wire(.unsubscribe(Unsubscribe(2, filters: ["a/#"]))),
            ]
        )
        try rig.receive(
            .subAck(SubAck(77, codes: [0])),
            .subAck(SubAck(1, codes: [2, 0x87])),
            .subAck(SubAck(1, codes: [2, 0])),
            .unsubAck(UnsubAck(2, codes: [0]))
        )
        #expect(rig.observer.calls.dropFirst() == [.subscribed(1, [2, 0x87]), .unsubscribed(2, [0])])
        #expect(rig.channel.isActive)
    }

    @Test("an answer that does not fit its request ends the connection", arguments: [0, 1, 2])
    func misfit(_ which: Int) throws {
        let rig = try ConnectionRig(.v5)
        try rig.connect()
        let id = try #require(rig.connection.subscribe([Subscription(filter: "a", qos: .atMostOnce)]))
        let answers: [Packet] = [
            .subAck(SubAck(id, codes: [0, 0])), .unsubAck(UnsubAck(id, codes: [0])), .pubAck(PubAck(id)),
        ]
        try rig.receive(answers[which])
        guard case .violation(.protocolError, _) = rig.observer.end else {
            Issue.record("\(rig.observer.calls)")
            return
        }
    }

    // MARK: Time

    @Test("PINGREQ keeps the connection alive, and without PINGRESP it is given up", arguments: [true, false])
    func pings(_ isAnswered: Bool) throws {
        let rig = try ConnectionRig(SessionOptions(version: .v311, keepAlive: 5))
        try rig.connect()
        #expect(rig.observer.timer == rig.now + .seconds(5))
        rig.advance(.seconds(5))
        rig.observer.timer = .distantFuture
        rig.connection.timerFired(now: rig.now)
        #expect(try rig.sent() == [[0xC0, 0]])
        #expect(rig.observer.timer == rig.now + .seconds(5))
        if isAnswered {
            rig.advance(.milliseconds(30))
            try rig.receive(.pingResp)
            #expect(rig.observer.calls.last == .pingAnswered(.milliseconds(30)))
            // An unexpected one is not reported.
            try rig.receive(.pingResp)
            #expect(rig.observer.calls.count == 2)
        }
        rig.advance(.seconds(5))
        rig.connection.timerFired(now: rig.now)
        #expect(rig.observer.end == (isAnswered ? nil : .pingTimedOut))
        #expect(rig.channel.isActive == isAnswered)
    }

    @Test("an overdue acknowledgement is reported once, and the owner may close the connection from within the report")
    func overdue() throws {
        let rig = try ConnectionRig(SessionOptions(version: .v5, ackTimeout: .seconds(2)))
        try rig.connect()
        let id = rig.begin(1, qos: .atLeastOnce)
        _ = rig.begin(2, qos: .exactlyOnce)
        rig.advance(.seconds(2))
        rig.connection.timerFired(now: rig.now)
        #expect(rig.observer.calls.dropFirst() == [.abandoned(1, .timedOut), .abandoned(2, .timedOut)])
        try rig.receive(.pubAck(PubAck(PacketID(rawValue: id) ?? 1)))
        #expect(
            rig.observer.calls.last == .acknowledged(.pubAck, reason: 0, sequence: 1, finished: true, timedOut: true)
        )
        _ = rig.begin(3, qos: .atLeastOnce)
        rig.advance(.seconds(2))
        rig.observer.onAbandoned = { [unowned rig] in
            rig.observer.onAbandoned = nil
            rig.connection.abort()
        }
        rig.connection.timerFired(now: rig.now)
        #expect(
            rig.observer.calls.suffix(5) == [
                .abandoned(3, .timedOut), .ending(unsent: 0), .abandoned(2, .connectionLost(timedOutBefore: true)),
                .abandoned(3, .connectionLost(timedOutBefore: true)), .ended(.aborted),
            ]
        )
    }

    // MARK: Ends

    @Test("DISCONNECT from the server ends it with its reason", arguments: [nil, "too much"])
    func serverDisconnects(_ words: String?) throws {
        let rig = try ConnectionRig(.v5)
        try rig.connect()
        let properties = Properties(words.map { [.reasonString($0)] } ?? [])
        let disconnect = Disconnect(reason: .quotaExceeded, properties: properties)
        try rig.receive(.disconnect(disconnect), publish("late"))
        #expect(rig.observer.calls.suffix(2) == [.ending(unsent: 0), .ended(.disconnected(disconnect))])
        #expect(rig.observer.messages.isEmpty)
        #expect(try rig.sent().isEmpty)
    }

    @Test(
        "[MQTT-4.13.1-1] malformed bytes are answered with DISCONNECT and the reason in 5.0, and with nothing before",
        arguments: versions
    )
    func malformed(_ version: ProtocolVersion) throws {
        let rig = try ConnectionRig(version)
        try rig.connect()
        // A message that is answered first, then a PUBLISH at QoS 3.
        try rig.receive(wire(publish("a", qos: .atLeastOnce, id: 9), version: version) + [0x36, 0])
        #expect(rig.observer.end == .malformed(.publishQoS3))
        #expect(rig.observer.messages.count == 1)
        #expect(try rig.sent() == (version == .v5 ? [hex("4002 0009 E002 81 00")] : []))
        #expect(!rig.channel.isActive)
    }

    @Test("the answers of a refused read do not leave with another client's packets", arguments: versions)
    func scratchIsClean(_ version: ProtocolVersion) throws {
        let rig = try ConnectionRig(version)
        try rig.connect()
        let other = try ConnectionRig(
            SessionOptions(version: version),
            context: rig.context,
            on: rig.channel.embeddedEventLoop
        )
        try other.connect()
        rig.observer.onReadEnded = { [unowned rig] in rig.connection.write(.pingReq) }
        try rig.receive(wire(publish("a", qos: .atLeastOnce, id: 9), version: version) + [0x36, 0])
        other.connection.ping()
        #expect(try other.sent() == [[0xC0, 0]])
    }

    @Test(
        "what a server must not send is refused",
        arguments: [
            (.v31, "8206 0001 0001 61 00"), (.v311, "8206 0001 0001 61 00"), (.v5, "8207 0001 00 0001 61 00"),
            (.v311, "A205 0001 0001 61"), (.v311, "C000"), (.v5, "C000"), (.v311, "E000"), (.v311, "F000"),
            (.v311, "0000"),
            (.v311, "100D 0004 4D515454 04 02 003C 0001 63"), (.v5, "F006 18 04 15 0001 61"), (.v5, "4003 0001 01"),
        ] as [(ProtocolVersion, String)]
    )
    func wrongDirection(_ version: ProtocolVersion, _ bytes: String) throws {
        let rig = try ConnectionRig(version)
        try rig.connect()
        try rig.receive(hex(bytes))
        switch rig.observer.end {
        case .malformed, .violation: break
        default: Issue.record("\(rig.observer.calls)")
        }
        #expect(!rig.channel.isActive)
        let writes = try rig.sent()
        if version == .v5 { #expect(writes.count == 1 && writes.first?.first == 0xE0) } else { #expect(writes.isEmpty) }
    }

    @Test("a packet above the announced size is refused before it is there")
    func tooLarge() throws {
        let rig = try ConnectionRig(SessionOptions(version: .v5, maximumPacketSize: 100))
        try rig.connect()
        try rig.receive([0x30, 99])
        #expect(rig.observer.end == .malformed(.packetTooLarge(size: 101)))
        #expect(try rig.sent() == [hex("E002 95 00")])
    }

    @Test("an abort tells of every publish in flight, and is the last word")
    func abort() throws {
        let rig = try ConnectionRig(SessionOptions(version: .v5, ackTimeout: .seconds(1)))
        try rig.connect()
        _ = rig.begin(1, qos: .atLeastOnce)
        rig.advance(.seconds(1))
        rig.connection.timerFired(now: rig.now)
        _ = rig.begin(2, qos: .exactlyOnce)
        rig.connection.abort()
        rig.connection.abort()
        rig.connection.finish()
        rig.connection.timerFired(now: rig.now + .hours(1))
        #expect(
            rig.observer.calls.dropFirst(2) == [
                .ending(unsent: 0), .abandoned(1, .connectionLost(timedOutBefore: true)),
                .abandoned(2, .connectionLost(timedOutBefore: false)), .ended(.aborted),
            ]
        )
        #expect(try rig.sent().isEmpty)
        #expect(rig.connection.subscribe([Subscription(filter: "a", qos: .atMostOnce)]) == nil)
    }

    @Test("bytes read at the end or after it are ignored")
    func readsBehindTheEnd() throws {
        let rig = try ConnectionRig(.v5)
        try rig.connect()
        _ = rig.begin(5, qos: .exactlyOnce)
        let late = ByteBuffer(bytes: wire(publish("late")))
        rig.observer.onAbandoned = { [unowned rig] in rig.channel.pipeline.fireChannelRead(late) }
        try rig.receive(.pubAck(PubAck(1)))
        guard case .violation = rig.observer.end else {
            Issue.record("\(rig.observer.calls)")
            return
        }
        rig.channel.pipeline.fireChannelRead(late)
        #expect(rig.observer.messages.isEmpty)
    }

    // MARK: Sessions that outlive a connection

    @Test(
        "[MQTT-4.4.0-1] [MQTT-4.6.0-1] a resumed session sends again what is open, in order, before anything else",
        arguments: [true, false]
    )
    func resume(_ isPresent: Bool) throws {
        let rig = try ConnectionRig(SessionOptions(version: .v5, cleanStart: false))
        try rig.connect()
        for sequence in 0..<3 as Range<UInt64> { _ = rig.begin(sequence, qos: .exactlyOnce) }
        try rig.receive(.pubRec(PubRec(2)))
        _ = try rig.sent()
        rig.connection.abort()
        #expect(rig.observer.calls.last == .ended(.aborted))
        #expect(!rig.observer.calls.contains(.abandoned(0, .connectionLost(timedOutBefore: false))))

        // The same session, on a new channel.
        let loop = rig.channel.embeddedEventLoop
        let channel = EmbeddedChannel(loop: loop)
        let observer = RecordingObserver()
        let connection = MQTTConnection(
            client: 3,
            loop: rig.context,
            session: rig.session,
            observer: observer
        )
        try channel.pipeline.syncOperations.addHandler(connection.makeHandler())
        channel.connect(to: try SocketAddress(ipAddress: "127.0.0.1", port: 1), promise: nil)
        let connect = rig.session.pointee.connect(clientID: "c", username: nil, password: nil, now: loop.now)
        connection.start(connect, deadline: loop.now + .seconds(1))
        _ = try channel.readOutbound(as: ByteBuffer.self)
        observer.onResend = { id, publish in
            connection.write(MQTTTests.publish("t", qos: publish.qos, id: PacketID(rawValue: id), dup: true))
        }
        try channel.writeInbound(ByteBuffer(bytes: wire(.connAck(ConnAck(sessionPresent: isPresent)))))
        if isPresent {
            #expect(observer.calls == [.resend(id: 1, 0), .resend(id: 3, 2), .connected(resumed: true)])
            let expected =
                wire(MQTTTests.publish("t", qos: .exactlyOnce, id: 1, dup: true), .pubRel(PubRel(2)))
                + wire(MQTTTests.publish("t", qos: .exactlyOnce, id: 3, dup: true))
            let out = try channel.readOutbound(as: ByteBuffer.self)
            #expect(out.map { Array($0.readableBytesView) } == expected)
        } else {
            #expect(
                observer.calls == [
                    .abandoned(0, .connectionLost(timedOutBefore: false)),
                    .abandoned(1, .connectionLost(timedOutBefore: false)),
                    .abandoned(2, .connectionLost(timedOutBefore: false)), .connected(resumed: false),
                ]
            )
        }
    }

    // MARK: Fragments

    @Test("however the bytes are cut, the owner hears the same", arguments: [ProtocolVersion.v311, .v5])
    func fragments(_ version: ProtocolVersion) throws {
        let stream = Self.stream(version)
        let (calls, answers) = try Self.play([stream], version)
        // 20 flows of QoS 1 have one answer, 20 of QoS 2 have two.
        #expect(calls.count == 1 + 40 + 20 + 2 * 20)
        for size in [1, 2, 3, 7, 64, 1_460] {
            let cut = try Self.play(stream.pieces(of: size), version)
            #expect(cut.calls == calls)
            #expect(cut.answers == answers)
        }
        for seed in 0..<20 as Range<UInt64> {
            var generator = SeededGenerator(seed: seed)
            let cut = try Self.play(stream.pieces(upTo: 50, using: &generator), version)
            #expect(cut.calls == calls)
            #expect(cut.answers == answers)
        }
    }

    @Test("CONNACK may come in pieces, and messages with it", arguments: versions)
    func connackInPieces(_ version: ProtocolVersion) throws {
        for (head, tail) in wire(.connAck(ConnAck()), publish("a", [1]), version: version).everyCut {
            let rig = try ConnectionRig(version)
            rig.start()
            try rig.receive(head)
            try rig.receive(tail)
            let message = RecordingObserver.Call.message(topic: "a", payload: [1], qos: .atMostOnce, dup: false)
            #expect(rig.observer.calls == [.connected(resumed: false), message])
        }
    }

    /// The output of a busy server: answers to the client's open flows, and messages at every QoS.
    private static func stream(_ version: ProtocolVersion) -> [UInt8] {
        var bytes: [UInt8] = []
        // 40 publishes, QoS 1 and 2 in turn.
        for id in 1...40 as ClosedRange<UInt16> {
            guard let id = PacketID(rawValue: id) else { continue }
            if id.rawValue % 2 == 1 {
                bytes += wire(.pubAck(PubAck(id)), version: version)
            } else {
                bytes += wire(.pubRec(PubRec(id)), .pubComp(PubComp(id)), version: version)
            }
            let payload = Array(repeating: UInt8(truncatingIfNeeded: id.rawValue), count: Int(id.rawValue) * 7)
            let qos = QoS(rawValue: UInt8(id.rawValue % 3)) ?? .atMostOnce
            bytes += wire(
                publish("t/\(id.rawValue)", payload, qos: qos, id: qos == .atMostOnce ? nil : id),
                version: version
            )
            if qos == .exactlyOnce { bytes += wire(.pubRel(PubRel(id)), version: version) }
        }
        return bytes
    }

    private static func play(
        _ pieces: [[UInt8]],
        _ version: ProtocolVersion
    ) throws -> (calls: [RecordingObserver.Call], answers: [UInt8]) {
        let rig = try ConnectionRig(SessionOptions(version: version, window: 100))
        try rig.connect()
        for sequence in 0..<40 as Range<UInt64> {
            _ = rig.begin(sequence, qos: sequence % 2 == 1 ? .exactlyOnce : .atLeastOnce)
        }
        for piece in pieces { try rig.receive(piece) }
        #expect(rig.observer.reads.dropFirst() == pieces.map(\.count)[...])
        #expect(rig.observer.packets.count == pieces.count + 1)
        #expect(rig.channel.isActive)
        return (rig.observer.calls, try rig.sent().flatMap { $0 })
    }
}
