import MQTT
import MQTTCodec
import NIOEmbedded
import TestSupport
import Testing

@Suite("Answers and their order")
struct AnswerOrderTests {
    @Test(
        "[MQTT-4.6.0-2] [MQTT-4.6.0-3] PUBACK and PUBREC leave in the order of their messages, in whatever reads they came",
        arguments: [1, 7, 1_000]
    )
    func acknowledgements(_ size: Int) throws {
        let rig = try ConnectionRig(.v311)
        try rig.connect()
        let flows: [(QoS, PacketID)] = [
            (.atLeastOnce, 9), (.atLeastOnce, 3), (.exactlyOnce, 8), (.atLeastOnce, 7), (.exactlyOnce, 2),
            (.exactlyOnce, 65_535), (.atLeastOnce, 1),
        ]
        let stream = flows.flatMap { wire(publish("a", qos: $0, id: $1), version: .v311) }
        for piece in stream.pieces(of: size) { try rig.receive(piece) }
        #expect(
            try rig.sent().flatMap { $0 }
                == hex("4002 0009 4002 0003 5002 0008 4002 0007 5002 0002 5002 FFFF 4002 0001")
        )
    }

    @Test("[MQTT-4.6.0-4] PUBREL leaves in the order of PUBREC, PUBCOMP in that of PUBREL")
    func releases() throws {
        let rig = try ConnectionRig(.v5)
        try rig.connect()
        #expect((1...3).map { rig.begin(UInt64($0), qos: .exactlyOnce) } == [1, 2, 3])
        try rig.receive(.pubRec(PubRec(2)), .pubRec(PubRec(3)), .pubRec(PubRec(1)))
        #expect(try rig.sent() == [hex("6202 0002 6202 0003 6202 0001")])
        for id: PacketID in [5, 4, 6] { try rig.receive(publish("a", qos: .exactlyOnce, id: id)) }
        _ = try rig.sent()
        try rig.receive(.pubRel(PubRel(6)), .pubRel(PubRel(4)), .pubRel(PubRel(5)))
        #expect(try rig.sent() == [hex("7002 0006 7002 0004 7002 0005")])
    }

    @Test(
        "[MQTT-4.3.2-5] behind PUBACK an identifier is another message's, whatever DUP says",
        arguments: [true, false]
    )
    func reused(_ dup: Bool) throws {
        let rig = try ConnectionRig(.v5)
        try rig.connect()
        try rig.receive(publish("a", [1], qos: .atLeastOnce, id: 5))
        try rig.receive(publish("b", [2], qos: .atLeastOnce, id: 5, dup: dup))
        #expect(
            rig.observer.messages == [
                .message(topic: "a", payload: [1], qos: .atLeastOnce, dup: false),
                .message(topic: "b", payload: [2], qos: .atLeastOnce, dup: dup),
            ]
        )
        #expect(try rig.sent() == [hex("4002 0005"), hex("4002 0005")])
    }

    @Test("[MQTT-2.2.1-3] an identifier is free again behind PUBACK, PUBCOMP, a refusing PUBREC, SUBACK and UNSUBACK")
    func freed() throws {
        let options = SessionOptions(version: .v5, window: 65_535)
        let rig = try ConnectionRig(options)
        try rig.connect()
        // All but five.
        for sequence in 0..<65_530 as Range<UInt64> { _ = rig.begin(sequence, qos: .atLeastOnce) }
        let ends: [(take: () -> UInt16?, give: (PacketID) -> [Packet])] = [
            ({ rig.begin(1, qos: .atLeastOnce) }, { [.pubAck(PubAck($0))] }),
            ({ rig.begin(1, qos: .exactlyOnce) }, { [.pubRec(PubRec($0)), .pubComp(PubComp($0))] }),
            ({ rig.begin(1, qos: .exactlyOnce) }, { [.pubRec(PubRec($0, reason: .quotaExceeded))] }),
            (
                { rig.connection.subscribe([Subscription(filter: "a")])?.rawValue },
                { [.subAck(SubAck($0, codes: [0]))] }
            ),
            ({ rig.connection.unsubscribe(["a"])?.rawValue }, { [.unsubAck(UnsubAck($0, codes: [0]))] }),
        ]
        var taken: [UInt16] = []
        for end in ends { taken.append(try #require(end.take())) }
        #expect(Set(taken) == Set(65_531...65_535))
        // None is left, so none is given twice.
        #expect(rig.connection.subscribe([Subscription(filter: "a")]) == nil)
        for (index, end) in ends.enumerated() {
            let id = try #require(PacketID(rawValue: taken[index]))
            for packet in end.give(id) { try rig.receive(packet) }
            #expect(rig.channel.isActive)
            #expect(rig.connection.subscribe([Subscription(filter: "a")]) == id)
        }
        #expect(rig.connection.subscribe([Subscription(filter: "a")]) == nil)
    }

    @Test("a packet that was cut by the end of a connection is not gone on with on the next")
    func freshDecoder() throws {
        let rig = try ConnectionRig(SessionOptions(version: .v5, cleanStart: false))
        try rig.connect()
        let packet = wire(publish("a", [1, 2, 3]))
        try rig.receive(Array(packet.prefix(5)))
        rig.connection.abort()
        let next = try rig.again()
        try next.connect(ConnAck(sessionPresent: true))
        try next.receive(publish("b", [4]))
        #expect(next.observer.messages == [.message(topic: "b", payload: [4], qos: .atMostOnce, dup: false)])
    }

    @Test("§3.8.4 messages may come before the SUBACK of their subscription")
    func beforeSubAck() throws {
        let rig = try ConnectionRig(.v5)
        try rig.connect()
        #expect(rig.connection.subscribe([Subscription(filter: "a", qos: .atLeastOnce)]) == 1)
        try rig.receive(publish("a", [1], qos: .atLeastOnce, id: 1), .subAck(SubAck(1, codes: [1])))
        #expect(
            rig.observer.calls.dropFirst() == [
                .message(topic: "a", payload: [1], qos: .atLeastOnce, dup: false), .subscribed(1, [1]),
            ]
        )
        #expect(rig.channel.isActive)
    }
}
