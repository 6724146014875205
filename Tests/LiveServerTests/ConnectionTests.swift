import LiveServer
import NIOCore
import Synchronization
import TestSupport
import Testing

@Suite("Connections of the live server", .timeLimit(.minutes(5)))
struct ConnectionTests {
    static let routes: [String: LiveRoute] = [
        "/": .response { _ in LiveResponse(text: "[\(String(repeating: "x", count: 5))]") },
        "/broken": .response { _ in LiveResponse(status: 503, text: "not yet") },
    ]

    @Test("beyond the limit a connection is closed at once, until another one ends")
    func limit() async throws {
        var limits = LiveLimits()
        limits.connections = 2
        try await LiveServer.with(Self.routes, limits: limits) { server in
            var first = try await Visitor(to: server)
            first.send(Visitor.get("/"))
            _ = await first.read(to: "]")
            var second = try await Visitor(to: server)
            second.send(Visitor.get("/"))
            _ = await second.read(to: "]")
            var third = try await Visitor(to: server)
            #expect(await third.rest() == "")
            first.endInput()
            #expect(await first.rest() == "")
            #expect(statuses(try await Visitor.answers(Visitor.get("/"), from: server)) == [200])
        }
    }

    @Test(
        "a connection without a whole request for the idle time is closed",
        arguments: ["", "GET / HT", "GET / HTTP/1.1\r\nHost: localhost\r\n"]
    )
    func idle(_ text: String) async throws {
        var limits = LiveLimits()
        limits.idleSeconds = 0.05
        try await LiveServer.with(Self.routes, limits: limits) { server in
            var visitor = try await Visitor(to: server)
            visitor.send(text)
            #expect(await visitor.rest() == "")
        }
    }

    @Test("a client that takes no response for the idle time is closed")
    func stalled() async throws {
        var limits = LiveLimits()
        limits.idleSeconds = 0.05
        // The only connection there may be, until it is closed.
        limits.connections = 1
        let body = [UInt8](repeating: 120, count: 32 << 20)
        let routes: [String: LiveRoute] = [
            "/": .response { _ in LiveResponse(contentType: "text/plain", body: body) },
            "/small": .response { _ in LiveResponse(text: "small") },
        ]
        try await LiveServer.with(routes, limits: limits) { server in
            let visitor = try await Visitor(to: server, reads: false)
            visitor.send(Visitor.get("/"))
            while statuses(try await Visitor.answers(Visitor.get("/small"), from: server)).isEmpty {}
            #expect(server.requests(of: "/") == 0)
        }
    }

    @Test("whole responses to GET with status 200 are counted, by path")
    func counts() async throws {
        try await LiveServer.with(Self.routes) { server in
            #expect(server.requests(of: "/") == 0)
            let requests =
                Visitor.get("/") + Visitor.get("/?again") + Visitor.get("/", "HEAD") + Visitor.get("/broken")
                + Visitor.get("/none") + Visitor.get("/", "DELETE") + Visitor.get("/")
            _ = try await Visitor.answers(requests, from: server)
            #expect(server.requests(of: "/") == 3)
            #expect(server.requests(of: "/broken") == 0)
            #expect(server.requests(of: "/none") == 0)
        }
    }

    @Test("a response that is being made is still sent when the server closes, and the port is free after that")
    func close() async throws {
        let (started, start) = AsyncStream<Void>.makeStream()
        let (released, release) = AsyncStream<Void>.makeStream()
        let routes: [String: LiveRoute] = [
            "/": .response { _ in
                start.finish()
                for await _ in released {}
                return LiveResponse(text: "made")
            }
        ]
        let server = try await LiveServer.start(host: "127.0.0.1", port: 0, routes: routes)
        let port = try #require(server.address.port)
        var idle = try await Visitor(to: server)
        var visitor = try await Visitor(to: server)
        visitor.send(Visitor.get("/"))
        for await _ in started {}
        async let closed: Void = server.close()
        #expect(await idle.rest() == "")
        release.finish()
        let text = await visitor.rest()
        #expect(text.hasSuffix("Connection: close\r\n\r\nmade"))
        await closed
        let next = try await LiveServer.start(host: "127.0.0.1", port: port, routes: routes)
        #expect(next.address.port == port)
        await next.close()
    }

    @Test("a port in use, an unknown host and an address of another host have a reason each")
    func startErrors() async throws {
        try await LiveServer.with(Self.routes) { server in
            let port = server.address.port ?? 0
            await #expect(throws: LiveServerError.portInUse(host: "127.0.0.1", port: port)) {
                try await LiveServer.start(host: "127.0.0.1", port: port, routes: [:])
            }
        }
        await #expect(throws: LiveServerError.unknownHost("no host")) {
            try await LiveServer.start(host: "no host", port: 0, routes: [:])
        }
        // An address for documentation (RFC 5737).
        await #expect(throws: LiveServerError.notLocal(host: "192.0.2.1")) {
            try await LiveServer.start(host: "192.0.2.1", port: 0, routes: [:])
        }
        await #expect(throws: LiveServerError.notAPort(70_000)) {
            try await LiveServer.start(host: "127.0.0.1", port: 70_000, routes: [:])
        }
    }

    @Test(
        "each reason is one line of words",
        arguments: [
            (.portInUse(host: "127.0.0.1", port: 9464), "port 9464 on 127.0.0.1 is in use"),
            (.notPermitted(host: "127.0.0.1", port: 80), "this user may not listen on port 80 of 127.0.0.1"),
            (.unknownHost("nowhere"), "cannot resolve the host 'nowhere'"),
            (.notLocal(host: "192.0.2.1"), "192.0.2.1 is no address of this host"),
            (.notAPort(70_000), "70000 is no port; a port is 0 to 65535"),
            (.other(host: "::1", port: 1, reason: "bad"), "cannot listen on port 1 of ::1: bad"),
        ] as [(LiveServerError, String)]
    )
    func words(_ error: LiveServerError, _ text: String) {
        #expect(error.description == text)
    }
}
