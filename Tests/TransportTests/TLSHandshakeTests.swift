import NIOCore
import NIOSSL
import TestSupport
import Testing
import Transport

@Suite("TLS handshakes", .timeLimit(.minutes(10)))
struct TLSHandshakeTests {
    @Test(
        "a trusted server with the right name: a session over which bytes go both ways, whatever the read size",
        arguments: [1, 7, 65_536]
    )
    func session(readSize: Int) async throws {
        let certificates = try await Certificates.all()
        try await withTLSPeer(server(certificates)) { peer in
            try await withTLSLoop(trusting(certificates), port: peer.port, readSize: readSize) { loop in
                let message = [UInt8](repeating: 0x5A, count: 40_000)
                let connection = try await loop.connect().get()
                try await connection.send(message)
                try await connection.until { $0.bytes.count == message.count }
                #expect(try await connection.ask(\.bytes) == message)
                #expect(connection.phases.tls != nil)
                #expect(try await peer.seen().bytes == message)
            }
        }
    }

    @Test("[SPEC B6] SNI carries the target's name, ALPN the protocols; the newest version is taken")
    func nameAndProtocol() async throws {
        let certificates = try await Certificates.all()
        var serving = server(certificates)
        serving.applicationProtocols = ["x-amzn-mqtt-ca", "mqtt"]
        var settings = trusting(certificates)
        settings.applicationProtocols = ["mqtt"]
        try await withTLSPeer(serving) { peer in
            try await withTLSLoop(settings, port: peer.port) { loop in
                _ = try await loop.connect().get()
                let seen = try await peer.until { $0.handshakes == 1 }
                #expect(seen.serverNames == ["broker.test"])
                #expect(seen.protocols == ["mqtt"])
                #expect(seen.versions == [.tlsv13])
            }
        }
    }

    @Test("an address has no place in SNI, and is found in the certificate")
    func address() async throws {
        let certificates = try await Certificates.all()
        try await withTLSPeer(server(certificates)) { peer in
            try await withTLSLoop(trusting(certificates), host: "127.0.0.1", port: peer.port) { loop in
                _ = try await loop.connect().get()
                #expect(try await peer.until { $0.handshakes == 1 }.serverNames == [nil])
            }
        }
    }

    @Test("a server name of one's own is asked for and looked for")
    func serverName() async throws {
        let certificates = try await Certificates.all()
        var settings = trusting(certificates)
        settings.serverName = "elsewhere.test"
        try await withTLSPeer(server(certificates, .wrongName)) { peer in
            try await withTLSLoop(settings, host: "127.0.0.1", port: peer.port) { loop in
                _ = try await loop.connect().get()
                #expect(try await peer.until { $0.handshakes == 1 }.serverNames == ["elsewhere.test"])
            }
        }
    }

    @Test(
        "[RFC 9525 §2, §6.3] the name is found whatever its case, in a wildcard's one label, never in the common name",
        arguments: [
            ("BROKER.test", Certificates.Name.server, true), ("a.wild.test", .server, true),
            ("a.b.wild.test", .server, false), ("wild.test", .server, false), ("broker.test", .commonName, false),
            ("localhost", .commonName, false),
        ]
    )
    func names(host: String, name: Certificates.Name, isRight: Bool) async throws {
        let certificates = try await Certificates.all()
        try await withTLSPeer(server(certificates, name)) { peer in
            try await withTLSLoop(trusting(certificates), host: host, port: peer.port) { loop in
                let result = try await loop.connect()
                if isRight {
                    _ = try result.get()
                } else {
                    guard case .wrongName(host, _) = result.tlsFailure else {
                        Issue.record("not refused by its name: \(result)")
                        return
                    }
                }
            }
        }
    }

    @Test(
        "a certificate without the target's address, or for a name that none can be for",
        arguments: ["127.0.0.1", "b_ö"]
    )
    func otherAddress(host: String) async throws {
        let certificates = try await Certificates.all()
        try await withTLSPeer(server(certificates, .wrongName)) { peer in
            try await withTLSLoop(trusting(certificates), host: host, port: peer.port) { loop in
                let result = try await loop.connect()
                #expect(result.tlsFailure == .wrongName(wanted: host, names: ["elsewhere.test"]))
            }
        }
    }

    @Test("a host name that no SNI can carry", arguments: ["", String(repeating: "a", count: 256)])
    func noServerName(host: String) async throws {
        try await withScriptedPeer { peer in
            try await withTLSLoop(TLSSettings(), host: host, port: peer.port) { loop in
                let result = try await loop.connect()
                #expect(result.tlsFailure == .handshake("'\(host)' is no server name"))
            }
        }
    }

    @Test("what a hostile certificate says stays one line of bounded length")
    func hostileWords() {
        let names = (0..<9).map { "\u{1B}[2J\n\($0)" + String(repeating: "x", count: 200) }
        let words = TLSFailure.wrongName(wanted: "broker.test", names: names).description
        #expect(words.unicodeScalars.count == 400)
        #expect(words.hasPrefix("certificate not for broker.test, but for ?[2J?0xxx"))
        #expect(!words.contains { $0.isNewline })
        let many = TLSFailure.wrongName(wanted: "a", names: ["b", "c", "d", "e", "f", "g", "h"]).description
        #expect(many == "certificate not for a, but for b, c, d, e, f and 2 more")
    }

    static let refusals: [(Certificates.Name, TLSFailure)] = [
        (.wrongName, .wrongName(wanted: "broker.test", names: ["elsewhere.test"])),
        (.expired, .expired("CN=broker.test", since: "2020-02-01 00:00:00 UTC")),
        (.notYetValid, .notYetValid("CN=broker.test", until: "2090-01-01 00:00:00 UTC")),
        (.selfSigned, .unknownIssuer("CN=broker.test")),
        (.stranger, .unknownIssuer("CN=Other Test CA")),
    ]

    @Test("a refusal says which, before a byte of the client is sent", arguments: refusals)
    func refused(name: Certificates.Name, failure: TLSFailure) async throws {
        let certificates = try await Certificates.all()
        try await withTLSPeer(server(certificates, name)) { peer in
            try await withTLSLoop(trusting(certificates), port: peer.port) { loop in
                let result = try await loop.connect(greeting: [0x10, 0])
                #expect(result.tlsFailure == failure)
                #expect(try await peer.seen().bytes.isEmpty)
                guard case .failure(let error) = result else { return }
                #expect(error.kind == "tls")
                #expect(!error.isLocal)
                #expect(error.description == "no TLS with broker.test:\(peer.port): \(failure)")
            }
        }
    }

    @Test("the wrong authority is named, once for all clients of a target: one diagnosis, whatever their number")
    func wrongAuthority() async throws {
        let certificates = try await Certificates.all()
        var settings = TLSSettings()
        settings.authorityFile = certificates.certificate(.otherAuthority)
        try await withTLSPeer(server(certificates)) { peer in
            try await withTLSLoop(settings, port: peer.port) { loop in
                let results = try await withThrowingTaskGroup { group in
                    for client in 0..<8 { group.addTask { try await loop.connect(client: client).tlsFailure } }
                    return try await group.reduce(into: []) { $0.append($1) }
                }
                let expected = TLSFailure.unknownIssuer("CN=Clamor Test CA")
                #expect(results == Array(repeating: expected, count: 8))
                #expect(try await loop.connect().tlsFailure == expected)
                #expect(try await peer.seen().connections == 8 + 1 + 1)
            }
        }
    }

    @Test("an intermediate authority that the server sends is used")
    func chain() async throws {
        let certificates = try await Certificates.all()
        try await withTLSPeer(server(certificates, .chained)) { peer in
            try await withTLSLoop(trusting(certificates), port: peer.port) { loop in
                _ = try await loop.connect().get()
            }
        }
    }

    @Test("without verification all certificates are accepted", arguments: refusals.map(\.0))
    func insecure(name: Certificates.Name) async throws {
        let certificates = try await Certificates.all()
        var settings = TLSSettings()
        settings.verifies = false
        try await withTLSPeer(server(certificates, name)) { peer in
            try await withTLSLoop(settings, port: peer.port) { loop in
                _ = try await loop.connect().get()
            }
        }
    }
}

extension Connection {
    /// Writes to the session.
    func send(_ bytes: [UInt8]) async throws { try await self.channel.writeAndFlush(ByteBuffer(bytes: bytes)) }
}
