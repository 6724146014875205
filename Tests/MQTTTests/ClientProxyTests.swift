import MQTT
import MQTTCodec
import TestSupport
import Testing

@Suite("A client behind a PROXY header", .timeLimit(.minutes(10)))
struct ClientProxyTests {
    static let signature = hex("0d0a0d0a000d0a515549540a")

    static let headers: [(MQTTProxyHeader, [UInt8])] = [
        (
            MQTTProxyHeader(
                .v1,
                .claimed(source: .init("192.0.2.1", port: 56_324), destination: .init("198.51.100.2", port: 1_883))
            ),
            Array("PROXY TCP4 192.0.2.1 198.51.100.2 56324 1883\r\n".utf8)
        ),
        (
            MQTTProxyHeader(
                .v2,
                .claimed(source: .init("192.0.2.1", port: 56_324), destination: .init("198.51.100.2", port: 1_883))
            ),
            signature + hex("21 11 000c c0000201 c6336402 dc04 075b")
        ),
        (
            MQTTProxyHeader(
                .v1,
                .claimed(source: .init("2001:db8::1", port: 443), destination: .init("::1", port: 65_535))
            ),
            Array("PROXY TCP6 2001:db8::1 ::1 443 65535\r\n".utf8)
        ),
        (MQTTProxyHeader(.v1, .unknown), Array("PROXY UNKNOWN\r\n".utf8)),
        // §2.2: LOCAL, and not PROXY of an unknown family.
        (MQTTProxyHeader(.v2, .unknown), signature + hex("20 00 0000")),
    ]

    @Test("what it claims comes first, then CONNECT", arguments: headers)
    func claims(_ header: MQTTProxyHeader, _ bytes: [UInt8]) async throws {
        try await withScriptedPeer([.expect(bytes)] + accepting(then: [])) { peer in
            let transport = try MQTTTransport.tcp.sending(header)
            let client = MQTTClient(MQTTClientConfiguration(port: peer.port, id: "c") { $0.transport = transport })
            try await client.connect()
            #expect(try await peer.mismatches() == [])
            client.abort()
        }
    }

    @Test("by default it tells the connection's own addresses")
    func own() async throws {
        let header = Array("PROXY TCP4 127.0.0.1 127.0.0.1 ".utf8)
        try await withScriptedPeer([.expect(header)]) { peer in
            let transport = try MQTTTransport.tcp.sending(MQTTProxyHeader(.v1))
            let client = MQTTClient(MQTTClientConfiguration(port: peer.port, id: "c") { $0.transport = transport })
            async let connected = failure { try await client.connect() }
            try await peer.untilScriptDone()
            let connect = connectBytes(MQTTClientConfiguration(port: peer.port, id: "c"))
            // Two ports of one to five digits, a blank, CR and LF.
            try await peer.untilBytes(header.count + "1 \(peer.port)\r\n".utf8.count + connect.count)
            try await peer.perform([.close])
            #expect(await connected == .connectionLost(.closedByServer))
            let received = try await peer.received()
            #expect(try await peer.mismatches() == [])
            let line = received.prefix { $0 != UInt8(ascii: "\r") }
            #expect(line.suffix(" \(peer.port)".utf8.count).elementsEqual(" \(peer.port)".utf8))
            #expect(received.dropFirst(line.count + 2).starts(with: connect.prefix(8)))
        }
    }

    @Test("it stands before TLS")
    func beforeTLS() async throws {
        let header = MQTTProxyHeader(.v2, .unknown)
        let bytes = Self.signature + hex("20 00 0000")
        // The first byte of a TLS record with a handshake.
        try await withScriptedPeer([.expect(bytes + [0x16]), .close]) { peer in
            let transport = try MQTTTransport.tls().sending(header)
            let client = MQTTClient(MQTTClientConfiguration(port: peer.port, id: "c") { $0.transport = transport })
            let error = await failure { try await client.connect() }
            guard case .noConnection(let why)? = error else {
                Issue.record("connected, or failed otherwise")
                return
            }
            #expect(why.kind == "tls" || why.kind == "reset")
            #expect(try await peer.mismatches() == [])
        }
    }

    @Test("clients share layers with those who send the same header alone")
    func keys() throws {
        let header = MQTTProxyHeader(.v2)
        #expect(try MQTTTransport.tcp.sending(header).key == nil)
        let tls = try MQTTTransport.tls()
        let (one, other) = (try tls.sending(header), try tls.sending(header))
        #expect(one.key != nil && one.key != tls.key && one.key != other.key)
        #expect(one.defaultPort == 8_883)
    }

    static let wrong: [(MQTTProxyHeader.Endpoint, MQTTProxyHeader.Endpoint, String)] = [
        (
            .init("192.0.2.1", port: 1), .init("::1", port: 2),
            "a PROXY header names two addresses of one kind, and 192.0.2.1 and ::1 are IPv4 and IPv6"
        ),
        (
            .init("broker.example", port: 1), .init("192.0.2.1", port: 2),
            "'broker.example' is no IPv4 or IPv6 address for a PROXY header"
        ),
        (.init("192.0.2.1", port: 1), .init("", port: 2), "'' is no IPv4 or IPv6 address for a PROXY header"),
    ]

    @Test("addresses that a header cannot contain are refused", arguments: wrong)
    func refused(_ source: MQTTProxyHeader.Endpoint, _ destination: MQTTProxyHeader.Endpoint, _ words: String) {
        let header = MQTTProxyHeader(.v1, .claimed(source: source, destination: destination))
        #expect(throws: MQTTClientError.invalid(words)) { try MQTTTransport.tcp.sending(header) }
    }
}
