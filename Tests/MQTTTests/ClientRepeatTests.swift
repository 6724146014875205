import MQTT
import MQTTCodec
import TestSupport
import Testing

@Suite("A client that repeats what is not acknowledged (SPEC A8)", .timeLimit(.minutes(2)))
struct ClientRepeatTests {
    private static func configuration(_ peer: ScriptedPeer, _ version: ProtocolVersion) -> MQTTClientConfiguration {
        MQTTClientConfiguration(port: peer.port, version, id: "c") { $0.repeatsAfter = .milliseconds(50) }
    }

    /// Runs `body` with a client of that version that is connected, and a peer that goes on with `steps`.
    private static func withClient(
        _ version: ProtocolVersion,
        _ steps: [ScriptedPeer.Step] = [],
        _ body: (MQTTClient, ScriptedPeer) async throws -> Void
    ) async throws {
        let connect = connectBytes(MQTTClientConfiguration(port: 1, version, id: "c"))
        let opening: [ScriptedPeer.Step] = [.expect(connect), .send(wire(.connAck(ConnAck()), version: version))]
        try await withScriptedPeer(opening + steps) { peer in
            let client = MQTTClient(Self.configuration(peer, version))
            try await client.connect()
            try await body(client, peer)
            #expect(try await peer.mismatches().isEmpty)
            client.abort()
        }
    }

    @Test(
        "[MQTT-3.3.1-1] PUBLISH goes out again on the same connection, with DUP, as often as it takes",
        arguments: [ProtocolVersion.v31, .v311]
    )
    func repeatsPublish(_ version: ProtocolVersion) async throws {
        let steps: [ScriptedPeer.Step] = [
            .expect([0x32, 6, 0, 1, 0x74, 0, 1, 7]), .expect([0x3A, 6, 0, 1, 0x74, 0, 1, 7]),
            .expect([0x3A, 6, 0, 1, 0x74, 0, 1, 7]), .send([0x40, 2, 0, 1]),
        ]
        try await Self.withClient(version, steps) { client, _ in
            let result = try await client.publish(MQTTMessage(topic: "t", payload: [7], qos: .atLeastOnce))
            #expect(result.packetID == 1)
        }
    }

    @Test("[MQTT-4.3.3-6] behind PUBREC it is PUBREL that is repeated; 3.1 wants DUP on it", arguments: [3, 4])
    func repeatsRelease(_ level: Int) async throws {
        let version: ProtocolVersion = level == 3 ? .v31 : .v311
        let steps: [ScriptedPeer.Step] = [
            .expect([0x34, 6, 0, 1, 0x74, 0, 1, 7]), .expect([0x3C, 6, 0, 1, 0x74, 0, 1, 7]), .send([0x50, 2, 0, 1]),
        ]
        let release: [UInt8] = [0x62, 2, 0, 1]
        let again: [UInt8] = [level == 3 ? 0x6A : 0x62, 2, 0, 1]
        try await Self.withClient(version, steps) { client, peer in
            async let result = client.publish(MQTTMessage(topic: "t", payload: [7], qos: .exactlyOnce))
            // A third PUBLISH may have crossed PUBREC.
            var releases: [UInt8] = []
            while releases.count < 8 {
                try await peer.untilBytes(try await peer.byteCount() + 1)
                releases = Self.packets(try await peer.received()).filter { $0[0] & 0xF0 == 0x60 }.flatMap { $0 }
            }
            #expect(Array(releases.prefix(8)) == release + again)
            try await peer.send([0x70, 2, 0, 1])
            #expect(try await result.packetID == 1)
        }
    }

    /// Cuts packets of less than 128 bytes apart.
    private static func packets(_ bytes: [UInt8]) -> [[UInt8]] {
        var packets: [[UInt8]] = []
        var rest = bytes[...]
        while rest.count >= 2, let size = rest.dropFirst().first, rest.count >= Int(size) + 2 {
            packets.append(Array(rest.prefix(Int(size) + 2)))
            rest = rest.dropFirst(Int(size) + 2)
        }
        return packets
    }

    @Test(
        "[MQTT-4.4.0-1] MQTT 5 repeats nothing on a connection that stands, whatever is asked for",
        arguments: QoS.kept
    )
    func neverInFive(_ qos: QoS) async throws {
        let connect = connectBytes(MQTTClientConfiguration(port: 1, id: "c"))
        try await withScriptedPeer([.expect(connect), .send(wire(.connAck(ConnAck())))]) { peer in
            var configuration = Self.configuration(peer, .v5)
            // Time for many repetitions.
            configuration.timeouts.acknowledgement = .milliseconds(1_000)
            let client = MQTTClient(configuration)
            try await client.connect()
            let message = MQTTMessage(topic: "t", payload: [7], qos: qos)
            #expect(await failure { try await client.publish(message) } == .timedOut(.acknowledgement))
            #expect(try await peer.byteCount() == connect.count + 9)
            client.abort()
        }
    }
}
