import EmbeddedBroker
import LoopContext
import MQTT
import MQTTCodec
import NIOCore
import TestSupport
import Testing
import Transport

/// MQTT over WebSocket on real sockets, plain and over TLS, from CONNECT to the answer to our goodbye.
@Suite("A connection on a WebSocket", .timeLimit(.minutes(10)))
struct WebSocketConnectionTests {
    static func withClient(
        _ port: Int,
        _ version: ProtocolVersion = .v5,
        isSecure: Bool,
        _ body: (LiveClient) async throws -> Void
    ) async throws {
        let settings = try WebSocketSettings()
        var tls = TLSSettings()
        tls.authorityFile = isSecure ? try await Certificates.all().authority : nil
        let client = try await LiveClient(port: port, version: version) { [tls] loop in
            let webSocket = WebSocketLayer(settings, isSecure: isSecure, receive: loop.receive)
            return isSecure ? [try TLSLayer(tls, loop: loop), webSocket] : [webSocket]
        }
        do {
            try await client.until { $0.connack != nil }
            try await body(client)
        } catch {
            try? await client.shutdown()
            throw error
        }
        try await client.shutdown()
    }

    static func withEmbedded(_ transport: BrokerListener.Transport, _ body: (Int) async throws -> Void) async throws {
        var configuration = BrokerConfiguration(port: 0)
        configuration.listeners = [BrokerListener(transport, port: 0)]
        let certificates = try await Certificates.all()
        let tls = TLSServer(
            certificateFile: certificates.certificate(.server),
            keyFile: certificates.key(.server)
        )
        let server = try await BrokerServer.start(configuration, tls: try tls.makeContext())
        do {
            try await body(try #require(server.port(of: transport)))
        } catch {
            await server.stop()
            throw error
        }
        await server.stop()
    }

    static func withMosquitto(isSecure: Bool, _ body: (Int) async throws -> Void) async throws {
        let certificates = try await Certificates.all()
        var lines = ["protocol websockets"]
        if isSecure {
            lines += ["certfile \(certificates.certificate(.server))", "keyfile \(certificates.key(.server))"]
        }
        try await Mosquitto.with(listeners: [lines.joined(separator: "\n")]) { try await body($0.ports[0]) }
    }

    /// Messages to oneself at each QoS, from 1 byte to 100,000, then a goodbye that is answered.
    static func exchange(_ port: Int, _ version: ProtocolVersion, isSecure: Bool) async throws {
        try await Self.withClient(port, version, isSecure: isSecure) { client in
            _ = try await client.run { $0.connection.subscribe([Subscription(filter: "t", qos: .exactlyOnce)]) }
            try await client.until { $0.calls.contains { if case .subscribed = $0 { true } else { false } } }
            let sizes = [1, 100, 126, 5_000, 65_536, 100_000]
            for (number, size) in sizes.enumerated() {
                try await client.run { state in
                    state.connection.write(
                        .publish(Publish(topic: "t", payload: ByteBuffer(repeating: UInt8(number), count: size)))
                    )
                    state.connection.flush()
                }
            }
            try await client.until { $0.messages.count >= sizes.count }
            let messages = try await client.run { $0.observer.messages }
            #expect(
                messages
                    == sizes.enumerated().map { number, size in
                        .message(
                            topic: "t",
                            payload: Array(repeating: UInt8(number), count: size),
                            qos: .atMostOnce,
                            dup: false
                        )
                    }
            )
            try await client.run { $0.connection.ping() }
            try await client.until { $0.calls.contains { if case .pingAnswered = $0 { true } else { false } } }
            try await client.run { $0.connection.finish() }
            try await client.until { $0.end != nil }
            #expect(try await client.run { $0.observer.end } == .answered)
        }
    }

    @Test(
        "the embedded broker: messages of every size, a ping, an answered goodbye",
        arguments: [ProtocolVersion.v311, .v5],
        [false, true]
    )
    func embedded(_ version: ProtocolVersion, _ isSecure: Bool) async throws {
        try await Self.withEmbedded(isSecure ? .secureWebSocket : .webSocket) {
            try await Self.exchange($0, version, isSecure: isSecure)
        }
    }

    @Test(
        "mosquitto: messages of every size, a ping, an answered goodbye",
        .enabled(if: Mosquitto.isInstalled, "\(Mosquitto.missing)"),
        arguments: [ProtocolVersion.v311, .v5],
        [false, true]
    )
    func mosquitto(_ version: ProtocolVersion, _ isSecure: Bool) async throws {
        try await Self.withMosquitto(isSecure: isSecure) { try await Self.exchange($0, version, isSecure: isSecure) }
    }

    /// A message right before DISCONNECT is acknowledged too, many times in a row.
    static func goodbyes(_ port: Int, isSecure: Bool) async throws {
        for _ in 0..<50 {
            try await Self.withClient(port, isSecure: isSecure) { client in
                try await client.run { state in
                    for _ in 0..<20 { state.connection.write(.publish(Publish(topic: "t"))) }
                    state.connection.flush()
                    state.connection.finish()
                }
                try await client.until { $0.end != nil }
                #expect(try await client.run { $0.observer.end } == .answered)
            }
        }
    }

    @Test("the embedded broker answers every goodbye", arguments: [false, true])
    func embeddedGoodbyes(_ isSecure: Bool) async throws {
        try await Self.withEmbedded(isSecure ? .secureWebSocket : .webSocket) {
            try await Self.goodbyes($0, isSecure: isSecure)
        }
    }

    @Test(
        "mosquitto answers every goodbye",
        .enabled(if: Mosquitto.isInstalled, "\(Mosquitto.missing)"),
        arguments: [false, true]
    )
    func mosquittoGoodbyes(_ isSecure: Bool) async throws {
        try await Self.withMosquitto(isSecure: isSecure) { try await Self.goodbyes($0, isSecure: isSecure) }
    }
}
