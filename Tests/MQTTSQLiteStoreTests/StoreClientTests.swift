import MQTT
import MQTTCodec
import MQTTSQLiteStore
import Testing
import TestSupport

@Suite("A client and its store", .enabled(if: Mosquitto.isInstalled, Comment(rawValue: Mosquitto.missing)))
struct StoreClientTests {
    private static func configuration(_ port: Int) -> MQTTClientConfiguration {
        var configuration = MQTTClientConfiguration(host: "127.0.0.1", port: UInt16(port))
        // A busy host is not what is tested.
        configuration.timeouts.connect = .seconds(600)
        configuration.timeouts.acknowledgement = .seconds(600)
        configuration.timeouts.ping = .seconds(600)
        configuration.version = .v5
        configuration.clientID = "c"
        configuration.cleanStart = false
        configuration.sessionExpiry = 60
        // Properties that are wrong on purpose, which the store refuses.
        configuration.validates = false
        return configuration
    }

    @Test(
        "a message that the store refuses fails alone, connected or not",
        .timeLimit(.minutes(10)),
        arguments: [false, true]
    )
    func refused(isConnected: Bool) async throws {
        let folder = try ScratchFolder()
        try await Mosquitto.with { broker in
            let store = try MQTTSQLiteStore(path: folder.path("db"))
            let client = MQTTClient(Self.configuration(broker.port), store: store)
            if isConnected { try await client.connect() }
            let outcomes = try await withThrowingTaskGroup { tasks in
                for number in 0..<20 {
                    var message = MQTTMessage(topic: "t", payload: "\(number)".utf8, qos: .exactlyOnce)
                    // Text of 65,536 bytes goes out cut, which the broker takes.
                    if number == 10 { message.properties = [.contentType(String(repeating: "x", count: 65_536))] }
                    let last = message
                    tasks.addTask {
                        do throws(MQTTClientError) {
                            try await client.publish(last)
                            return "\(number) delivered"
                        } catch {
                            return "\(number) \(error == .storeFailed("\(MQTTStoreError.unreadableProperties)"))"
                        }
                    }
                }
                // Messages that wait for a connection get one.
                if !isConnected { try await client.connect() }
                return try await tasks.reduce(into: Set()) { $0.insert($1) }
            }
            #expect(outcomes == Set((0..<20).map { $0 == 10 ? "10 true" : "\($0) delivered" }))
            // A call returns with the acknowledgement, before the store has forgotten.
            while try await !store.load(client: "c").isEmpty { try await Task.sleep(for: .milliseconds(5)) }
            await client.shutDown()
        }
    }

    @Test(
        "[MQTT-4.3.3-10] a QoS 2 message that a killed client had is not delivered to the next",
        .timeLimit(.minutes(10))
    )
    func received() async throws {
        let folder = try ScratchFolder()
        let store = try MQTTSQLiteStore(path: folder.path("db"))
        // The state of a client that was killed after PUBREC: the broker repeats PUBREL, and gets PUBCOMP.
        let message = MQTTMessage(topic: "", qos: .exactlyOnce)
        let stored = MQTTStoredMessage(sequence: 1, stage: .received(1), message: message)
        try await Mosquitto.with { broker in
            var configuration = Self.configuration(broker.port)
            configuration.acknowledgement = .manual
            let first = MQTTClient(configuration)
            try await first.connect()
            try await first.subscribe([Subscription(filter: "t", qos: .exactlyOnce)])
            let sender = try broker.client("mosquitto_pub", ["-q", "2", "-t", "t", "-m", "once"])
            #expect(try await sender.ended().status == 0)
            var messages = first.messages.makeAsyncIterator()
            #expect(await messages.next()?.packetID == 1)
            // Its acknowledgement is lost with it.
            first.abort()
            try await store.commit([.insert(stored)], client: "c")

            let second = MQTTClient(configuration, store: store)
            #expect(try await second.connect().sessionPresent)
            let next = try broker.client("mosquitto_pub", ["-q", "0", "-t", "t", "-m", "next"])
            #expect(try await next.ended().status == 0)
            var rest = second.messages.makeAsyncIterator()
            #expect(await rest.next()?.message.payload == Array("next".utf8))
            await second.shutDown()
            await first.shutDown()
        }
    }
}
