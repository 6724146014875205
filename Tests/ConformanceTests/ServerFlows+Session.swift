import MQTT
import Testing

extension ServerFlow {
    static let keptSession = ServerFlow("[MQTT-3.1.2-5] a kept session has its subscriptions and what came meanwhile") {
        visit in
        let topic = visit.topic("away")
        let keep: (inout MQTTClientConfiguration) -> Void = {
            $0.cleanStart = false
            if $0.version == .v5 { $0.sessionExpiry = 300 }
        }
        let client = try visit.client("keeps", keep)
        let isKnown = try await client.connect().sessionPresent
        #expect(!isKnown)
        try await client.subscribe([Subscription(filter: topic, qos: .exactlyOnce)])
        await client.disconnect()
        try await visit.with("other") { other in
            for number in 0..<10 {
                let qos: QoS = number.isMultiple(of: 2) ? .atLeastOnce : .exactlyOnce
                try await other.publish(MQTTMessage(topic: topic, payload: [UInt8(number)], qos: qos))
            }
        }
        let isKept = try await client.connect().sessionPresent
        // 3.1 has no bit for it in its CONNACK.
        #expect(isKept || visit.version == .v31)
        #expect(await client.next(10).map(\.payload) == (0..<10).map { [UInt8($0)] })
        await client.shutDown()
        // Nothing is left behind at the server.
        try await visit.with("keeps") { _ in }
    }

    static let cleanSession = ServerFlow("[MQTT-3.1.2-4] a clean start knows nothing of before") { visit in
        let topic = visit.topic("clean")
        let keep: (inout MQTTClientConfiguration) -> Void = {
            $0.cleanStart = false
            if $0.version == .v5 { $0.sessionExpiry = 300 }
        }
        try await visit.with("same", keep) { client in
            try await client.subscribe([Subscription(filter: topic, qos: .atLeastOnce)])
        }
        let client = try visit.client("same")
        let isKnown = try await client.connect().sessionPresent
        #expect(!isKnown)
        try await client.publish(MQTTMessage(topic: topic, qos: .atLeastOnce))
        try await client.subscribe([Subscription(filter: visit.topic("mark"), qos: .atLeastOnce)])
        try await client.publish(MQTTMessage(topic: visit.topic("mark"), qos: .atLeastOnce))
        #expect(await client.next(1).map(\.topic) == [visit.topic("mark")])
        await client.shutDown()
    }

    static let takeOver = ServerFlow("[MQTT-3.1.4-3] the same client id elsewhere ends the older connection") { visit in
        let older = try visit.client("twin")
        var events = older.events.makeAsyncIterator()
        try await older.connect()
        let newer = try visit.client("twin")
        try await newer.connect()
        var loss: MQTTClientError?
        while loss == nil, let event = await events.next() {
            if case .closedByServer(let error) = event { loss = error }
            if case .failed(let error) = event { loss = error }
        }
        switch loss {
        case .connectionLost(.disconnected(let reason, _)):
            visit.does("the reason of a take-over")
            #expect(reason == .sessionTakenOver)
        case .connectionLost(.closedByServer) where visit.version != .v5: break
        case .connectionLost(.closedByServer):
            await visit.notApplicable("the reason of a take-over", "the connection ends without a DISCONNECT")
        default: Issue.record("the older connection ended with \(loss.map { "\($0)" } ?? "nothing")")
        }
        #expect(newer.state == .connected)
        await older.shutDown()
        await newer.shutDown()
    }

    static let ping = ServerFlow("[MQTT-3.12.4-1] PINGREQ is answered") { visit in
        try await visit.with("a") { client in
            let answered = try await client.ping()
            #expect(answered > .zero)
        }
    }
}
