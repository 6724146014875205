import LiveServer
import NIOCore
import Testing

@Suite("Server-sent events", .timeLimit(.minutes(5)))
struct EventTests {
    static let routes: [String: LiveRoute] = ["/events": .events]
    static let start = "\r\n\r\nretry: 1000\n\n"

    @Test(
        "an event is its number, its name and a line for each line of data",
        arguments: [
            ("state", "{}", "id: 7\nevent: state\ndata: {}\n\n"),
            ("state", "a\nb\r\nc\rd", "id: 7\nevent: state\ndata: a\ndata: b\ndata: c\ndata: d\n\n"),
            ("state", "größer\n\n", "id: 7\nevent: state\ndata: größer\ndata: \ndata: \n\n"),
            ("state", "", "id: 7\nevent: state\ndata: \n\n"),
            ("a\nb\r\nc", "id: 8", "id: 7\nevent: abc\ndata: id: 8\n\n"),
        ]
    )
    func form(_ name: String, _ data: String, _ text: String) {
        #expect(String(buffer: LiveText.event(LiveEvent(name: name, data: data), id: 7)) == text)
    }

    @Test("a client gets the latest event at once and then each further one")
    func latest() async throws {
        try await LiveServer.with(Self.routes) { server in
            var first = try await Visitor(to: server)
            first.send(Visitor.get("/events"))
            let head = await first.read(to: Self.start)
            #expect(head.contains("Content-Type: text/event-stream\r\n"))
            #expect(head.contains("Cache-Control: no-store\r\n"))
            for number in 1...3 { server.send(event: LiveEvent(name: "state", data: "\(number)")) }
            #expect(await first.read(to: "data: 3\n\n").hasSuffix("id: 3\nevent: state\ndata: 3\n\n"))

            var second = try await Visitor(to: server)
            second.send(Visitor.get("/events"))
            #expect(await second.read(to: "data: 3\n\n").hasSuffix(Self.start + "id: 3\nevent: state\ndata: 3\n\n"))
            server.send(event: LiveEvent(name: "end", data: "4"))
            #expect(await first.read(to: "data: 4\n\n") == "id: 4\nevent: end\ndata: 4\n\n")
            #expect(await second.read(to: "data: 4\n\n") == "id: 4\nevent: end\ndata: 4\n\n")
        }
    }

    @Test("an event without a stream is not kept, and the latest one only while a stream is open")
    func stale() async throws {
        try await LiveServer.with(Self.routes) { server in
            server.send(event: LiveEvent(name: "state", data: "unseen"))
            var first = try await Visitor(to: server)
            first.send(Visitor.get("/events"))
            #expect(await first.read(to: Self.start).hasSuffix(Self.start))
            server.send(event: LiveEvent(name: "state", data: "old"))
            #expect(await first.read(to: "data: old\n\n") == "id: 2\nevent: state\ndata: old\n\n")
            try await first.channel.close().get()
            while server.listeners > 0 { await Task.yield() }

            var second = try await Visitor(to: server)
            second.send(Visitor.get("/events"))
            _ = await second.read(to: Self.start)
            server.send(event: LiveEvent(name: "state", data: "new"))
            #expect(await second.read(to: "data: new\n\n") == "id: 3\nevent: state\ndata: new\n\n")
        }
    }

    @Test("the last event is kept for every later client, and no event follows it", arguments: [true, false])
    func last(hasStream: Bool) async throws {
        try await LiveServer.with(Self.routes) { server in
            if hasStream {
                var first = try await Visitor(to: server)
                first.send(Visitor.get("/events"))
                _ = await first.read(to: Self.start)
                server.send(event: LiveEvent(name: "final", data: "over", isLast: true))
                server.send(event: LiveEvent(name: "state", data: "older"))
                _ = await first.read(to: "data: over\n\n")
                try await first.channel.close().get()
                while server.listeners > 0 { await Task.yield() }
            } else {
                server.send(event: LiveEvent(name: "final", data: "over", isLast: true))
                server.send(event: LiveEvent(name: "state", data: "older"))
            }
            var second = try await Visitor(to: server)
            second.send(Visitor.get("/events"))
            _ = await second.read(to: Self.start)
            server.send(event: LiveEvent(name: "state", data: "older"))
            async let closed: Void = server.close()
            #expect(await second.rest() == "id: 1\nevent: final\ndata: over\n\n")
            await closed
        }
    }

    @Test("nothing replaces a last event that waits, or follows it", arguments: [true, false])
    func lastInPipe(isBusy: Bool) {
        var pipe = EventPipe()
        func text(_ number: Int) -> ByteBuffer { ByteBuffer(string: "\(number)") }
        if isBusy { _ = pipe.offer(text(1)) }
        let written = pipe.offer(text(2), isLast: true)
        #expect(written == (isBusy ? nil : text(2)))
        #expect(pipe.offer(text(3)) == nil)
        if isBusy { #expect(pipe.written() == text(2)) }
        #expect(pipe.written() == nil)
        #expect(pipe.offer(text(4)) == nil)
        #expect(!pipe.isBusy)
        #expect(pipe.beat() == .write)
    }

    @Test("a client that is not read to has one event waiting, the latest")
    func pipe() {
        var pipe = EventPipe()
        func text(_ number: Int) -> ByteBuffer { ByteBuffer(string: "\(number)") }
        #expect(pipe.offer(text(1)) == text(1))
        for number in 2...1000 { #expect(pipe.offer(text(number)) == nil) }
        #expect(pipe.written() == text(1000))
        #expect(pipe.isBusy)
        #expect(pipe.written() == nil)
        #expect(!pipe.isBusy)
        #expect(pipe.offer(text(1001)) == text(1001))
    }

    @Test("comments are written between events, and a client without progress over two beats is closed")
    func beats() {
        var pipe = EventPipe()
        #expect(pipe.beat() == .write)
        #expect(pipe.written() == nil)
        _ = pipe.offer(ByteBuffer(string: "1"))
        #expect(pipe.beat() == .wait)
        #expect(pipe.written() == nil)
        _ = pipe.offer(ByteBuffer(string: "2"))
        #expect(pipe.beat() == .wait)
        #expect(pipe.beat() == .close)
    }

    @Test("a client that reads late misses the events between, and gets the last one")
    func slowReader() async throws {
        try await LiveServer.with(Self.routes) { server in
            let slow = try await Visitor(to: server, reads: false)
            slow.send(Visitor.get("/events"))
            // Another client shows that the events are out.
            var quick = try await Visitor(to: server)
            quick.send(Visitor.get("/events"))
            _ = await quick.read(to: Self.start)
            while server.requests(of: "/events") < 2 { await Task.yield() }
            let data = String(repeating: "x", count: 64 << 10)
            let events = 100
            for _ in 0..<events { server.send(event: LiveEvent(name: "state", data: data)) }
            server.send(event: LiveEvent(name: "end", data: "over"))
            #expect(await quick.read(to: "data: over\n\n").hasSuffix("data: over\n\n"))

            var reader = slow
            try await reader.channel.setOption(.autoRead, value: true).get()
            let text = await reader.read(to: "data: over\n\n")
            #expect(text.hasSuffix("id: \(events + 1)\nevent: end\ndata: over\n\n"))
            // The bytes that the kernel holds of both sides, and the one event that waits.
            #expect(text.matches(of: /event: state/).count < events / 2)
        }
    }

    @Test("comments keep a quiet stream alive")
    func heartbeat() async throws {
        var limits = LiveLimits()
        limits.heartbeatSeconds = 0.01
        try await LiveServer.with(Self.routes, limits: limits) { server in
            var visitor = try await Visitor(to: server)
            visitor.send(Visitor.get("/events"))
            #expect(await visitor.read(to: ":\n\n:\n\n:\n\n").hasSuffix(Self.start + ":\n\n:\n\n:\n\n"))
        }
    }

    @Test("bytes from a client on a stream are thrown away")
    func input() async throws {
        try await LiveServer.with(Self.routes) { server in
            var visitor = try await Visitor(to: server)
            visitor.send(String(repeating: Visitor.get("/events"), count: 1000))
            _ = await visitor.read(to: Self.start)
            for _ in 0..<100 { visitor.send(String(repeating: "nonsense\r\n\r\n", count: 100)) }
            server.send(event: LiveEvent(name: "state", data: "1"))
            #expect(await visitor.read(to: "data: 1\n\n") == "id: 1\nevent: state\ndata: 1\n\n")
            #expect(server.requests(of: "/events") == 1)
        }
    }

    @Test("an event sent before the server closes arrives, and then the stream ends", arguments: [1, 20])
    func close(_ clients: Int) async throws {
        try await LiveServer.with(Self.routes) { server in
            var visitors: [Visitor] = []
            for _ in 0..<clients {
                var visitor = try await Visitor(to: server)
                visitor.send(Visitor.get("/events"))
                _ = await visitor.read(to: Self.start)
                visitors.append(visitor)
            }
            let data = String(repeating: "y", count: 300 << 10)
            server.send(event: LiveEvent(name: "state", data: data))
            server.send(event: LiveEvent(name: "end", data: "over"))
            async let closed: Void = server.close()
            for index in visitors.indices {
                let text = await visitors[index].rest()
                #expect(text.hasSuffix("event: end\ndata: over\n\n"))
            }
            await closed
            server.send(event: LiveEvent(name: "late", data: ""))
        }
    }
}
