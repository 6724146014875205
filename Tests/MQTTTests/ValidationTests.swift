import MQTT
import MQTTCodec
import TestSupport
import Testing

@Suite("SPEC A2: what breaks a rule is refused before it is sent, or goes out as it is", .timeLimit(.minutes(10)))
struct ValidationTests {
    struct Wrong: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let refusal: String
        /// The bytes sent without validation.
        let bytes: String
        let call: @Sendable (MQTTClient) async throws -> Void

        init(
            _ name: String,
            _ refusal: String,
            _ bytes: String,
            _ call: @escaping @Sendable (MQTTClient) async throws -> Void
        ) {
            self.testDescription = name
            self.refusal = refusal
            self.bytes = bytes
            self.call = call
        }
    }

    static let wrongCalls = [
        Wrong(
            "[MQTT-3.3.2-2] PUBLISH to a filter",
            "the topic is wrong: a topic to publish to has no + and no #",
            "3005 0003 612F2B"
        ) { client in
            try await client.publish(MQTTMessage(topic: "a/+"))
        },
        Wrong(
            "[MQTT-4.7.3-1] PUBLISH to no topic",
            "the topic is wrong: it has at least one character",
            "3002 0000"
        ) { client in
            try await client.publish(MQTTMessage(topic: ""))
        },
        Wrong(
            "[MQTT-1.5.4-2] PUBLISH with U+0000",
            "the topic is wrong: it has no character U+0000",
            "3205 0001 00 0001"
        ) { client in
            try await client.publish(MQTTMessage(topic: "\0", qos: .atLeastOnce))
        },
        Wrong(
            "[MQTT-3.8.3-2] SUBSCRIBE without a filter",
            "there is no topic filter",
            "8202 0001"
        ) { client in
            try await client.subscribe([])
        },
        Wrong(
            "[MQTT-4.7.1-1] SUBSCRIBE with # beside a letter",
            "a topic filter is wrong: + and # must be alone in their level, as in a/+/b or a/#",
            "8207 0001 0002 6123 01"
        ) { client in
            try await client.subscribe([Subscription(filter: "a#", qos: .atLeastOnce)])
        },
        Wrong(
            "[MQTT-3.10.3-2] UNSUBSCRIBE without a filter",
            "there is no topic filter",
            "A202 0001"
        ) { client in
            try await client.unsubscribe([])
        },
        Wrong(
            "[MQTT-4.7.3-1] UNSUBSCRIBE from nothing",
            "a topic filter is wrong: it has at least one character",
            "A207 0001 0001 61 0000"
        ) { client in
            try await client.unsubscribe(["a", ""])
        },
    ]

    @Test("calls", arguments: wrongCalls, [true, false])
    func calls(_ wrong: Wrong, _ validates: Bool) async throws {
        let connect = connectBytes(MQTTClientConfiguration(port: 1, .v311, id: "c"))
        try await withScriptedPeer([.expect(connect), .send([0x20, 2, 0, 0])]) { peer in
            let client = MQTTClient(
                MQTTClientConfiguration(port: peer.port, .v311, id: "c") { $0.validates = validates }
            )
            try await client.connect()
            async let error = failure { try await wrong.call(client) }
            if validates {
                #expect(await error == .invalid(wrong.refusal))
                // PINGREQ is the next that comes.
                async let pinged = failure { try await client.ping() }
                try await peer.perform([.expect([0xC0, 0]), .send([0xD0, 0])])
                #expect(await pinged == nil)
            } else {
                try await peer.perform([.expect(hex(wrong.bytes))])
            }
            try await peer.untilScriptDone()
            #expect(try await peer.mismatches().isEmpty)
            client.abort()
            _ = await error
        }
    }

    struct WrongConnect: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let refusal: String
        let bytes: String
        let change: @Sendable (inout MQTTClientConfiguration) -> Void
    }

    static let wrongConnects = [
        WrongConnect(
            testDescription: "3.1.1 [MQTT-3.1.3-8] no id, and a session to keep",
            refusal: "the client identifier is empty, which only a clean session may have, and not in MQTT 3.1",
            bytes: "100C 0004 4D515454 04 00 003C 0000"
        ) {
            $0.clientID = ""
            $0.cleanStart = false
        },
        WrongConnect(
            testDescription: "3.1.1 [MQTT-3.1.2-22] a password without a user",
            refusal: "MQTT 3 has no password without a user name",
            bytes: "1010 0004 4D515454 04 42 003C 0001 63 0001 70"
        ) { $0.credentials = .password(user: nil, [0x70]) },
        WrongConnect(
            testDescription: "[MQTT-3.3.2-2] a wildcard in the will's topic",
            refusal: "the topic of the will is wrong: a topic to publish to has no + and no #",
            bytes: "1012 0004 4D515454 04 06 003C 0001 63 0001 23 0000"
        ) { $0.will = Will(topic: "#", payload: []) },
        WrongConnect(
            testDescription: "§4.7.3 a will to no topic",
            refusal: "the topic of the will is wrong: it has at least one character",
            bytes: "1011 0004 4D515454 04 06 003C 0001 63 0000 0000"
        ) { $0.will = Will(topic: "", payload: []) },
    ]

    @Test("CONNECT", arguments: wrongConnects, [true, false])
    func connects(_ wrong: WrongConnect, _ validates: Bool) async throws {
        try await withScriptedPeer([.expect(hex(wrong.bytes)), .send([0x20, 2, 0, 5])]) { peer in
            let client = MQTTClient(
                MQTTClientConfiguration(port: peer.port, .v311, id: "c") {
                    $0.validates = validates
                    wrong.change(&$0)
                }
            )
            let error = await failure { try await client.connect() }
            if validates {
                #expect(error == .invalid(wrong.refusal))
                let connections = try await peer.connectionCount()
                #expect(connections == 0)
            } else {
                #expect(error == .refused(MQTTRefusal(code: 5, version: .v311)))
                #expect(try await peer.mismatches().isEmpty)
            }
        }
    }
}
