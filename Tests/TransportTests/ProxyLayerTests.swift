import LoopContext
import NIOCore
import TestSupport
import Testing
import Transport

@Suite("The PROXY header", .timeLimit(.minutes(10)))
struct ProxyLayerTests {
    static let signature = hex("0d0a0d0a000d0a515549540a")

    @Test("IPv4 and IPv6, as text and binary")
    func headers() throws {
        let from = try SocketAddress(ipAddress: "192.0.2.1", port: 56_324)
        let to = try SocketAddress(ipAddress: "198.51.100.2", port: 1_883)
        #expect(
            String(decoding: ProxyProtocol.v1.header(from: from, to: to), as: UTF8.self)
                == "PROXY TCP4 192.0.2.1 198.51.100.2 56324 1883\r\n"
        )
        #expect(
            ProxyProtocol.v2.header(from: from, to: to) == Self.signature
                + hex("21 11 000c c0000201 c6336402 dc04 075b")
        )
        let from6 = try SocketAddress(ipAddress: "2001:db8::1", port: 443)
        let to6 = try SocketAddress(ipAddress: "::1", port: 65_535)
        #expect(
            String(decoding: ProxyProtocol.v1.header(from: from6, to: to6), as: UTF8.self)
                == "PROXY TCP6 2001:db8::1 ::1 443 65535\r\n"
        )
        #expect(
            ProxyProtocol.v2.header(from: from6, to: to6)
                == Self.signature
                + hex("21 21 0024 20010db8000000000000000000000001 00000000000000000000000000000001 01bb ffff")
        )
    }

    @Test("addresses that cannot be told are left to the receiver")
    func unknown() throws {
        let path = try SocketAddress(unixDomainSocketPath: "/tmp/x")
        let four = try SocketAddress(ipAddress: "192.0.2.1", port: 1)
        let six = try SocketAddress(ipAddress: "::1", port: 1)
        for (from, to) in [(nil, nil), (path, path), (four, six), (four, nil)] as [(SocketAddress?, SocketAddress?)] {
            #expect(ProxyProtocol.v1.header(from: from, to: to) == Array("PROXY UNKNOWN\r\n".utf8))
            #expect(ProxyProtocol.v2.header(from: from, to: to) == Self.signature + hex("21 00 0000"))
        }
    }

    @Test("a proxy's own connection says so: LOCAL in binary")
    func local() {
        #expect(ProxyProtocol.v1.local == Array("PROXY UNKNOWN\r\n".utf8))
        #expect(ProxyProtocol.v2.local == Self.signature + hex("20 00 0000"))
    }

    @Test(
        "comes first on a connection, with the socket's own addresses, which stays bare",
        arguments: ProxyProtocol.allCases
    )
    func connects(_ version: ProxyProtocol) async throws {
        try await withScriptedPeer { peer in
            try await withTestLoop([Target(host: "127.0.0.1", port: peer.port)], layers: { _ in [ProxyLayer(version)] })
            {
                loop in
                let connection = try await loop.connect().get()
                try await connection.channel.writeAndFlush(ByteBuffer(string: "CONNECT"))
                #expect(connection.isBare)
                let port = try #require(connection.channel.localAddress?.port)
                let header: [UInt8] =
                    switch version {
                    case .v1: Array("PROXY TCP4 127.0.0.1 127.0.0.1 \(port) \(peer.port)\r\n".utf8)
                    case .v2:
                        Self.signature + hex("21 11 000c 7f000001 7f000001")
                            + [port, peer.port].flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] }
                    }
                try await peer.untilBytes(header.count + 7)
                #expect(try await peer.received() == header + Array("CONNECT".utf8))
            }
        }
    }

    @Test("precedes the WebSocket's request")
    func beforeWebSocket() async throws {
        try await withScriptedPeer { peer in
            let settings = try WebSocketSettings()
            try await withTestLoop(
                [Target(host: "127.0.0.1", port: peer.port)],
                layers: {
                    [ProxyLayer(.v1), WebSocketLayer(settings, isSecure: false, receive: $0.receive)]
                }
            ) { loop in
                async let result = loop.connect(within: .seconds(3))
                try await peer.untilBytes(60)
                let text = String(decoding: try await peer.received(), as: UTF8.self)
                #expect(text.hasPrefix("PROXY TCP4 127.0.0.1 127.0.0.1 "))
                #expect(text.split(separator: "\r\n")[1] == "GET /mqtt HTTP/1.1")
                guard case .failure(let error) = try await result else { throw ChannelError.eof }
                #expect(error.reason == .timedOut(.webSocket))
            }
        }
    }
}
