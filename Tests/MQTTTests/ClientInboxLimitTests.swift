import MQTT
import MQTTCodec
import TestSupport
import Testing

@Suite("How much a client's inbox holds")
struct ClientInboxLimitTests {
    @Test("as many bytes as an integer counts are no limit")
    func unlimited() async throws {
        try await withScriptedPeer(accepting(then: [.send(wire(publish("t", [1])))])) { peer in
            let (came, told) = AsyncStream.makeStream(of: Void.self)
            let configuration = MQTTClientConfiguration(port: peer.port, id: "c") {
                $0.limits.inboxBytes = .max
                $0.hooks.received = { if $0.type == .publish { told.yield() } }
            }
            let client = MQTTClient(configuration)
            try await client.connect()
            for await _ in came { break }
            // A turn of the loop later the message waits in the inbox, which was asked how full it is.
            try await client.publish(MQTTMessage(topic: "t"))
            #expect(await client.take(1).map(\.payload) == [[1]])
            client.abort()
        }
    }

    @Test("an inbox for no byte is refused", arguments: [0, -1, Int.min])
    func nothing(_ bytes: Int) async {
        let client = MQTTClient(MQTTClientConfiguration(port: 1) { $0.limits.inboxBytes = bytes })
        #expect(await failure { try await client.connect() } == .invalid("an inbox holds at least 1 byte"))
    }
}
