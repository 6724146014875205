import TestSupport
import Testing
import XMPP

@Suite("Log lines of an XMPP client", .timeLimit(.minutes(10)))
struct LoggingTests {
    @Test("a connection from its attempt to its end by either side, and no password")
    func life() async throws {
        try await FakeServer.with { _, _ in
            nil
        } _: { server in
            let log = CapturedLog()
            let configuration = server.configuration
            let client = XMPPClient(configuration, logger: log.logger)
            let jid = try await client.connect()
            await client.disconnect()
            #expect(
                log.lines.prefix(3) == [
                    "debug Connecting domain=\(jid.domain)", "info Connected jid=\(jid) lost=0 resumed=false",
                    "debug Disconnecting",
                ]
            )
            #expect(log.lines.count == 4)
            #expect(log.lines.last?.hasPrefix("info Disconnected ") ?? false, "\(log.lines)")

            var states = client.states.makeAsyncIterator()
            try await client.connect()
            try await server.cut()
            while let state = await states.next(isolation: #isolation) {
                if case .closed(let end) = state, end.kind == "lost" { break }
            }
            #expect(log.lines.last?.hasPrefix("warning Disconnected error=") ?? false, "\(log.lines)")
            #expect(!log.lines.contains { $0.contains(configuration.password) }, "\(log.lines)")
        }
    }

    @Test("[A16] a tag stands in each line of its client")
    func tag() async throws {
        let log = CapturedLog()
        var configuration = XMPPClientConfiguration(jid: "a@b", password: "c")
        configuration.host = "127.0.0.1"
        configuration.port = 1
        configuration.tag = "seven"
        let client = XMPPClient(configuration, logger: log.logger)
        await #expect(throws: XMPPClientError.self) { try await client.connect() }
        #expect(log.lines.count == 2)
        #expect(log.lines.allSatisfy { $0.contains("tag=seven") }, "\(log.lines)")
    }
}
