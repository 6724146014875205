import TestSupport
import Testing
import Transport

@Suite("The opening handshake of a WebSocket")
struct WebSocketHandshakeTests {
    static let key = "dGhlIHNhbXBsZSBub25jZQ=="
    static let target = Target(host: "broker.test", port: 9_001)

    static func head(_ lines: String...) throws -> WebSocketHead {
        let text = lines.joined(separator: "\r\n") + "\r\n\r\n"
        return try #require(try WebSocketHead.read(Array(text.utf8), start: []))
    }

    @Test("the answer to the key of RFC 6455 §1.3 is the RFC's")
    func accept() { #expect(WebSocketHandshake.accept(Self.key) == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=") }

    @Test("keys are 16 bytes in base64, and no two alike")
    func keys() {
        let keys = (0..<100).map { _ in WebSocketHandshake.makeKey() }
        #expect(Set(keys).count == 100)
        #expect(keys.allSatisfy { $0.count == 24 && $0.hasSuffix("==") })
    }

    @Test("the request, with [MQTT-6.0.0-3] the subprotocol mqtt offered")
    func request() throws {
        let settings = try WebSocketSettings(headers: [("X-Token", "a b"), ("Cookie", "c")])
        let bytes = WebSocketHandshake.request(settings, target: Self.target, isSecure: false, key: Self.key)
        #expect(
            String(decoding: bytes, as: UTF8.self) == """
                GET /mqtt HTTP/1.1\r
                Host: broker.test:9001\r
                Upgrade: websocket\r
                Connection: Upgrade\r
                Sec-WebSocket-Key: \(Self.key)\r
                Sec-WebSocket-Version: 13\r
                Sec-WebSocket-Protocol: mqtt\r
                X-Token: a b\r
                Cookie: c\r
                \r\n
                """
        )
    }

    @Test(
        "the Host field names the port unless it is the scheme's own",
        arguments: [
            (Target(host: "a", port: 80), false, "a"), (Target(host: "a", port: 80), true, "a:80"),
            (Target(host: "a", port: 443), true, "a"), (Target(host: "a", port: 8_080), false, "a:8080"),
            (Target(host: "::1", port: 443), true, "[::1]"), (Target(host: "::1", port: 9_001), false, "[::1]:9001"),
        ]
    )
    func host(_ target: Target, _ isSecure: Bool, _ host: String) throws {
        let plain = try WebSocketSettings()
        let request = WebSocketHandshake.request(plain, target: target, isSecure: isSecure, key: Self.key)
        #expect(try WebSocketHead.read(request, start: [])?.value("host") == host)
        for settings in [
            try WebSocketSettings(host: "other"), try WebSocketSettings(headers: [("host", "other")]),
        ] {
            let request = WebSocketHandshake.request(settings, target: target, isSecure: isSecure, key: Self.key)
            #expect(try WebSocketHead.read(request, start: [])?.value("host") == "other")
        }
    }

    @Test("path and query of a signed URL go out as they are")
    func signedPath() throws {
        let path = "/mqtt?X-Amz-Signature=1%2Fab&X-Amz-Date=20260101T000000Z"
        let settings = try WebSocketSettings(path: path, subprotocols: ["mqtt", "mqttv3.1"])
        let request = WebSocketHandshake.request(settings, target: Self.target, isSecure: true, key: Self.key)
        let head = try #require(try WebSocketHead.read(request, start: []))
        #expect(head.line == "GET \(path) HTTP/1.1")
        #expect(head.list("sec-websocket-protocol") == ["mqtt", "mqttv3.1"])
    }

    @Test(
        "settings that would break the request, or put another one into it, are refused",
        arguments: [
            ("", [], nil, .path("")), ("mqtt", [], nil, .path("mqtt")), ("/a b", [], nil, .path("/a b")),
            ("/a\r\nX: y", [], nil, .path("/a\r\nX: y")), ("/a#b", [], nil, .path("/a#b")),
            ("/ü", [], nil, .path("/ü")),
            ("/", [("X", "a\r\nY: b")], nil, .headerValue("X")), ("/", [("X", "a\nb")], nil, .headerValue("X")),
            ("/", [("X", "a\u{0}")], nil, .headerValue("X")), ("/", [("X:", "a")], nil, .headerName("X:")),
            ("/", [("X\r\nY", "a")], nil, .headerName("X\r\nY")), ("/", [("", "a")], nil, .headerName("")),
            ("/", [("upgrade", "h2c")], nil, .reserved("upgrade")),
            ("/", [("Sec-WebSocket-Key", "k")], nil, .reserved("Sec-WebSocket-Key")),
            ("/", [("Transfer-Encoding", "chunked")], nil, .reserved("Transfer-Encoding")),
            ("/", [("Content-Length", "1")], nil, .reserved("Content-Length")),
            ("/", [], "a\r\nb", .host("a\r\nb")), ("/", [("Host", "a b")], nil, .host("a b")),
            ("/", [("X", String(repeating: "x", count: 16_384))], nil, .tooLong),
        ] as [(String, [(String, String)], String?, WebSocketSettings.Problem)]
    )
    func settings(_ path: String, _ headers: [(String, String)], _ host: String?, _ problem: WebSocketSettings.Problem)
    {
        #expect(throws: problem) { try WebSocketSettings(path: path, headers: headers, host: host) }
        #expect(!problem.description.contains { $0.isNewline })
    }

    @Test("[RFC 6455 §4.1] a subprotocol is offered once")
    func repeatedSubprotocol() {
        #expect(throws: WebSocketSettings.Problem.repeated("mqtt")) {
            try WebSocketSettings(subprotocols: ["mqtt", "mqttv3.1", "mqtt"])
        }
    }

    @Test("names of subprotocols are tokens", arguments: ["", "a b", "a,b", "a\r\n"])
    func subprotocolNames(_ name: String) {
        #expect(throws: WebSocketSettings.Problem.subprotocol(name)) { try WebSocketSettings(subprotocols: [name]) }
    }

    @Test("without a subprotocol there is no request")
    func noSubprotocol() {
        #expect(throws: WebSocketSettings.Problem.subprotocol("")) { try WebSocketSettings(subprotocols: []) }
    }

    // MARK: The client's check

    static let answer = [
        "HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade",
        "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", "Sec-WebSocket-Protocol: mqtt",
    ]

    static func check(_ lines: [String], offered: [String] = ["mqtt"]) throws {
        let text = lines.joined(separator: "\r\n") + "\r\n\r\n"
        let head = try #require(try WebSocketHead.read(Array(text.utf8), start: []))
        try WebSocketHandshake.check(head, key: Self.key, offered: offered)
    }

    @Test("an answer is taken in whatever case, with and without words")
    func accepted() throws {
        try Self.check(Self.answer)
        try Self.check(
            [
                "HTTP/1.1 101", "uPGRADE: WebSocket", "CONNECTION:keep-alive ,\tupgrade",
                "sec-websocket-accept:  s3pPLMBiTxaQ9kYGzzhZRbK+xOo= ", "Sec-WebSocket-Protocol: mqttv3.1", "X: y",
            ],
            offered: ["mqtt", "mqttv3.1"]
        )
    }

    @Test(
        "an answer that does not fit is refused by the first thing wrong",
        arguments: [
            (0, "HTTP/1.1 404 Not Found", .status(404)), (0, "HTTP/1.1 302 Found", .status(302)),
            (0, "HTTP/1.0 503 Busy", .status(503)), (0, "HTTP/1.1 200 OK", .status(200)),
            (0, "HTTP/1.1 1e1 OK", .notHTTP), (0, "HTTP/1.1 0101 OK", .notHTTP), (0, "HTTP/2 101", .notHTTP),
            (0, "HTTP/1.1", .notHTTP), (0, "HTTP/1.1  101", .notHTTP), (0, "HTTP/1.0 101 Old", .noUpgrade),
            (1, "Upgrade: h2c", .noUpgrade), (1, "X: y", .noUpgrade), (2, "Connection: close", .noUpgrade),
            (3, "X: y", .wrongAccept), (3, "Sec-WebSocket-Accept: dGhlIHNhbXBsZSBub25jZQ==", .wrongAccept),
            (3, "Sec-WebSocket-Accept: S3PPLMBITXAQ9KYGZZHZRBK+XOO=", .wrongAccept),
            (4, "X: y", .noSubprotocol(offered: ["mqtt"])),
            (4, "Sec-WebSocket-Protocol: mqttv3.1", .wrongSubprotocol("mqttv3.1")),
            (4, "Sec-WebSocket-Protocol: MQTT", .wrongSubprotocol("MQTT")),
            (4, "Sec-WebSocket-Protocol: mqtt, amqp", .wrongSubprotocol("mqtt, amqp")),
            (4, "Sec-WebSocket-Extensions: permessage-deflate", .extensions("permessage-deflate")),
        ] as [(Int, String, WebSocketFailure)]
    )
    func refused(_ index: Int, _ line: String, _ failure: WebSocketFailure) {
        var lines = Self.answer
        lines[index] = line
        #expect(throws: failure) { try Self.check(lines) }
    }

    // MARK: The server's check

    static let request = [
        "GET /mqtt HTTP/1.1", "Host: b", "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Key: \(key)",
        "Sec-WebSocket-Version: 13", "Sec-WebSocket-Protocol: mqtt",
    ]

    static func serve(_ lines: [String], path: String? = "/mqtt", _ known: [String] = ["mqtt"]) throws -> [UInt8] {
        let text = lines.joined(separator: "\r\n") + "\r\n\r\n"
        let head = try #require(try WebSocketHead.read(Array(text.utf8), start: []))
        return try WebSocketHandshake.answer(head, path: path, subprotocols: known)
    }

    @Test("[MQTT-6.0.0-4] a server answers with the client's first subprotocol that it speaks")
    func serverAnswer() throws {
        let text = String(decoding: try Self.serve(Self.request), as: UTF8.self)
        #expect(text == (Self.answer + ["", ""]).joined(separator: "\r\n"))
        var lines = Self.request
        lines[6] = "Sec-WebSocket-Protocol: amqp, mqttv3.1, mqtt"
        let older = try #require(try WebSocketHead.read(Self.serve(lines, ["mqtt", "mqttv3.1"]), start: []))
        #expect(older.value("sec-websocket-protocol") == "mqttv3.1")
        lines[0] = "GET /mqtt?token=1 HTTP/1.1"
        #expect(throws: Never.self) { try Self.serve(lines) }
        lines[0] = "GET /any HTTP/1.1"
        #expect(throws: Never.self) { try Self.serve(lines, path: nil) }
    }

    @Test(
        "a wrong request is answered with the reason",
        arguments: [
            (0, "POST /mqtt HTTP/1.1", 405), (0, "GET /other HTTP/1.1", 404), (0, "GET /mqtt", 400),
            (0, "GET /mqtt FTP/1.1", 400), (1, "X: y", 400), (2, "X: y", 426), (3, "Connection: close", 426),
            (5, "Sec-WebSocket-Version: 8", 426), (5, "X: y", 426), (4, "X: y", 400),
            (4, "Sec-WebSocket-Key: short", 400), (4, "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ!!", 400),
            (6, "X: y", 400), (6, "Sec-WebSocket-Protocol: amqp", 400),
        ]
    )
    func serverRefuses(_ index: Int, _ line: String, _ status: Int) throws {
        var lines = Self.request
        lines[index] = line
        let refusal = #expect(throws: WebSocketHandshake.Refusal.self) { try Self.serve(lines) }
        #expect(refusal?.status == status)
        let answer = try #require(refusal?.answer)
        let head = try #require(try WebSocketHead.read(answer, start: Array("HTTP/1.1 \(status) ".utf8)))
        #expect(head.value("content-length") == "\(answer.count - head.size)")
        #expect(answer.dropLast().allSatisfy { $0 != 10 } == false)
        #expect(answer[head.size...].filter { $0 == 10 }.count == 1)
    }
}

@Suite("The head of an HTTP message")
struct WebSocketHeadTests {
    @Test("is read at every cut, and what follows is left")
    func cuts() throws {
        let bytes = Array("HTTP/1.1 101 X\r\nA: 1\r\na:\t2 \r\nB:\r\n\r\nrest".utf8)
        for end in bytes.indices {
            let head = try WebSocketHead.read(Array(bytes[..<end]), start: Array("HTTP/1.".utf8))
            #expect((head != nil) == (end >= bytes.count - 4))
        }
        let head = try #require(try WebSocketHead.read(bytes, start: [], searched: bytes.count - 5))
        #expect(head.size == bytes.count - 4)
        #expect(head.value("a") == "1, 2")
        #expect(head.value("b")?.isEmpty == true)
        #expect(head.value("c") == nil)
    }

    @Test(
        "is refused as soon as it cannot be one",
        arguments: [
            "\u{20}\u{2}", "HTTQ", "\r\n", "HTTP/1.1 101\nA: b\r\n\r\n", "HTTP/1.1 101\r\n folded: x\r\n\r\n",
            "HTTP/1.1 101\r\nno colon\r\n\r\n", "HTTP/1.1 101\r\n: x\r\n\r\n", "HTTP/1.1 101\r\na b: x\r\n\r\n",
            "HTTP/1.1 101\r\na: \u{0}\r\n\r\n", "HTTP/1.1 101\r\na: b\rc\r\n\r\n", "HTTP/1.1 101\r\na : x\r\n\r\n",
        ]
    )
    func refused(_ text: String) {
        #expect(throws: WebSocketHead.Problem.notHTTP) {
            try WebSocketHead.read(Array(text.utf8), start: Array("HTTP/1.".utf8))
        }
    }

    @Test("has an end, or is refused at its limit")
    func tooLarge() throws {
        let endless = Array("HTTP/1.1 101\r\nA: ".utf8) + Array(repeating: UInt8(ascii: "x"), count: 20_000)
        #expect(throws: WebSocketHead.Problem.tooLarge) { try WebSocketHead.read(endless, start: []) }
        #expect(throws: WebSocketHead.Problem.tooLarge) {
            try WebSocketHead.read(Array(endless[..<WebSocketHead.maximumSize]), start: [])
        }
        #expect(try WebSocketHead.read(Array(endless[..<(WebSocketHead.maximumSize - 1)]), start: []) == nil)
        #expect(throws: WebSocketHead.Problem.tooLarge) {
            try WebSocketHead.read(endless + Array("\r\n\r\n".utf8), start: [])
        }
    }
}
