// The text behind the line of dashes is the one of Sources/MQTT/MQTT.docc/GettingStarted.md, word by word.
// ---
import MQTT

func sayHello(host: String, port: UInt16) async throws -> [String] {
    var configuration = MQTTClientConfiguration(host: host, port: port)
    configuration.version = .v5
    configuration.keepAlive = 30
    let client = MQTTClient(configuration)
    try await client.connect()
    try await client.subscribe([Subscription(filter: "greetings/#", qos: .atLeastOnce)])
    for name in ["Ada", "Grace"] {
        let payload = "hello, \(name)".utf8
        try await client.publish(MQTTMessage(topic: "greetings/\(name)", payload: payload, qos: .atLeastOnce))
    }
    var greetings: [String] = []
    for await message in client.messages.prefix(2) {
        greetings.append(String(decoding: message.payload, as: UTF8.self))
    }
    await client.disconnect()
    return greetings
}
