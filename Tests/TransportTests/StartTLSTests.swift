import TestSupport
import Testing
import Transport

@Suite("STARTTLS", .timeLimit(.minutes(10)))
struct StartTLSTests {
    static let header = Array("<stream:stream>".utf8)
    static let ask = Array("<starttls/>".utf8)
    static let proceed = Array("<proceed xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>".utf8)
    static let injected = Array("<injected/>".utf8)

    static func settings(_ certificates: Certificates, domain: String = "broker.test") -> TLSSettings {
        var settings = trusting(certificates)
        settings.xmppDomain = domain
        return settings
    }

    @Test(
        "[RFC 6120 §5.4.3.3] what follows the server's word in clear is thrown away, and what follows in TLS is read",
        arguments: [[], injected, Array(repeating: UInt8(ascii: "x"), count: 30_000)]
    )
    func discards(_ injected: [UInt8]) async throws {
        let certificates = try await Certificates.all()
        try await withStartTLSPeer(server(certificates), inject: injected) { peer in
            try await withStartTLSLoop(Self.settings(certificates), port: peer) { loop in
                let result = try await loop.startTLS()
                #expect(result.failure == nil)
                #expect(try await loop.version() == "TLSv1.3")
                try await loop.send(Array("secret".utf8))
                try await loop.until { $0.secured == Array("secret".utf8) }
                #expect(try await loop.ask { $0.order } == ["proceed", "secure", "read"])
            }
        }
    }

    @Test(
        "[RFC 6120 §5.4.3.3] plaintext that comes in a later segment breaks TLS, and no byte of it reaches the client"
    )
    func later() async throws {
        let certificates = try await Certificates.all()
        try await withStartTLSPeer(server(certificates), injectLater: Self.injected) { peer in
            try await withStartTLSLoop(Self.settings(certificates), port: peer) { loop in
                let outcome = try await loop.startTLS()
                #expect(outcome.failure == .notTLS)
                #expect(try await loop.ask { $0.secured } == [])
            }
        }
    }

    @Test("a server that hangs up instead of shaking hands is reported as such, with the client's handler in place")
    func hangUp() async throws {
        let certificates = try await Certificates.all()
        try await withStartTLSPeer(nil) { peer in
            try await withStartTLSLoop(Self.settings(certificates), port: peer) { loop in
                let outcome = try await loop.startTLS()
                #expect(outcome.failure == .closed)
            }
        }
    }

    @Test(
        "[RFC 6120 §13.7.2] a certificate of another issuer is refused, and its reason is reported through STARTTLS"
    )
    func refused() async throws {
        let certificates = try await Certificates.all()
        try await withStartTLSPeer(server(certificates, .wrongName)) { peer in
            try await withStartTLSLoop(Self.settings(certificates), port: peer) { loop in
                let failure = TLSFailure.wrongName(wanted: "broker.test", names: ["elsewhere.test"])
                let outcome = try await loop.startTLS()
                #expect(outcome.failure == failure)
                #expect(try await loop.ask { $0.secured } == [])
            }
        }
        try await withStartTLSPeer(server(certificates, .selfSigned)) { peer in
            try await withStartTLSLoop(Self.settings(certificates), port: peer) { loop in
                let outcome = try await loop.startTLS()
                #expect(outcome.failure == .unknownIssuer("CN=broker.test"))
                // The reason is reported first, and then the end of the channel.
                #expect(try await loop.ask { Array($0.order.prefix(2)) } == ["proceed", "told"])
            }
        }
        try await withStartTLSPeer(server(certificates, .expired)) { peer in
            try await withStartTLSLoop(Self.settings(certificates), port: peer) { loop in
                guard case .expired? = try await loop.startTLS().failure else {
                    Issue.record("not told as expired")
                    return
                }
            }
        }
    }

    @Test("[RFC 5929 §4.1] the channel binding is the hash of the certificate that was shown")
    func binding() async throws {
        let certificates = try await Certificates.all()
        try await withStartTLSPeer(server(certificates)) { peer in
            try await withStartTLSLoop(Self.settings(certificates), port: peer) { loop in
                let outcome = try await loop.startTLS()
                #expect(outcome.failure == nil)
                let binding = try await loop.binding()
                let der = try certificates.derBytes(.server)
                #expect(binding == TLSServerEndPoint.data(ofCertificate: der) && binding?.count == 32)
            }
        }
    }
}
