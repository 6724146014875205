import FaultProxy
import NIOCore
import Testing

@Suite("Resets through the proxy", .timeLimit(.minutes(10)))
struct ProxyResetTests {
    /// How long the proxy waits for a receiver before it resets it all the same: `ProxyLink.patience`.
    private static let patience = TimeAmount.milliseconds(500)

    @Test("a RST waits for the receiver's kernel to have every byte that was sent before it")
    func behindTheBytes() async throws {
        // Much more than the receiver's kernel keeps, and less than the proxy's does.
        let count = 65_536
        var isDecided = false
        while !isDecided {
            let counters = try await withRelay { proxy, listener in
                let client = try await WireEnd.connect(to: proxy.port, receiveBuffer: 4_096)
                let server = try await listener.accept()
                try await client.setReading(false)
                try await server.send([UInt8](repeating: 0x5A, count: count))
                while await proxy.counters().down.written < count { await Task.yield() }
                let begin = NIODeadline.now()
                try await server.reset()
                // The proxy discards the client's bytes from the moment that it knows of the reset.
                while case let counters = await proxy.counters(), counters.up.discarded == 0, counters.clientsNow > 0 {
                    client.begin([1])
                    await Task.yield()
                }
                // A RST that came too early has closed the channel.
                try? await client.setReading(true)
                #expect(try await client.ending() == .rst)
                // On a host that stood still for so long the proxy was right to give up; the next round decides.
                guard NIODeadline.now() - begin < Self.patience else { return }
                isDecided = true
                #expect(try await client.received.count == count)
            }
            #expect(counters.ends == ["serverReset": 1])
        }
    }
}
