import TestSupport
import Testing
import Transport

/// SPEC A13, line by line.
@Suite("[SPEC A13] TLS pinning", .timeLimit(.minutes(10)))
struct TLSPinningTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        var mode = TLSPinning.Mode.publicKey
        var pinned: [Certificates.Name]
        var server = Certificates.Name.server
        var chain = false
        var domain = true
        var allowsInvalid = false
        var hasAuthority = true
        var failure: @Sendable (Certificates) throws -> TLSFailure? = { _ in nil }
    }

    static let cases = [
        Case(testDescription: "key: the server's own", pinned: [.server]),
        Case(testDescription: "key: another's", pinned: [.client, .authority]) {
            .pinMismatch("the key of CN=broker.test is \(try $0.pin(.server))")
        },
        Case(testDescription: "key, chain: all of them", pinned: [.server, .authority], chain: true),
        Case(testDescription: "key, chain: the authority's is missing", pinned: [.server], chain: true) {
            .pinMismatch("the key of CN=Clamor Test CA is \(try $0.pin(.authority))")
        },
        Case(testDescription: "key: the authority has to be known too", pinned: [.selfSigned], server: .selfSigned) {
            _ in
            .unknownIssuer("CN=broker.test")
        },
        Case(
            testDescription: "key: unless invalid ones are allowed",
            pinned: [.selfSigned],
            server: .selfSigned,
            allowsInvalid: true
        ),
        Case(testDescription: "key: an expired one", pinned: [.expired], server: .expired) { _ in
            .expired("CN=broker.test", since: "2020-02-01 00:00:00 UTC")
        },
        Case(
            testDescription: "key: an expired one, allowed",
            pinned: [.expired],
            server: .expired,
            allowsInvalid: true
        ),
        Case(testDescription: "key: of another name", pinned: [.wrongName], server: .wrongName) { _ in
            .wrongName(wanted: "broker.test", names: ["elsewhere.test"])
        },
        Case(
            testDescription: "key: of another name, not looked at",
            pinned: [.wrongName],
            server: .wrongName,
            domain: false
        ),
        Case(
            testDescription: "certificate: the authority",
            mode: .certificate,
            pinned: [.authority],
            hasAuthority: false
        ),
        Case(
            testDescription: "certificate: the server's own",
            mode: .certificate,
            pinned: [.server],
            chain: true,
            hasAuthority: false
        ),
        Case(
            testDescription: "certificate: signed by itself",
            mode: .certificate,
            pinned: [.selfSigned],
            server: .selfSigned,
            chain: true,
            hasAuthority: false
        ),
        Case(
            testDescription: "certificate, chain: the authority alone",
            mode: .certificate,
            pinned: [.authority],
            chain: true
        ) { _ in
            .pinMismatch("the certificate of CN=broker.test is not pinned")
        },
        Case(
            testDescription: "certificate, chain: both",
            mode: .certificate,
            pinned: [.authority, .server],
            chain: true
        ),
        Case(
            testDescription: "certificate: other authorities do not count",
            mode: .certificate,
            pinned: [.otherAuthority]
        ) { _ in
            .pinMismatch("no certificate of the chain of CN=broker.test is pinned")
        },
        Case(
            testDescription: "certificate: through an intermediate",
            mode: .certificate,
            pinned: [.authority],
            server: .chained
        ),
        Case(
            testDescription: "certificate: must be valid, allowed or not",
            mode: .certificate,
            pinned: [.authority],
            server: .expired,
            allowsInvalid: true
        ) { _ in
            .expired("CN=broker.test", since: "2020-02-01 00:00:00 UTC")
        },
        Case(
            testDescription: "certificate: of another name",
            mode: .certificate,
            pinned: [.authority],
            server: .wrongName
        ) { _ in
            .wrongName(wanted: "broker.test", names: ["elsewhere.test"])
        },
        Case(
            testDescription: "certificate: of another name, not looked at",
            mode: .certificate,
            pinned: [.authority],
            server: .wrongName,
            domain: false
        ),
        Case(
            testDescription: "none: not valid, allowed",
            mode: .none,
            pinned: [],
            server: .expired,
            allowsInvalid: true
        ),
        Case(
            testDescription: "none: of another name, not looked at",
            mode: .none,
            pinned: [],
            server: .wrongName,
            domain: false
        ),
    ]

    @Test("decides before the first byte", arguments: cases)
    func pinned(_ pinned: Case) async throws {
        let certificates = try await Certificates.all()
        var settings = TLSSettings()
        if pinned.hasAuthority { settings.authorityFile = certificates.authority }
        settings.pinning.mode = pinned.mode
        settings.pinning.validatesCertificateChain = pinned.chain
        settings.pinning.validatesDomainName = pinned.domain
        settings.pinning.allowsInvalidCertificates = pinned.allowsInvalid
        for name in pinned.pinned { try settings.pinning.pin(certificate: certificates.derBytes(name)) }
        let failure = try pinned.failure(certificates)
        try await withTLSPeer(server(certificates, pinned.server)) { peer in
            try await withTLSLoop(settings, port: peer.port) { loop in
                let result = try await loop.connect(greeting: [0x10, 0])
                #expect(result.tlsFailure == failure)
                if failure == nil {
                    let connection = try result.get()
                    try await connection.send([7])
                    try await connection.until { $0.bytes == [7] }
                } else {
                    #expect(try await peer.seen().handshakes == 0)
                    #expect(try await peer.seen().bytes.isEmpty)
                }
            }
        }
    }

    @Test("DER only: PEM is refused, and does not crash (#151); the same certificate counts once")
    func pem() async throws {
        let certificates = try await Certificates.all()
        var pinning = TLSPinning()
        #expect(throws: TLSSettingsError.isPEM("the pinned certificate")) {
            try pinning.pin(certificate: Array("-----BEGIN CERTIFICATE-----\n".utf8))
        }
        #expect(throws: TLSSettingsError.malformed(path: "the pinned certificate", "DER certificate")) {
            try pinning.pin(certificate: [0x30, 0x82, 0x01])
        }
        let der = try certificates.derBytes(.server)
        try pinning.pin(certificate: der)
        try pinning.pin(certificate: der)
        #expect(pinning.certificates == [der])
    }

    @Test("a mode without pins fails", arguments: [TLSPinning.Mode.certificate, .publicKey])
    func nothingPinned(mode: TLSPinning.Mode) {
        var settings = TLSSettings()
        settings.pinning.mode = mode
        #expect(throws: TLSSettingsError.noPins) { try TLSContext(settings) }
    }

    @Test("the command line's pins: a digest that openssl made, a certificate in PEM or DER, and what is neither")
    func text() async throws {
        let certificates = try await Certificates.all()
        let key = try TLSPinning(pins: [certificates.pin(.server)])
        #expect(key.mode == .publicKey)
        #expect(!key.validatesCertificateChain)
        let pem = try TLSPinning(pins: [certificates.certificate(.server)])
        let der = try TLSPinning(pins: [certificates.der(.server)])
        #expect(pem == der)
        #expect(pem.mode == .certificate)
        #expect(pem.keyDigests == key.keyDigests)
        #expect(throws: TLSSettingsError.unreadable(path: "/nowhere.pem", "No such file or directory")) {
            try TLSPinning(pins: ["/nowhere.pem"])
        }
        for wrong in ["sha256/", "sha256/AAAA", "sha256/\(String(repeating: "A", count: 43))B", "sha256/***"] {
            let text = "'\(wrong)' is no pin: sha256/ and the base64 of 32 bytes are wanted"
            #expect(throws: TLSSettingsError.pin(text)) { try TLSPinning(pins: [wrong]) }
        }
    }
}
