import MQTT
import Testing

/// A test flow for a server, over one of its links.
///
/// Every flow takes topics and client ids of its own, so all may use one server, one after the other.
struct ServerFlow: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let versions: [ProtocolVersion]
    let run: @Sendable (Visit) async throws -> Void

    init(
        _ name: String,
        versions: [ProtocolVersion] = ProtocolVersion.allCases,
        _ run: @escaping @Sendable (Visit) async throws -> Void
    ) {
        self.testDescription = name
        self.versions = versions
        self.run = run
    }
}

/// A flow's stay at a server.
struct Visit: Sendable {
    let endpoint: Endpoint
    let version: ProtocolVersion
    /// Unique to the flow, version and link; 3.1 takes client ids of 23 characters at most.
    let name: String

    /// A client that is not connected yet.
    func client(_ id: String, _ change: (inout MQTTClientConfiguration) -> Void = { _ in }) throws -> MQTTClient {
        var configuration = try self.endpoint.configuration()
        configuration.version = self.version
        configuration.clientID = "\(self.name)-\(id)"
        change(&configuration)
        return MQTTClient(configuration)
    }

    func topic(_ last: String) -> String { "\(self.name)/\(last)" }

    /// Connected, and away again when `body` is done.
    @discardableResult
    func with<Result>(
        _ id: String,
        _ change: (inout MQTTClientConfiguration) -> Void = { _ in },
        _ body: (MQTTClient) async throws -> Result
    ) async throws -> Result {
        let client = try self.client(id, change)
        try await client.connect()
        do {
            let result = try await body(client)
            await client.shutDown()
            return result
        } catch {
            await client.shutDown()
            throw error
        }
    }
}

extension MQTTClient {
    /// The next messages; the test's time limit ends a wait for what never comes.
    func next(_ count: Int) async -> [MQTTReceived] {
        var received: [MQTTReceived] = []
        var iterator = self.messages.makeAsyncIterator()
        while received.count < count, let message = await iterator.next() { received.append(message) }
        return received
    }
}

extension ServerFlow {
    static let all: [ServerFlow] = [
        .roundTrip, .largePayload, .emptyPayload, .wildcards, .unsubscribed, .retained, .will, .noWill, .keptSession,
        .cleanSession, .takeOver, .ping, .properties, .identifiers, .noLocal, .retainHandling, .shared, .expiry,
        .aliases,
    ]

    static let roundTrip = ServerFlow("[MQTT-4.6.0-5] [MQTT-4.6.0-6] messages of each QoS come whole and in order") {
        visit in
        try await visit.with("a") { client in
            let granted = try await client.subscribe([Subscription(filter: visit.topic("+"), qos: .exactlyOnce)])
            #expect(granted.map(\.granted) == [.exactlyOnce])
            for qos in QoS.allCases {
                for number in 0..<20 {
                    let payload = Array("\(number)".utf8)
                    try await client.publish(MQTTMessage(topic: visit.topic("\(qos)"), payload: payload, qos: qos))
                }
                let received = await client.next(20)
                #expect(received.map { String(decoding: $0.payload, as: UTF8.self) } == (0..<20).map { "\($0)" })
                #expect(received.allSatisfy { $0.qos == qos && !$0.retain && !$0.dup })
            }
        }
    }

    static let largePayload = ServerFlow("§3.3.3 a payload of 300,000 bytes arrives as it was sent") { visit in
        let payload = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 31 ^ $0 >> 8) }
        try await visit.with("a") { client in
            try await client.subscribe([Subscription(filter: visit.topic("big"), qos: .atLeastOnce)])
            try await client.publish(MQTTMessage(topic: visit.topic("big"), payload: payload, qos: .atLeastOnce))
            #expect(await client.next(1).first?.payload == payload)
        }
    }

    static let emptyPayload = ServerFlow("§3.3.3 a payload of no bytes is a message") { visit in
        try await visit.with("a") { client in
            try await client.subscribe([Subscription(filter: visit.topic("empty"), qos: .exactlyOnce)])
            try await client.publish(MQTTMessage(topic: visit.topic("empty"), qos: .exactlyOnce))
            #expect(await client.next(1).map(\.payload) == [[]])
        }
    }

    static let wildcards = ServerFlow("[MQTT-4.7.1-1] + is one level, # all that follow") { visit in
        try await visit.with("a") { client in
            try await client.subscribe([
                Subscription(filter: visit.topic("x/+/z"), qos: .atLeastOnce),
                Subscription(filter: visit.topic("deep/#"), qos: .atLeastOnce),
            ])
            for last in ["x/z", "x/y/z", "x/y/y/z", "deep", "deep/a/b", "x//z", "end/deep", "deep/end"] {
                try await client.publish(MQTTMessage(topic: visit.topic(last), qos: .atLeastOnce))
            }
            let matching = ["x/y/z", "deep", "deep/a/b", "x//z", "deep/end"].map(visit.topic)
            #expect(await client.next(matching.count).map(\.topic) == matching)
        }
    }

    static let unsubscribed = ServerFlow("[MQTT-3.10.4-1] what is unsubscribed comes no more") { visit in
        try await visit.with("a") { client in
            let filters = [visit.topic("one"), visit.topic("two")]
            try await client.subscribe(filters.map { Subscription(filter: $0, qos: .atLeastOnce) })
            let codes = try await client.unsubscribe([filters[0]])
            if visit.version == .v5 { #expect(codes.map(\.reason) == [.success]) }
            for filter in filters { try await client.publish(MQTTMessage(topic: filter, qos: .atLeastOnce)) }
            #expect(await client.next(1).map(\.topic) == [filters[1]])
        }
    }

    static let retained = ServerFlow("[MQTT-3.3.1-5] the last retained message greets a subscriber") { visit in
        let topic = visit.topic("kept")
        try await visit.with("a") { client in
            for text in ["old", "new"] {
                try await client.publish(
                    MQTTMessage(topic: topic, payload: Array(text.utf8), qos: .atLeastOnce, retain: true)
                )
            }
            try await client.subscribe([Subscription(filter: topic, qos: .atLeastOnce)])
            let first = await client.next(1)
            #expect(first.map { String(decoding: $0.payload, as: UTF8.self) } == ["new"])
            #expect(first.map(\.retain) == [true])
            // [MQTT-3.3.1-6]: nothing is kept from then on. It is forwarded like any other, and not as retained.
            try await client.publish(MQTTMessage(topic: topic, qos: .atLeastOnce, retain: true))
            #expect(await client.next(1).map(\.retain) == [false])
        }
        try await visit.with("b") { client in
            try await client.subscribe([
                Subscription(filter: topic, qos: .atLeastOnce),
                Subscription(filter: visit.topic("mark"), qos: .atMostOnce),
            ])
            try await client.publish(MQTTMessage(topic: visit.topic("mark")))
            #expect(await client.next(1).map(\.topic) == [visit.topic("mark")])
        }
    }

    static let will = ServerFlow("[MQTT-3.1.2-8] a lost connection publishes its will") { visit in
        let topic = visit.topic("will")
        try await visit.with("watch") { watcher in
            try await watcher.subscribe([Subscription(filter: topic, qos: .atLeastOnce)])
            let client = try visit.client("lost") {
                $0.will = Will(topic: topic, payload: Array("gone".utf8), qos: .atLeastOnce)
            }
            try await client.connect()
            client.abort()
            let received = await watcher.next(1)
            #expect(received.map { String(decoding: $0.payload, as: UTF8.self) } == ["gone"])
            await client.shutDown()
        }
    }

    static let noWill = ServerFlow("[MQTT-3.14.4-3] DISCONNECT takes the will away") { visit in
        let topic = visit.topic("will")
        try await visit.with("watch") { watcher in
            try await watcher.subscribe([Subscription(filter: topic, qos: .atLeastOnce)])
            try await visit.with("leaves") {
                $0.will = Will(topic: topic, payload: Array("gone".utf8), qos: .atLeastOnce)
            } _: { _ in
            }
            try await watcher.publish(MQTTMessage(topic: topic, payload: Array("mark".utf8), qos: .atLeastOnce))
            let received = await watcher.next(1)
            #expect(received.map { String(decoding: $0.payload, as: UTF8.self) } == ["mark"])
        }
    }
}
