import MQTT
import MQTTCodec
import Testing

@Suite("The receive maximum of this side, over connections")
struct ReceiveQuotaTests {
    private static func exactly(_ id: PacketID, dup: Bool = false) -> Packet {
        publish("c", qos: .exactlyOnce, id: id, dup: dup)
    }

    @Test(
        "a new connection has the whole receive maximum, and PUBCOMP gives back no more than that (§4.9)",
        arguments: [
            ([[exactly(3)], [exactly(4)]], true),
            ([[exactly(3)], [exactly(4)], [exactly(5)]], false),
            ([[exactly(1, dup: true)], [exactly(2, dup: true)]], true),
            ([[exactly(1, dup: true)], [exactly(2, dup: true)], [exactly(3)]], false),
            ([[exactly(1, dup: true)], [exactly(2, dup: true)], [.pubRel(PubRel(1))], [exactly(3)]], true),
            ([[exactly(3)], [exactly(4)], [.pubRel(PubRel(1))], [exactly(5)]], true),
            ([[.pubRel(PubRel(1))], [.pubRel(PubRel(2))], [exactly(3)], [exactly(4)], [exactly(5)]], false),
            ([[.pubRel(PubRel(1)), .pubRel(PubRel(2)), exactly(3), exactly(4)]], true),
            ([[.pubRel(PubRel(1)), .pubRel(PubRel(2)), exactly(3), exactly(4), exactly(5)]], false),
        ] as [([[Packet]], Bool)]
    )
    func receiveQuotaAnew(_ reads: [[Packet]], _ isAllowed: Bool) throws {
        let first = try ConnectionRig(SessionOptions(version: .v5, cleanStart: false, receiveMaximum: 2))
        try first.connect()
        try first.receive(Self.exactly(1), Self.exactly(2))
        first.connection.abort()
        let rig = try first.again()
        try rig.connect(ConnAck(sessionPresent: true))
        for packets in reads {
            #expect(rig.observer.end == nil)
            try rig.receive(packets.flatMap { wire($0) })
        }
        if isAllowed {
            #expect(rig.observer.end == nil)
        } else {
            let words = "over 2 messages unacknowledged ([MQTT-3.3.4-9])"
            #expect(rig.observer.end == .violation(.receiveMaximumExceeded, words))
        }
    }

    @Test("a message that its owner refuses counts no more (§4.9)")
    func receiveQuotaRefused() throws {
        let options = SessionOptions(version: .v5, receiveMaximum: 1, acknowledgesMessages: .byOwner)
        let rig = try ConnectionRig(options)
        try rig.connect()
        for id in 1...3 as ClosedRange<UInt16> {
            for qos in [QoS.exactlyOnce, .atLeastOnce] {
                try rig.receive(publish("c", qos: qos, id: PacketID(rawValue: id)))
                #expect(rig.connection.acknowledge(qos, id: id, reason: .quotaExceeded))
            }
        }
        try rig.receive(Self.exactly(4))
        #expect(rig.observer.end == nil)
        try rig.receive(Self.exactly(5))
        let words = "over 1 messages unacknowledged ([MQTT-3.3.4-9])"
        #expect(rig.observer.end == .violation(.receiveMaximumExceeded, words))
    }
}
