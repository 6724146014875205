import MQTT
import MQTTCodec
import NIOCore
import NIOEmbedded
import TestSupport
import Testing

@Suite("Checks that options enable on a connection")
struct InboundRulesTests {
    private func rig(_ options: SessionOptions) throws -> ConnectionRig {
        let rig = try ConnectionRig(options)
        try rig.connect()
        rig.observer.calls = []
        return rig
    }

    private func message(_ topic: String, _ payload: [UInt8], _ qos: QoS = .atMostOnce) -> RecordingObserver.Call {
        .message(topic: topic, payload: payload, qos: qos, dup: false)
    }

    // MARK: Topic aliases

    @Test("CONNECT announces what this side takes (§3.1.2.11)")
    func announces() throws {
        let options = SessionOptions(
            version: .v5,
            sessionExpiry: 90,
            maximumPacketSize: 5_000,
            receiveMaximum: 7,
            topicAliasMaximum: 4,
            requestsResponseInformation: true,
            requestsProblemInformation: false,
            userProperties: [UserProperty("a", "1"), UserProperty("a", "2")]
        )
        let rig = try ConnectionRig(options)
        rig.start()
        var connect = Connect(version: .v5, clientID: "c", keepAlive: 300)
        connect.properties = [
            .sessionExpiryInterval(90), .receiveMaximum(7), .maximumPacketSize(5_000), .topicAliasMaximum(4),
            .requestResponseInformation(true), .requestProblemInformation(false), .userProperty("a", "1"),
            .userProperty("a", "2"),
        ]
        #expect(try rig.sent() == [wire(.connect(connect))])
    }

    @Test("[MQTT-3.3.2-12] an alias stands for the topic it was last sent with")
    func aliases() throws {
        let rig = try self.rig(SessionOptions(version: .v5, topicAliasMaximum: 2))
        try rig.receive(
            publish("a/1", [1], properties: [.topicAlias(1)]),
            publish("", [2], properties: [.topicAlias(1)]),
            publish("b", [3], properties: [.userProperty("x", "y"), .topicAlias(2)]),
            publish("c", [4], properties: [.topicAlias(1)]),
            publish("plain", [5])
        )
        try rig.receive(
            publish("", [6], properties: [.topicAlias(1)]),
            publish("", [7], qos: .atLeastOnce, id: 9, properties: [.topicAlias(2)])
        )
        #expect(
            rig.observer.calls == [
                self.message("a/1", [1]), self.message("a/1", [2]), self.message("b", [3]), self.message("c", [4]),
                self.message("plain", [5]), self.message("c", [6]), self.message("b", [7], .atLeastOnce),
            ]
        )
        #expect(try rig.sent() == [hex("4002 0009")])
    }

    @Test(
        "[MQTT-3.1.2-26] an alias above what was announced is answered with 0x94",
        arguments: [(0, "a"), (0, ""), (2, "a"), (2, "")] as [(UInt16, String)]
    )
    func aliasTooLarge(_ maximum: UInt16, _ topic: String) throws {
        let rig = try self.rig(SessionOptions(version: .v5, topicAliasMaximum: maximum))
        try rig.receive(publish(topic, properties: [.topicAlias(maximum + 1)]))
        guard case .violation(.topicAliasInvalid, _) = rig.observer.end else {
            Issue.record("\(rig.observer.calls)")
            return
        }
        #expect(rig.observer.messages.isEmpty)
        #expect(try rig.sent() == [hex("E002 94 00")])
    }

    @Test("[MQTT-3.3.2-8] alias 0 is answered with 0x94")
    func aliasZero() throws {
        let rig = try self.rig(SessionOptions(version: .v5, topicAliasMaximum: 2))
        try rig.receive(hex("30 07 0001 61 03 23 0000"))
        #expect(rig.observer.end == .malformed(.topicAliasZero))
        #expect(try rig.sent() == [hex("E002 94 00")])
    }

    @Test("an alias that stands for nothing is answered with 0x82; [MQTT-3.3.2-7] a new connection knows none")
    func aliasUnknown() throws {
        let rig = try self.rig(SessionOptions(version: .v5, cleanStart: false, topicAliasMaximum: 2))
        try rig.receive(publish("a", properties: [.topicAlias(1)]))
        rig.connection.abort()
        let next = try rig.again()
        try next.connect(ConnAck(sessionPresent: true))
        try next.receive(publish("", properties: [.topicAlias(1)]))
        #expect(
            next.observer.end
                == .violation(.protocolError, "topic alias 1 stands for no topic yet (§3.3.2.3.4)")
        )
        #expect(try next.sent() == [hex("E002 82 00")])
    }

    // MARK: Receive maximum

    @Test("[MQTT-3.3.4-9] more than the receive maximum at once is answered with 0x93", arguments: [1, 3] as [UInt16])
    func receiveMaximum(_ maximum: UInt16) throws {
        let rig = try self.rig(SessionOptions(version: .v5, receiveMaximum: maximum))
        let packets = (1...maximum + 1).map {
            wire(publish("a", qos: $0 % 2 == 0 ? .atLeastOnce : .exactlyOnce, id: PacketID(rawValue: $0)))
        }
        try rig.receive(packets.flatMap { $0 })
        guard case .violation(.receiveMaximumExceeded, _) = rig.observer.end else {
            Issue.record("\(rig.observer.calls)")
            return
        }
        #expect(rig.observer.messages.count == Int(maximum))
        #expect(try rig.sent().flatMap { $0 }.suffix(4) == hex("E002 93 00"))
    }

    @Test("acknowledged messages count no more, and a repetition counts once (§4.9)")
    func receiveQuota() throws {
        let rig = try self.rig(SessionOptions(version: .v5, receiveMaximum: 2))
        for id in 1...5 as ClosedRange<UInt16> {
            try rig.receive(publish("a", qos: .atLeastOnce, id: PacketID(rawValue: id)), publish("b"))
        }
        try rig.receive(publish("c", qos: .exactlyOnce, id: 1), publish("c", qos: .exactlyOnce, id: 2))
        try rig.receive(publish("c", qos: .exactlyOnce, id: 2, dup: true))
        try rig.receive(.pubRel(PubRel(1)))
        try rig.receive(publish("c", qos: .exactlyOnce, id: 3))
        #expect(rig.channel.isActive)
        try rig.receive(publish("c", qos: .exactlyOnce, id: 4))
        #expect(!rig.channel.isActive)
    }

    @Test("the answer to a message in the same read comes too late for the next (§4.9)")
    func receiveQuotaInOneRead() throws {
        let rig = try self.rig(SessionOptions(version: .v5, receiveMaximum: 1))
        try rig.receive(publish("c", qos: .exactlyOnce, id: 1))
        try rig.receive(.pubRel(PubRel(1)), publish("c", qos: .exactlyOnce, id: 2))
        guard case .violation(.receiveMaximumExceeded, _) = rig.observer.end else {
            Issue.record("\(rig.observer.calls)")
            return
        }
    }

    // MARK: Acknowledged by the owner

    @Test("PUBACK and PUBREC leave when the owner says so, with its reason", arguments: [ProtocolVersion.v311, .v5])
    func byOwner(_ version: ProtocolVersion) throws {
        let rig = try self.rig(SessionOptions(version: version, acknowledgesMessages: .byOwner))
        try rig.receive(
            publish("a", qos: .atLeastOnce, id: 1),
            publish("b", qos: .exactlyOnce, id: 2),
            publish("c", qos: .exactlyOnce, id: 3)
        )
        #expect(try rig.sent().isEmpty)
        #expect(rig.connection.acknowledge(.atLeastOnce, id: 1))
        #expect(rig.connection.acknowledge(.exactlyOnce, id: 2))
        #expect(rig.connection.acknowledge(.exactlyOnce, id: 3, reason: .quotaExceeded))
        let refusal = version == .v5 ? hex("5004 0003 97 00") : hex("5002 0003")
        #expect(try rig.sent() == [hex("4002 0001"), hex("5002 0002"), refusal])
        // Once only, and never what did not come.
        #expect(!rig.connection.acknowledge(.atLeastOnce, id: 1))
        #expect(!rig.connection.acknowledge(.exactlyOnce, id: 2))
        #expect(!rig.connection.acknowledge(.atLeastOnce, id: 7))
        #expect(!rig.connection.acknowledge(.atMostOnce, id: 1))
        #expect(try rig.sent().isEmpty)
        // A flow that was refused is over: its identifier is free for another message.
        try rig.receive(publish("d", qos: .exactlyOnce, id: 3), .pubRel(PubRel(2)))
        #expect(rig.observer.messages.count == (version == .v5 ? 4 : 3))
        #expect(rig.observer.calls.last == .released(2))
        #expect(try rig.sent().last?.suffix(4) == hex("7002 0002"))
    }

    @Test("a repetition is recorded again only once the owner has recorded it ([MQTT-4.3.3-10])")
    func repetition() throws {
        let rig = try self.rig(SessionOptions(version: .v5, cleanStart: false, acknowledgesMessages: .byOwner))
        try rig.receive(publish("b", qos: .exactlyOnce, id: 2), publish("a", qos: .atLeastOnce, id: 5))
        rig.connection.abort()
        let next = try rig.again()
        try next.connect(ConnAck(sessionPresent: true))
        // QoS 1 messages of the lost connection are sent again, so their old acknowledgements are void.
        #expect(!next.connection.acknowledge(.atLeastOnce, id: 5))
        try next.receive(publish("b", qos: .exactlyOnce, id: 2, dup: true))
        #expect(try next.sent().isEmpty)
        #expect(next.connection.acknowledge(.exactlyOnce, id: 2))
        try next.receive(publish("b", qos: .exactlyOnce, id: 2, dup: true))
        #expect(try next.sent() == [hex("5002 0002"), hex("5002 0002")])
        #expect(next.observer.messages.isEmpty)
    }

    @Test("PUBCOMP is sent when the owner says so, and at once for an unknown flow")
    func completions() throws {
        let options = SessionOptions(version: .v5, defersCompletions: true)
        let rig = try self.rig(options)
        try rig.receive(publish("b", qos: .exactlyOnce, id: 2))
        _ = try rig.sent()
        try rig.receive(.pubRel(PubRel(2)), .pubRel(PubRel(9)))
        #expect(rig.observer.calls.last == .released(2))
        #expect(try rig.sent() == [hex("7004 0009 92 00")])
        rig.connection.complete(2)
        #expect(try rig.sent() == [hex("7002 0002")])
    }

    // MARK: What answers say, and packets as they come

    @Test("reason strings and user properties of answers are reported before the answer")
    func properties() throws {
        let rig = try self.rig(SessionOptions(version: .v5, tellsProperties: true))
        _ = rig.begin(4, qos: .atLeastOnce)
        let id = try #require(rig.connection.subscribe([Subscription(filter: "a")]))
        let says: Properties = [.reasonString("why"), .userProperty("k", "v")]
        try rig.receive(
            .pubAck(PubAck(1, reason: .quotaExceeded, properties: says)),
            .subAck(SubAck(id, codes: [0x87], properties: says))
        )
        #expect(
            rig.observer.calls == [
                .properties(.pubAck, 1, says),
                .acknowledged(.pubAck, reason: 0x97, sequence: 4, finished: true, timedOut: false),
                .properties(.subAck, id, says), .subscribed(id, [0x87]),
            ]
        )
    }

    @Test("packets are shown as they come, and dropped when the owner wants it", arguments: [true, false])
    func shows(_ drops: Bool) throws {
        let rig = try ConnectionRig(SessionOptions(version: .v5, topicAliasMaximum: 1, showsPackets: true))
        var seen: [PacketType] = []
        var topics: [String] = []
        rig.observer.onPacket = { packet in
            seen.append(packet.type)
            if case .publish(let publish) = packet { topics.append(publish.topic) }
            return packet.type == .connAck || !drops
        }
        try rig.connect()
        _ = rig.begin(4, qos: .atLeastOnce)
        try rig.receive(
            publish("a", properties: [.topicAlias(1)]),
            publish("", qos: .atLeastOnce, id: 3, properties: [.topicAlias(1)]),
            .pubAck(PubAck(1)),
            .pingResp
        )
        #expect(seen == [.connAck, .publish, .publish, .pubAck, .pingResp])
        #expect(topics == ["a", "a"])
        #expect(rig.observer.messages.count == (drops ? 0 : 2))
        #expect(rig.session.pointee.window.inFlight == (drops ? 1 : 0))
        #expect(try rig.sent() == (drops ? [] : [hex("4002 0003")]))
    }

    @Test("however the bytes are cut, a close look sees the same", arguments: [1, 2, 3, 7, 64])
    func fragments(_ size: Int) throws {
        let options = SessionOptions(version: .v5, receiveMaximum: 50, topicAliasMaximum: 3, showsPackets: true)
        let stream = (1...30).flatMap { number -> [UInt8] in
            let alias = UInt16(number % 3 + 1)
            let qos = QoS(rawValue: UInt8(number % 3)) ?? .atMostOnce
            let id = qos == .atMostOnce ? nil : PacketID(rawValue: UInt16(number))
            let topic = number <= 6 ? "t/\(alias)" : ""
            return wire(publish(topic, [UInt8(number)], qos: qos, id: id, properties: [.topicAlias(alias)]))
        }
        let whole = try self.rig(options)
        try whole.receive(stream)
        let cut = try self.rig(options)
        for piece in stream.pieces(of: size) { try cut.receive(piece) }
        #expect(cut.observer.calls == whole.observer.calls && whole.observer.messages.count == 30)
        #expect(try cut.sent().flatMap { $0 } == whole.sent().flatMap { $0 })
    }
}
