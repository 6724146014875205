import EmbeddedBroker
import MQTTCodec
import NIOCore
import NIOSSL
import TestSupport
import Testing
import Transport

/// Every vector that a server reads, on real sockets: what the core answers, byte for byte, then the end.
///
/// A PINGREQ and a DISCONNECT follow each vector. So every conversation is ended by the broker, nothing has to be waited
/// for by the clock, and a broker that reads on behind a broken rule shows it by a PINGRESP.
@Suite("The vectors on sockets", .timeLimit(.minutes(10)))
struct BrokerVectorSocketTests {
    /// How the bytes get to the broker.
    enum Cut: String, Sendable {
        /// In one write; over WebSocket in one frame, behind the request.
        case whole
        /// Each byte by a write of its own; over WebSocket those of one frame.
        case bytes
        /// In frames of three bytes, so that packets straddle them.
        case frames
        /// In one message, a byte a fragment, with empty fragments and a ping between them.
        case fragments
    }

    struct Way: Sendable, CustomTestStringConvertible {
        let transport: BrokerListener.Transport
        let cut: Cut
        var testDescription: String { "\(self.transport.rawValue), \(self.cut.rawValue)" }

        init(_ transport: BrokerListener.Transport, _ cut: Cut) {
            self.transport = transport
            self.cut = cut
        }
    }

    static let ways = [
        Way(.tcp, .whole), Way(.tcp, .bytes), Way(.tls, .whole), Way(.tls, .bytes),
        Way(.webSocket, .whole), Way(.webSocket, .bytes), Way(.webSocket, .frames), Way(.webSocket, .fragments),
        Way(.secureWebSocket, .whole), Way(.secureWebSocket, .fragments),
    ]

    /// The expected result of a conversation, computed by the core.
    struct Expectation {
        let bytes: [UInt8]
        let counters: BrokerCounters
    }

    static func configure(_ configuration: inout BrokerConfiguration) {
        configuration.limits.topicAliasMaximum = .max
        // As the core has it.
        configuration.maximumPacketSize = 268_435_460
        // A slow host's time is nothing to be tested here.
        configuration.connectDeadline = .hours(1)
        configuration.webSocket.deadline = .hours(1)
    }

    private static func core(_ stream: [UInt8], _ vector: ServerVector) -> Expectation {
        let world = VirtualBroker(self.configure)
        // A client of an unknown protocol level is answered in 3.1.1's form.
        let client = world.open(
            vector.mustFail?.hasPrefix("protocolLevel") == true ? .v311 : vector.protocolVersion
        )
        client.answers = false
        world.send(bytes: stream, from: client)
        #expect(client.isClosed, "\(vector)")
        return Expectation(bytes: client.bytes, counters: world.counters)
    }

    /// The bytes before a vector.
    private static func prelude(_ vector: ServerVector) -> [UInt8] {
        guard !vector.isFirst else { return [] }
        var bytes = ByteBuffer()
        let connect = Packet.connect(Connect(version: vector.protocolVersion, clientID: "c", keepAlive: 0))
        connect.encode(as: vector.protocolVersion, into: &bytes)
        return Array(bytes.readableBytesView)
    }

    private static let pingReq: [UInt8] = [0xC0, 0]
    private static let pingResp: [UInt8] = [0xD0, 0]
    private static let goodbye: [UInt8] = [0xE0, 0]

    /// The whole of what is sent, and of what has to come.
    private static func conversation(_ vector: ServerVector) -> (stream: [UInt8], expected: Expectation) {
        let prelude = self.prelude(vector)
        let stream = prelude + vector.wire + self.pingReq + self.goodbye
        let expected = self.core(stream, vector)
        guard vector.mustFail != nil else { return (stream, expected) }
        // [MQTT-4.13.1-1], by hand: what is refused has no other answer than this, whatever the core says.
        if vector.isFirst {
            let code = vector.refusal?.code
            let connack: [UInt8] = code.map { $0 < 0x80 ? [0x20, 2, 0, $0] : [0x20, 3, 0, $0, 0] } ?? []
            #expect(expected.bytes == connack, "\(vector)")
        } else {
            let connack = self.core(prelude + self.goodbye, vector).bytes
            let reason = hex(vector.reason ?? "").prefix(1)
            let last = vector.protocolVersion == .v5 ? [0xE0, 2] + reason + [0] : []
            #expect(expected.bytes == connack + last, "\(vector)")
        }
        return (stream, expected)
    }

    @Test("a refused vector ends before the ping after it, an accepted one does not")
    func expectations() {
        let ended = ServerVector.all.filter { !Self.conversation($0).expected.bytes.hasSuffix(Self.pingResp) }
        #expect(ended.count { $0.mustFail != nil } == ServerVector.refused.count)
        // A CONNECT with a method that is not known here, an alias that is not set, AUTH without a method, and goodbyes.
        #expect(ended.filter { $0.mustFail == nil }.allSatisfy { [1, 3, 14, 15].contains($0.wire[0] >> 4) })
        #expect(ServerVector.taken.count - ended.count { $0.mustFail == nil } > 35)
    }

    @Test("[MQTT-4.13.1-1] [MQTT-6.0.0-2] are answered as the core answers them, byte for byte", arguments: ways)
    func sockets(_ way: Way) async throws {
        let certificates = try await Certificates.all()
        var server = TLSServer()
        server.certificateFile = certificates.certificate(.server)
        server.keyFile = certificates.key(.server)
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.certificateVerification = .none
        let contexts =
            way.transport.isSecure
            ? (server: try server.makeContext(), client: try NIOSSLContext(configuration: configuration)) : nil
        // Two brokers at a time, one for each vector: what one leaves behind is nothing to the next. Other ways are under
        // way beside this one.
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (index, vector) in ServerVector.all.enumerated() {
                if index >= 2 { try await group.next() }
                group.addTask { try await self.converse(vector, way, contexts) }
            }
            try await group.waitForAll()
        }
    }

    private func converse(
        _ vector: ServerVector,
        _ way: Way,
        _ contexts: (server: NIOSSLContext, client: NIOSSLContext)?
    ) async throws {
        let (stream, expected) = Self.conversation(vector)
        var configuration = BrokerConfiguration(port: 0)
        Self.configure(&configuration)
        if way.transport != .tcp { configuration.listeners = [BrokerListener(way.transport, port: 0)] }
        let server = try await BrokerServer.start(configuration, tls: contexts?.server)
        let came: [UInt8]
        do {
            let port = try #require(server.port(of: way.transport))
            came = try await RawClient.talk(port, tls: contexts?.client, Self.pieces(stream, way))
        } catch {
            await server.stop()
            throw error
        }
        let counters = await server.stop()
        if way.transport.isWebSocket {
            #expect(came.starts(with: BrokerWebSocketTests.answer), "\(vector)")
            let read = BrokerWebSocketTests.read(Array(came.dropFirst(BrokerWebSocketTests.answer.count)))
            #expect(read.data == expected.bytes, "\(vector): \(read.data.hexText)")
            #expect(read.close == 1000, "\(vector)")
        } else {
            #expect(came == expected.bytes, "\(vector): \(came.hexText)")
        }
        #expect(counters.connects == expected.counters.connects, "\(vector)")
        #expect(counters.connectsRefused == expected.counters.connectsRefused, "\(vector)")
        #expect(counters.disconnects == expected.counters.disconnects, "\(vector)")
        #expect(counters.receivedPackets == expected.counters.receivedPackets, "\(vector)")
    }

    /// The bytes of each write.
    static func pieces(_ stream: [UInt8], _ way: Way) -> [[UInt8]] {
        let request = BrokerWebSocketTests.request
        switch way.cut {
        case .whole where !way.transport.isWebSocket: return [stream]
        case .bytes where !way.transport.isWebSocket: return stream.pieces(of: 1)
        case .whole: return [request + BrokerWebSocketTests.frame(0x82, stream)]
        case .bytes: return [request] + BrokerWebSocketTests.frame(0x82, stream).pieces(of: 1)
        case .frames: return [request + stream.pieces(of: 3).flatMap { BrokerWebSocketTests.frame(0x82, $0) }]
        case .fragments: return [request + self.fragments(stream)]
        }
    }

    private static func fragments(_ stream: [UInt8]) -> [UInt8] {
        var bytes: [UInt8] = []
        for (index, byte) in stream.enumerated() {
            bytes += BrokerWebSocketTests.frame(index == 0 ? 0x02 : 0x00, [byte])
            if index == 2 { bytes += BrokerWebSocketTests.frame(0x89, [7]) }
            if index % 5 == 3 { bytes += BrokerWebSocketTests.frame(0x00, []) }
        }
        // The last one is empty too.
        return bytes + BrokerWebSocketTests.frame(0x80, [])
    }
}

extension [UInt8] {
    fileprivate func hasSuffix(_ suffix: [UInt8]) -> Bool { self.suffix(suffix.count) == suffix[...] }
}
