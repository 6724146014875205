import EmbeddedBroker
import MQTT
import MQTTCodec
import Synchronization
import TestSupport
import Testing

@Suite("The session manager and its servers", .timeLimit(.minutes(10)))
struct ManagerServerTests {
    private static func configuration(
        _ port: Int,
        _ change: (inout MQTTClientConfiguration) -> Void = { _ in }
    ) -> MQTTClientConfiguration {
        MQTTClientConfiguration(port: port, .v311, id: "c") {
            $0.cleanStart = false
            change(&$0)
        }
    }

    /// The first packet, and its answer.
    private static func connects(sessionPresent: Bool = false) -> [ScriptedPeer.Step] {
        [.expectCount(connectBytes(Self.configuration(1)).count), .send([0x20, 2, sessionPresent ? 1 : 0, 0])]
    }

    @Test("disconnect ends the wait for a message, also if the connection was being closed for something else")
    func disconnectEndsWaits() async throws {
        for isSuspended in [true, false] {
            let script = Self.connects() + [.expectCount(8), .expect([0xE0, 0]), .close]
            try await withScriptedPeer(script) { peer in
                let manager = MQTTSessionManager(Self.configuration(peer.port), Waits())
                manager.connect()
                await manager.until(.connected)
                let waiting = Task {
                    await failure {
                        try await manager.publish(MQTTMessage(topic: "t", payload: [7], qos: .atLeastOnce))
                    }
                }
                try await peer.untilBytes(connectBytes(Self.configuration(1)).count + 8)
                if isSuspended { manager.suspend() } else { manager.connect(host: "127.0.0.1", port: 1) }
                await manager.disconnect()
                #expect(manager.state == .closed)
                #expect(await waiting.value == .disconnected)
            }
        }
    }

    @Test("an attempt that makes room for another server does not end the next one", arguments: 0..<50)
    func cancelledAttempt(_ number: Int) async throws {
        try await withScriptedPeer(Self.connects()) { peer in
            let (asked, ask) = AsyncStream.makeStream(of: Void.self)
            let (held, release) = AsyncStream.makeStream(of: Void.self)
            let isFirst = Mutex(true)
            let configuration = Self.configuration(1) {
                $0.credentialsProvider = { _ in
                    let waits = isFirst.withLock { isFirst in
                        defer { isFirst = false }
                        return isFirst
                    }
                    ask.yield()
                    if waits { for await _ in held {} }
                    return .none
                }
            }
            let manager = MQTTSessionManager(configuration, Waits())
            manager.connect()
            for await _ in asked { break }
            manager.connect(host: "127.0.0.1", port: UInt16(peer.port))
            for await state in manager.states where state == .connected || state == .failed {
                #expect(state == .connected)
                break
            }
            release.finish()
        }
    }

    @Test("[SPEC A5] flows that are open at one server do not go on at another", arguments: [true, false])
    func leavesFlows(_ sessionPresent: Bool) async throws {
        // Delivered and recorded; then ours at QoS 2, taken, and at QoS 1, not.
        let first =
            Self.connects() + [
                .send([0x34, 6, 0, 1, 0x73, 0, 9, 1]), .expect([0x50, 2, 0, 9]),
                .expect([0x34, 6, 0, 1, 0x74, 0, 1, 1]), .send([0x50, 2, 0, 1]), .expect([0x62, 2, 0, 1]),
                .expect([0x32, 6, 0, 1, 0x74, 0, 2, 2]), .expect([0xE0, 0]), .close,
            ]
        // The identifier is free here, and another message's.
        let second =
            Self.connects(sessionPresent: sessionPresent) + [
                .expect([0x32, 6, 0, 1, 0x74, 0, 3, 2]), .send([0x40, 2, 0, 3]),
                .send([0x34, 6, 0, 1, 0x73, 0, 9, 2]), .expect([0x50, 2, 0, 9]), .send([0x62, 2, 0, 9]),
                .expect([0x70, 2, 0, 9]),
            ]
        try await withScriptedPeer(first) { one in
            try await withScriptedPeer(second) { other in
                let manager = MQTTSessionManager(Self.configuration(one.port), Waits())
                manager.connect()
                var messages = manager.messages.makeAsyncIterator()
                #expect(await messages.next()?.message.payload == [1])
                let size = connectBytes(Self.configuration(1)).count
                try await one.untilBytes(size + 4)
                async let twice = manager.publish(MQTTMessage(topic: "t", payload: [1], qos: .exactlyOnce))
                try await one.untilBytes(size + 16)
                async let once = manager.publish(MQTTMessage(topic: "t", payload: [2], qos: .atLeastOnce))
                try await one.untilBytes(size + 24)
                manager.connect(host: "127.0.0.1", port: UInt16(other.port))
                #expect(try await twice == MQTTPublishResult(packetID: 1))
                #expect(try await once == MQTTPublishResult(packetID: 3))
                #expect(await messages.next()?.message.payload == [2])
                try await other.untilScriptDone()
                #expect(try await one.mismatches() == [])
                #expect(try await other.mismatches() == [])
            }
        }
    }

    @Test(
        "a server that is none is refused at once",
        arguments: [("", 1, "a host is needed"), ("b", 0, "port 0 is no port")] as [(String, UInt16, String)]
    )
    func noServer(_ host: String, _ port: UInt16, _ words: String) async {
        let waits = Waits()
        let manager = MQTTSessionManager(MQTTClientConfiguration(port: 1), waits)
        manager.connect(host: host, port: port)
        await manager.until(.failed)
        #expect(manager.lastError == .invalid(words))
        #expect(waits.count == 0)
        let client = MQTTClient(MQTTClientConfiguration(port: 1))
        #expect(await failure { try await client.connect(host: host, port: port) } == .invalid(words))
    }
}
