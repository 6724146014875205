import LoopContext
import NIOCore
import NIOPosix
import TestSupport
import Testing
import Transport

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

@Suite("A client's WebSocket", .timeLimit(.minutes(10)))
struct WebSocketLayerTests {
    static func withClient<Answer>(
        of port: Int,
        maximumMessageSize: Int = 1 << 29,
        subprotocols: [String] = ["mqtt"],
        _ body: (TestLoop) async throws -> Answer
    ) async throws -> Answer {
        let settings = try WebSocketSettings(subprotocols: subprotocols, maximumMessageSize: maximumMessageSize)
        return try await withTestLoop(
            [Target(host: "127.0.0.1", port: port)],
            layers: { [WebSocketLayer(settings, isSecure: false, receive: $0.receive)] },
            body
        )
    }

    /// A peer that answers well, and what it does then.
    static func withOpen<Answer>(
        _ steps: [WebSocketPeer.Step],
        maximumMessageSize: Int = 1 << 29,
        _ body: (Connection, WebSocketPeer) async throws -> Answer
    ) async throws -> Answer {
        try await withWebSocketPeer { key in
            [.send(WebSocketPeer.answer(key))] + steps
        } _: { peer in
            try await Self.withClient(of: peer.port, maximumMessageSize: maximumMessageSize) { loop in
                try await body(try await loop.connect().get(), peer)
            }
        }
    }

    /// The frames that a server reads from a client's bytes.
    static func frames(_ bytes: [UInt8]) -> FramesRead { WebSocketReaderTests.read([bytes], isMasked: true) }

    @Test("opens, is timed, and is not bare; the upgrade shows in no event")
    func opens() async throws {
        try await Self.withOpen([]) { connection, peer in
            #expect(connection.phases.tcp != nil)
            #expect(connection.phases.webSocket != nil)
            #expect(connection.phases.tls == nil)
            #expect(!connection.isBare)
            #expect(try await connection.ask(\.reads) == [])
            #expect(try await connection.ask(\.readTurns) == 0)
            let request = try #require(try await peer.ask(\.requests).first)
            let head = try #require(try WebSocketHead.read(request, start: []))
            #expect(head.value("host") == "127.0.0.1:\(peer.port)")
            #expect(head.value("sec-websocket-protocol") == "mqtt")
        }
    }

    @Test("an answer that comes byte by byte, immediately followed by data")
    func trickles() async throws {
        try await withWebSocketPeer { key in
            [.trickle(WebSocketPeer.answer(key) + TestFrame(0x82, [1, 2, 3]).bytes)]
        } _: { peer in
            try await Self.withClient(of: peer.port) { loop in
                let connection = try await loop.connect().get()
                try await connection.until { $0.bytes == [1, 2, 3] }
            }
        }
    }

    @Test("an answer and data in one segment, whole and cut")
    func dataBehindTheAnswer() async throws {
        let data = TestFrame(0x82, [1, 2, 3]).bytes + TestFrame(0x82, [4]).bytes
        for cut in data.everyCut {
            try await withWebSocketPeer { key in
                [.send(WebSocketPeer.answer(key) + cut.head), .expectCount(7), .send(cut.tail)]
            } _: { peer in
                try await Self.withClient(of: peer.port) { loop in
                    let connection = try await loop.connect().get()
                    try await connection.channel.writeAndFlush(ByteBuffer(bytes: [9]))
                    try await connection.until { $0.bytes == [1, 2, 3, 4] }
                }
            }
        }
    }

    // MARK: What does not open

    @Test(
        "says why there is no WebSocket",
        arguments: [
            (0, "HTTP/1.1 404 Not Found", .status(404), "the server answered the upgrade with HTTP status 404"),
            (0, "SSH-2.0-x", .notHTTP, "the server's answer to the upgrade is not HTTP/1.1"),
            (1, "X: y", .noUpgrade, "the server answered with status 101, but not with an upgrade to websocket"),
            (
                3, "Sec-WebSocket-Accept: x", .wrongAccept,
                "the server's Sec-WebSocket-Accept does not answer the key that was sent"
            ),
            (
                4, "X: y", .noSubprotocol(offered: ["mqtt", "mqttv3.1"]),
                "the server selected no subprotocol; offered: mqtt, mqttv3.1"
            ),
            (
                4, "Sec-WebSocket-Protocol: amqp", .wrongSubprotocol("amqp"),
                "the server selected the subprotocol 'amqp', which was not offered"
            ),
            (
                4, "Sec-WebSocket-Extensions: permessage-deflate", .extensions("permessage-deflate"),
                "the server selected the extensions 'permessage-deflate', and none was offered"
            ),
        ] as [(Int, String, WebSocketFailure, String)]
    )
    func refused(_ index: Int, _ line: String, _ failure: WebSocketFailure, _ words: String) async throws {
        try await withWebSocketPeer { key in
            [.send(WebSocketPeer.answer(key) { $0[index] = line })]
        } _: { peer in
            try await Self.withClient(of: peer.port, subprotocols: ["mqtt", "mqttv3.1"]) { loop in
                let error = try #require(try await loop.connect().failure)
                #expect(error.reason == .webSocket(failure))
                #expect(error.kind == "websocket")
                #expect(!error.isLocal)
                #expect(error.description == "no WebSocket with 127.0.0.1:\(peer.port): \(words)")
                #expect(error.phases.tcp != nil)
                try await peer.until(\.hasEnded)
                #expect(try await peer.ask(\.received) == [])
            }
        }
    }

    @Test("a head without an end is given up at 16 KiB")
    func endlessHead() async throws {
        try await withWebSocketPeer { _ in
            [.send(Array("HTTP/1.1 101 X\r\n".utf8))]
                + (0..<3_000).map { .send(Array("X-\($0): 0123456789\r\n".utf8)) }
        } _: { peer in
            try await Self.withClient(of: peer.port) { loop in
                let error = try #require(try await loop.connect().failure)
                #expect(error.reason == .webSocket(.headTooLarge))
            }
        }
    }

    @Test("an answer that stops ends at the deadline", arguments: [0, 1, 60])
    func silence(_ count: Int) async throws {
        try await withWebSocketPeer { key in
            [.send(Array(WebSocketPeer.answer(key)[..<count]))]
        } _: { peer in
            try await Self.withClient(of: peer.port) { loop in
                let error = try #require(try await loop.connect(within: .seconds(1)).failure)
                #expect(error.reason == .timedOut(.webSocket))
                #expect(error.kind == "timeout")
                try await peer.until(\.hasEnded)
            }
        }
    }

    @Test("a server that closes in the middle of its answer is one that closed", arguments: [0, 1, 17, 100])
    func closes(_ count: Int) async throws {
        for end in [WebSocketPeer.Step.close, .halfClose] {
            try await withWebSocketPeer { key in
                [.send(Array(WebSocketPeer.answer(key)[..<count])), end]
            } _: { peer in
                try await Self.withClient(of: peer.port) { loop in
                    let error = try #require(try await loop.connect().failure)
                    #expect(error.reason == .webSocket(.closed))
                }
            }
        }
    }

    @Test("a reset during the upgrade is a reset")
    func resets() async throws {
        try await withWebSocketPeer { _ in
            [.reset]
        } _: { peer in
            try await Self.withClient(of: peer.port) { loop in
                let error = try #require(try await loop.connect().failure)
                #expect(error.reason == .reset)
            }
        }
    }

    // MARK: Data

    @Test("what is written leaves masked, each frame with a key of its own, at each form of the length")
    func writes() async throws {
        let sizes = [1, 125, 126, 65_535, 65_536, 100_000]
        let total = sizes.reduce(0, +)
        try await Self.withOpen([]) { connection, peer in
            for size in sizes {
                let bytes = (0..<size).map { UInt8(truncatingIfNeeded: $0 + size) }
                try await connection.channel.writeAndFlush(ByteBuffer(bytes: bytes))
            }
            let overhead = 6 + 6 + 8 + 8 + 14 + 14
            try await peer.until { $0.received.count >= total + overhead }
            let received = try await peer.ask(\.received)
            #expect(received.count == total + overhead)
            let read = Self.frames(received)
            #expect(read.violation == nil)
            #expect(read.data == sizes.flatMap { size in (0..<size).map { UInt8(truncatingIfNeeded: $0 + size) } })
            #expect(received[..<2] == [0x82, 0x81])
            #expect(received[7..<9] == [0x82, 0x80 | 125])
            // Two equal keys in a row: once in four thousand million runs.
            #expect(Array(received[2..<6]) != Array(received[9..<13]))
        }
    }

    @Test("the frames of one read are handed on as one, their data side by side")
    func gathers() async throws {
        let frames = (0..<500).flatMap { TestFrame(0x82, [UInt8(truncatingIfNeeded: $0)]).bytes }
        try await Self.withOpen([.expectCount(7), .send(frames)]) { connection, _ in
            try await connection.channel.writeAndFlush(ByteBuffer(bytes: [1]))
            try await connection.until { $0.bytes.count == 500 }
            #expect(try await connection.ask(\.bytes) == (0..<500).map { UInt8(truncatingIfNeeded: $0) })
            #expect(try await connection.ask { $0.reads.count } <= 2)
            #expect(try await connection.ask { $0.reads.count == $0.readTurns })
        }
    }

    @Test("the loop's receive buffer goes back after an upgrade and after each read")
    func givesBack() async throws {
        try await withWebSocketPeer { key in
            [
                .send(WebSocketPeer.answer(key)), .expectCount(7), .send(TestFrame(0x82, [1, 2]).bytes),
                .expectCount(14), .send(TestFrame(0x82, [3, 4]).bytes),
            ]
        } _: { peer in
            try await Self.withClient(of: peer.port) { loop in
                var places: Set<Int> = []
                for client in 0..<3 {
                    let connection = try await loop.connect(client: client).get()
                    for count in 1...2 {
                        try await connection.channel.writeAndFlush(ByteBuffer(bytes: [1]))
                        try await connection.until { $0.bytes.count == 2 * count }
                    }
                    places.formUnion(try await connection.ask(\.places))
                }
                #expect(places.count == 1)
            }
        }
    }

    @Test("a ping is answered with its payload, and is no read to those behind")
    func ping() async throws {
        let ping = TestFrame(0x89, Array("are you there".utf8)).bytes
        try await Self.withOpen([.send(ping)]) { connection, peer in
            try await peer.until { $0.received.count >= ping.count + 4 }
            let received = try await peer.ask(\.received)
            #expect(received[0] == 0x8A)
            let key = Array(received[2..<6])
            #expect(received[6...].enumerated().map { $0.element ^ key[$0.offset % 4] } == Array("are you there".utf8))
            #expect(try await connection.ask(\.readTurns) == 0)
        }
    }

    // MARK: Ends

    @Test(
        "our end is a Close frame and a FIN; the server's Close frame is as good as its FIN",
        arguments: [true, false]
    )
    func finishes(_ hasCloseFrame: Bool) async throws {
        let answer: [WebSocketPeer.Step] =
            hasCloseFrame ? [.send(TestFrame(0x88, [0x03, 0xE8]).bytes)] : [.halfClose]
        // The data of 1 byte in 7, the Close frame of 2 in 8.
        try await Self.withOpen([.expectCount(15)] + answer) { connection, peer in
            try await connection.channel.writeAndFlush(ByteBuffer(bytes: [7]))
            try await connection.channel.close(mode: .output)
            try await peer.until(\.hasEnded)
            let read = Self.frames(try await peer.ask(\.received))
            #expect(read == FramesRead(data: [7], events: [.close(1000)]))
            try await connection.until { $0.events.contains(hasCloseFrame ? "inputClosed" : "inactive") }
            #expect(try await connection.ask(\.errors.isEmpty))
            await #expect(throws: ChannelError.self) {
                try await connection.channel.writeAndFlush(ByteBuffer(bytes: [8]))
            }
        }
    }

    @Test("a Close frame of the server's own is an end of input, told once, and answered with its code")
    func serverCloses() async throws {
        let close = TestFrame(0x88, [0x03, 0xE9]).bytes
        try await Self.withOpen([.send(TestFrame(0x82, [1]).bytes + close), .halfClose]) { connection, peer in
            try await connection.until { $0.events.contains("inputClosed") }
            #expect(try await connection.ask(\.bytes) == [1])
            try await connection.channel.close()
            try await peer.until { $0.received.count >= 8 }
            #expect(Self.frames(try await peer.ask(\.received)).events == [.close(1001)])
            #expect(try await connection.ask { $0.events.count { $0 == "inputClosed" } } == 1)
        }
    }

    @Test(
        "[MQTT-6.0.0-1] what breaks the protocol is an error, behind the data before it, and a Close frame that says so",
        arguments: [
            (TestFrame(0x81, Array("text".utf8)).bytes, .text, 1003),
            (TestFrame(0x82, [1], key: [1, 2, 3, 4]).bytes, .masked, 1002),
            (TestFrame(0xC2, [1]).bytes, .reservedBits, 1002),
            (TestFrame(0x83, [1]).bytes, .reservedOpcode(3), 1002),
            ([0x82, 127, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF], .messageTooLarge(limit: 1_000), 1009),
            ([0x82, 126, 0x10, 0x00], .messageTooLarge(limit: 1_000), 1009),
            (TestFrame(0x88, [0x03, 0xE8, 0xC3]).bytes, .closeReason, 1007),
        ] as [([UInt8], WebSocketViolation.Rule, UInt16)]
    )
    func violations(_ bytes: [UInt8], _ rule: WebSocketViolation.Rule, _ code: UInt16) async throws {
        let stream = TestFrame(0x82, [1, 2]).bytes + bytes + TestFrame(0x82, [3]).bytes
        try await Self.withOpen([.send(stream)], maximumMessageSize: 1_000) { connection, peer in
            try await connection.until { $0.events.contains("error") }
            #expect(try await connection.ask { $0.errors.first as? WebSocketViolation } == WebSocketViolation(rule))
            #expect(try await connection.ask(\.bytes) == [1, 2])
            try await connection.channel.close()
            try await peer.until { $0.received.count >= 8 }
            #expect(Self.frames(try await peer.ask(\.received)).events == [.close(code)])
        }
    }

    @Test("a reset goes through as it is")
    func resetLater() async throws {
        try await Self.withOpen([.expectCount(7), .reset]) { connection, _ in
            try await connection.channel.writeAndFlush(ByteBuffer(bytes: [1]))
            try await connection.until { $0.events.contains("error") }
            let error = try await connection.ask { ($0.errors.first as? IOError)?.errnoCode }
            #expect(error == ECONNRESET)
        }
    }

    @Test("pings without end are answered by their last, when there is room")
    func pingFlood() async throws {
        let pings = (0..<2_000).flatMap { TestFrame(0x89, [UInt8($0 >> 8), UInt8($0 & 0xFF)]).bytes }
        try await Self.withOpen([.send(pings)]) { _, peer in
            // The last ping is 1,999; how many reads brought them is the kernel's choice.
            try await peer.until { state in
                guard state.received.count % 8 == 0, state.received.count >= 8 else { return false }
                let key = Array(state.received.suffix(6).prefix(4))
                return Array(state.received.suffix(2)) == [7 ^ key[0], 207 ^ key[1]]
            }
            #expect(try await peer.ask(\.received.count) < 2_000)
        }
    }
}

extension Result {
    fileprivate var failure: Failure? {
        guard case .failure(let error) = self else { return nil }
        return error
    }
}
