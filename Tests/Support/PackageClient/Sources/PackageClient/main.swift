import MQTT

// Every part of the face once, by the one import.
var configuration = MQTTClientConfiguration(host: "127.0.0.1", port: 1)
configuration.version = .v5
configuration.credentials = .password(user: "user", "secret")
configuration.authentication = .scramSHA256(user: "user", password: "secret", iterations: 4_096...100_000)
print(MQTTAuthentication.usualIterations)
configuration.will = Will(topic: "will", payload: [1], qos: .atLeastOnce, properties: [.willDelayInterval(5)])
configuration.userProperties = [UserProperty("name", "value")]
var tls = MQTTTLS()
tls.validatesName = false
tls.pinsWholeChain = false
configuration.transport = try .tls(tls)
let addresses = MQTTProxyHeader.Addresses.claimed(
    source: MQTTProxyHeader.Endpoint("192.0.2.1", port: 50_000),
    destination: MQTTProxyHeader.Endpoint("192.0.2.2", port: 1_883)
)
configuration.transport = try MQTTTransport.tcp.sending(MQTTProxyHeader(.v2, addresses))
configuration.addressPreference = .ipv4Only
configuration.keepAliveJitter = 0.1
configuration.outboundTopicAliases = 8
configuration.rawConnect = nil
configuration.hooks.delivered = { message, id in print(message.topic, id) }
configuration.timeouts.connect = .seconds(1)

let client = MQTTClient(configuration, store: MQTTMemoryStore())
do {
    let result = try await client.connect()
    print(result.limits.receiveMaximum, result.limits.sessionExpiry, result.properties.responseInformation ?? "")
    var message = MQTTMessage(topic: "t", payload: "hello".utf8, qos: .exactlyOnce)
    message.properties.contentType = "text/plain"
    let published = try await client.publish(message)
    print(published.reason.name, published.properties.reasonString ?? "", published.recordedProperties.isEmpty)
    for granted in try await client.subscribe([Subscription(filter: "t/#", qos: .atLeastOnce, noLocal: true)]) {
        print(granted.filter, granted.granted as QoS? as Any, granted.properties.userProperties)
    }
    for await received in client.messages {
        print(received.topic, received.properties.userProperties.map(\.name))
        received.acknowledge()
    }
    for ended in try await client.unsubscribe(["t/#"]) { print(ended.filter, ended.reason.name, ended.properties) }
    print(try await client.ping())
    try await client.reauthenticate()
    try await client.sendRaw([0xC0, 0])
} catch .refused(let refusal) {
    print(refusal.reason?.name ?? "", refusal.properties.serverReference ?? "")
} catch {
    // Port 1 is closed.
    print(error, error.reasonString ?? "", error.serverReference ?? "", error.properties)
}
await client.disconnect()

var policy = MQTTReconnectPolicy()
policy.maximumDelay = .seconds(8)
let manager = MQTTSessionManager(configuration, policy: policy)
manager.setSubscriptions([Subscription(filter: "t/#")])
print(manager.state.requiresTearDown, manager.subscriptions, manager.effectiveSubscriptions, manager.lastError as Any)
let (states, events, changes) = (manager.states, manager.events, manager.effectiveSubscriptionChanges)
manager.connect()
manager.connect(host: "127.0.0.1", port: 2)
var changed = manager.configuration
changed.will = nil
changed.addressPreference = MQTTAddressPreference.ipv6First
changed.transport = .custom(defaultPort: 1_883) { request in
    print(request.host, request.port, request.eventLoop)
    throw MQTTClientError.notConnected
}
manager.connect(changed)
manager.suspend()
manager.resume()
manager.connectToLast()
await manager.disconnect()
print(await failure { () async throws(MQTTClientError) in try await manager.publish(MQTTMessage(topic: "t")) } as Any)
print(await failure { () async throws(MQTTClientError) in try await manager.ping() } as Any)
await manager.shutDown()
for await state in states { print(state) }
for await event in events { print(event) }
for await effective in changes { print(effective) }
for await message in manager.messages { print(message.topic) }

func failure<Value>(_ call: () async throws(MQTTClientError) -> Value) async -> MQTTClientError? {
    do {
        _ = try await call()
        return nil
    } catch {
        return error
    }
}
