import NIOCore
import TestSupport
import Testing
import Transport

@Suite("SPEC A15: the options of a client's socket")
struct TCPOptionsTests {
    @Test("small packets do not wait for each other: TCP_NODELAY is on")
    func noDelay() async throws {
        try await withScriptedPeer { peer in
            try await withTestLoop([Target(host: "127.0.0.1", port: peer.port)]) { loop in
                let connection = try await loop.connect().get()
                #expect(try await connection.channel.getOption(.tcpOption(.tcp_nodelay)).get() == 1)
            }
        }
    }
}
