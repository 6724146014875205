import Crypto
import Foundation
import TestSupport
import Testing
import Transport

@Suite("The certificate of a JID's domain", .timeLimit(.minutes(10)))
struct XMPPIdentityTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let certificate: Certificates.Name
        let domain: String
        /// The names in the report; `nil`: the certificate matches the domain.
        var names: [String]?

        var testDescription: String { "\(self.domain) at \(self.certificate.rawValue)" }
    }

    static let serverNames = ["localhost", "broker.test", "*.wild.test", "127.0.0.1", "::1"]
    static let serviceNames = ["_xmpp-client.service.test", "_xmpp-server.peer.test"]
    static let addresses = ["address.test (XmppAddr)", "w\u{F6}rld.test (XmppAddr)"]

    static let cases = [
        // Host names.
        Case(certificate: .server, domain: "broker.test"), Case(certificate: .server, domain: "Broker.Test."),
        Case(certificate: .server, domain: "a.wild.test"), Case(certificate: .chained, domain: "broker.test"),
        Case(certificate: .server, domain: "wild.test", names: serverNames),
        Case(certificate: .server, domain: "a.b.wild.test", names: serverNames),
        Case(certificate: .server, domain: "roker.test", names: serverNames),
        Case(certificate: .wrongName, domain: "elsewhere.test"),
        Case(certificate: .wrongName, domain: "broker.test", names: ["elsewhere.test"]),
        // A wildcard is the whole of the left-most label.
        Case(certificate: .partialWildcard, domain: "foo.part.test", names: ["f*.part.test", "a.*.part.test"]),
        Case(certificate: .partialWildcard, domain: "a.b.part.test", names: ["f*.part.test", "a.*.part.test"]),
        // Addresses.
        Case(certificate: .server, domain: "127.0.0.1"),
        Case(certificate: .server, domain: "10.9.8.7", names: serverNames),
        Case(certificate: .server, domain: "::1"),
        // SRVName: of the service for clients, whatever the common name.
        Case(certificate: .serviceName, domain: "service.test"),
        Case(certificate: .serviceName, domain: "SERVICE.test"),
        Case(certificate: .serviceName, domain: "broker.test", names: serviceNames),
        Case(certificate: .serviceName, domain: "peer.test", names: serviceNames),
        Case(certificate: .serviceName, domain: "a.service.test", names: serviceNames),
        // XmppAddr.
        Case(certificate: .xmppAddress, domain: "address.test"),
        Case(certificate: .xmppAddress, domain: "w\u{F6}rld.test"),
        Case(certificate: .xmppAddress, domain: "broker.test", names: addresses),
        Case(certificate: .xmppAddress, domain: "a.address.test", names: addresses),
        // RFC 9525 §2: the common name is none.
        Case(certificate: .commonName, domain: "broker.test", names: []),
    ]

    @Test(
        "[RFC 6120 §13.7.1.2] is found by host name, SRVName or XmppAddr, or refused with its names",
        arguments: cases
    )
    func identity(_ vector: Case) async throws {
        let certificates = try await Certificates.all()
        try await withTLSPeer(server(certificates, vector.certificate)) { peer in
            for isPinned in [false, true] {
                var settings = trusting(certificates)
                settings.xmppDomain = vector.domain
                // With pins the check is all our own.
                if isPinned { settings.pinning = try TLSPinning(pins: [certificates.pin(vector.certificate)]) }
                try await withTLSLoop(settings, host: "somewhere.test", port: peer.port) { loop in
                    let result = try await loop.connect()
                    guard let names = vector.names else {
                        _ = try result.get()
                        return
                    }
                    guard case .wrongName(let wanted, let found)? = result.tlsFailure else {
                        Issue.record("no wrong name: \(String(describing: result.tlsFailure))")
                        return
                    }
                    #expect(wanted == DomainName.ascii(vector.domain) && found == names)
                }
            }
        }
    }

    @Test("[XEP-0368 §6] the domain is asked for, not the host; ALPN is what the settings say")
    func serverName() async throws {
        let certificates = try await Certificates.all()
        var serving = server(certificates)
        serving.applicationProtocols = ["xmpp-client"]
        try await withTLSPeer(serving) { peer in
            var settings = trusting(certificates)
            settings.xmppDomain = "a.wild.test"
            settings.applicationProtocols = ["xmpp-client"]
            try await withTLSLoop(settings, host: "somewhere.test", port: peer.port) { loop in
                // Twice: the second time the certificate is known.
                for _ in 0..<2 { _ = try await loop.connect().get() }
                let seen = try await peer.until { $0.handshakes == 2 }
                #expect(seen.serverNames == ["a.wild.test", "a.wild.test"])
                #expect(seen.protocols == ["xmpp-client", "xmpp-client"])
            }
        }
    }

    @Test("other reasons are named as ever, and who does not verify believes any name")
    func otherReasons() async throws {
        let certificates = try await Certificates.all()
        var settings = trusting(certificates)
        settings.xmppDomain = "broker.test"
        for (name, isRight) in [
            (.selfSigned, { $0 == .unknownIssuer("CN=broker.test") }),
            (.expired, { if case .expired? = $0 { true } else { false } }),
        ] as [(Certificates.Name, (TLSFailure?) -> Bool)] {
            try await withTLSPeer(server(certificates, name)) { peer in
                try await withTLSLoop(settings, port: peer.port) { loop in
                    let result = try await loop.connect()
                    #expect(isRight(result.tlsFailure))
                }
            }
        }
        settings.verifies = false
        try await withTLSPeer(server(certificates, .wrongName)) { peer in
            try await withTLSLoop(settings, port: peer.port) { loop in _ = try await loop.connect().get() }
        }
        settings.xmppDomain = "no name"
        #expect(throws: TLSSettingsError.serverName("no name")) { try TLSContext(settings) }
    }

    @Test("[RFC 5929 §4.1] tls-server-end-point takes the signature's hash, SHA-256 for older ones, and none without")
    func endPoint() async throws {
        let folder = try ScratchFolder()
        let script = """
            set -e
            cd "$1"
            make() { name=$1; shift; openssl req -x509 -nodes -keyout key.pem -subj /CN=a -days 9 \
                -outform DER -out $name.der "$@" 2>/dev/null; }
            make ec256 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -sha256
            make ec384 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -sha384
            make ec512 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -sha512
            make ec1 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -sha1
            make rsa384 -newkey rsa:2048 -sha384
            make pss512 -newkey rsa:2048 -sha512 -sigopt rsa_padding_mode:pss
            make ed -newkey ed25519
            """
        let program = try RunningProgram("/bin/sh", ["-c", script, "sh", folder.path])
        let ending = try await program.ended()
        try #require(ending.status == 0, "\(ending.errors)")
        for (name, hash) in [
            ("ec256", { Array(SHA256.hash(data: $0)) }), ("ec384", { Array(SHA384.hash(data: $0)) }),
            ("ec512", { Array(SHA512.hash(data: $0)) }), ("ec1", { Array(SHA256.hash(data: $0)) }),
            ("rsa384", { Array(SHA384.hash(data: $0)) }), ("pss512", { Array(SHA512.hash(data: $0)) }),
            ("ed", { _ in nil }),
        ] as [(String, ([UInt8]) -> [UInt8]?)] {
            let der = [UInt8](try Data(contentsOf: URL(filePath: folder.path("\(name).der"))))
            #expect(TLSServerEndPoint.data(ofCertificate: der) == hash(der), "\(name)")
        }
        #expect(TLSServerEndPoint.data(ofCertificate: [1, 2, 3]) == nil)
    }
}
