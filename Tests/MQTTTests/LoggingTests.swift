import MQTT
import MQTTCodec
import TestSupport
import Testing

@Suite("Log lines of an MQTT client", .timeLimit(.minutes(10)))
struct LoggingTests {
    private struct Secret: Error, CustomStringConvertible {
        let description = "the vault says hunter2"
    }

    @Test("a connection from its attempt to its end, and the messages that the server refuses")
    func life() async throws {
        let message = MQTTMessage(topic: "t", qos: .atLeastOnce)
        let script: [ScriptedPeer.Step] = [
            .expect(wire(publish("t", [], qos: .atLeastOnce, id: 1))), .send([0x40, 3, 0, 1, 0x87]),
            .expect([0xE0, 0]), .halfClose,
        ]
        try await withScriptedPeer(accepting(then: script)) { peer in
            let log = CapturedLog()
            let configuration = MQTTClientConfiguration(port: peer.port, id: "c")
            let client = MQTTClient(configuration, logger: log.logger)
            try await client.connect()
            _ = await failure { try await client.publish(message) }
            await client.disconnect()
            #expect(
                log.lines == [
                    "debug Connecting client_id=c host=127.0.0.1 port=\(peer.port)",
                    "info Connected client_id=c session_present=false",
                    "debug Packet refused by the server answer=PUBACK reason=Not authorized",
                    "info Disconnected",
                ]
            )
        }
    }

    @Test("why there is no connection")
    func refused() async throws {
        try await withScriptedPeer([.expectCount(1), .send([0x20, 2, 0, 5])]) { peer in
            let log = CapturedLog()
            let client = MQTTClient(MQTTClientConfiguration(port: peer.port, .v311, id: "c"), logger: log.logger)
            _ = await failure { try await client.connect() }
            #expect(log.lines.last == "warning Connection refused reason=not authorized")
        }
    }

    @Test("no words of a credentials provider, and no password")
    func secrets() async throws {
        try await withScriptedPeer([.expectCount(1), .halfClose]) { peer in
            for throwsSecret in [true, false] {
                let log = CapturedLog()
                let configuration = MQTTClientConfiguration(port: peer.port, id: "c") {
                    $0.credentialsProvider = { _ in
                        if throwsSecret { throw Secret() }
                        return .password(user: "u", "hunter2")
                    }
                }
                let client = MQTTClient(configuration, logger: log.logger)
                #expect(await failure { try await client.connect() } != nil)
                #expect(log.lines.count == 2)
                #expect(!log.lines.contains { $0.contains("hunter2") }, "\(log.lines)")
                if throwsSecret { #expect(log.lines.last == "warning Connection failed error=no credentials") }
            }
        }
    }

    @Test("when a session manager connects again")
    func retries() async throws {
        let reserved = try ReservedPort()
        let log = CapturedLog()
        let manager = MQTTSessionManager(
            MQTTClientConfiguration(port: reserved.port),
            policy: MQTTReconnectPolicy(),
            logger: log.logger
        )
        manager.connect()
        await manager.until(.waiting)
        let lines = log.lines.map { $0.split(separator: "=")[0] }
        #expect(lines.contains("info Connecting again later delay"), "\(log.lines)")
        await manager.shutDown()
    }
}
