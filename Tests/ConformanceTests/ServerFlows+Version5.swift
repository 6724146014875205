import MQTT
import Testing

extension ServerFlow {
    static let properties = ServerFlow(
        "[MQTT-3.3.2-18] properties go through, user properties in order",
        versions: [.v5]
    ) { visit in
        var properties = Properties()
        properties.contentType = "text/plain"
        properties.payloadFormatIndicator = 1
        properties.responseTopic = visit.topic("answer")
        properties.correlationData = [0, 1, 254, 255]
        properties.userProperties = [UserProperty("a", "1"), UserProperty("b", "2"), UserProperty("a", "3")]
        let sent = properties
        try await visit.with("a") { client in
            try await client.subscribe([Subscription(filter: visit.topic("t"), qos: .atLeastOnce)])
            try await client.publish(
                MQTTMessage(topic: visit.topic("t"), payload: Array("x".utf8), qos: .atLeastOnce, properties: sent)
            )
            let received = try #require(await client.next(1).first).message.properties
            #expect(received.contentType == "text/plain")
            #expect(received.payloadFormatIndicator == 1)
            #expect(received.responseTopic == visit.topic("answer"))
            #expect(received.correlationData == [0, 1, 254, 255])
            #expect(received.userProperties == sent.userProperties)
        }
    }

    static let identifiers = ServerFlow("[MQTT-3.3.4-3] the subscription's identifier comes along", versions: [.v5]) {
        visit in
        let client = try visit.client("a")
        let limits = try await client.connect().limits
        if limits.subscriptionIdentifiersAvailable {
            try await client.subscribe(
                [Subscription(filter: visit.topic("#"), qos: .atMostOnce)],
                identifier: 268_435_455
            )
            try await client.publish(MQTTMessage(topic: visit.topic("t")))
            #expect(await client.next(1).first?.message.properties.subscriptionIdentifiers == [268_435_455])
        } else {
            await visit.notApplicable("subscription identifiers", "CONNACK says Subscription Identifier Available 0")
        }
        await client.shutDown()
    }

    static let noLocal = ServerFlow("[MQTT-3.8.3-3] no local: one's own messages stay away", versions: [.v5]) { visit in
        try await visit.with("a") { client in
            var own = Subscription(filter: visit.topic("own"), qos: .atLeastOnce)
            own.noLocal = true
            try await client.subscribe([own, Subscription(filter: visit.topic("mark"), qos: .atLeastOnce)])
            try await client.publish(MQTTMessage(topic: visit.topic("own"), qos: .atLeastOnce))
            try await client.publish(MQTTMessage(topic: visit.topic("mark"), qos: .atLeastOnce))
            #expect(await client.next(1).map(\.topic) == [visit.topic("mark")])
        }
    }

    static let retainHandling = ServerFlow(
        "[MQTT-3.3.1-11] retain handling 2 sends nothing that was kept",
        versions: [.v5]
    ) { visit in
        try await visit.with("a") { client in
            try await client.publish(
                MQTTMessage(topic: visit.topic("kept"), payload: [1], qos: .atLeastOnce, retain: true)
            )
            var quiet = Subscription(filter: visit.topic("#"), qos: .atLeastOnce)
            quiet.retainHandling = .doNotSend
            quiet.retainAsPublished = true
            try await client.subscribe([quiet])
            try await client.publish(MQTTMessage(topic: visit.topic("mark"), qos: .atLeastOnce, retain: true))
            let received = await client.next(1)
            #expect(received.map(\.topic) == [visit.topic("mark")])
            // [MQTT-3.3.1-13]
            #expect(received.map(\.retain) == [true])
            for last in ["kept", "mark"] {
                try await client.publish(MQTTMessage(topic: visit.topic(last), qos: .atLeastOnce, retain: true))
            }
        }
    }

    static let shared = ServerFlow("§4.8.2 of a shared subscription one member has each message", versions: [.v5]) {
        visit in
        let first = try visit.client("m1")
        guard try await first.connect().limits.sharedAvailable else {
            await visit.notApplicable("shared subscriptions", "CONNACK says Shared Subscription Available 0")
            return await first.shutDown()
        }
        visit.does("shared subscriptions")
        let filter = "$share/group/\(visit.topic("work"))"
        try await visit.with("m2") { second in
            let mark = visit.topic("mark")
            for client in [first, second] {
                try await client.subscribe([
                    Subscription(filter: filter, qos: .atLeastOnce), Subscription(filter: mark, qos: .atLeastOnce),
                ])
            }
            try await visit.with("p") { publisher in
                for number in 0..<20 {
                    try await publisher.publish(
                        MQTTMessage(topic: visit.topic("work"), payload: [UInt8(number)], qos: .atLeastOnce)
                    )
                }
                try await publisher.publish(MQTTMessage(topic: mark, payload: [255], qos: .atLeastOnce))
            }
            var all: [UInt8] = []
            for client in [first, second] {
                for await message in client.messages {
                    if message.payload == [255] { break }
                    all += message.payload
                }
            }
            #expect(all.sorted() == (0..<20).map { UInt8($0) })
        }
        await first.shutDown()
    }

    static let expiry = ServerFlow("[MQTT-3.3.2-6] the expiry that is left comes along", versions: [.v5]) { visit in
        var properties = Properties()
        properties.messageExpiryInterval = 100
        let sent = properties
        try await visit.with("a") { client in
            try await client.subscribe([Subscription(filter: visit.topic("t"), qos: .atLeastOnce)])
            try await client.publish(MQTTMessage(topic: visit.topic("t"), qos: .atLeastOnce, properties: sent))
            let left = try #require(await client.next(1).first?.message.properties.messageExpiryInterval)
            #expect((1...100).contains(left))
        }
    }

    static let aliases = ServerFlow("[MQTT-3.3.2-12] topic aliases to the client are understood", versions: [.v5]) {
        visit in
        try await visit.with("a") {
            $0.topicAliasMaximum = 2
        } _: { client in
            try await client.subscribe([Subscription(filter: visit.topic("+"), qos: .atLeastOnce)])
            let topics = (0..<12).map { visit.topic("\($0 % 4)") }
            for topic in topics { try await client.publish(MQTTMessage(topic: topic, qos: .atLeastOnce)) }
            #expect(await client.next(12).map(\.topic) == topics)
        }
    }
}
