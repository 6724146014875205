import MQTT
import MQTTCodec
import TestSupport
import Testing

@Suite("SPEC A1: a client's defaults", .timeLimit(.minutes(10)))
struct DefaultsTests {
    @Test("host, version, session, keep-alive, will, login and properties")
    func configuration() {
        let configuration = MQTTClientConfiguration()
        #expect(configuration.host == "localhost")
        #expect(configuration.port == nil)
        #expect(configuration.transport.defaultPort == 1_883)
        #expect(configuration.version == .v311)
        #expect(configuration.cleanStart)
        #expect(configuration.keepAlive == 60)
        #expect(configuration.will == nil)
        #expect(configuration.credentials == .none)
        #expect(configuration.credentialsProvider == nil)
        #expect(configuration.authentication == nil)
        #expect(configuration.sessionExpiry == nil)
        #expect(configuration.receiveMaximum == nil)
        #expect(configuration.maximumPacketSize == nil)
        #expect(configuration.topicAliasMaximum == 0)
        #expect(!configuration.requestsResponseInformation)
        #expect(configuration.requestsProblemInformation)
        #expect(configuration.userProperties.isEmpty)
    }

    @Test("validation, repetitions, timeouts, the window and what is kept")
    func limits() {
        let configuration = MQTTClientConfiguration()
        #expect(configuration.validates)
        #expect(configuration.repeatsAfter == nil)
        #expect(configuration.acknowledgement == .whenTaken)
        #expect(configuration.timeouts.connect == .seconds(10))
        #expect(configuration.timeouts.acknowledgement == .seconds(30))
        #expect(configuration.timeouts.ping == .seconds(10))
        #expect(configuration.timeouts.disconnect == .seconds(5))
        #expect(configuration.limits.window == 16)
        #expect(configuration.limits.messages == 1_024)
        #expect(configuration.limits.bytes == 64 << 20)
        #expect(configuration.limits.inbox > 0 && configuration.limits.inboxBytes > 0)
        #expect(MQTTStoreLimits() == MQTTStoreLimits(maxMessages: 1_024, maxSize: 64 << 20))
    }

    @Test("each transport has its port; TLS verifies, from 1.2 on; a WebSocket asks for mqtt at /mqtt")
    func transports() throws {
        #expect(MQTTTransport.tcp.defaultPort == 1_883)
        #expect(try MQTTTransport.tls().defaultPort == 8_883)
        #expect(try MQTTTransport.webSocket().defaultPort == 80)
        #expect(try MQTTTransport.secureWebSocket().defaultPort == 443)
        let webSocket = MQTTWebSocket()
        #expect(webSocket.path == "/mqtt")
        #expect(webSocket.subprotocols == ["mqtt"])
        #expect(webSocket.headers.isEmpty)
        let tls = MQTTTLS()
        #expect(tls.verifies)
        #expect(tls.minimumVersion == .v1_2)
        #expect(tls.maximumVersion == nil)
        #expect(tls.authorityFile == nil && tls.certificateFile == nil && tls.preSharedKey == nil)
        #expect(tls.pins.isEmpty)
    }

    @Test("[MQTT-3.1.3-5] a client id that every server accepts, unique by 131 random bits, not by a million values")
    func clientIDs() {
        let ids = (0..<10_000).map { _ in MQTTClientConfiguration().clientID }
        #expect(Set(ids).count == 10_000)
        #expect(ids.allSatisfy { $0.utf8.count == 22 })
        let letters = Set("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
        // At each of its places any of the 62.
        let characters = ids.map { Array($0) }
        for place in 0..<22 { #expect(Set(characters.map { $0[place] }) == letters) }
    }

    @Test(
        "[MQTT-3.1.0-1] [MQTT-3.1.2-1] the CONNECT, to the byte: name and level of the version, 1 MiB as limit",
        arguments: [
            (.v31, "100F 0006 4D5149736470 03 02 003C 0001 63"), (.v311, "100D 0004 4D515454 04 02 003C 0001 63"),
            (.v5, "1013 0004 4D515454 05 02 003C 05 2700100000 0001 63"),
        ] as [(ProtocolVersion, String)]
    )
    func connect(_ version: ProtocolVersion, _ bytes: String) async throws {
        let answer = version == .v5 ? "2003 0000 00" : "2002 0000"
        try await withScriptedPeer([.expect(hex(bytes)), .send(hex(answer))]) { peer in
            var configuration = MQTTClientConfiguration(host: "127.0.0.1", port: UInt16(peer.port))
            configuration.version = version
            configuration.clientID = "c"
            let client = MQTTClient(configuration)
            let result = try await client.connect()
            #expect(result.limits.keepAlive == 60)
            #expect(result.limits.receiveMaximum == 65_535)
            #expect(try await peer.mismatches().isEmpty)
            client.abort()
        }
    }

    @Test("[MQTT-3.1.3-1] configured values are in CONNECT, in the standard's order")
    func configured() async throws {
        let will = Will(
            topic: "w",
            payload: [9],
            qos: .exactlyOnce,
            retain: true,
            properties: [.willDelayInterval(5), .contentType("t")]
        )
        var connect = Connect(
            version: .v5,
            clientID: "c",
            cleanStart: false,
            keepAlive: 7,
            username: "u",
            password: [0, 255],
            will: will
        )
        connect.properties = [
            .sessionExpiryInterval(90), .receiveMaximum(3), .maximumPacketSize(5_000), .topicAliasMaximum(4),
            .requestResponseInformation(true), .requestProblemInformation(false), .userProperty("a", "1"),
            .userProperty("a", "2"),
        ]
        try await withScriptedPeer([.expect(wire(.connect(connect))), .send(wire(.connAck(ConnAck())))]) { peer in
            var configuration = MQTTClientConfiguration(host: "127.0.0.1", port: UInt16(peer.port))
            configuration.version = .v5
            configuration.clientID = "c"
            configuration.cleanStart = false
            configuration.keepAlive = 7
            configuration.credentials = .password(user: "u", [0, 255])
            configuration.will = will
            configuration.sessionExpiry = 90
            configuration.receiveMaximum = 3
            configuration.maximumPacketSize = 5_000
            configuration.topicAliasMaximum = 4
            configuration.requestsResponseInformation = true
            configuration.requestsProblemInformation = false
            configuration.userProperties = [UserProperty("a", "1"), UserProperty("a", "2")]
            let client = MQTTClient(configuration)
            try await client.connect()
            #expect(try await peer.mismatches().isEmpty)
            client.abort()
        }
    }

    @Test("SPEC A9: two clients of one name have a store each, and share nothing")
    func stores() async throws {
        let connect = connectBytes(MQTTClientConfiguration(port: 1, .v311, id: "c"))
        try await withScriptedPeer([.expectCount(connect.count)]) { peer in
            let configuration = MQTTClientConfiguration(port: peer.port, .v311, id: "c") { $0.cleanStart = false }
            let first = MQTTClient(configuration)
            async let connected = first.connect()
            try await peer.untilConnections(1)
            try await peer.perform([.send([0x20, 2, 0, 0])])
            _ = try await connected
            async let published = failure {
                try await first.publish(MQTTMessage(topic: "t", payload: [7], qos: .atLeastOnce))
            }
            try await peer.untilBytes(connect.count + 8)
            // The server says that it has the session: a client that found the other's flow would send it again.
            let second = MQTTClient(configuration)
            async let again = second.connect()
            try await peer.untilConnections(2)
            try await peer.perform([.send([0x20, 2, 1, 0]), .expect([0xC0, 0]), .send([0xD0, 0])], on: 1)
            _ = try await again
            _ = try await second.ping()
            #expect(try await peer.mismatches().isEmpty)
            second.abort()
            first.abort()
            await first.shutDown()
            _ = await published
        }
    }
}
