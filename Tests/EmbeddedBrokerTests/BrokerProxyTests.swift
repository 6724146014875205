import EmbeddedBroker
import NIOCore
import TestSupport
import Testing
import Transport

@Suite("A broker behind a proxy", .timeLimit(.minutes(10)))
struct BrokerProxyTests {
    private static let line = Array("PROXY TCP4 192.0.2.1 198.51.100.2 56324 1883\r\n".utf8)
    private static let block =
        hex("0d0a0d0a000d0a515549540a 21 21 0024")
        + hex("20010db8000000000000000000000001 00000000000000000000000000000001 01bb 075b")
    private static let unknown = hex("0d0a0d0a000d0a515549540a 20 00 0000")
    private static let stream = BrokerListenerTests.connect311 + hex("c000 e000")
    private static let answer = hex("20020000 d000")

    @discardableResult
    private static func withBroker(
        _ configure: (inout BrokerConfiguration) -> Void = { _ in },
        _ body: (BrokerServer) async throws -> Void
    ) async throws -> BrokerCounters {
        try await BrokerServerTests.withBroker("") { configuration in
            configuration.readsProxyHeader = true
            configuration.listeners = [BrokerListener(.webSocket, port: 0)]
            configure(&configuration)
        } _: { server in
            try await body(server)
        }
    }

    @Test("takes either form in front of MQTT, however it is cut, and counts whose connections they were")
    func takes() async throws {
        // On a busy host ten seconds may pass between two bytes.
        let counters = try await Self.withBroker({ $0.connectDeadline = .hours(1) }) { server in
            for header in [Self.line, Self.block, Self.unknown] {
                let bytes = header + Self.stream
                for pieces in [[bytes], [header, Self.stream], bytes.pieces(of: 1)] {
                    let came = try await RawClient.talk(server.port, pieces)
                    #expect(came == Self.answer)
                }
            }
        }
        #expect(counters.proxied == ["192.0.2.1": 3, "2001:db8::1": 3, "unknown": 3])
        #expect(counters.proxyRefused == 0)
        #expect(counters.connects == 9)
    }

    @Test("and in front of a WebSocket's request")
    func webSocket() async throws {
        let counters = try await Self.withBroker({ $0.connectDeadline = .hours(1) }) { server in
            let port = try #require(server.port(of: .webSocket))
            let opening = Self.line + BrokerWebSocketTests.request
            for pieces in [[opening], opening.pieces(of: 1)] {
                let came = try await RawClient.talk(port, pieces + [BrokerWebSocketTests.frame(0x82, Self.stream)])
                #expect(came.starts(with: BrokerWebSocketTests.answer))
                let read = BrokerWebSocketTests.read(Array(came.dropFirst(BrokerWebSocketTests.answer.count)))
                #expect(read.data == Self.answer)
            }
        }
        #expect(counters.proxied == ["192.0.2.1": 2])
    }

    @Test(
        "closes without an answer what begins with anything else",
        arguments: [
            ("MQTT", stream), ("a line without its end", Array("PROXY ".utf8) + Array(repeating: 0x20, count: 200)),
            ("a wrong address", Array("PROXY TCP4 192.0.2.256 198.51.100.2 1 2\r\n".utf8) + stream),
            ("another version", hex("0d0a0d0a000d0a515549540a 31 11 000c")),
            ("a WebSocket's request", BrokerWebSocketTests.request),
        ]
    )
    func refuses(_ name: String, _ bytes: [UInt8]) async throws {
        let counters = try await Self.withBroker { server in
            for port in server.listeners.map(\.port) {
                for pieces in [[bytes], bytes.pieces(of: 1)] {
                    let came = try await RawClient.talk(port, pieces)
                    #expect(came.isEmpty)
                }
            }
        }
        #expect(counters.proxyRefused == 4)
        #expect(counters.proxied.isEmpty)
        #expect(counters.connections == 0)
    }

    @Test("waits for a header no longer than for a CONNECT, and not at all for one that cannot come")
    func missing() async throws {
        let late = try await Self.withBroker {
            $0.connectDeadline = .milliseconds(50)
        } _: { server in
            for pieces in [[], [Array(Self.line.dropLast())]] {
                let came = try await RawClient.talk(server.port, pieces)
                #expect(came.isEmpty)
            }
        }
        #expect(late.proxyRefused == 2)
        let gone = try await Self.withBroker {
            $0.connectDeadline = .hours(1)
        } _: { server in
            let client = try await RawClient(port: server.port)
            try await client.send(Array(Self.block.dropLast()))
            try await client.halfClose()
            let came = try await client.all()
            #expect(came.isEmpty)
        }
        #expect(gone.proxyRefused == 1)
    }

    @Test("unbounded PROXY addresses use bounded memory")
    func bounded() {
        let world = VirtualBroker()
        for number in 0..<3_000 { world.broker.proxied(from: "10.0.\(number >> 8).\(number & 0xFF)") }
        world.broker.proxied(from: "10.0.0.0")
        #expect(world.counters.proxied.count == 1_025)
        #expect(world.counters.proxied["others"] == 1_976)
        #expect(world.counters.proxied["10.0.0.0"] == 2)
    }
}
