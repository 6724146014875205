import EmbeddedBroker
import NIOCore
import TestSupport
import Testing
import Transport

@Suite("The broker's WebSocket, byte by byte", .timeLimit(.minutes(10)))
struct BrokerWebSocketTests {
    static let request = Array(
        """
        GET /mqtt HTTP/1.1\r
        Host: b\r
        Upgrade: websocket\r
        Connection: Upgrade\r
        Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r
        Sec-WebSocket-Version: 13\r
        Sec-WebSocket-Protocol: mqtt\r
        \r\n
        """.utf8
    )
    static let answer = Array(
        """
        HTTP/1.1 101 Switching Protocols\r
        Upgrade: websocket\r
        Connection: Upgrade\r
        Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r
        Sec-WebSocket-Protocol: mqtt\r
        \r\n
        """.utf8
    )
    static let key: [UInt8] = [1, 2, 3, 4]

    static func frame(_ first: UInt8, _ payload: [UInt8]) -> [UInt8] {
        [first, 0x80 | UInt8(payload.count)] + self.key
            + payload.enumerated().map { $0.element ^ self.key[$0.offset % 4] }
    }

    @discardableResult
    static func withBroker(
        _ configure: (inout BrokerConfiguration) -> Void = { _ in },
        _ body: (Int) async throws -> Void
    ) async throws -> BrokerCounters {
        try await BrokerServerTests.withBroker("") { configuration in
            configuration.listeners = [BrokerListener(.webSocket, port: 0)]
            configure(&configuration)
        } _: { server in
            try await body(try #require(server.port(of: .webSocket)))
        }
    }

    static let connect = BrokerListenerTests.connect311
    /// CONNACK in one frame.
    static let connack: [UInt8] = [0x82, 4, 0x20, 2, 0, 0]

    @Test("[MQTT-6.0.0-2] packets share and straddle frames, fragments and reads")
    func packets() async throws {
        // On a busy host ten seconds may pass between two of its bytes.
        try await Self.withBroker({ $0.connectDeadline = .hours(1) }) { port in
            let goodbye = Self.frame(0x82, [0xC0, 0, 0xE0, 0])
            let split =
                Self.frame(0x02, Array(Self.connect[..<3])) + Self.frame(0x89, [7])
                + Self.frame(0x00, Array(Self.connect[3..<9])) + Self.frame(0x80, Array(Self.connect[9...] + [0xC0]))
                + Self.frame(0x82, [0x00, 0xE0, 0])
            let shared = Self.frame(0x82, Self.connect + [0xC0, 0, 0xE0, 0])
            for stream in [Self.frame(0x82, Self.connect) + goodbye, split, shared] {
                for pieces in [[Self.request + stream], [Self.request, stream], (Self.request + stream).pieces(of: 1)] {
                    let came = try await RawClient.talk(port, pieces)
                    #expect(came.starts(with: Self.answer))
                    // However the answers share frames: CONNACK, PINGRESP, then a Close frame.
                    try #require(came.count >= Self.answer.count)
                    let read = Self.read(Array(came[Self.answer.count...]))
                    #expect(read.data == [0x20, 2, 0, 0, 0xD0, 0])
                    #expect(read.close == 1000)
                    // Also where the ping comes in one read with the goodbye (RFC 6455 §5.5.2).
                    #expect(read.pongs == (stream == split ? [[7]] : []))
                }
            }
        }
    }

    /// The payload of a server's frames, up to its Close frame.
    static func read(_ bytes: [UInt8]) -> (data: [UInt8], close: Int?, pongs: [[UInt8]]) {
        var data: [UInt8] = []
        var pongs: [[UInt8]] = []
        var rest = bytes[...]
        while rest.count >= 2, let first = rest.popFirst(), let length = rest.popFirst(), rest.count >= length {
            let payload = Array(rest.prefix(Int(length)))
            rest = rest.dropFirst(Int(length))
            switch first {
            case 0x82: data += payload
            case 0x8A: pongs.append(payload)
            case 0x88: return (data, Int(payload[0]) << 8 | Int(payload[1]), pongs)
            default: return (data, nil, pongs)
            }
        }
        return (data, nil, pongs)
    }

    @Test(
        "what breaks the protocol is answered with its code and the end of the connection",
        arguments: [
            ("[MQTT-6.0.0-1] text", frame(0x81, Array("hi".utf8)), 1003),
            ("unmasked", [0x82, 2, 0xC0, 0], 1002),
            ("reserved bits", frame(0xC2, [0xC0, 0]), 1002), ("reserved opcode", frame(0x83, []), 1002),
            ("a fragmented ping", frame(0x09, [1]), 1002), ("a long ping", [0x89, 0xFE, 0, 126], 1002),
            ("a continuation of nothing", frame(0x80, [1]), 1002),
            ("a length of 2^63", [0x82, 0xFF, 0x80, 0, 0, 0, 0, 0, 0, 0], 1002),
            ("a length of 2^62", [0x82, 0xFF, 0x40, 0, 0, 0, 0, 0, 0, 0], 1009),
            ("a close code that is never sent", frame(0x88, [0x03, 0xED]), 1002),
            ("a close reason that is not UTF-8", frame(0x88, [0x03, 0xE8, 0xFF]), 1007),
        ] as [(String, [UInt8], Int)]
    )
    func violations(_ name: String, _ bytes: [UInt8], _ code: Int) async throws {
        let counters = try await Self.withBroker { port in
            let before = Self.request + Self.frame(0x82, Self.connect)
            for stream in [[before + bytes], [before, bytes]] {
                let came = try await RawClient.talk(port, stream)
                #expect(came == Self.answer + Self.connack + [0x88, 2, UInt8(code >> 8), UInt8(code & 0xFF)])
            }
        }
        // The broker knows at once, and routes nothing more to a client that can get nothing.
        #expect(counters.disconnects == ["protocol": 2])
    }

    @Test("a client's Close frame is answered with its code, behind all that was asked before")
    func close() async throws {
        let counters = try await Self.withBroker { port in
            let stream = Self.frame(0x82, Self.connect + [0xC0, 0]) + Self.frame(0x88, [0x03, 0xE9])
            let came = try await RawClient.talk(port, [Self.request + stream])
            try #require(came.count >= Self.answer.count)
            let read = Self.read(Array(came[Self.answer.count...]))
            #expect(read.data == [0x20, 2, 0, 0, 0xD0, 0])
            #expect(read.close == 1001)
        }
        #expect(counters.disconnects["client"] == nil)
        #expect(counters.disconnects.values.reduce(0, +) == 1)
    }

    @Test(
        "who asks for something else gets one line and the end of the connection",
        arguments: [
            ("GET / HTTP/1.1\r\nHost: b\r\n\r\n", 426, "this port speaks MQTT over WebSocket"),
            ("POST /mqtt HTTP/1.1\r\nHost: b\r\n\r\n", 405, "a WebSocket is asked for with GET"),
            ("GET /mqtt HTTP/1.1\r\n\r\n", 400, "this is no HTTP/1.1 request"),
            ("nonsense\r\n\r\n", 400, "this is no HTTP/1.1 request"),
            ("\u{10}\u{0D}", 400, "this is no HTTP/1.1 request"),
            (
                String(decoding: request, as: UTF8.self).replacing("Protocol: mqtt", with: "Protocol: amqp"), 400,
                "the subprotocol spoken here is mqtt"
            ),
            (
                String(decoding: request, as: UTF8.self).replacing("Version: 13", with: "Version: 8"), 426,
                "the version is 13"
            ),
            (
                "GET /mqtt HTTP/1.1\r\nX: " + String(repeating: "x", count: 17_000), 431,
                "a head has 16384 bytes at most"
            ),
        ]
    )
    func plain(_ request: String, _ status: Int, _ words: String) async throws {
        let counters = try await Self.withBroker { port in
            let text = String(decoding: try await RawClient.talk(port, [Array(request.utf8)]), as: UTF8.self)
            #expect(text.hasPrefix("HTTP/1.1 \(status) "))
            #expect(text.hasSuffix("\r\n\r\n\(words)\n"))
        }
        #expect(counters.connections == 0)
    }

    @Test("only the path that is served is, with any query")
    func path() async throws {
        try await Self.withBroker {
            $0.webSocket.path = "/mqtt"
        } _: { port in
            let text = String(decoding: Self.request, as: UTF8.self)
            let other = try await RawClient.talk(port, [Array(text.replacing("/mqtt", with: "/else").utf8)])
            #expect(String(decoding: other, as: UTF8.self).hasPrefix("HTTP/1.1 404 "))
            let query = Array(text.replacing("/mqtt", with: "/mqtt?a=b").utf8)
            let came = try await RawClient.talk(port, [query + Self.frame(0x82, Self.connect + [0xE0, 0])])
            #expect(came.starts(with: Self.answer + Self.connack))
        }
    }

    @Test("who asks for nothing is let go at the deadline, and who goes in the middle of a request at once")
    func silence() async throws {
        try await Self.withBroker {
            $0.webSocket.deadline = .milliseconds(50)
        } _: { port in
            let nothing = try await RawClient.talk(port, [])
            #expect(nothing.isEmpty)
            let half = try await RawClient.talk(port, [Array(Self.request[..<40])])
            #expect(half.isEmpty)
        }
        try await Self.withBroker { port in
            let client = try await RawClient(port: port)
            try await client.send(Array(Self.request[..<40]))
            try await client.halfClose()
            let came = try await client.all()
            #expect(came.isEmpty)
        }
    }
}
