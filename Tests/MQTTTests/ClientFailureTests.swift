import MQTT
import MQTTCodec
import NIOCore
import TestSupport
import Testing

@Suite("A client and a server that fails it")
struct ClientFailureTests {
    /// A configuration whose CONNECT is known byte by byte.
    private static func configuration(
        _ peer: ScriptedPeer,
        _ version: ProtocolVersion = .v5,
        _ change: (inout MQTTClientConfiguration) -> Void = { _ in }
    ) -> MQTTClientConfiguration {
        MQTTClientConfiguration(port: peer.port, version, id: "c", change)
    }

    // MARK: Connecting

    struct Refusal: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let version: ProtocolVersion
        let script: [ScriptedPeer.Step]
        let error: MQTTClientError
        let event: MQTTClientEvent
    }

    static let refusals = [
        Refusal(
            testDescription: "closed instead of CONNACK (A3: connectionRefused -8)",
            version: .v5,
            script: [.expectCount(1), .close],
            error: .connectionLost(.closedByServer),
            event: .closedByServer(.connectionLost(.closedByServer))
        ),
        Refusal(
            testDescription: "3.1.1 return code 5",
            version: .v311,
            script: [.expectCount(1), .send([0x20, 2, 0, 5])],
            error: .refused(MQTTRefusal(code: 5, version: .v311)),
            event: .refused(MQTTRefusal(code: 5, version: .v311))
        ),
        Refusal(
            testDescription: "5.0 reason 0x87 keeps its code",
            version: .v5,
            script: [.expectCount(1), .send([0x20, 3, 0, 0x87, 0])],
            error: .refused(MQTTRefusal(code: 0x87, version: .v5)),
            event: .refused(MQTTRefusal(code: 0x87, version: .v5))
        ),
        Refusal(
            testDescription: "[3.1.1: MQTT-3.1.2-2] a 3.1.1 server refuses version 5 with its own return code",
            version: .v5,
            script: [.expectCount(1), .send([0x20, 2, 0, 1])],
            error: .refused(MQTTRefusal(code: 1, version: .v311)),
            event: .refused(MQTTRefusal(code: 1, version: .v311))
        ),
        Refusal(
            testDescription: "[MQTT-3.2.0-1] something else than CONNACK first",
            version: .v5,
            script: [.expectCount(1), .send([0xD0, 0])],
            error: .connectionLost(.protocolError(.protocolError, "PINGRESP before CONNACK")),
            event: .protocolError(.connectionLost(.protocolError(.protocolError, "PINGRESP before CONNACK")))
        ),
    ]

    @Test("connect fails exactly once, with what happened", arguments: refusals)
    func refused(_ refusal: Refusal) async throws {
        try await withScriptedPeer(refusal.script) { peer in
            let client = MQTTClient(Self.configuration(peer, refusal.version))
            var events = client.events.makeAsyncIterator()
            #expect(await failure { try await client.connect() } == refusal.error)
            #expect(await events.next() == refusal.event)
            #expect(client.state == .closed)
        }
    }

    @Test("the port is closed")
    func nobody() async throws {
        let port = try ReservedPort()
        let client = MQTTClient(MQTTClientConfiguration(port: port.port))
        let error = await failure { try await client.connect() }
        let words = "127.0.0.1:\(port.port) refused the connection"
        #expect(error == .noConnection(MQTTConnectFailure(kind: "refused", words: words)))
        #expect(client.state == .closed)
    }

    @Test("§3.1.4 no CONNACK in time ends the attempt")
    func silent() async throws {
        try await withScriptedPeer([.expectCount(1)]) { peer in
            let client = MQTTClient(Self.configuration(peer) { $0.timeouts.connect = .seconds(2) })
            let error = await failure { try await client.connect() }
            #expect(error == .timedOut(.connack))
            try await peer.untilEnd()
        }
    }

    @Test("credentials that do not come in time end the attempt, and nothing is sent")
    func slowCredentials() async throws {
        try await withScriptedPeer([]) { peer in
            let configuration = Self.configuration(peer) {
                $0.timeouts.connect = .milliseconds(50)
                $0.credentialsProvider = { _ in
                    try await Task.sleep(for: .seconds(3_600))
                    return .none
                }
            }
            let client = MQTTClient(configuration)
            let error = await failure { try await client.connect() }
            #expect(error == .timedOut(.connack))
            let connections = try await peer.connectionCount()
            #expect(connections == 0)
        }
    }

    @Test("a cancelled connect closes the connection, before CONNECT or after it", arguments: [false, true])
    func cancelledConnect(_ isConnected: Bool) async throws {
        try await withScriptedPeer([]) { peer in
            let client = MQTTClient(Self.configuration(peer))
            let task = Task { () async in
                await failure { try await client.connect() }
            }
            if isConnected { try await peer.untilBytes(1) }
            task.cancel()
            #expect(await task.value == .cancelled)
            if isConnected { try await peer.untilEnd() }
            // It can be used again at once.
            let again = Task { () async in
                await failure { try await client.connect() }
            }
            await client.until(.connecting)
            await client.disconnect()
            #expect(await again.value == .disconnected)
        }
    }

    // MARK: Connected

    enum Call: CaseIterable {
        case qos1, qos2, subscribe, unsubscribe, ping

        func run(_ client: MQTTClient) async throws(MQTTClientError) {
            switch self {
            case .qos1: _ = try await client.publish(MQTTMessage(topic: "t", qos: .atLeastOnce))
            case .qos2: _ = try await client.publish(MQTTMessage(topic: "t", qos: .exactlyOnce))
            case .subscribe: _ = try await client.subscribe([Subscription(filter: "t")])
            case .unsubscribe: _ = try await client.unsubscribe(["t"])
            case .ping: _ = try await client.ping()
            }
        }
    }

    enum End: CaseIterable {
        case close, reset, disconnect, garbage, byClient, abort, shutDown

        var error: MQTTClientError {
            switch self {
            case .close: .connectionLost(.closedByServer)
            case .reset: .connectionLost(.failed(errno: 104))
            case .disconnect: .connectionLost(.disconnected(.serverShuttingDown, []))
            case .garbage: .connectionLost(.protocolError(.malformedPacket, "packet type 0 is reserved"))
            case .byClient, .shutDown: .disconnected
            case .abort: .connectionLost(.aborted)
            }
        }

        func happen(_ client: MQTTClient, _ peer: ScriptedPeer) async throws {
            switch self {
            case .close: try await peer.perform([.close])
            case .reset: try await peer.reset()
            case .disconnect: try await peer.send([0xE0, 1, 0x8B])
            case .garbage: try await peer.send([0x00, 0])
            case .byClient:
                async let gone: Void = client.disconnect()
                try await peer.untilEnd()
                try await peer.halfClose()
                await gone
            case .abort: client.abort()
            case .shutDown:
                async let gone: Void = client.shutDown()
                try await peer.untilEnd()
                try await peer.halfClose()
                await gone
            }
        }
    }

    @Test("whatever ends the connection ends every call that waits (SPEC A10)", arguments: Call.allCases, End.allCases)
    func pendingCalls(_ call: Call, _ end: End) async throws {
        try await withScriptedPeer(accepting(then: [])) { peer in
            let client = MQTTClient(Self.configuration(peer))
            try await client.connect()
            let before = try await peer.byteCount()
            async let error = failure { try await call.run(client) }
            try await peer.untilBytes(before + 2)
            try await end.happen(client, peer)
            let found = await error
            if end == .garbage {
                guard case .connectionLost(.protocolError(.malformedPacket, _))? = found else {
                    Issue.record("\(String(describing: found))")
                    return
                }
            } else {
                #expect(found == end.error)
            }
            #expect(client.state == .closed)
        }
    }

    @Test(
        "an answer that does not come ends its call in time; the connection stays",
        arguments: [Call.qos1, .subscribe, .unsubscribe]
    )
    func unanswered(_ call: Call) async throws {
        try await withScriptedPeer(accepting(then: [])) { peer in
            let client = MQTTClient(Self.configuration(peer) { $0.timeouts.acknowledgement = .milliseconds(50) })
            try await client.connect()
            let awaited: MQTTAwaited =
                switch call {
                case .subscribe: .suback
                case .unsubscribe: .unsuback
                default: .acknowledgement
                }
            let error = await failure { try await call.run(client) }
            #expect(error == .timedOut(awaited))
            #expect(client.state == .connected)
            client.abort()
        }
    }

    @Test("no PINGRESP in time is the end of the connection (SPEC A11)")
    func unansweredPing() async throws {
        try await withScriptedPeer(accepting(then: [])) { peer in
            let client = MQTTClient(Self.configuration(peer) { $0.timeouts.ping = .milliseconds(50) })
            try await client.connect()
            let error = await failure { try await client.ping() }
            #expect(error == .connectionLost(.pingTimedOut))
        }
    }

    @Test("a cancelled publish stops waiting, and the message goes on its way")
    func cancelledPublish() async throws {
        try await withScriptedPeer(accepting(then: [])) { peer in
            let (delivered, told) = AsyncStream.makeStream(of: MQTTMessage.self)
            let client = MQTTClient(
                Self.configuration(peer) { $0.hooks.delivered = { message, _ in told.yield(message) } }
            )
            try await client.connect()
            let before = try await peer.byteCount()
            let message = MQTTMessage(topic: "t", payload: [7], qos: .atLeastOnce)
            let task = Task { () async in
                await failure { try await client.publish(message) }
            }
            try await peer.untilBytes(before + 8)
            task.cancel()
            #expect(await task.value == .cancelled)
            try await peer.send([0x40, 2, 0, 1])
            var iterator = delivered.makeAsyncIterator()
            #expect(await iterator.next() == message)
            client.abort()
        }
    }

    @Test("PUBACK and PUBREC from 0x80 on fail the publish, with their reason", arguments: QoS.kept)
    func rejected(_ qos: QoS) async throws {
        let type: UInt8 = qos == .atLeastOnce ? 0x40 : 0x50
        try await withScriptedPeer(accepting(then: [.expectCount(8), .send([type, 3, 0, 1, 0x97])])) { peer in
            let client = MQTTClient(Self.configuration(peer))
            try await client.connect()
            let message = MQTTMessage(topic: "t", payload: [7], qos: qos)
            let error = await failure { try await client.publish(message) }
            #expect(error == .rejected(MQTTPublishResult(reason: .quotaExceeded, packetID: 1)))
            client.abort()
        }
    }

    @Test("a server that does not close its side is not waited for (SPEC A11)")
    func boundedDisconnect() async throws {
        try await withScriptedPeer(accepting(then: [.expect([0xE0, 0])])) { peer in
            let client = MQTTClient(Self.configuration(peer) { $0.timeouts.disconnect = .milliseconds(50) })
            try await client.connect()
            var events = client.events.makeAsyncIterator()
            await client.disconnect()
            #expect(client.state == .closed)
            #expect(await events.next() == .closed)
            #expect(try await peer.mismatches().isEmpty)
        }
    }

    @Test("behind the shutdown every call fails, and the streams are over")
    func shutDown() async throws {
        let client = MQTTClient(MQTTClientConfiguration(port: 1))
        let messages = client.messages
        await client.shutDown()
        for call in Call.allCases {
            #expect(await failure { try await call.run(client) } == .shutDown)
        }
        #expect(await failure { try await client.connect() } == .shutDown)
        for await _ in messages { Issue.record("a message") }
        for await _ in client.events { Issue.record("an event") }
        await client.shutDown()
    }
}
