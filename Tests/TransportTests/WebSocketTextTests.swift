import LoopContext
import NIOCore
import TestSupport
import Testing
import Transport

@Suite("A WebSocket for XMPP", .timeLimit(.minutes(10)))
struct WebSocketTextTests {
    /// The messages that a text reader returns for bytes in `pieces`.
    static func messages(_ pieces: [[UInt8]], limit: Int = 1 << 20) throws -> [String] {
        var reader = WebSocketReader(isMasked: false, content: .text, limit: limit)
        var whole: [String] = []
        var message: [UInt8] = []
        for piece in pieces {
            try piece.withUnsafeBytes { bytes in
                var offset = 0
                while let event = try reader.next(bytes, from: &offset) {
                    switch event {
                    case .data(let range, _): message += bytes[range]
                    case .endOfMessage:
                        whole.append(String(decoding: message, as: UTF8.self))
                        message = []
                    default: break
                    }
                }
            }
        }
        return whole
    }

    static let frames =
        TestFrame(0x81, Array("<open/>".utf8)).bytes + TestFrame(0x01, Array("<a>".utf8)).bytes
        + TestFrame(0x89, [1]).bytes + TestFrame(0x00, []).bytes + TestFrame(0x80, Array("</a>".utf8)).bytes
        + TestFrame(0x81, []).bytes + TestFrame(0x81, Array("<b/>".utf8)).bytes

    @Test("[RFC 7395 §3.3.3] messages end where they end, in fragments and at every cut")
    func ends() throws {
        let expected = ["<open/>", "<a></a>", "", "<b/>"]
        #expect(try Self.messages([Self.frames]) == expected)
        for cut in Self.frames.everyCut { #expect(try Self.messages([cut.head, cut.tail]) == expected) }
        #expect(try Self.messages(Self.frames.pieces(of: 1)) == expected)
    }

    @Test("[RFC 7395 §3.2] a binary frame is refused, and so is a message over the limit, before it is read")
    func refuses() {
        #expect(throws: WebSocketViolation(.binary)) { try Self.messages([TestFrame(0x82, [1]).bytes]) }
        #expect(WebSocketViolation(.binary).code == 1003)
        #expect(throws: WebSocketViolation(.messageTooLarge(limit: 4))) {
            try Self.messages([Array(TestFrame(0x81, [1, 2, 3, 4, 5]).bytes.prefix(2))], limit: 4)
        }
    }

    static func answer(_ key: String, subprotocol: String = "xmpp") -> [UInt8] {
        WebSocketPeer.answer(key) { $0[4] = "Sec-WebSocket-Protocol: \(subprotocol)" }
    }

    static func withClient<Answer>(
        _ script: @escaping @Sendable (String) -> [WebSocketPeer.Step],
        _ body: (Result<Connection, ConnectError>, WebSocketPeer) async throws -> Answer
    ) async throws -> Answer {
        let settings = try WebSocketSettings.xmpp(path: "/ws", maximumMessageSize: 100_000)
        return try await withWebSocketPeer(script) { peer in
            try await withTestLoop(
                [Target(host: "127.0.0.1", port: peer.port)],
                layers: { [WebSocketLayer(settings, isSecure: false, receive: $0.receive)] }
            ) { loop in
                try await body(try await loop.connect(), peer)
            }
        }
    }

    @Test("[RFC 7395 §3.1] the subprotocol xmpp must be selected")
    func subprotocol() async throws {
        try await Self.withClient({ [.send(Self.answer($0, subprotocol: "mqtt"))] }) { result, peer in
            #expect(result.reason == .webSocket(.wrongSubprotocol("mqtt")))
            let request = try #require(try await peer.ask(\.requests).first)
            let head = try #require(try WebSocketHead.read(request, start: []))
            #expect(head.value("sec-websocket-protocol") == "xmpp")
        }
        try await Self.withClient({ [.send(WebSocketPeer.answer($0) { $0.remove(at: 4) })] }) { result, _ in
            #expect(result.reason == .webSocket(.noSubprotocol(offered: ["xmpp"])))
        }
    }

    @Test(
        "[RFC 7395 §3.3.3] each message reaches the handler whole and by itself, however it comes",
        arguments: [0, 1, 5]
    )
    func whole(size: Int) async throws {
        try await Self.withClient({ key in
            let frames = Self.frames
            // Some of it right behind the answer.
            return [.send(Self.answer(key) + frames.prefix(12))]
                + (size == 0 ? [.send(Array(frames.dropFirst(12)))] : [.trickle(Array(frames.dropFirst(12)))])
        }) { result, _ in
            let connection = try result.get()
            try await connection.until { $0.reads.count == 4 }
            #expect(try await connection.ask(\.reads) == [7, 7, 0, 4])
            #expect(try await connection.ask(\.bytes) == Array("<open/><a></a><b/>".utf8))
        }
    }

    @Test("many messages in one read are as many reads for the handler, in order")
    func many() async throws {
        let texts = (0..<500).map { "<m n='\($0)'/>" }
        let bytes = texts.flatMap { TestFrame(0x81, Array($0.utf8)).bytes }
        try await Self.withClient({ [.send(Self.answer($0)), .send(bytes)] }) { result, _ in
            let connection = try result.get()
            try await connection.until { $0.reads.count == 500 }
            #expect(try await connection.ask(\.reads) == texts.map(\.utf8.count))
            #expect(try await connection.ask(\.bytes) == Array(texts.joined().utf8))
        }
    }

    @Test("a message longer than any read is put together, and one longer than allowed is not")
    func long() async throws {
        let text = [UInt8](repeating: UInt8(ascii: "a"), count: 90_000)
        try await Self.withClient({ [.send(Self.answer($0)), .send(TestFrame(0x81, text).bytes)] }) { result, _ in
            let connection = try result.get()
            try await connection.until { !$0.reads.isEmpty }
            #expect(try await connection.ask(\.reads) == [90_000])
        }
        let tooLong = text + text
        try await Self.withClient({ [.send(Self.answer($0)), .send(TestFrame(0x81, tooLong).bytes)] }) { result, _ in
            let connection = try result.get()
            try await connection.until { !$0.errors.isEmpty }
            let errors = try await connection.ask { $0.errors.compactMap { $0 as? WebSocketViolation } }
            #expect(errors == [WebSocketViolation(.messageTooLarge(limit: 100_000))])
            #expect(try await connection.ask(\.reads) == [])
        }
    }

    @Test("[RFC 7395 §3.2] what is written leaves as one masked text frame each; a binary one from the server ends it")
    func writes() async throws {
        try await Self.withClient({ [.send(Self.answer($0)), .expectCount(26), .send(TestFrame(0x82, [1]).bytes)] }) {
            result,
            peer in
            let connection = try result.get()
            let channel = connection.channel
            try await channel.eventLoop.submit {
                channel.write(ByteBuffer(string: "<one/>"), promise: nil)
                channel.writeAndFlush(ByteBuffer(string: "<two/>"), promise: nil)
            }.get()
            try await peer.until { $0.received.count >= 24 }
            let received = try await peer.ask(\.received)
            #expect(received[0] == 0x81 && received[1] == 0x86 && received[12] == 0x81 && received[13] == 0x86)
            var reader = WebSocketReader(isMasked: true, content: .text, limit: 100)
            var texts: [String] = []
            try received.withUnsafeBytes { bytes in
                var offset = 0
                while let event = try reader.next(bytes, from: &offset) {
                    guard case .data(let range, let key) = event else { continue }
                    var plain = [UInt8](repeating: 0, count: range.count)
                    plain.withUnsafeMutableBytes { target in
                        guard let base = target.baseAddress else { return }
                        WebSocketMask.copy(UnsafeRawBufferPointer(rebasing: bytes[range]), to: base, key: key)
                    }
                    texts.append(String(decoding: plain, as: UTF8.self))
                }
            }
            #expect(texts == ["<one/>", "<two/>"])
            try await connection.send(Array("x".utf8))
            try await connection.until { !$0.errors.isEmpty }
            let errors = try await connection.ask { $0.errors.compactMap { $0 as? WebSocketViolation } }
            #expect(errors == [WebSocketViolation(.binary)])
        }
    }
}
