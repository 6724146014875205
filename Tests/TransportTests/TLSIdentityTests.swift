import Foundation
import NIOCore
import NIOSSL
import TestSupport
import Testing
import Transport

@Suite("TLS client certificates and pre-shared keys", .timeLimit(.minutes(10)))
struct TLSIdentityTests {
    static func mutual(_ certificates: Certificates, _ newest: TLSProtocolVersion = .v1_3) -> TLSServer {
        var serving = server(certificates)
        serving.clientAuthorityFile = certificates.authority
        serving.maximumVersion = newest
        return serving
    }

    static func client(_ certificates: Certificates, _ name: Certificates.Name) -> TLSSettings {
        var settings = trusting(certificates)
        settings.certificateFile = certificates.certificate(name)
        settings.keyFile = certificates.key(name)
        return settings
    }

    @Test("a client certificate reaches the server", arguments: [TLSProtocolVersion.v1_2, .v1_3])
    func shown(version: TLSProtocolVersion) async throws {
        let certificates = try await Certificates.all()
        try await withTLSPeer(Self.mutual(certificates, version)) { peer in
            try await withTLSLoop(Self.client(certificates, .client), port: peer.port) { loop in
                _ = try await loop.connect().get()
                let seen = try await peer.until { $0.handshakes == 1 }
                #expect(seen.clientCertificates == [try certificates.derBytes(.client)])
            }
        }
    }

    @Test("PKCS#12 holds certificate and key; an encrypted key opens with its passphrase", arguments: [true, false])
    func passphrase(isBundle: Bool) async throws {
        let certificates = try await Certificates.all()
        var settings = Self.client(certificates, .client)
        settings.keyPassphrase = "secret"
        settings.certificateFile = isBundle ? certificates.clientBundle : settings.certificateFile
        settings.keyFile = isBundle ? nil : certificates.encryptedClientKey
        try await withTLSPeer(Self.mutual(certificates)) { peer in
            try await withTLSLoop(settings, port: peer.port) { loop in
                _ = try await loop.connect().get()
                try await peer.until { $0.clientCertificates.count == 1 }
            }
        }
    }

    @Test("%i in the path gives each client its own certificate, over one context", arguments: [false, true])
    func perClient(isPinned: Bool) async throws {
        let certificates = try await Certificates.all()
        var settings = trusting(certificates)
        settings.certificateFile = "\(certificates.folder)/client-%i.pem"
        settings.keyFile = "\(certificates.folder)/client-%i.key"
        // The check of pins makes the handshake go on in a task of its own.
        if isPinned { settings.pinning = try TLSPinning(pins: [certificates.pin(.server)]) }
        try await withTLSPeer(Self.mutual(certificates)) { peer in
            try await withTLSLoop(settings, port: peer.port) { loop in
                async let first = loop.connect(client: 0)
                async let second = loop.connect(client: 1)
                _ = try await (first.get(), second.get())
                let seen = try await peer.until { $0.clientCertificates.count == 2 }
                let expected = [try certificates.derBytes(.client1), try certificates.derBytes(.client2)]
                #expect(Set(seen.clientCertificates) == Set(expected))
                // There is no third.
                let third = try await loop.connect(client: 2)
                let path = "\(certificates.folder)/client-3.pem"
                let expectedFailure = TLSFailure.clientCertificateFile("cannot read \(path): No such file or directory")
                #expect(third.tlsFailure == expectedFailure)
                guard case .failure(let error) = third else { return }
                #expect(error.isLocal)
            }
        }
    }

    @Test(
        "a server that requires a certificate refuses those without before they send anything",
        arguments: [TLSProtocolVersion.v1_2, .v1_3]
    )
    func missing(version: TLSProtocolVersion) async throws {
        let certificates = try await Certificates.all()
        try await withTLSPeer(Self.mutual(certificates, version)) { peer in
            try await withTLSLoop(trusting(certificates), port: peer.port) { loop in
                let result = try await loop.connect(greeting: [0x10, 0])
                #expect(result.tlsFailure == .clientCertificateRequired)
                #expect(try await peer.seen().bytes.isEmpty)
            }
        }
    }

    @Test("a server that asks and does not insist goes on, and is not taken for a refusal")
    func optional() async throws {
        let certificates = try await Certificates.all()
        var serving = Self.mutual(certificates)
        serving.requiresClientCertificate = false
        try await withTLSPeer(serving) { peer in
            try await withTLSLoop(trusting(certificates), port: peer.port) { loop in
                let connection = try await loop.connect().get()
                try await connection.send([1, 2, 3])
                try await connection.until { $0.bytes == [1, 2, 3] }
            }
        }
    }

    /// OpenSSL's server, which can be told to send no session tickets: nothing comes from it behind the handshake.
    @Test(
        "a TLS 1.3 server without session tickets: one that insists refuses all the same, one that does not costs time only",
        arguments: [true, false]
    )
    func withoutTickets(insists: Bool) async throws {
        let certificates = try await Certificates.all()
        let port = try ReservedPort().port
        let program = try RunningProgram(
            "/usr/bin/openssl",
            [
                "s_server", "-accept", "127.0.0.1:\(port)", "-cert", certificates.certificate(.server), "-key",
                certificates.key(.server), "-CAfile", certificates.authority, "-tls1_3", "-num_tickets", "0",
                insists ? "-Verify" : "-verify", "1", "-rev",
            ]
        )
        defer { program.send(SIGKILL) }
        try await program.line { $0.hasPrefix("ACCEPT") }
        try await withTLSLoop(trusting(certificates), port: port) { loop in
            let result = try await loop.connect()
            guard !insists else {
                #expect(result.tlsFailure == .clientCertificateRequired)
                return
            }
            let connection = try result.get()
            #expect((connection.phases.tls ?? .zero) >= .milliseconds(500))
            try await connection.send(Array("abc\n".utf8))
            try await connection.until { $0.bytes == Array("cba\n".utf8) }
        }
    }

    @Test("a certificate that the server refuses is named by its alert, at the latest by the end of the connection")
    func refused() async throws {
        let certificates = try await Certificates.all()
        for (name, alert) in [
            (Certificates.Name.stranger, "alert unknown ca"), (.expiredClient, "alert certificate expired"),
        ] {
            // In TLS 1.2 within the handshake.
            try await withTLSPeer(Self.mutual(certificates, .v1_2)) { peer in
                try await withTLSLoop(Self.client(certificates, name), port: peer.port) { loop in
                    let failure = try await loop.connect().tlsFailure
                    #expect(failure == .clientCertificateRefused(alert))
                }
            }
            // In TLS 1.3 the refusal comes after the handshake: the client's handler gets it.
            try await withTLSPeer(Self.mutual(certificates, .v1_3)) { peer in
                try await withTLSLoop(Self.client(certificates, name), port: peer.port) { loop in
                    let connection = try await loop.connect().get()
                    try await connection.until { $0.events.contains("inactive") }
                    let errors = try await connection.ask { $0.errors.compactMap { $0 as? TLSFailure } }
                    #expect(errors == [.clientCertificateRefused(alert)])
                }
            }
        }
    }

    static let preShared = try? TLSPreSharedKey(identity: "sensor", hexKey: "00112233445566778899aabbccddeeff")

    @Test("a pre-shared key makes a session without certificates; a wrong key or identity is refused")
    func preSharedKey() async throws {
        var serving = TLSServer()
        serving.preSharedKeys = [try #require(Self.preShared)]
        try await withTLSPeer(serving) { peer in
            for (identity, key, failure) in [
                ("sensor", "00112233445566778899aabbccddeeff", nil),
                ("sensor", "ff", TLSFailure.preSharedKeyRefused), ("other", "0011", .preSharedKeyRefused),
            ] {
                var settings = TLSSettings()
                settings.preSharedKey = try TLSPreSharedKey(identity: identity, hexKey: key)
                try await withTLSLoop(settings, port: peer.port) { loop in
                    let result = try await loop.connect(greeting: [0x10])
                    #expect(result.tlsFailure == failure)
                    if failure == nil { _ = try result.get() }
                }
            }
        }
    }
}

extension Certificates {
    func derBytes(_ name: Name) throws -> [UInt8] {
        try NIOSSLCertificate.fromDERFile(self.der(name)).toDERBytes()
    }
}
