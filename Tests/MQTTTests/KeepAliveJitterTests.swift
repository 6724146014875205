import EmbeddedBroker
import MQTT
import MQTTCodec
import NIOCore
import TestSupport
import Testing

@Suite("The jitter of keep-alives")
struct KeepAliveJitterTests {
    private static let start = NIODeadline.uptimeNanoseconds(1_000_000_000)

    /// Milliseconds from the CONNACK to the PINGREQ of a session.
    private static func pause(_ keepAlive: UInt16, _ share: Double) throws -> Int64 {
        var session = MQTTSession(SessionOptions(version: .v5, keepAlive: keepAlive))
        _ = session.connect(clientID: "c", username: nil, password: nil, now: Self.start)
        _ = session.received(ConnAck(), now: Self.start)
        session.spreadPing(by: share)
        let next = session.deadline
        let deadline = try #require(next)
        let early = session.timerFired(now: deadline - .nanoseconds(1)) { _ in }
        #expect(early == .none)
        let due = session.timerFired(now: deadline) { _ in }
        #expect(due == .ping)
        return (deadline - Self.start).nanoseconds / 1_000_000
    }

    @Test(
        "a PINGREQ is early by its share of the keep-alive, and not in its first second",
        arguments: [
            (60, 0, 60_000...60_000), (60, 0.25, 45_000...45_001), (60, 0.5, 30_000...30_001), (60, 1, 1_000...1_000),
            (1, 0.5, 1_000...1_000), (60, -1, 60_000...60_000), (60, 7, 1_000...1_000),
            (65_535, 0.5, 32_767_500...32_769_000),
        ] as [(UInt16, Double, ClosedRange<Int64>)]
    )
    func shares(_ keepAlive: UInt16, _ share: Double, _ expected: ClosedRange<Int64>) throws {
        let pause = try Self.pause(keepAlive, share)
        #expect(expected.contains(pause), "\(pause) ms")
    }

    @Test("a thousand clients that connected together send PINGREQ over the whole jitter, and never late")
    func spread() throws {
        var dice = SeededGenerator(seed: 7)
        var tenths = [Int](repeating: 0, count: 10)
        for _ in 0..<1_000 {
            let pause = try Self.pause(60, Double.random(in: 0...0.5, using: &dice))
            #expect((30_000...60_000).contains(pause))
            tenths[min(Int(60_000 - pause) / 3_000, 9)] += 1
        }
        // 100 in each on average, with a standard deviation below 10.
        #expect(tenths.allSatisfy { $0 > 50 }, "\(tenths)")
    }

    @Test("a client draws the time of each PINGREQ anew, within its jitter", arguments: [0, 0.5])
    func client(_ jitter: Double) async throws {
        try await withBroker { broker in
            let client = MQTTClient(
                MQTTClientConfiguration(port: broker.port) {
                    $0.keepAlive = 60_000
                    $0.keepAliveJitter = jitter
                }
            )
            try await client.connect()
            var pauses: Set<Int64> = []
            for _ in 0..<5 {
                _ = try await client.ping()
                let pause = try await client.onLoop { _, connection in connection?.pingInterval }
                pauses.insert(try #require(pause).nanoseconds)
            }
            #expect(pauses.count == (jitter == 0 ? 1 : 5))
            let seconds: Int64 = 1_000_000_000
            #expect(pauses.allSatisfy { (30_000 * seconds...60_000 * seconds).contains($0) })
            await client.shutDown()
        }
    }
}
