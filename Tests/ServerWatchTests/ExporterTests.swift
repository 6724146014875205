import LoopContext
import NIOCore
import NIOPosix
import ServerWatch
import TestSupport
import Testing
import Transport

@Suite("Scraping an exporter")
struct ExporterTests {
    /// A client on an event loop of its own.
    private struct Client: Sendable {
        let client: NIOLoopBound<ExporterClient>
        let eventLoop: any EventLoop

        init(_ address: ExporterAddress, tls: TLSSettings = TLSSettings()) async throws {
            let loop = MultiThreadedEventLoopGroup.singleton.next()
            self.eventLoop = loop
            self.client = try await loop.submit {
                NIOLoopBound(try ExporterClient(address, tls: tls, LoopContext(eventLoop: loop)), eventLoop: loop)
            }.get()
        }

        func get() async throws -> ExporterClient.Answer {
            try await self.eventLoop.flatSubmit {
                let promise = self.eventLoop.makePromise(of: ExporterClient.Answer.self)
                self.client.value.get { promise.succeed($0) }
                return promise.futureResult
            }.get()
        }

        func close() async throws { try await self.eventLoop.submit { self.client.value.close() }.get() }
    }

    private static func address(_ port: Int) throws -> ExporterAddress {
        try #require(ExporterAddress("http://127.0.0.1:\(port)"))
    }

    private static func request(_ port: Int) -> String {
        "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\nUser-Agent: clamor\r\n"
            + "Accept: text/plain;version=0.0.4,application/openmetrics-text;version=1.0.0;q=0.5,*/*;q=0.1\r\n\r\n"
    }

    @Test("asks again on the connection that the server keeps, and after it was closed on another one")
    func keepAlive() async throws {
        try await withScriptedPeer { peer in
            let client = try await Client(Self.address(peer.port))
            let request = Self.request(peer.port)
            for round in 1...2 {
                async let answer = client.get()
                try await peer.untilBytes(round * request.utf8.count)
                try await peer.send(Array("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\na \(round)\n".utf8))
                #expect(try await answer == .success(Array("a \(round)\n".utf8)))
            }
            #expect(try await peer.connectionCount() == 1)
            #expect(String(decoding: try await peer.received(), as: UTF8.self) == request + request)
            async let closing = client.get()
            try await peer.untilBytes(3 * request.utf8.count)
            let chunks = "3\r\na 1\r\n1\r\n\n\r\n0\r\n\r\n"
            let head = "HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
            try await peer.send(Array((head + chunks).utf8))
            #expect(try await closing == .success(Array("a 1\n".utf8)))
            async let last = client.get()
            try await peer.untilBytes(4 * request.utf8.count)
            // Without a length, the end of the connection ends the body.
            try await peer.perform([.send(Array("HTTP/1.0 200 OK\r\n\r\nb 2\n".utf8)), .close], on: 1)
            #expect(try await last == .success(Array("b 2\n".utf8)))
            #expect(try await peer.connectionCount() == 2)
            try await client.close()
        }
    }

    @Test("the request has the query")
    func query() async throws {
        try await withScriptedPeer { peer in
            let address = try #require(ExporterAddress("http://127.0.0.1:\(peer.port)/m?token=a?b"))
            let client = try await Client(address)
            async let answer = client.get()
            try await peer.untilBytes(Self.request(peer.port).utf8.count)
            #expect(
                String(decoding: try await peer.received(), as: UTF8.self).hasPrefix("GET /m?token=a?b HTTP/1.1\r\n")
            )
            try await peer.send(Array("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".utf8))
            #expect(try await answer == .success([]))
            try await client.close()
        }
    }

    @Test("a request that meets the end of an idle connection is made again on another one")
    func idleEnd() async throws {
        try await withScriptedPeer { peer in
            let client = try await Client(Self.address(peer.port))
            let length = Self.request(peer.port).utf8.count
            async let first = client.get()
            try await peer.untilBytes(length)
            try await peer.send(Array("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".utf8))
            #expect(try await first == .success([]))
            async let second = client.get()
            try await peer.untilBytes(2 * length)
            try await peer.perform([.close])
            try await peer.untilBytes(3 * length)
            try await peer.send(Array("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx".utf8), to: 1)
            #expect(try await second == .success([UInt8(ascii: "x")]))
            try await client.close()
        }
    }

    @Test(
        "answers that are none",
        arguments: [
            ("HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n", ScrapeError.status(302)),
            ("HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno", .status(404)),
            ("SSH-2.0-OpenSSH_9.2\r\n", .noHTTP),
            ("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nab", .closed),
            ("", .closed),
        ]
    )
    func failures(answer: String, error: ScrapeError) async throws {
        try await withScriptedPeer { peer in
            let client = try await Client(Self.address(peer.port))
            async let result = client.get()
            try await peer.untilBytes(Self.request(peer.port).utf8.count)
            try await peer.perform([.send(Array(answer.utf8)), .close])
            #expect(try await result == .failure(error))
            try await client.close()
        }
    }

    @Test("an endless answer ends at 8 MiB, a silent server after the time limit, and a closed port at once")
    func limits() async throws {
        try await withScriptedPeer { peer in
            let client = try await Client(Self.address(peer.port))
            async let large = client.get()
            try await peer.untilBytes(Self.request(peer.port).utf8.count)
            let line = [UInt8](repeating: 0x61, count: 1 << 20)
            let head = Array("HTTP/1.1 200 OK\r\n\r\n".utf8)
            try await peer.perform([.send(head)] + Array(repeating: .send(line), count: 9))
            #expect(try await large == .failure(.tooLarge))
            #expect(try await client.get() == .failure(.timedOut))
        }
        let port = try ReservedPort()
        let client = try await Client(Self.address(port.port))
        #expect(try await client.get() == .failure(.connect("connection refused")))
    }

    @Test("https: the certificate is verified")
    func secure() async throws {
        let certificates = try await Certificates.all()
        let port = try ReservedPort()
        port.release()
        let server = try RunningProgram(
            "/usr/bin/openssl",
            [
                "s_server", "-accept", "127.0.0.1:\(port.port)", "-www", "-quiet",
                "-cert", certificates.certificate(.server), "-key", certificates.key(.server),
            ]
        )
        defer { server.send(9) }
        try await Listener.wait(for: port.port, of: server)
        let address = try #require(ExporterAddress("https://127.0.0.1:\(port.port)"))
        var tls = TLSSettings()
        let stranger = try await Client(address, tls: tls).get()
        #expect(throws: ScrapeError.self) { try stranger.get() }
        tls.authorityFile = certificates.authority
        let page = try await Client(address, tls: tls).get().get()
        #expect(String(decoding: page, as: UTF8.self).contains("TLSv1.3"))
    }

    @Test(
        "addresses, printed without their query",
        arguments: [
            ("http://localhost:9464", "http://localhost:9464/metrics"), ("http://h", "http://h:80/metrics"),
            ("HTTPS://h/", "https://h:443/"), ("http://[::1]:1/a?b=c#d", "http://[::1]:1/a?***"),
            ("http://h?token=x", "http://h:80/?***"), ("http://h/a?", "http://h:80/a?***"),
        ]
    )
    func addresses(text: String, whole: String) throws {
        #expect(try #require(ExporterAddress(text)).description == whole)
    }

    @Test(
        "texts that are no addresses",
        arguments: [
            "", "h:80", "ftp://h", "http://", "http://:80", "http://h:", "http://h:0", "http://h:65536", "http://u@h",
            "http://h:1:2", "http://[::1", "http://[::1]x", "http://h/a b", "http://h/\r\nX: y", "http://h:+1",
        ]
    )
    func noAddresses(text: String) { #expect(ExporterAddress(text) == nil) }
}
