import TestSupport
import Testing
import XMPPCodec

@Suite("The vectors of XMPP")
struct VectorTests {
    @Test("say what they say", arguments: Vector.readings)
    func reads(_ vector: Vector) throws {
        let reading = vector.read([vector.wire])
        #expect(reading.error == nil)
        #expect(reading.events.map(\.canonical) == vector.events)
        #expect(reading.isBetweenElements)
    }

    @Test("say the same at every cut", arguments: Vector.readings)
    func everyCut(_ vector: Vector) throws {
        for (head, tail) in vector.wire.everyCut {
            let reading = vector.read([head, tail])
            #expect(reading.error == nil, "cut at \(head.count)")
            #expect(reading.events.map(\.canonical) == vector.events, "cut at \(head.count)")
            #expect(reading.isBetweenElements)
        }
    }

    @Test("say the same byte by byte, and in pieces of seven", arguments: Vector.readings)
    func pieces(_ vector: Vector) throws {
        for size in [1, 2, 3, 7] {
            let reading = vector.read(vector.wire.pieces(of: size))
            #expect(reading.error == nil)
            #expect(reading.events.map(\.canonical) == vector.events)
        }
    }

    @Test("are refused with the error and its answer", arguments: Vector.refusals)
    func refuses(_ vector: Vector) throws {
        let reading = vector.read([vector.wire])
        let error = try #require(reading.error)
        #expect(error.testName == vector.mustFail)
        #expect(error.condition.rawValue == vector.condition)
        #expect(reading.events.map(\.canonical) == vector.events ?? [])
    }

    @Test("are refused with the same error at every cut and byte by byte", arguments: Vector.refusals)
    func refusesAtEveryCut(_ vector: Vector) throws {
        let cuts = vector.wire.everyCut.map { [$0.head, $0.tail] } + [1, 2, 3, 7].map(vector.wire.pieces)
        for pieces in cuts {
            let reading = vector.read(pieces)
            #expect(reading.error?.testName == vector.mustFail, "\(pieces.map(\.count))")
            #expect(reading.events.map(\.canonical) == vector.events ?? [])
        }
    }
}
