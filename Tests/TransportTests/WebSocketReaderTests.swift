import TestSupport
import Testing
import Transport

/// A frame, put together byte by byte from RFC 6455 §5.2.
struct TestFrame: Sendable {
    var first: UInt8
    var payload: [UInt8]
    var key: [UInt8]?

    init(_ first: UInt8, _ payload: [UInt8] = [], key: [UInt8]? = nil) {
        self.first = first
        self.payload = payload
        self.key = key
    }

    var bytes: [UInt8] {
        let mask: UInt8 = self.key == nil ? 0 : 0x80
        var bytes = [self.first]
        switch self.payload.count {
        case ...125: bytes.append(mask | UInt8(self.payload.count))
        case ...65_535: bytes += [mask | 126, UInt8(self.payload.count >> 8), UInt8(self.payload.count & 0xFF)]
        default: bytes += [mask | 127] + (0..<8).map { UInt8(self.payload.count >> (56 - 8 * $0) & 0xFF) }
        }
        guard let key else { return bytes + self.payload }
        return bytes + key + self.payload.enumerated().map { $0.element ^ key[$0.offset % 4] }
    }
}

/// The result of reading a stream.
struct FramesRead: Hashable {
    var data: [UInt8] = []
    var events: [WebSocketReader.Event] = []
    var violation: WebSocketViolation?
}

struct FrameVector: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let frames: [TestFrame]
    let data: [UInt8]
    let events: [WebSocketReader.Event]

    init(_ name: String, _ frames: [TestFrame], data: [UInt8], events: [WebSocketReader.Event] = []) {
        self.testDescription = name
        self.frames = frames
        self.data = data
        self.events = events
    }
}

struct RefusedFrame: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let bytes: [UInt8]
    let rule: WebSocketViolation.Rule
    let code: UInt16
    var isMasked = false

    init(
        _ name: String,
        _ bytes: [UInt8],
        _ rule: WebSocketViolation.Rule,
        _ code: UInt16 = 1002,
        isMasked: Bool = false
    ) {
        self.testDescription = name
        self.bytes = bytes
        self.rule = rule
        self.code = code
        self.isMasked = isMasked
    }
}

@Suite("WebSocket frames")
struct WebSocketReaderTests {
    static func read(_ pieces: [[UInt8]], isMasked: Bool = false, limit: Int = 1 << 29) -> FramesRead {
        var reader = WebSocketReader(isMasked: isMasked, limit: limit)
        var outcome = FramesRead()
        for piece in pieces {
            piece.withUnsafeBytes { bytes in
                var offset = 0
                do throws(WebSocketViolation) {
                    while let event = try reader.next(bytes, from: &offset) {
                        guard case .data(let range, let key) = event else {
                            outcome.events.append(event)
                            continue
                        }
                        var plain = [UInt8](repeating: 0, count: range.count)
                        plain.withUnsafeMutableBytes { target in
                            guard let base = target.baseAddress else { return }
                            WebSocketMask.copy(.init(rebasing: bytes[range]), to: base, key: key)
                        }
                        outcome.data += plain
                    }
                } catch {
                    outcome.violation = outcome.violation ?? error
                }
            }
            if outcome.violation != nil { break }
        }
        return outcome
    }

    static let key: [UInt8] = [0x37, 0xFA, 0x21, 0x3D]
    static let long = (0..<70_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }

    static let vectors = [
        FrameVector("one message", [TestFrame(0x82, [1, 2, 3])], data: [1, 2, 3]),
        FrameVector("an empty message", [TestFrame(0x82), TestFrame(0x82, [1])], data: [1]),
        FrameVector(
            "fragments, the last one empty",
            [TestFrame(0x02, [1, 2]), TestFrame(0x00, [3]), TestFrame(0x80), TestFrame(0x82, [4])],
            data: [1, 2, 3, 4]
        ),
        FrameVector(
            "a ping between fragments (§5.4)",
            [TestFrame(0x02, [1, 2]), TestFrame(0x89, Array("hi".utf8)), TestFrame(0x80, [3])],
            data: [1, 2, 3],
            events: [.ping(Array("hi".utf8))]
        ),
        FrameVector("an unsolicited pong (§5.5.3)", [TestFrame(0x8A, [9])], data: [], events: [.pong]),
        FrameVector(
            "a ping of 125 bytes",
            [TestFrame(0x89, Array(repeating: 7, count: 125))],
            data: [],
            events: [.ping(Array(repeating: 7, count: 125))]
        ),
        FrameVector("a length of 126", [TestFrame(0x82, Array(long[..<126]))], data: Array(long[..<126])),
        FrameVector(
            "close without a code, and frames after it",
            [TestFrame(0x88), TestFrame(0xFF, [1])],
            data: [],
            events: [.close(nil)]
        ),
        FrameVector(
            "close with code and reason",
            [TestFrame(0x82, [5]), TestFrame(0x88, [0x03, 0xE9] + Array("bye ü".utf8))],
            data: [5],
            events: [.close(1001)]
        ),
        FrameVector(
            "close with an application's code",
            [TestFrame(0x88, [0x0F, 0xA0])],
            data: [],
            events: [.close(4000)]
        ),
    ]

    @Test("are read whole and at every cut, plain and masked", arguments: vectors)
    func reads(_ vector: FrameVector) {
        let expected = FramesRead(data: vector.data, events: vector.events)
        for isMasked in [false, true] {
            let bytes = vector.frames.flatMap { frame in
                TestFrame(frame.first, frame.payload, key: isMasked ? Self.key : nil).bytes
            }
            #expect(Self.read([bytes], isMasked: isMasked) == expected)
            for cut in bytes.everyCut { #expect(Self.read([cut.head, cut.tail], isMasked: isMasked) == expected) }
            #expect(Self.read(bytes.pieces(of: 1), isMasked: isMasked) == expected)
        }
    }

    @Test("each form of the length (§5.2)", arguments: [0, 125, 126, 65_535, 65_536, 70_000])
    func lengths(_ count: Int) {
        let payload = Array(Self.long[..<count])
        for key in [nil, Self.key] {
            let bytes = TestFrame(0x82, payload, key: key).bytes
            #expect(Self.read([bytes], isMasked: key != nil).data == payload)
            #expect(Self.read(bytes.pieces(of: 1_460), isMasked: key != nil).data == payload)
            #expect(Self.read(bytes.pieces(of: 7), isMasked: key != nil).data == payload)
        }
    }

    static let refused = [
        RefusedFrame("RSV1 (§5.2)", [0xC2], .reservedBits),
        RefusedFrame("RSV2 (§5.2)", [0xA2], .reservedBits),
        RefusedFrame("RSV3 (§5.2)", [0x92], .reservedBits),
        RefusedFrame("[MQTT-6.0.0-1] text", [0x81], .text, 1003),
        RefusedFrame("[MQTT-6.0.0-1] the first fragment of a text", [0x01], .text, 1003),
        RefusedFrame("a ping in fragments (§5.5)", [0x09], .fragmentedControl),
        RefusedFrame("a close in fragments (§5.5)", [0x08], .fragmentedControl),
        RefusedFrame("a ping of 126 bytes (§5.5)", [0x89, 126], .longControl),
        RefusedFrame("a pong of 2^16 bytes (§5.5)", [0x8A, 127], .longControl),
        RefusedFrame("a masked frame from a server (§5.1)", [0x82, 0x81], .masked),
        RefusedFrame("an unmasked frame from a client (§5.1)", [0x82, 0x01], .unmasked, isMasked: true),
        RefusedFrame("a continuation of nothing (§5.4)", [0x80], .fragments),
        RefusedFrame("a message within a message (§5.4)", [0x02, 0x01, 0xAA, 0x82], .fragments),
        RefusedFrame("a continuation behind the last fragment (§5.4)", [0x02, 0, 0x80, 0, 0x80], .fragments),
        RefusedFrame("125 in the form of two bytes (§5.2)", [0x82, 126, 0, 125], .length),
        RefusedFrame("65,535 in the form of eight bytes (§5.2)", [0x82, 127, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF], .length),
        RefusedFrame("the highest bit of a length (§5.2)", [0x82, 127, 0x80, 0, 0, 0, 0, 0, 0, 0], .length),
        RefusedFrame(
            "a frame of 2^63 - 1 bytes",
            [0x82, 127, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF],
            .messageTooLarge(limit: 1_000),
            1009
        ),
        RefusedFrame("a frame of 1,001 bytes", [0x82, 126, 0x03, 0xE9], .messageTooLarge(limit: 1_000), 1009),
        RefusedFrame(
            "1,001 bytes in two fragments",
            TestFrame(0x02, Array(repeating: 0, count: 1_000)).bytes + [0x80, 1],
            .messageTooLarge(limit: 1_000),
            1009
        ),
        RefusedFrame("a close of one byte (§5.5.1)", [0x88, 1, 3], .closeCode),
        RefusedFrame("a close reason that is not UTF-8 (§5.5.1)", [0x88, 3, 0x03, 0xE8, 0xFF], .closeReason, 1007),
    ]

    @Test("are refused at the first byte that is wrong, whole and byte by byte", arguments: refused)
    func refuses(_ vector: RefusedFrame) {
        for pieces in [[vector.bytes], vector.bytes.pieces(of: 1)] {
            let outcome = Self.read(pieces, isMasked: vector.isMasked, limit: 1_000)
            #expect(outcome.violation == WebSocketViolation(vector.rule))
            #expect(outcome.violation?.code == vector.code)
        }
        let early = Self.read([vector.bytes.dropLast()], isMasked: vector.isMasked, limit: 1_000)
        #expect(early.violation == nil)
    }

    @Test("opcodes 3 to 7 and 11 to 15 are reserved (§5.2)", arguments: [3, 4, 5, 6, 7, 11, 12, 13, 14, 15] as [UInt8])
    func reserved(_ opcode: UInt8) {
        #expect(Self.read([[0x80 | opcode]]).violation == WebSocketViolation(.reservedOpcode(opcode)))
    }

    @Test(
        "codes that are never sent (§7.4)",
        arguments: [0, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000, 65_535] as [UInt16]
    )
    func codes(_ code: UInt16) {
        let bytes = TestFrame(0x88, [UInt8(code >> 8), UInt8(code & 0xFF)]).bytes
        #expect(Self.read([bytes]).violation == WebSocketViolation(.closeCode))
    }

    @Test("random bytes never trap, and are read alike however they are cut")
    func randomBytes() {
        var generator = SeededGenerator(seed: 4)
        for round in 0..<20_000 {
            let isMasked = round % 2 == 0
            var bytes: [UInt8] = []
            for _ in 0..<Int.random(in: 1...6, using: &generator) {
                let first =
                    [0x82, 0x02, 0x00, 0x80, 0x88, 0x89, 0x8A, UInt8.random(in: 0...255, using: &generator)]
                    .randomElement(using: &generator) ?? 0
                let payload = (0..<Int.random(in: 0...20, using: &generator)).map { _ in
                    UInt8.random(in: 0...255, using: &generator)
                }
                bytes += TestFrame(first, payload, key: isMasked ? Self.key : nil).bytes
            }
            let whole = Self.read([bytes], isMasked: isMasked, limit: 64)
            let cut = Self.read(bytes.pieces(upTo: 9, using: &generator), isMasked: isMasked, limit: 64)
            #expect(whole == cut)
        }
    }
}
