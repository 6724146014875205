// The text behind the line of dashes is the one of Sources/MQTT/MQTT.docc/WaysToServer.md, word by word.
// ---
import MQTT
import NIOCore
import NIOPosix

func moveToSocket(_ path: String, from host: String, port: UInt16) async throws -> MQTTSessionManager {
    var configuration = MQTTClientConfiguration(host: host, port: port)
    configuration.version = .v5
    configuration.addressPreference = .ipv4First
    configuration.keepAlive = 60
    configuration.keepAliveJitter = 0.2
    let manager = MQTTSessionManager(configuration)
    manager.connect()
    for await state in manager.states where state == .connected { break }

    configuration = manager.configuration
    configuration.will = Will(topic: "status", payload: Array("gone".utf8), retain: true)
    configuration.transport = .custom(defaultPort: 1_883) { request in
        try await ClientBootstrap(group: request.eventLoop).connect(unixDomainSocketPath: path).get()
    }
    manager.connect(configuration)
    try await manager.publish(MQTTMessage(topic: "status", payload: "here".utf8, qos: .atLeastOnce))
    return manager
}
