import Foundation
import MQTT
import TestSupport
import Testing

@Suite("Alibaba Cloud on the wire")
struct AlibabaCloudWireTests {
    /// A case of Tests/Vectors/mqtt, written by hand from the standard.
    private struct Vector: Decodable {
        let name: String
        let bytes: String

        /// The bytes of the one vector about Alibaba Cloud in a file.
        static func alibabaCloud(_ file: String) throws -> [UInt8] {
            let url = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
                .appendingPathComponent("Vectors/mqtt/\(file).json")
            let vectors = try JSONDecoder().decode([Vector].self, from: Data(contentsOf: url))
            let found = vectors.filter { $0.name.contains("Alibaba Cloud") }
            return hex(try #require(found.first, "\(file).json has one").bytes)
        }
    }

    @Test("[SPEC A14] CONNECT and a P2P message of the documented example are these bytes")
    func documented() async throws {
        let id = try MQTTAlibabaCloud.clientID(groupID: "GID_Test", deviceID: "0001")
        let peer = try await ScriptedPeer(script: [
            .expect(try Vector.alibabaCloud("connect")), .send(hex("20 02 0000")),
            .expect(try Vector.alibabaCloud("publish")), .send(hex("40 02 0001")),
        ])
        var configuration = MQTTClientConfiguration(port: peer.port, .v311, id: id)
        configuration.credentials = .alibabaCloud(
            MQTTAlibabaCloud(accessKey: "YYYYY", mode: .signature(secret: "XXXXX", instanceID: "mqtt-xxxxx"))
        )
        let client = MQTTClient(configuration)
        try await client.connect()
        let topic = try MQTTAlibabaCloud.p2pTopic(rootTopic: "mytopic", clientID: "GID_xxxx@@@DEVICEID_001")
        _ = try await client.publish(MQTTMessage(topic: topic, payload: Array("hello mqtt".utf8), qos: .atLeastOnce))
        #expect(try await peer.mismatches() == [])
        client.abort()
        try await peer.shutdown()
    }
}
