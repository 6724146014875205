import EmbeddedBroker
import MQTT
import MQTTCodec
import Synchronization
import TestSupport
import Testing

@Suite("A client that sends raw bytes (SPEC A1, A2)", .timeLimit(.minutes(10)))
struct ClientRawTests {
    @Test("the given bytes are sent instead of CONNECT, and CONNACK is accepted", arguments: ProtocolVersion.allCases)
    func connects(_ version: ProtocolVersion) async throws {
        try await withBroker { broker in
            let bytes = connectBytes(MQTTClientConfiguration(port: broker.port, version, id: "by hand"))
            let client = MQTTClient(
                MQTTClientConfiguration(port: broker.port, version, id: "not sent") {
                    $0.rawConnect = bytes
                    $0.credentialsProvider = { _ in
                        Issue.record("credentials belong to CONNECT, and this one has its own")
                        return .none
                    }
                }
            )
            try await client.connect()
            try await client.subscribe([Subscription(filter: "t", qos: .exactlyOnce)])
            try await client.publish(MQTTMessage(topic: "t", qos: .exactlyOnce))
            #expect(await client.take(1).map(\.topic) == ["t"])
            await client.disconnect()
        }
    }

    struct Wrong: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let bytes: [UInt8]
        let answer: [ScriptedPeer.Step]
        let error: MQTTClientError
    }

    static let wrong = [
        Wrong(
            testDescription: "protocol level 9",
            bytes: hex("100f 0004 4d515454 09 02 003c 00 0002 6162"),
            answer: [.send([0x20, 3, 0, 0x84, 0])],
            error: .refused(MQTTRefusal(code: 0x84, version: .v5))
        ),
        Wrong(
            testDescription: "no packet at all",
            bytes: Array("GET / HTTP/1.1\r\n\r\n".utf8),
            answer: [.close],
            error: .connectionLost(.closedByServer)
        ),
        Wrong(
            testDescription: "unexpected AUTH is ignored",
            bytes: [0x10, 0],
            answer: [.send([0xF0, 0]), .send([0x20, 3, 0, 0x8C, 0])],
            error: .refused(MQTTRefusal(code: 0x8C, version: .v5))
        ),
    ]

    @Test("intentionally wrong bytes are sent unchanged, and the answer is reported", arguments: wrong)
    func goesOut(_ wrong: Wrong) async throws {
        try await withScriptedPeer([.expect(wrong.bytes)] + wrong.answer) { peer in
            let client = MQTTClient(
                MQTTClientConfiguration(port: peer.port) {
                    $0.rawConnect = wrong.bytes
                    $0.authentication = .scramSHA256(user: "left", password: "out")
                }
            )
            #expect(await failure { try await client.connect() } == wrong.error)
            let mismatches = try await peer.mismatches()
            #expect(mismatches == [])
        }
    }

    @Test("during connect raw bytes follow CONNECT, and CONNACK is not waited for")
    func beforeConnAck() async throws {
        let configuration = MQTTClientConfiguration(port: 1, id: "c")
        let script: [ScriptedPeer.Step] = [
            .expect(connectBytes(configuration) + hex("c000 3005 0001 74 00 07")), .send(wire(.connAck(ConnAck()))),
        ]
        try await withScriptedPeer(script) { peer in
            let client = MQTTClient(MQTTClientConfiguration(port: peer.port, id: "c"))
            async let connected = client.connect()
            await client.until(.connecting)
            try await client.sendRaw(hex("c000"))
            try await client.sendRaw(hex("3005 0001 74 00 07"))
            _ = try await connected
            #expect(try await peer.mismatches() == [])
            client.abort()
        }
    }

    @Test("with empty bytes instead of CONNECT, only raw bytes are sent")
    func emptyConnect() async throws {
        let bytes = connectBytes(MQTTClientConfiguration(port: 1, id: "c"))
        try await withBroker { broker in
            let client = MQTTClient(MQTTClientConfiguration(port: broker.port) { $0.rawConnect = [] })
            async let connected = client.connect()
            await client.until(.connecting)
            for piece in bytes.pieces(of: 7) { try await client.sendRaw(piece) }
            _ = try await connected
            await client.disconnect()
        }
    }

    /// Connects by hand, and publishes by hand.
    private func checkRaw(_ port: Int) async throws {
        let (acknowledged, watch) = AsyncStream.makeStream(of: PacketID?.self)
        let client = MQTTClient(
            MQTTClientConfiguration(port: port) {
                $0.rawConnect = connectBytes(MQTTClientConfiguration(port: port, id: "by hand"))
                $0.hooks.received = { if $0.type == .pubAck { watch.yield($0.packetID) } }
            }
        )
        try await client.connect()
        try await client.subscribe([Subscription(filter: "t", qos: .atMostOnce)])
        try await client.sendRaw(wire(publish("t", [1], qos: .atLeastOnce, id: 9_999)))
        var ids = acknowledged.makeAsyncIterator()
        #expect(await ids.next() == 9_999)
        let own = try await client.publish(MQTTMessage(topic: "t", payload: [2], qos: .atLeastOnce))
        #expect(own.packetID != 9_999)
        #expect(await client.take(2).map(\.payload) == [[1], [2]])
        await client.disconnect()
    }

    @Test("a raw PUBLISH is delivered, its PUBACK passed over, and the client's own messages go on")
    func connected() async throws {
        try await withBroker { try await self.checkRaw($0.port) }
    }

    @Test("and so by mosquitto", .enabled(if: Mosquitto.isInstalled, Comment(rawValue: Mosquitto.missing)))
    func mosquitto() async throws {
        try await Mosquitto.with { try await self.checkRaw($0.port) }
    }

    @Test("[MQTT-4.13.1-1] a malformed packet ends the connection with what the server says to it")
    func malformed() async throws {
        try await withBroker { broker in
            let client = MQTTClient(MQTTClientConfiguration(port: broker.port))
            try await client.connect()
            var events = client.events.makeAsyncIterator()
            try await client.sendRaw([0x36, 0])
            guard case .closedByServer(.connectionLost(.disconnected(let reason, _)))? = await events.next() else {
                Issue.record("the broker took it")
                return
            }
            #expect(reason == .malformedPacket)
        }
    }

    @Test("there is nothing to send on before connect, and behind DISCONNECT")
    func notConnected() async throws {
        try await withBroker { broker in
            let client = MQTTClient(MQTTClientConfiguration(port: broker.port))
            #expect(await failure { try await client.sendRaw([0]) } == .notConnected)
            try await client.connect()
            await client.disconnect()
            #expect(await failure { try await client.sendRaw([0]) } == .notConnected)
            await client.shutDown()
            #expect(await failure { try await client.sendRaw([0]) } == .shutDown)
        }
    }

    @Test("bytes that wait for a transport that never comes end with connect")
    func neverUp() async throws {
        let place = Mutex<MQTTClient?>(nil)
        let (errors, watch) = AsyncStream.makeStream(of: MQTTClientError?.self)
        var told = errors.makeAsyncIterator()
        let port = try ReservedPort()
        var error: MQTTClientError?
        // On a busy host the attempt may be over before anything waits for it; then it is given more time.
        for limit in [0.1, 1, 10, 30] {
            let client = MQTTClient(
                MQTTClientConfiguration(port: port.port) {
                    $0.timeouts.connect = .seconds(limit)
                    // The attempt waits for this, and this for the attempt.
                    $0.credentialsProvider = { _ in
                        let client = place.withLock { $0 }
                        watch.yield(await failure { try await client?.sendRaw([1]) })
                        return .none
                    }
                }
            )
            place.withLock { $0 = client }
            #expect(await failure { try await client.connect() } == .timedOut(.connack))
            error = await told.next() ?? nil
            if error != .notConnected { break }
        }
        place.withLock { $0 = nil }
        #expect(error == .timedOut(.connack))
    }

    @Test("a cancelled task does not wait, and a lost connection ends the wait", arguments: [true, false])
    func blocked(_ isCancelled: Bool) async throws {
        try await withScriptedPeer(accepting(then: [.stopReading])) { peer in
            let (sent, watch) = AsyncStream.makeStream(of: Void.self)
            let client = MQTTClient(
                MQTTClientConfiguration(port: peer.port, id: "c") {
                    $0.hooks.sending = { if $0.type == .publish { watch.yield() } }
                }
            )
            try await client.connect()
            try await peer.untilScriptDone()
            // More than the buffers of both sides of a loopback connection hold.
            let bytes = wire(publish("t", Array(repeating: 0, count: 32 << 20)))
            let task = Task { () async in await failure { try await client.sendRaw(bytes) } }
            for await _ in sent { break }
            if isCancelled { task.cancel() } else { client.abort() }
            #expect(await task.value == (isCancelled ? .cancelled : .connectionLost(.aborted)))
            client.abort()
        }
    }
}
