import EmbeddedBroker
import FaultLines
import MQTTCodec
import NIOCore
import NIOPosix
import TestSupport
import Testing
import Transport

/// The broker behind each kind of listener: the same vectors, whatever lies below MQTT.
@Suite("The listeners of the broker", .timeLimit(.minutes(10)))
struct BrokerListenerTests {
    /// A broker with every kind of listener.
    @discardableResult
    static func withListeners(
        _ line: String = "",
        _ configure: (inout BrokerConfiguration) -> Void = { _ in },
        _ body: (BrokerServer) async throws -> Void
    ) async throws -> BrokerCounters {
        let certificates = try await Certificates.all()
        var tls = TLSServer()
        tls.certificateFile = certificates.certificate(.server)
        tls.keyFile = certificates.key(.server)
        var configuration = BrokerConfiguration(port: 0, faults: try FaultPlan.parse(line: line))
        configuration.listeners = [.tls, .webSocket, .secureWebSocket].map { BrokerListener($0, port: 0) }
        configure(&configuration)
        let server = try await BrokerServer.start(configuration, tls: try tls.makeContext())
        do {
            try await body(server)
        } catch {
            await server.stop()
            throw error
        }
        return await server.stop()
    }

    static func connect(
        _ server: BrokerServer,
        _ transport: BrokerListener.Transport,
        _ clientID: String,
        _ version: ProtocolVersion = .v5
    ) async throws -> WireClient {
        let port = try #require(server.port(of: transport))
        return try await WireClient.connect(port: port, clientID, version, over: transport)
    }

    @Test("each listener has a port of its own, plain TCP first")
    func ports() async throws {
        try await Self.withListeners { server in
            #expect(server.listeners.map(\.transport) == [.tcp, .tls, .webSocket, .secureWebSocket])
            #expect(server.port == server.port(of: .tcp))
            #expect(Set(server.listeners.map(\.port)).count == 4)
            #expect(!server.listeners.contains { $0.port == 0 })
        }
    }

    @Test("messages cross from each transport to each", arguments: BrokerListener.Transport.allCases)
    func crossing(_ transport: BrokerListener.Transport) async throws {
        let counters = try await Self.withListeners { server in
            for (number, other) in BrokerListener.Transport.allCases.enumerated() {
                let subscriber = try await Self.connect(server, other, "s\(number)", .v311)
                try await subscriber.subscribe("t\(number)")
                let publisher = try await Self.connect(server, transport, "p\(number)")
                for qos in QoS.allCases {
                    try await publisher.send(BrokerServerTests.publishes(200, qos, topic: "t\(number)"))
                    var payloads: [String] = []
                    while payloads.count < 200 { payloads += try await subscriber.payloads(1) }
                    #expect(payloads == (1...200).map(String.init))
                }
                try await publisher.close()
                try await subscriber.close()
            }
        }
        #expect(counters.received == CountPerQoS(800, 800, 800))
        #expect(counters.delivered == counters.received)
    }

    struct Vector: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let version: ProtocolVersion
        let sent: [UInt8]
        let answer: [Packet]
        /// Whether the broker closes the connection.
        var closes = true

        init(_ name: String, _ version: ProtocolVersion, _ sent: [UInt8], _ answer: [Packet], closes: Bool = true) {
            self.testDescription = name
            self.version = version
            self.sent = sent
            self.answer = answer
            self.closes = closes
        }
    }

    static let connect311 = hex("100d 0004 4d515454 04 02 003c 0001 63")
    static let connect5 = hex("100e 0004 4d515454 05 02 003c 00 0001 63")

    static let vectors = [
        Vector("[MQTT-3.1.0-1] a PUBLISH before CONNECT closes", .v311, hex("30040001 7478"), []),
        Vector(
            "[MQTT-3.1.2-1] another protocol's name closes",
            .v311,
            hex("100d 0004 4d515458 04 02 003c 0001 63"),
            []
        ),
        Vector(
            "[MQTT-3.12.4-1] PINGREQ is answered",
            .v311,
            connect311 + hex("c000"),
            [.connAck(ConnAck()), .pingResp],
            closes: false
        ),
        Vector(
            "[MQTT-3.14.1-1] DISCONNECT with flags is malformed",
            .v311,
            connect311 + hex("e100"),
            [.connAck(ConnAck())]
        ),
        Vector("a length of five bytes is malformed", .v311, connect311 + hex("30ffffffff01"), [.connAck(ConnAck())]),
    ]

    @Test(
        "answers and refuses alike over each transport, whole and byte by byte",
        arguments: BrokerListener.Transport.allCases,
        vectors
    )
    func answers(_ transport: BrokerListener.Transport, _ vector: Vector) async throws {
        try await Self.withListeners { server in
            let port = try #require(server.port(of: transport))
            for size in [vector.sent.count, 1] {
                let client = try await WireClient.open(port: port, vector.version, over: transport)
                for piece in vector.sent.pieces(of: size) { try? await client.send(raw: piece) }
                var packets: [Packet] = []
                while packets.count < vector.answer.count {
                    let more = try await client.next(1)
                    if more.isEmpty { break }
                    packets += more
                }
                #expect(packets == vector.answer)
                if vector.closes { try await client.closed() } else { try await client.close() }
            }
        }
    }

    @Test("a DISCONNECT is answered by the end of the stream", arguments: BrokerListener.Transport.allCases)
    func goodbye(_ transport: BrokerListener.Transport) async throws {
        let counters = try await Self.withListeners { server in
            let client = try await Self.connect(server, transport, "c")
            try await client.subscribe("t")
            try await client.send(BrokerServerTests.publishes(3, .atMostOnce) + [.disconnect(Disconnect())])
            #expect(try await client.payloads(3) == ["1", "2", "3"])
            try await client.closed()
        }
        #expect(counters.disconnects == ["client": 1])
    }

    @Test("a client that only goes has gone, over each transport", arguments: BrokerListener.Transport.allCases)
    func goes(_ transport: BrokerListener.Transport) async throws {
        let counters = try await Self.withListeners { server in
            let watcher = try await Self.connect(server, .tcp, "w")
            let client = try await Self.connect(server, transport, "c")
            try await client.close()
            // The broker is one loop: what came before this ping has been seen by its answer, or soon after.
            while await server.counters().disconnects.isEmpty {
                try await watcher.send(.pingReq)
                _ = try await watcher.next(1)
            }
        }
        #expect(counters.disconnects["client"] == nil)
    }

    @Test("fragment cuts below MQTT, over each transport", arguments: BrokerListener.Transport.allCases)
    func fragment(_ transport: BrokerListener.Transport) async throws {
        try await Self.withListeners("fragment 1-7") { server in
            let subscriber = try await Self.connect(server, transport, "s")
            try await subscriber.subscribe("t")
            let publisher = try await Self.connect(server, transport, "p")
            try await publisher.send(BrokerServerTests.publishes(200, .exactlyOnce))
            var payloads: [String] = []
            while payloads.count < 200 { payloads += try await subscriber.payloads(1) }
            #expect(payloads == (1...200).map(String.init))
        }
    }

    @Test("delay holds, over each transport", arguments: BrokerListener.Transport.allCases)
    func delay(_ transport: BrokerListener.Transport) async throws {
        let counters = try await Self.withListeners("delay 5ms delay-every 2") { server in
            let client = try await Self.connect(server, transport, "c")
            try await client.subscribe("t")
            try await client.send(BrokerServerTests.publishes(4, .atMostOnce))
            #expect(try await client.payloads(4) == ["1", "3", "2", "4"])
        }
        #expect(counters.delayed == CountPerQoS(2))
    }

    @Test("disconnect-every resets, over each transport", arguments: BrokerListener.Transport.allCases)
    func disconnect(_ transport: BrokerListener.Transport) async throws {
        let counters = try await Self.withListeners("disconnect-every 3s") { server in
            let client = try await Self.connect(server, transport, "c")
            try await client.closed()
        }
        #expect(counters.disconnects == ["injected": 1])
    }

    @Test("without a certificate or a key no listener speaks TLS, and nothing is left open")
    func noTLS() async throws {
        var configuration = BrokerConfiguration(port: 0)
        configuration.listeners = [BrokerListener(.webSocket, port: 0), BrokerListener(.secureWebSocket, port: 0)]
        let error = await #expect(throws: BrokerStartError.self) { try await BrokerServer.start(configuration) }
        #expect(error?.description == "the listener wss needs a certificate and its key, or pre-shared keys")
    }

    @Test("a port that is taken is named, and the others are let go")
    func taken() async throws {
        let free = try ReservedPort()
        let taken = try ReservedPort()
        var configuration = BrokerConfiguration(port: free.port)
        configuration.listeners = [BrokerListener(.webSocket, port: taken.port)]
        free.release()
        let error = await #expect(throws: BrokerStartError.self) { try await BrokerServer.start(configuration) }
        let words = try #require(error?.description)
        #expect(words.hasPrefix("cannot listen on 127.0.0.1:\(taken.port) (ws): "))
        taken.release()
        let server = try await BrokerServer.start(configuration)
        #expect(server.port == free.port)
        await server.stop()
    }
}
