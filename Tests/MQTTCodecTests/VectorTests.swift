import MQTTCodec
import TestSupport
import Testing

@Suite("The vectors")
struct VectorTests {
    @Test("decode to the packet", arguments: Vector.packets)
    func decodes(_ vector: Vector) throws {
        var decoder = try vector.decoder()
        let packets = try decoder.decode(vector.wire)
        #expect(packets == [try vector.expected])
        let isWhole = decoder.isAtPacketBoundary
        #expect(isWhole)
        let version = decoder.version
        #expect(version == vector.protocolVersion)
    }

    @Test("encode to the bytes, or to another form of the same packet", arguments: Vector.packets)
    func encodes(_ vector: Vector) throws {
        let packet = try vector.expected
        let bytes = packet.bytes(as: vector.protocolVersion)
        if vector.otherForm == true {
            var decoder = try vector.decoder()
            #expect(bytes != vector.wire)
            let packets = try decoder.decode(bytes)
            #expect(packets == [packet])
        } else {
            #expect(bytes.hexText == vector.wire.hexText)
        }
    }

    @Test("wait at every cut, and go on with the rest", arguments: Vector.packets)
    func everyCut(_ vector: Vector) throws {
        for (head, tail) in vector.wire.everyCut.dropLast() {
            var decoder = try vector.decoder()
            let before = decoder.packets
            let early = try decoder.decode(head)
            #expect(early == [])
            let isWhole = decoder.isAtPacketBoundary
            #expect(isWhole == head.isEmpty)
            let during = decoder.packets
            #expect(during == before)
            let packets = try decoder.decode(tail)
            #expect(packets == [try vector.expected])
            let after = decoder.packets
            #expect(after == before + 1)
        }
    }

    @Test("come out of single bytes", arguments: Vector.packets)
    func singleBytes(_ vector: Vector) throws {
        let result = outcome(try vector.decoder(), (vector.wire).pieces(of: 1))
        #expect(result.packets == [try vector.expected])
        #expect(result.error == nil)
    }

    @Test("are refused with the error and the answer", arguments: Vector.refusals)
    func refuses(_ vector: Vector) throws {
        let result = outcome(try vector.decoder(), [vector.wire])
        let error = try #require(result.error)
        #expect(error.testName == vector.mustFail)
        #expect(error.reason.rawValue == hex(vector.reason ?? "")[0])
        #expect(result.packets == [])
    }

    @Test("are refused with the same error at every cut and byte by byte", arguments: Vector.refusals)
    func refusesAtEveryCut(_ vector: Vector) throws {
        let cuts = vector.wire.everyCut.map { [$0.head, $0.tail] } + [vector.wire.pieces(of: 1)]
        for pieces in cuts {
            let result = outcome(try vector.decoder(), pieces)
            #expect(result.error?.testName == vector.mustFail)
            #expect(result.packets == [])
        }
    }

    @Test("are refused behind a good packet too, which still comes out", arguments: Vector.refusals)
    func refusesLater(_ vector: Vector) throws {
        guard !vector.isConnect, !vector.isServer else { return }
        let result = outcome(try vector.decoder(), [hex("d000") + vector.wire])
        #expect(result.packets == [.pingResp])
        #expect(result.error?.testName == vector.mustFail)
    }
}
