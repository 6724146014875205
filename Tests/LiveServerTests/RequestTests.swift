import LiveServer
import NIOCore
import TestSupport
import Testing

@Suite("Requests to the live server", .timeLimit(.minutes(5)))
struct RequestTests {
    static let routes: [String: LiveRoute] = [
        "/": .response { _ in LiveResponse(contentType: "text/html; charset=utf-8", text: "<p>größer") },
        "/echo": .response { LiveResponse(text: "[\($0.path) \($0.accept ?? "-")]") },
        "/broken": .response { _ in LiveResponse(status: 503, text: "not yet") },
        "/events": .events,
    ]

    @Test("GET has the type, the length and the headers against sniffing and storing")
    func get() async throws {
        try await LiveServer.with(Self.routes) { server in
            let text = try await Visitor.answers(Visitor.get("/"), from: server)
            let expected = """
                HTTP/1.1 200 OK\r
                Content-Type: text/html; charset=utf-8\r
                Content-Length: 11\r
                Cache-Control: no-store\r
                X-Content-Type-Options: nosniff\r
                Connection: keep-alive\r
                \r
                <p>größer
                """
            #expect(text == expected)
        }
    }

    @Test("HEAD has the head of GET, and the next response follows at once")
    func head() async throws {
        try await LiveServer.with(Self.routes) { server in
            let get = try await Visitor.answers(Visitor.get("/"), from: server)
            let both = try await Visitor.answers(Visitor.get("/", "HEAD") + Visitor.get("/echo"), from: server)
            #expect(both.hasPrefix(get.dropLast("<p>größer".count) + "HTTP/1.1 200 OK\r\n"))
            let events = try await Visitor.answers(Visitor.get("/events", "HEAD"), from: server)
            #expect(events.hasPrefix("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"))
            #expect(events.hasSuffix("\r\n\r\n"))
        }
    }

    @Test("a route gets the path without its query, and the Accept header")
    func request() async throws {
        try await LiveServer.with(Self.routes) { server in
            let requests =
                Visitor.get("/echo?a=1?b", "GET", "Accept: text/plain", "accept: */*;q=0.1") + Visitor.get("/echo?")
                + Visitor.get("/echo") + Visitor.get("http://localhost/echo?absolute")
            let text = try await Visitor.answers(requests, from: server)
            let bodies = text.matches(of: /\[(.*)\]/).map { String($0.1) }
            #expect(bodies == ["/echo text/plain,*/*;q=0.1", "/echo -", "/echo -", "/echo -"])
        }
    }

    struct Case: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var text: String
        var statuses: [Int]

        init(_ name: String, _ text: String, _ statuses: Int...) {
            self.testDescription = name
            self.text = text
            self.statuses = statuses
        }
    }

    static let long = String(repeating: "x", count: 9000)
    static let good = Visitor.get("/")

    @Test(
        "statuses, and whether the connection goes on after them",
        arguments: [
            Case("unknown path", Visitor.get("/nothing") + good, 404, 200),
            Case("a path is not a prefix", Visitor.get("/echo/") + Visitor.get("//") + good, 404, 404, 200),
            Case("status of the route", Visitor.get("/broken") + good, 503, 200),
            Case("other methods", Visitor.get("/", "DELETE") + Visitor.get("/", "OPTIONS") + good, 405, 405, 200),
            Case("no options of the server", Visitor.get("*", "OPTIONS") + good, 404, 200),
            Case("CONNECT", Visitor.get("localhost:80", "CONNECT") + good, 404),
            Case("Connection: close", Visitor.get("/", "GET", "Connection: close") + good, 200),
            Case("HTTP/1.0", "GET / HTTP/1.0\r\n\r\n" + good, 200),
            Case("HTTP/1.0 kept alive", "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" + good, 200, 200),
            Case("a body", Visitor.get("/", "POST", "Content-Length: 3") + "abc" + good, 413),
            Case("a body of GET", Visitor.get("/", "GET", "Content-Length: 5") + "GET /", 413),
            Case("an empty body", Visitor.get("/", "GET", "Content-Length: 0") + good, 200, 200),
            Case("chunks", Visitor.get("/", "GET", "Transfer-Encoding: chunked") + "0\r\n\r\n" + good, 413),
            Case("long target", Visitor.get("/" + long) + good, 414),
            Case("long headers", Visitor.get("/", "GET", "A: " + long, "B: " + long) + good, 431),
            Case("one long header", Visitor.get("/", "GET", "A: " + long + long) + good, 431),
            Case("headers within the limit", Visitor.get("/", "GET", "A: " + long) + good, 200, 200),
            Case("a long name without an end", "GET / HTTP/1.1\r\n" + long + long, 431),
            Case("300 headers", "GET / HTTP/1.1\r\n" + String(repeating: "A: b\r\n", count: 300), 431),
            Case("no host", "GET / HTTP/1.1\r\n\r\n" + good, 400),
            Case("two hosts", Visitor.get("/", "GET", "Host: localhost") + good, 400),
            Case("another version", "GET / HTTP/3.7\r\nHost: localhost\r\n\r\n", 505),
            Case("no HTTP", "\u{0}\u{1}\u{2}\r\n\r\n" + good, 400),
            Case("a header without a colon", "GET / HTTP/1.1\r\nHost\r\n\r\n" + good, 400),
            Case("a TLS greeting", "\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}", 400),
            Case("an error after good ones", good + good + "nonsense\r\n\r\n" + good, 200, 200, 400),
            Case("an error with much after it", "nonsense\r\n\r\n" + String(repeating: long, count: 9), 400),
            Case(
                "a large body",
                Visitor.get("/", "PUT", "Content-Length: 81000") + String(repeating: long, count: 9),
                413
            ),
            Case("an upgrade", Visitor.get("/", "GET", "Connection: Upgrade", "Upgrade: websocket") + good, 200),
            Case("much behind CONNECT", Visitor.get("a:1", "CONNECT") + String(repeating: long, count: 9), 404),
            Case("HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
            Case("half a request", "GET / HT", 400),
            Case("no request", ""),
        ]
    )
    func status(_ example: Case) async throws {
        try await LiveServer.with(Self.routes) { server in
            let text = try await Visitor.answers(example.text, from: server)
            #expect(statuses(text) == example.statuses)
            #expect(text.matches(of: /Allow: GET, HEAD/).count == example.statuses.count { $0 == 405 })
            // Whatever came, the next client is served.
            #expect(statuses(try await Visitor.answers(Self.good, from: server)) == [200])
        }
    }

    @Test(
        "on loopback only names of loopback are answered, whatever their port",
        arguments: [
            ("localhost", 200), ("LocalHost:9464", 200), ("127.0.0.1", 200), ("127.0.0.1:1", 200), ("[::1]:80", 200),
            ("evil.example", 421), ("localhost.evil.example", 421), ("127.0.0.1.evil.example:9464", 421), ("", 421),
            ("localhost:x", 421), ("[::1", 421), ("127.0.0.2", 421), ("evil.example:localhost", 421),
        ]
    )
    func host(_ name: String, _ status: Int) async throws {
        try await LiveServer.with(Self.routes) { server in
            let text = "GET / HTTP/1.1\r\nHost: \(name)\r\nConnection: close\r\n\r\n"
            #expect(statuses(try await Visitor.answers(text, from: server)) == [status])
            let absolute = "GET http://\(name)/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            // The parser refuses some of them.
            let answer = statuses(try await Visitor.answers(absolute, from: server)).first
            #expect(status == 200 ? answer == 200 : answer == 421 || answer == 400)
        }
    }

    @Test("a server that other hosts reach answers to any name")
    func wildcard() async throws {
        let server = try await LiveServer.start(host: "0.0.0.0", port: 0, routes: Self.routes)
        let text = "GET / HTTP/1.1\r\nHost: load-7.example\r\n\r\n"
        let answer = try await Visitor.answers(text, from: server)
        await server.close()
        #expect(statuses(answer) == [200])
    }

    @Test("a thousand pipelined requests are answered in their order")
    func pipelined() async throws {
        try await LiveServer.with(Self.routes) { server in
            let requests = (0..<1000).map { Visitor.get("/echo", "GET", "Accept: \($0)") }.joined()
            let text = try await Visitor.answers(requests, from: server)
            let numbers = text.matches(of: /\[\/echo ([0-9]+)\]/).compactMap { Int($0.1) }
            #expect(numbers == Array(0..<1000))
            #expect(server.requests(of: "/echo") == 1000)
        }
    }

    @Test("a request in single bytes is a request")
    func singleBytes() async throws {
        try await LiveServer.with(Self.routes) { server in
            var visitor = try await Visitor(to: server)
            for byte in Visitor.get("/echo?a").utf8 { visitor.send([byte]) }
            #expect(await visitor.read(to: "]").hasSuffix("[/echo -]"))
        }
    }

    @Test("random bytes never take the server down", arguments: 0..<40 as Range<UInt64>)
    func hostile(_ seed: UInt64) async throws {
        var dice = SeededDice(seed: seed)
        var bytes = Array(Visitor.get("/echo?a", "GET", "Content-Length: 0").utf8)
        for _ in 0..<Int.random(in: 1...6, using: &dice) {
            let place = Int.random(in: 0..<bytes.count, using: &dice)
            switch Int.random(in: 0..<3, using: &dice) {
            case 0: bytes[place] = UInt8.random(in: 0...255, using: &dice)
            case 1: bytes.insert(contentsOf: bytes[..<place], at: place)
            default: bytes.removeLast(bytes.count - max(1, place))
            }
        }
        try await LiveServer.with(Self.routes) { [bytes] server in
            var visitor = try await Visitor(to: server)
            visitor.send(bytes)
            visitor.endInput()
            _ = await visitor.rest()
            #expect(statuses(try await Visitor.answers(Self.good, from: server)) == [200])
        }
    }
}
