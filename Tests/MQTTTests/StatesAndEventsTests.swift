import MQTT
import MQTTCodec
import Synchronization
import TestSupport
import Testing

@Suite("SPEC A3, A4: what a client tells about itself", .timeLimit(.minutes(10)))
struct StatesAndEventsTests {
    private static func client(
        _ peer: ScriptedPeer,
        _ version: ProtocolVersion = .v5,
        _ change: (inout MQTTClientConfiguration) -> Void = { _ in }
    ) -> MQTTClient {
        MQTTClient(MQTTClientConfiguration(port: peer.port, version, id: "c", change))
    }

    /// All states up to the next `closed`.
    private static func untilClosed(_ states: AsyncStream<MQTTClientState>) async -> [MQTTClientState] {
        var seen: [MQTTClientState] = []
        for await state in states {
            seen.append(state)
            if state == .closed { break }
        }
        return seen
    }

    @Test("created, connecting, connected, disconnecting, closed; the event of each comes behind its state")
    func life() async throws {
        try await withScriptedPeer(accepting(then: [.expect([0xE0, 0]), .halfClose])) { peer in
            let client = Self.client(peer)
            let states = client.states
            var events = client.events.makeAsyncIterator()
            let result = try await client.connect()
            #expect(await events.next() == .connected(result))
            #expect(client.state == .connected)
            await client.disconnect()
            #expect(await events.next() == .closed)
            #expect(
                await Self.untilClosed(states) == [.created, .connecting, .connected, .disconnecting, .closed]
            )
        }
    }

    @Test(
        "3.1.1 §3.2.2.3: each return code, reserved ones too, refuses with itself",
        arguments: [1, 2, 3, 4, 5, 6, 255] as [UInt8]
    )
    func returnCodes(_ code: UInt8) async throws {
        try await withScriptedPeer([.expectCount(1), .send([0x20, 2, 0, code])]) { peer in
            let client = Self.client(peer, .v311)
            let states = client.states
            var events = client.events.makeAsyncIterator()
            let refusal = MQTTRefusal(code: code, version: .v311)
            #expect(await failure { try await client.connect() } == .refused(refusal))
            #expect(await events.next() == .refused(refusal))
            #expect(await Self.untilClosed(states) == [.created, .connecting, .closed])
            let words = ConnectReturnCode(rawValue: code)?.name ?? "return code \(code)"
            #expect("\(refusal)" == words)
        }
    }

    @Test("5.0: each reason code is kept, with its reason string, server reference and user properties")
    func reasonCodes() async throws {
        let says: Properties = [.reasonString("because"), .serverReference("b:2"), .userProperty("k", "v")]
        for code in ReasonCode.allCases where code.isError && code.isAllowed(in: .connAck, toServer: false) {
            let connack = ConnAck(code: code.rawValue, properties: says)
            try await withScriptedPeer([.expectCount(1), .send(wire(.connAck(connack)))]) { peer in
                let client = Self.client(peer)
                let error = await failure { try await client.connect() }
                #expect(error == .refused(MQTTRefusal(code: code.rawValue, version: .v5, properties: says)))
                #expect(error?.description == "the server refused the connection: \(code.name) (because)")
            }
        }
    }

    struct End: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let step: ScriptedPeer.Step
        let event: MQTTClientEvent
    }

    static let allEnds = [
        End(testDescription: "FIN", step: .close, event: .closedByServer(.connectionLost(.closedByServer))),
        End(
            testDescription: "DISCONNECT with its reason and words",
            step: .send(wire(.disconnect(Disconnect(reason: .serverBusy, properties: [.reasonString("later")])))),
            event: .closedByServer(.connectionLost(.disconnected(.serverBusy, [.reasonString("later")])))
        ),
        End(testDescription: "RST", step: .reset, event: .failed(.connectionLost(.failed(errno: 104)))),
        End(
            testDescription: "a packet that breaks a rule",
            step: .send([0x20, 3, 0, 0, 0]),
            event: .protocolError(.connectionLost(.protocolError(.protocolError, "a second CONNACK")))
        ),
    ]

    @Test("SPEC A15: FIN, RST and DISCONNECT are distinguished", arguments: allEnds)
    func ends(_ end: End) async throws {
        // PINGREQ is not answered, and a busy host may be slower than the keep-alive.
        let isPatient: (inout MQTTClientConfiguration) -> Void = { $0.keepAlive = 0 }
        let connect = connectBytes(MQTTClientConfiguration(port: 1, id: "c", isPatient))
        try await withScriptedPeer([.expect(connect), .send(wire(.connAck(ConnAck())))]) { peer in
            let client = Self.client(peer, .v5, isPatient)
            var events = client.events.makeAsyncIterator()
            let result = try await client.connect()
            #expect(await events.next() == .connected(result))
            try await peer.perform([end.step])
            let event = await events.next()
            #expect(event == end.event)
            #expect(client.state == .closed)
        }
    }

    @Test("[MQTT-3.14.0-1] DISCONNECT in place of CONNACK ends the attempt with the reason that it gives")
    func disconnectFirst() async throws {
        let goodbye = Disconnect(reason: .serverBusy, properties: [.reasonString("later")])
        try await withScriptedPeer([.expectCount(1), .send(wire(.disconnect(goodbye)))]) { peer in
            let client = Self.client(peer)
            let error = await failure { try await client.connect() }
            #expect(error == .connectionLost(.disconnected(.serverBusy, goodbye.properties)))
            try await peer.untilEnd()
        }
    }

    @Test("SPEC A11: a connect from within the event of a refusal makes a new connection")
    func againFromEvent() async throws {
        let size = connectBytes(MQTTClientConfiguration(port: 1, .v311, id: "c")).count
        try await withScriptedPeer([.expectCount(size)]) { peer in
            let client = Self.client(peer, .v311)
            var events = client.events.makeAsyncIterator()
            var attempts: [Task<MQTTClientError?, Never>] = []
            for number in 0..<20 {
                // From the event, whether the call before has returned or not.
                attempts.append(Task { () async in await failure { try await client.connect() } })
                try await peer.untilConnections(number + 1)
                try await peer.perform([.send([0x20, 2, 0, number < 19 ? 3 : 0])], on: number)
                _ = await events.next()
            }
            let refused = MQTTClientError.refused(MQTTRefusal(code: 3, version: .v311))
            for (number, attempt) in attempts.enumerated() {
                #expect(await attempt.value == (number < 19 ? refused : nil))
            }
            #expect(client.state == .connected)
            client.abort()
        }
    }

    // MARK: Hooks

    @Test("a QoS 2 message is delivered with PUBCOMP, not before (SPEC A4)")
    func delivered() async throws {
        let flow: [ScriptedPeer.Step] = [
            .expectCount(9), .send([0x50, 2, 0, 1]), .expect([0x62, 2, 0, 1]), .send([0x70, 2, 0, 1]),
        ]
        try await withScriptedPeer(accepting(then: flow)) { peer in
            let log = Mutex<[String]>([])
            let client = Self.client(peer) {
                $0.hooks.received = { trace in log.withLock { $0.append("\(trace.type)") } }
                $0.hooks.delivered = { message, id in log.withLock { $0.append("\(message.topic) \(id)") } }
            }
            try await client.connect()
            try await client.publish(MQTTMessage(topic: "t", payload: [7], qos: .exactlyOnce))
            #expect(log.withLock { $0 } == ["connAck", "pubRec", "pubComp", "t 1"])
            client.abort()
        }
    }

    @Test("counts of queued and in-flight messages: on connect, publish, acknowledgement, message, close (SPEC A4)")
    func buffered() async throws {
        try await withScriptedPeer(accepting(then: [])) { peer in
            let (stream, told) = AsyncStream.makeStream(of: MQTTTraffic.self)
            let count = Mutex(0)
            let client = Self.client(peer) {
                $0.limits.window = 1
                $0.hooks.buffered = { traffic in
                    count.withLock { $0 += 1 }
                    told.yield(traffic)
                }
            }
            func until(_ queued: Int, _ flowingIn: Int, _ flowingOut: Int) async {
                for await next in stream
                where (next.queued, next.flowingIn, next.flowingOut) == (queued, flowingIn, flowingOut) { break }
            }
            try await client.connect()
            await until(0, 0, 0)
            async let first = client.publish(MQTTMessage(topic: "t", payload: [1], qos: .atLeastOnce))
            await until(0, 0, 1)
            async let second = client.publish(MQTTMessage(topic: "t", payload: [2], qos: .atLeastOnce))
            await until(1, 0, 1)
            try await peer.send([0x40, 2, 0, 1])
            await until(0, 0, 1)
            try await peer.send([0x40, 2, 0, 2])
            await until(0, 0, 0)
            _ = try await (first, second)
            try await peer.send(wire(publish("t", [3], qos: .atLeastOnce, id: 9)))
            await until(0, 1, 0)
            #expect(await client.take(1).count == 1)
            await until(0, 0, 0)
            let before = count.withLock { $0 }
            try await peer.perform([.close])
            await client.until(.closed)
            // Behind the change of state; the suite's limit ends a wait for what is not told.
            while count.withLock({ $0 }) == before { await Task.yield() }
        }
    }

    @Test(
        "SPEC A3: requiresTearDown is true of all states but closed and starting",
        arguments: [
            (.starting, false), (.closed, false), (.connecting, true), (.connected, true), (.waiting, true),
            (.closing, true), (.failed, true), (.suspended, true),
        ] as [(MQTTManagerState, Bool)]
    )
    func requiresTearDown(_ state: MQTTManagerState, _ isRequired: Bool) {
        #expect(state.requiresTearDown == isRequired)
    }
}
