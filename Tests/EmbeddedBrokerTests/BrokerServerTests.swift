import EmbeddedBroker
import FaultInjection
import FaultLines
import MQTTCodec
import NIOCore
import Testing

@Suite("The broker on a socket", .timeLimit(.minutes(10)))
struct BrokerServerTests {
    /// A broker on a free port for as long as `body` runs.
    ///
    /// - Returns: its last counters.
    @discardableResult
    static func withBroker(
        _ line: String = "",
        _ configure: (inout BrokerConfiguration) -> Void = { _ in },
        _ body: (BrokerServer) async throws -> Void
    ) async throws -> BrokerCounters {
        var configuration = BrokerConfiguration(port: 0, faults: try FaultPlan.parse(line: line))
        configure(&configuration)
        let server = try await BrokerServer.start(configuration)
        do {
            try await body(server)
        } catch {
            await server.stop()
            throw error
        }
        return await server.stop()
    }

    static func publishes(_ count: Int, _ qos: QoS, topic: String = "t") -> [Packet] {
        (1...count).map { number in
            .publish(
                Publish(
                    topic: topic,
                    payload: ByteBuffer(string: "\(number)"),
                    qos: qos,
                    packetID: qos == .atMostOnce ? nil : PacketID(rawValue: UInt16(number))
                )
            )
        }
    }

    @Test("a thousand messages arrive in order, at each QoS, from and to either version", arguments: QoS.allCases)
    func throughput(_ qos: QoS) async throws {
        let counters = try await Self.withBroker { server in
            let subscriber = try await WireClient.connect(port: server.port, "s", .v311)
            try await subscriber.subscribe("#")
            let publisher = try await WireClient.connect(port: server.port, "p", .v5)
            try await publisher.send(Self.publishes(1_000, qos))
            var payloads: [String] = []
            while payloads.count < 1_000 { payloads += try await subscriber.payloads(1) }
            #expect(payloads == (1...1_000).map(String.init))
            let acknowledgements = qos == .atMostOnce ? 0 : qos == .atLeastOnce ? 1_000 : 2_000
            var answers = 0
            while answers < acknowledgements { answers += try await publisher.next(1).count }
        }
        var expected = CountPerQoS()
        expected[qos.rawValue] = 1_000
        #expect(counters.received == expected)
        #expect(counters.delivered == expected)
        #expect(counters.expected == expected)
    }

    @Test("a DISCONNECT is answered by a FIN, behind everything else")
    func goodbye() async throws {
        let counters = try await Self.withBroker { server in
            let client = try await WireClient.connect(port: server.port, "c")
            try await client.subscribe("t")
            try await client.send(Self.publishes(3, .atMostOnce) + [.disconnect(Disconnect())])
            #expect(try await client.payloads(3) == ["1", "2", "3"])
            try await client.closed()
        }
        #expect(counters.disconnects == ["client": 1])
    }

    @Test("malformed bytes are answered with the reason and a close")
    func malformed() async throws {
        try await Self.withBroker { server in
            let client = try await WireClient.connect(port: server.port, "c")
            try await client.send(.publish(Publish(topic: "a/#")))
            #expect(try await client.next(1) == [.disconnect(Disconnect(reason: .malformedPacket))])
            try await client.closed()
        }
    }

    @Test("wrong credentials are counted by the address of their client")
    func guesses() async throws {
        let access = { (configuration: inout BrokerConfiguration) in
            configuration.access = BrokerAccess(users: ["u": BrokerAccess.User(password: [1])])
            configuration.access.refusalDelay = .milliseconds(1)
        }
        try await Self.withBroker("", access) { server in
            let client = try await WireClient.open(port: server.port)
            try await client.send(.connect(Connect(version: .v5, clientID: "c", username: "u", password: [2])))
            #expect(try await client.next(1) == [.connAck(ConnAck(code: 0x86))])
            try await client.closed()
            #expect(await server.takeGuesses() == ["127.0.0.1": 1])
        }
    }
    @Test("a packet above 1 MiB is answered with 0x95; above 512 KiB nothing is read before CONNECT")
    func packetSize() async throws {
        try await Self.withBroker("", { $0.connectDeadline = .hours(1) }) { server in
            let client = try await WireClient.connect(port: server.port, "c")
            // 1 MiB, and one byte more.
            let payload = [UInt8](repeating: 7, count: 1_048_568)
            try await client.send(raw: [0x30, 0xFC, 0xFF, 0x3F, 0, 1, 0x74, 0] + payload)
            try await client.send(.pingReq)
            #expect(try await client.next(1) == [.pingResp])
            try await client.send(raw: [0x30, 0xFD, 0xFF, 0x3F])
            #expect(try await client.next(1) == [.disconnect(Disconnect(reason: .packetTooLarge))])
            try await client.closed()
            #expect(try await RawClient.talk(server.port, [[0x10, 0xFD, 0xFF, 0x1F]]) == [])
        }
    }

    @Test("a client that takes nothing after its end is reset, and its output forgotten")
    func unreadEnd() async throws {
        let counters = try await Self.withBroker(
            "",
            {
                $0.connectDeadline = .seconds(2)
                $0.highWaterMark = 64 << 20
            }
        ) { server in
            let reader = try await WireClient.connect(port: server.port, "r")
            try await reader.subscribe("t")
            try await reader.setReading(false)
            let publisher = try await WireClient.connect(port: server.port, "p")
            // More than the buffers of both sides of a loopback connection hold.
            let payload = ByteBuffer(repeating: 7, count: 1_000_000)
            for id: PacketID in [1, 2, 3, 4] {
                let message = Publish(topic: "t", payload: payload, qos: .atLeastOnce, packetID: id)
                for _ in 0..<8 { try await publisher.send(.publish(message)) }
            }
            var answers = 0
            while answers < 32 { answers += try await publisher.next(1).count }
            try await reader.send(.disconnect(Disconnect()))
            // It reads nothing, so this is the RST.
            try await reader.closed()
        }
        #expect(counters.disconnects["client"] == 1)
    }

    @Test("a slow reader loses nothing, and its publisher is held back meanwhile")
    func slowReader() async throws {
        let counters = try await Self.withBroker("", { $0.highWaterMark = 50_000 }) { server in
            // Answers late: the window fills, then the queue, then the publisher stops being read.
            let subscriber = try await WireClient.connect(port: server.port, "s", answers: false)
            try await subscriber.subscribe("t")
            let publisher = try await WireClient.connect(port: server.port, "p")
            try await publisher.send(Self.publishes(20_000, .atLeastOnce))
            var seen = 0
            while seen < 20_000 {
                let packets = try await subscriber.next(1)
                seen += packets.count
                try await subscriber.send(
                    packets.compactMap { packet in
                        guard case .publish(let publish) = packet, let id = publish.packetID else { return nil }
                        return .pubAck(PubAck(id))
                    }
                )
            }
            #expect(seen == 20_000)
        }
        #expect(counters.delivered == CountPerQoS(0, 20_000))
        #expect(counters.queueFull == CountPerQoS())
    }

    @Test("fragment writes no more bytes at once than it says")
    func fragment() async throws {
        try await Self.withBroker("fragment 1-7") { server in
            let subscriber = try await WireClient.connect(port: server.port, "s")
            try await subscriber.subscribe("t")
            let publisher = try await WireClient.connect(port: server.port, "p")
            try await publisher.send(Self.publishes(300, .exactlyOnce))
            var payloads: [String] = []
            while payloads.count < 300 { payloads += try await subscriber.payloads(1) }
            #expect(payloads == (1...300).map(String.init))
        }
    }

    @Test("disconnect-every resets connections, and what was delivered before has arrived", arguments: QoS.allCases)
    func disconnect(_ qos: QoS) async throws {
        let counters = try await Self.withBroker("disconnect-every 2s") { server in
            let subscriber = try await WireClient.connect(port: server.port, "s")
            try await subscriber.subscribe("t")
            let publisher = try await WireClient.connect(port: server.port, "p")
            // On a busy machine the reset may come in the middle of this.
            try? await publisher.send(Self.publishes(2_000, qos))
            var payloads: [String] = []
            while true {
                let packets = try await subscriber.next(1)
                if packets.isEmpty { break }
                payloads += packets.compactMap {
                    guard case .publish(let publish) = $0 else { return nil }
                    return String(buffer: publish.payload)
                }
            }
            try await subscriber.closed()
            let counters = await server.counters()
            #expect(counters.delivered.total == UInt64(payloads.count))
            #expect(counters.disconnected >= 1)
            try await publisher.closed()
        }
        #expect(counters.disconnects["injected"] == 2)
        #expect(counters.expected == counters.received)
    }

    @Test("stall neither reads nor writes for its time, and says when")
    func stall() async throws {
        let counters = try await Self.withBroker("stall 2s@50ms") { server in
            let client = try await WireClient.connect(port: server.port, "c")
            let clock = ContinuousClock()
            var longest = Duration.zero
            for _ in 0..<1_000_000 where longest < .seconds(1) {
                let begun = clock.now
                try await client.send(.pingReq)
                _ = try await client.next(1)
                longest = max(longest, clock.now - begun)
            }
            #expect(longest >= .seconds(1))
        }
        let stall = try #require(counters.stalls.first)
        #expect(counters.stalls.count == 1)
        #expect((stall.end - stall.begin) >= 1_000_000_000)
    }

    @Test("max-rate reads PUBLISH at its rate, and everything else as it comes")
    func maximumRate() async throws {
        try await Self.withBroker("max-rate 500/s") { server in
            let publisher = try await WireClient.connect(port: server.port, "p")
            let clock = ContinuousClock()
            let begun = clock.now
            try await publisher.send(Self.publishes(150, .atLeastOnce))
            let other = try await WireClient.connect(port: server.port, "o")
            try await other.send(.pingReq)
            #expect(try await other.next(1) == [.pingResp])
            var answers = 0
            while answers < 150 { answers += try await publisher.next(1).count }
            // 150 at 500 a second, less what the bucket holds at the start.
            #expect(clock.now - begun >= .milliseconds(290))
        }
    }

    @Test("with a retry storm, reading that is behind for a second goes on at a part of its rate, and then as before")
    func retryStorm() async throws {
        try await Self.withBroker("max-rate 200/s retry-storm 4") { server in
            let publisher = try await WireClient.connect(port: server.port, "p")
            let clock = ContinuousClock()
            let begun = clock.now
            try await publisher.send(Self.publishes(300, .atLeastOnce))
            var answers = 0
            while answers < 300 { answers += try await publisher.next(1).count }
            // 200 in the first second, and the others at 50 a second; without the storm 1.5 s.
            #expect(clock.now - begun >= .milliseconds(2_500))
            let later = clock.now
            try await publisher.send(Self.publishes(100, .atLeastOnce))
            while answers < 400 { answers += try await publisher.next(1).count }
            #expect(clock.now - later >= .milliseconds(400))
        }
    }

    @Test("delay holds for its time, and the hold is recorded")
    func delay() async throws {
        let counters = try await Self.withBroker("delay 20ms delay-every 2") { server in
            let subscriber = try await WireClient.connect(port: server.port, "s")
            try await subscriber.subscribe("t")
            let publisher = try await WireClient.connect(port: server.port, "p")
            try await publisher.send(Self.publishes(10, .atMostOnce))
            var payloads: [String] = []
            while payloads.count < 10 { payloads += try await subscriber.payloads(1) }
            #expect(payloads == ["1", "3", "5", "7", "9", "2", "4", "6", "8", "10"])
        }
        #expect(counters.delayHolds.count == 5)
        #expect((counters.delayHolds.min ?? 0) >= 20_000_000)
        #expect(counters.delayed == CountPerQoS(5))
        #expect(counters.reordered == CountPerQoS(4))
    }
}
