import MQTTCodec
import NIOCore
import TestSupport
import Testing

@Suite("Encoding for the hot path, and at the edges")
struct EncodingTests {
    @Test(
        "the four-byte acknowledgements",
        arguments: [(.pubAck, "4002 1234"), (.pubRec, "5002 1234"), (.pubRel, "6202 1234"), (.pubComp, "7002 1234")]
            as [(PacketType, String)]
    )
    func acknowledgementBytes(_ type: PacketType, _ expected: String) {
        // One byte off, because callers need not align it.
        var memory = [UInt8](repeating: 0, count: 5)
        memory.withUnsafeMutableBytes { bytes in
            guard let base = bytes.baseAddress else { return }
            AcknowledgementBytes.write(type, id: 0x1234, to: base + 1)
        }
        #expect(Array(memory[1...]) == hex(expected))
    }

    @Test("the length takes as many bytes as it needs, on both sides of each border (§1.5.5, table 1-1)")
    func lengths() {
        let borders = [(127, "7f"), (128, "8001"), (16_383, "ff7f"), (16_384, "808001"), (2_097_151, "ffff7f")]
        for (length, expected) in borders + [(2_097_152, "80808001")] {
            let payload = ByteBuffer(repeating: 0x55, count: length - 3)
            let bytes = Packet.publish(Publish(topic: "a", payload: payload)).bytes(as: .v311)
            let head = hex("30" + expected + "0001 61")
            #expect(Array(bytes.prefix(head.count)) == head)
            #expect(bytes.count == 1 + hex(expected).count + length)
            #expect(bytes.dropFirst(head.count).allSatisfy { $0 == 0x55 })
        }
    }

    @Test("packets are appended to what the buffer holds")
    func appends() {
        var buffer = ByteBuffer(bytes: [1, 2, 3])
        buffer.moveReaderIndex(forwardBy: 1)
        let long = String(repeating: "x", count: 200)
        Packet.subscribe(Subscribe(1, [Subscription(filter: long)])).encode(as: .v311, into: &buffer)
        Packet.pingReq.encode(as: .v311, into: &buffer)
        let expected = hex("0203 82cd01 0001 00c8") + [UInt8](repeating: 0x78, count: 200) + hex("00 c000")
        #expect(Array(buffer.readableBytesView) == expected)
    }

    @Test("wrong packets go out as told")
    func wrongPackets() {
        let dup = Publish(topic: "+", qos: .atMostOnce, dup: true, packetID: 7)
        #expect(Packet.publish(dup).bytes(as: .v311) == hex("3803 0001 2b"))
        let noID = Publish(topic: "", qos: .atLeastOnce)
        #expect(Packet.publish(noID).bytes(as: .v311) == hex("3204 0000 0000"))
        #expect(Packet.subscribe(Subscribe(1, [])).bytes(as: .v5) == hex("8203 0001 00"))
        let twice: Properties = [.topicAlias(0), .topicAlias(1)]
        let properties = Publish(topic: "a", properties: twice)
        #expect(Packet.publish(properties).bytes(as: .v5) == hex("300a 0001 61 06 230000 230001"))
    }

    @Test("a string that has no place in two bytes of length is cut, not wrapped")
    func longStrings() {
        let bytes = Packet.publish(Publish(topic: String(repeating: "a", count: 65_540))).bytes(as: .v311)
        #expect(Array(bytes.prefix(7)) == hex("30 818004 ffff 61"))
        #expect(bytes.count == 4 + 2 + 65_535)
    }

    @Test("properties are read and set by name")
    func accessors() {
        var properties = Properties()
        #expect(properties.isEmpty)
        #expect(properties.receiveMaximum == nil)
        properties.receiveMaximum = 5
        properties.retainAvailable = false
        properties.reasonString = "r"
        properties.userProperties = [UserProperty("a", "1"), UserProperty("a", "2")]
        properties.receiveMaximum = 6
        properties.reasonString = nil
        #expect(properties.entries.count == 4)
        #expect(properties.receiveMaximum == 6)
        #expect(properties.retainAvailable == false)
        #expect(properties.userProperties.map(\.value) == ["1", "2"])
        #expect(MemoryLayout<Properties>.size == 8)
    }

    @Test("reason codes say the words of the standard")
    func reasonNames() {
        #expect(ReasonCode.allCases.count == 43)
        #expect(ReasonCode(rawValue: 0x94)?.name == "Topic Alias invalid")
        #expect(ReasonCode(rawValue: 0xA0)?.name == "Maximum connect time")
        #expect(!ReasonCode.reAuthenticate.isError)
        #expect(ReasonCode.unspecifiedError.isError)
    }

    @Test("only a wrong protocol level has a return code of 3.x")
    func returnCodes() {
        for error in DecodeError.everyCase {
            let isLevel = if case .protocolLevel = error { true } else { false }
            #expect(error.returnCode == (isLevel ? .unacceptableProtocolVersion : nil))
        }
    }
}
