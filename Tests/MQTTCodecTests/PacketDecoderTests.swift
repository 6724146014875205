import MQTTCodec
import NIOCore
import TestSupport
import Testing

@Suite("The decoder")
struct PacketDecoderTests {
    @Test("gives the same packets for any fragmentation", arguments: 0..<UInt64(24))
    func fragmentation(_ seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let version = ProtocolVersion.allCases[Int(seed % 3)]
        let packets = (0..<40).map { _ in Packet.random(from: .server, version, using: &generator) }
        let stream = packets.flatMap { $0.bytes(as: version) }
        for largest in [1, 2, 7, 100, 5000] {
            let pieces = stream.pieces(upTo: largest, using: &generator)
            let result = outcome(PacketDecoder(role: .client(version)), pieces)
            #expect(result.error == nil)
            #expect(result.packets == packets)
        }
    }

    @Test("decodes the encoded packets, to a client", arguments: 0..<UInt64(150))
    func roundTripToClient(_ seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed &* 7919)
        for version in ProtocolVersion.allCases {
            let packet = Packet.random(from: .server, version, using: &generator)
            var decoder = PacketDecoder(role: .client(version))
            let decoded = try decoder.decode(packet.bytes(as: version))
            #expect(decoded == [packet])
        }
    }

    @Test("decodes the encoded packets, to a server", arguments: 0..<UInt64(150))
    func roundTripToServer(_ seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed &* 104_729)
        for version in ProtocolVersion.allCases {
            let packet = Packet.random(from: .client, version, using: &generator)
            var decoder = packet.type == .connect ? PacketDecoder(role: .server) : try connectedServer(version)
            let decoded = try decoder.decode(packet.bytes(as: version))
            #expect(decoded == [packet])
        }
    }

    @Test("survives any bytes, and answers the same in one piece and in single bytes", arguments: 0..<UInt64(200))
    func hostileBytes(_ seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed &+ 1_000_003)
        let version = ProtocolVersion.allCases[Int(seed % 3)]
        for _ in 0..<20 {
            // Half of them are good packets with some bytes changed, which get further than noise.
            var bytes = Packet.random(from: .server, version, using: &generator).bytes(as: version)
            if Bool.random(using: &generator) {
                bytes = (0..<60).map { _ in UInt8.random(in: 0...255, using: &generator) }
            } else {
                for _ in 0..<3 {
                    bytes[Int.random(in: bytes.indices, using: &generator)] = .random(in: 0...255, using: &generator)
                }
            }
            let whole = outcome(PacketDecoder(role: .client(version), maximumPacketSize: 4096), [bytes])
            let cut = outcome(PacketDecoder(role: .client(version), maximumPacketSize: 4096), bytes.pieces(of: 1))
            #expect(whole.error == cut.error)
            #expect(whole.packets == cut.packets)
        }
    }

    @Test("refuses a packet over the limit as soon as its length is there, and takes one at the limit")
    func limit() throws {
        // 0x30, 0x80 0x01, then 128 bytes: 131 together.
        let head = hex("30 8001")
        let tooSmall = outcome(PacketDecoder(role: .client(.v5), maximumPacketSize: 130), [head])
        #expect(tooSmall.error == .packetTooLarge(size: 131))
        #expect(tooSmall.error?.reason == .packetTooLarge)
        let bytewise = outcome(PacketDecoder(role: .client(.v5), maximumPacketSize: 130), head.pieces(of: 1))
        #expect(bytewise.error == .packetTooLarge(size: 131))

        var decoder = PacketDecoder(role: .client(.v5), maximumPacketSize: 131)
        let packets = try decoder.decode(head, hex("0001 61 00") + [UInt8](repeating: 0, count: 124))
        #expect(packets.count == 1)
    }

    @Test("of a connection takes 512 KiB before CONNECT or CONNACK, and its own limit afterwards")
    func firstPacket() throws {
        for (role, head) in [(.client(.v311), "20"), (.client(.v5), "20"), (.server, "10")]
            as [(PacketDecoder.Role, String)]
        {
            let most = outcome(PacketDecoder(connection: role, maximumPacketSize: 1 << 20), [hex("\(head) FCFF1F")])
            #expect(most.error == nil)
            let more = outcome(PacketDecoder(connection: role, maximumPacketSize: 1 << 20), [hex("\(head) FDFF1F")])
            #expect(more.error == .packetTooLarge(size: 524_289))
            // A lower limit counts from the first packet on.
            let low = outcome(PacketDecoder(connection: role, maximumPacketSize: 100), [hex("\(head) 63")])
            #expect(low.error == .packetTooLarge(size: 101))
        }
        let firsts: [(PacketDecoder.Role, String)] = [
            (.client(.v5), "20 03 0000 00"), (.server, "100d 0004 4d515454 05 02 003c 00 0000"),
        ]
        for (role, first) in firsts {
            // 1 MiB, and one byte more.
            for (second, error) in [("30 FCFF3F", nil), ("30 FDFF3F", .packetTooLarge(size: 1_048_577))]
                as [(String, DecodeError?)]
            {
                let decoder = PacketDecoder(connection: role, maximumPacketSize: 1 << 20)
                let result = outcome(decoder, [hex(first), hex(second)])
                #expect(result.packets.count == 1)
                #expect(result.error == error)
            }
        }
    }

    @Test("accepts a length of 268,435,455, and refuses a fifth length byte (§1.5.5)")
    func fifthLengthByte() throws {
        var decoder = PacketDecoder(role: .client(.v5))
        let packets = try decoder.decode(hex("30 ffffff7f"), hex("0001 61"))
        #expect(packets == [])
        let isWhole = decoder.isAtPacketBoundary
        #expect(!isWhole)
        // The length has at most four bytes (§1.5.5), whatever the value of the fifth.
        for longer in [hex("30 ffffff80"), hex("30 ffffffff 7f"), hex("30 ffffff80 01")] {
            var decoder = PacketDecoder(role: .client(.v5))
            var sink = CollectingSink()
            #expect(throws: DecodeError.remainingLengthTooLong) { try decoder.decode(pieces: [longer], into: &sink) }
        }
    }

    @Test("takes nothing more after an error")
    func stopsAfterError() throws {
        var decoder = PacketDecoder(role: .client(.v5))
        var sink = CollectingSink()
        #expect(throws: DecodeError.packetTypeZero) { try decoder.decode(pieces: [hex("d000 0000")], into: &sink) }
        try decoder.decode(pieces: [hex("d000")], into: &sink)
        #expect(sink.packets == [.pingResp])
    }

    @Test("stops when the sink has had enough, in a packet and behind a cut one")
    func sinkStops() throws {
        for pieces in [[hex("d000 d000 d000")], [hex("d0"), hex("00 d000"), hex("d000")]] {
            var decoder = PacketDecoder(role: .client(.v5))
            var sink = CollectingSink(limit: 2)
            try decoder.decode(pieces: pieces, into: &sink)
            try decoder.decode(pieces: [hex("d000")], into: &sink)
            #expect(sink.packets == [.pingResp, .pingResp])
        }
    }

    @Test("learns the version from the CONNECT, and reads the rest by it")
    func learnsVersion() throws {
        for version in ProtocolVersion.allCases {
            let decoder = try connectedServer(version)
            let learned = decoder.version
            #expect(learned == version)
        }
    }

    @Test("checks a topic that differs from the one before in a single byte")
    func topicsBesideEachOther() throws {
        let good = hex("30 0b 0009 616263646566676869")
        let bad = hex("30 0b 0009 616263642b66676869")
        let result = outcome(PacketDecoder(role: .client(.v311)), [good + good + bad])
        #expect(result.packets.count == 2)
        #expect(result.error == .topicHasWildcard)
    }

    @Test("[MQTT-3.3.2-2] [MQTT-1.5.4-2] refuses a wildcard and U+0000 at every place of a topic", arguments: 1...40)
    func everyPlace(_ count: Int) {
        for place in 0..<count {
            for (byte, error) in [(0x2B, .topicHasWildcard), (0x23, .topicHasWildcard), (0, .nullCharacter)]
                as [(UInt8, DecodeError)]
            {
                var topic = [UInt8](repeating: 0x61, count: count)
                topic[place] = byte
                let packet = [0x30, UInt8(count + 2), 0, UInt8(count)] + topic
                #expect(outcome(PacketDecoder(role: .client(.v311)), [packet]).error == error)
            }
        }
    }

    @Test("refuses control characters and non-characters when told, and only then")
    func controlCharacters() {
        for character in ["01", "1f", "7f", "c280", "c29f", "efb790", "efbfbf", "f09fbfbe"] {
            let bytes = hex(character)
            let packet = [0x30, UInt8(bytes.count + 11), 0, UInt8(bytes.count + 9)] + "abcdefghi".utf8 + bytes
            #expect(outcome(PacketDecoder(role: .client(.v311)), [packet]).error == nil)
            var strict = PacketDecoder(role: .client(.v311))
            strict.refusesControlCharacters = true
            #expect(outcome(strict, [packet]).error == .controlCharacter)
        }
    }

    @Test("[MQTT-1.5.4-1] takes every character of UTF-8 and no surrogate (Swift's own tables are the second source)")
    func everyScalar() {
        for value in stride(from: UInt32(1), through: 0x10_FFFF, by: 13) {
            guard let scalar = Unicode.Scalar(value) else { continue }
            let text = [UInt8](String(Character(scalar)).utf8)
            if value == 0x2B || value == 0x23 { continue }
            let packet = [0x30, UInt8(text.count + 2), 0, UInt8(text.count)] + text
            #expect(outcome(PacketDecoder(role: .client(.v311)), [packet]).error == nil)
        }
    }
}
