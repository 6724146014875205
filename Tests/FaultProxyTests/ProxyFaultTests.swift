import FaultInjection
import FaultProxy
import NIOCore
import NIOPosix
import TestSupport
import Testing

@Suite("Faults of the proxy", .timeLimit(.minutes(10)))
struct ProxyFaultTests {
    /// How long `body` took, by the clock that delays run on.
    private static func time(_ body: () async throws -> Void) async rethrows -> TimeAmount {
        let begin = NIODeadline.now()
        try await body()
        return NIODeadline.now() - begin
    }

    @Test("a delay holds what the server sends, and nothing that the client sends")
    func delay() async throws {
        let counters = try await withRelay({ $0.faults.delay = .milliseconds(20) }) { proxy, listener in
            let client = try await WireEnd.connect(to: proxy.port)
            let server = try await listener.accept()
            for number in 1...10 {
                let time = try await Self.time {
                    try await client.send([1])
                    _ = try await server.bytes(number)
                    try await server.send([2])
                    _ = try await client.bytes(number)
                }
                #expect(time >= .milliseconds(20))
            }
        }
        #expect(counters.delayHolds.count == 10)
        #expect(counters.delayLate.count == 10)
        let shortest = try #require(counters.delayHolds.min)
        #expect(shortest >= 20_000_000)
        #expect(try #require(counters.delayLate.min) >= 0)
        // How long it was held is how long it should have been, and how late it was.
        #expect(shortest <= 20_000_000 + (try #require(counters.delayLate.max)))
    }

    @Test("only every 3rd read is delayed, and later bytes wait for it")
    func delayEvery() async throws {
        let counters = try await withRelay {
            $0.faults.delay = .milliseconds(10)
            $0.faults.delayEvery = 3
        } _: { proxy, listener in
            let client = try await WireEnd.connect(to: proxy.port)
            let server = try await listener.accept()
            for number in 1...9 {
                try await server.send([UInt8(number)])
                _ = try await client.bytes(number)
            }
            #expect(try await client.received == Array(1...9))
        }
        #expect(counters.delayHolds.count == 3)
    }

    @Test("a rate holds back each way, by the time that the bytes take at it")
    func rate() async throws {
        try await withRelay({ $0.faults.rate = 1e6 }) { proxy, listener in
            let client = try await WireEnd.connect(to: proxy.port)
            let server = try await listener.accept()
            for (sender, receiver) in [(client, server), (server, client)] {
                let time = try await Self.time {
                    sender.begin([UInt8](repeating: 1, count: 100_000))
                    _ = try await receiver.bytes(100_000)
                }
                // 5 ms of it can be saved up.
                #expect(time >= .milliseconds(94))
            }
        }
    }

    @Test("a stall delays all bytes, once, and traffic continues after it")
    func stall() async throws {
        let stall = FaultStall(length: .milliseconds(150), after: .milliseconds(1))
        let counters = try await withRelay({ $0.faults.stall = stall }) { proxy, listener in
            let begin = NIODeadline.now()
            let client = try await WireEnd.connect(to: proxy.port)
            let server = try await listener.accept()
            var count = 0
            // Until one of the turns has had the stall in it.
            while await proxy.counters().stalls.isEmpty {
                count += 1
                try await client.send([1])
                _ = try await server.bytes(count)
                try await server.send([2])
                _ = try await client.bytes(count)
            }
            #expect(NIODeadline.now() - begin >= .milliseconds(151))
            try await client.send([3])
            #expect(try await server.bytes(count + 1).last == 3)
        }
        #expect(counters.stalls.count == 1)
        #expect(counters.stalls.allSatisfy { $0.end >= $0.begin })
    }

    @Test("who stops the proxy does not wait for the end of a stall")
    func stopInStall() async throws {
        let stall = FaultStall(length: .hours(1), after: .zero)
        let counters = try await withRelay({ $0.faults.stall = stall }) { proxy, _ in
            _ = try await WireEnd.connect(to: proxy.port)
        }
        #expect(counters.connections <= 1)
    }

    @Test("a cut ends both sides by FIN, with what was under way lost", arguments: [false, true])
    func cut(_ isHeld: Bool) async throws {
        let counters = try await withRelay {
            $0.faults.cutEvery = .milliseconds(40)
            if isHeld { $0.faults.delay = .hours(1) }
        } _: { proxy, listener in
            let client = try await WireEnd.connect(to: proxy.port)
            let server = try await listener.accept()
            // Unread bytes must not turn the FIN into a RST.
            client.begin([1, 2, 3])
            server.begin([4, 5, 6, 7])
            #expect(try await client.ending() == .fin)
            #expect(try await server.ending() == .fin)
            if isHeld { #expect(try await client.received == []) }
            // The proxy may have lost patience.
            try? await client.close()
            try? await server.close()
        }
        #expect(counters.ends == ["cut": 1])
        #expect(counters.up.waiting == 0)
        #expect(counters.down.waiting == 0)
        if isHeld { #expect(counters.down.written == 0) }
    }

    @Test("a reset ends both sides by RST", arguments: [false, true])
    func reset(_ isHeld: Bool) async throws {
        var resets: UInt64 = 0
        let counters = try await withRelay {
            $0.faults.resetEvery = .milliseconds(40)
            if isHeld { $0.faults.delay = .hours(1) }
        } _: { proxy, listener in
            // On a busy host the reset may come before the connection is seen to be up.
            var connected: WireEnd?
            while connected == nil {
                resets += 1
                do {
                    connected = try await WireEnd.connect(to: proxy.port)
                } catch is NIOConnectionError {
                    let server = try await listener.accept()
                    #expect(try await server.ending() == .rst)
                }
            }
            let client = try #require(connected)
            let server = try await listener.accept()
            server.begin([4, 5, 6, 7])
            #expect(try await client.ending() == .rst)
            #expect(try await server.ending() == .rst)
        }
        #expect(counters.ends == ["reset": resets])
        #expect(counters.down.waiting == 0)
    }

    @Test("cuts go round: each connection has its turn")
    func roundRobin() async throws {
        let counters = try await withRelay({ $0.faults.cutEvery = .milliseconds(10) }) { proxy, listener in
            var clients: [WireEnd] = []
            for _ in 0..<8 { clients.append(try await WireEnd.connect(to: proxy.port)) }
            for client in clients { #expect(try await client.ending() == .fin) }
            for client in clients { try? await client.close() }
        }
        #expect(counters.ends == ["cut": 8])
    }
}
