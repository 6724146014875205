import MQTT
import MQTTCodec
import TestSupport
import Testing

@Suite("SPEC A8: how many messages a client has under way", .timeLimit(.minutes(10)))
struct FlowWindowTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let version: ProtocolVersion
        /// The client's setting; `nil` leaves the default.
        let window: Int?
        /// The value in the server's CONNACK.
        let receiveMaximum: UInt16?
        let inFlight: Int

        var testDescription: String {
            "\(self.version), window \(self.window ?? 16), receive maximum \(self.receiveMaximum ?? 65_535)"
        }
    }

    static let cases = [
        Case(version: .v31, window: nil, receiveMaximum: nil, inFlight: 16),
        Case(version: .v311, window: nil, receiveMaximum: nil, inFlight: 16),
        Case(version: .v5, window: nil, receiveMaximum: nil, inFlight: 16),
        Case(version: .v311, window: 1, receiveMaximum: nil, inFlight: 1),
        Case(version: .v5, window: nil, receiveMaximum: 3, inFlight: 3),
        Case(version: .v5, window: nil, receiveMaximum: 17, inFlight: 16),
        Case(version: .v5, window: 20, receiveMaximum: 18, inFlight: 18),
    ]

    private static func bytes(_ number: Int, _ qos: QoS, _ version: ProtocolVersion) -> [UInt8] {
        let id = PacketID(rawValue: UInt16(number + 1))
        return wire(publish("t", [UInt8(number)], qos: qos, id: id), version: version)
    }

    /// Runs `body` with a client that is connected, and 20 messages of whom as many as may are under way.
    private static func full(
        _ window: Case,
        _ qos: QoS,
        _ body: (MQTTClient, ScriptedPeer) async throws -> Void
    ) async throws {
        let connack = ConnAck(properties: Properties(window.receiveMaximum.map { [.receiveMaximum($0)] } ?? []))
        let connect = connectBytes(MQTTClientConfiguration(port: 1, window.version, id: "c"))
        let first = (0..<window.inFlight).flatMap { Self.bytes($0, qos, window.version) }
        let script: [ScriptedPeer.Step] = [
            .expect(connect), .send(wire(.connAck(connack), version: window.version)), .expect(first),
        ]
        try await withScriptedPeer(script) { peer in
            let (queued, watch) = AsyncStream.makeStream(of: Int.self)
            let configuration = MQTTClientConfiguration(port: peer.port, window.version, id: "c") {
                if let window = window.window { $0.limits.window = window }
                $0.hooks.buffered = { watch.yield($0.queued) }
            }
            let client = MQTTClient(configuration)
            try await withThrowingTaskGroup(of: Void.self) { group in
                var counts = queued.makeAsyncIterator()
                for number in 0..<20 {
                    let message = MQTTMessage(topic: "t", payload: [UInt8(number)], qos: qos)
                    group.addTask { _ = await failure { try await client.publish(message) } }
                    while let count = await counts.next(), count <= number {}
                }
                try await client.connect()
                try await body(client, peer)
                try await peer.untilScriptDone()
                #expect(try await peer.mismatches().isEmpty)
                await client.shutDown()
            }
        }
    }

    @Test(
        "[MQTT-3.3.4-7] the smaller of the client's window and the server's receive maximum, and not one more",
        arguments: cases,
        QoS.kept
    )
    func inFlight(_ window: Case, _ qos: QoS) async throws {
        try await Self.full(window, qos) { client, peer in
            try await peer.untilScriptDone()
            // [MQTT-3.3.4-8] a full window holds up nothing else: a QoS 0 message and PINGREQ are what comes next.
            let other = wire(publish("o"), version: window.version) + [0xC0, 0]
            try await peer.perform([.expect(other), .send([0xD0, 0])])
            try await client.publish(MQTTMessage(topic: "o"))
            _ = try await client.ping()
            client.abort()
        }
    }

    @Test("each acknowledgement lets the next go at once, in the order of the calls", arguments: cases.prefix(5))
    func next(_ window: Case) async throws {
        try await Self.full(window, .atLeastOnce) { client, peer in
            // No timer is waited for: as fast as the server answers.
            let steps = (0..<20).flatMap { number -> [ScriptedPeer.Step] in
                let answer = ScriptedPeer.Step.send([0x40, 2, 0, UInt8(number + 1)])
                let next = number + window.inFlight
                return next < 20 ? [answer, .expect(Self.bytes(next, .atLeastOnce, window.version))] : [answer]
            }
            try await peer.perform(steps)
            try await peer.untilScriptDone()
            client.abort()
        }
    }

    @Test("[MQTT-3.3.4-7] what is held back goes out at once when the one before it is given up", arguments: QoS.kept)
    func heldBack(_ qos: QoS) async throws {
        try await withScriptedPeer { peer in
            let session = SessionPeer(peer, .v5)
            let client = MQTTClient(session.configuration())
            try await session.connect(client, number: 0, present: false, then: [.expectCount(108)])
            let large = MQTTMessage(topic: "t", payload: Array(repeating: 7, count: 100), qos: .atLeastOnce)
            let first = Task { await failure { try await client.publish(large) } }
            try await peer.untilScriptDone()
            try await peer.perform([.expectCount(9), .close])
            let second = Task { try await client.publish(MQTTMessage(topic: "t", payload: [2], qos: qos)) }
            await client.until(.closed)
            let again: [UInt8] = [0x38 | qos.rawValue << 1, 7, 0, 1, 0x74, 0, 2, 0, 2]
            let limits: Properties = [.receiveMaximum(1), .maximumPacketSize(50)]
            try await session.connect(
                client,
                number: 1,
                present: true,
                properties: limits,
                then: [.expect(Array(again.prefix(2))), .expect(Array(again.dropFirst(2)))]
            )
            #expect(await first.value == .notAllowed(.packetTooLarge))
            // It would bring something to be read, if it were the next that comes.
            let pinged = Task { await failure { try await client.ping() } }
            try await peer.untilScriptDone(1)
            try #require(try await peer.mismatches().isEmpty)
            let end: [ScriptedPeer.Step] =
                qos == .atLeastOnce
                ? [.send([0x40, 2, 0, 2])]
                : [.send([0x50, 2, 0, 2]), .expect([0x62, 2, 0, 2]), .send([0x70, 2, 0, 2])]
            try await peer.perform([.expect([0xC0, 0]), .send([0xD0, 0])] + end, on: 1)
            #expect(await pinged.value == nil)
            #expect(try await second.value.packetID == 2)
            #expect(try await peer.mismatches().isEmpty)
            client.abort()
        }
    }

    @Test("[MQTT-4.9.0-2] PUBREC gives no place back, a refusing one does", arguments: [true, false])
    func pubRec(_ refuses: Bool) async throws {
        let window = Case(version: .v5, window: 1, receiveMaximum: nil, inFlight: 1)
        try await Self.full(window, .exactlyOnce) { client, peer in
            let second = Self.bytes(1, .exactlyOnce, .v5)
            if refuses {
                try await peer.perform([.send([0x50, 3, 0, 1, 0x97]), .expect(second)])
            } else {
                try await peer.perform([
                    .send([0x50, 2, 0, 1]), .expect([0x62, 2, 0, 1]), .send([0x70, 2, 0, 1]), .expect(second),
                ])
            }
            try await peer.untilScriptDone()
            client.abort()
        }
    }
}
