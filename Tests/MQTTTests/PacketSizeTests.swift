import MQTT
import MQTTCodec
import TestSupport
import Testing

@Suite("§3.1.2.11.4 Packets above 1 MiB are taken on request")
struct PacketSizeTests {
    /// A PUBLISH of so many bytes, at least 16,391.
    private static func message(_ bytes: Int, _ version: ProtocolVersion) -> [UInt8] {
        let head = version == .v5 ? 8 : 7
        return wire(publish("t", Array(repeating: 7, count: bytes - head)), version: version)
    }

    @Test(
        "a message of the limit is taken, and one more byte ends the connection",
        arguments: [ProtocolVersion.v31, .v311, .v5],
        [nil, 20_000, 1_500_000] as [UInt32?]
    )
    func limit(_ version: ProtocolVersion, _ limit: UInt32?) async throws {
        func configuration(_ port: Int) -> MQTTClientConfiguration {
            MQTTClientConfiguration(port: port, version, id: "c") { $0.maximumPacketSize = limit }
        }
        let script: [ScriptedPeer.Step] = [
            .expect(connectBytes(configuration(1))), .send(wire(.connAck(ConnAck()), version: version)),
        ]
        try await withScriptedPeer(script) { peer in
            let client = MQTTClient(configuration(peer.port))
            try await client.connect()
            let most = Int(limit ?? 1_048_576)
            let message = Self.message(most, version)
            #expect(message.count == most)
            try await peer.send(message)
            #expect(await client.take(1).first?.message.payload.count == most - (version == .v5 ? 8 : 7))
            let before = try await peer.byteCount()
            async let error = failure { try await client.ping() }
            try await peer.untilBytes(before + 2)
            try await peer.send(Self.message(most + 1, version))
            let words = "a packet of \(most + 1) bytes, above the maximum packet size (§3.1.2.11.4)"
            #expect(await error == .connectionLost(.protocolError(.packetTooLarge, words)))
            #expect(try await peer.mismatches().isEmpty)
        }
    }

    @Test(
        "a CONNACK above 512 KiB is refused with its first bytes, whatever the limit",
        arguments: [nil, 2 << 20] as [Int?]
    )
    func connack(_ limit: Int?) throws {
        let rig = try ConnectionRig(SessionOptions(version: .v5, maximumPacketSize: limit))
        rig.start()
        _ = try rig.sent()
        try rig.receive(hex("20 FDFF1F"))
        #expect(rig.observer.end == .malformed(.packetTooLarge(size: 524_289)))
        // [MQTT-3.14.0-1]: no DISCONNECT before CONNACK.
        #expect(try rig.sent().isEmpty)
    }

    @Test("behind CONNACK the limit is that of the options")
    func behindConnack() throws {
        let rig = try ConnectionRig(SessionOptions(version: .v5, maximumPacketSize: 2 << 20))
        try rig.connect()
        try rig.receive(hex("30 FCFF7F"))
        #expect(rig.observer.end == nil)
        rig.connection.abort()
        let other = try ConnectionRig(SessionOptions(version: .v5, maximumPacketSize: 2 << 20))
        try other.connect()
        try other.receive(hex("30 FDFF7F"))
        #expect(other.observer.end == .malformed(.packetTooLarge(size: 2_097_153)))
        #expect(try other.sent() == [hex("E002 95 00")])
    }
}
