import TestSupport
import Testing
import Transport

@Suite("TLS settings: all that is wrong is found when they are made")
struct TLSSettingsTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let settings: @Sendable (Certificates) -> TLSSettings
        let error: @Sendable (Certificates) -> TLSSettingsError

        init(
            _ name: String,
            _ change: @escaping @Sendable (inout TLSSettings, Certificates) -> Void,
            _ error: @escaping @Sendable (Certificates) -> TLSSettingsError
        ) {
            self.testDescription = name
            self.settings = { certificates in
                var settings = TLSSettings()
                change(&settings, certificates)
                return settings
            }
            self.error = error
        }
    }

    static let cases = [
        Case("a CA file that is not there", { settings, _ in settings.authorityFile = "/nowhere" }) { _ in
            .unreadable(path: "/nowhere", "No such file or directory")
        },
        Case("a CA file that is a directory", { $0.authorityFile = $1.folder }) {
            .unreadable(path: $0.folder, "Is a directory")
        },
        Case("a CA file in DER", { $0.authorityFile = $1.der(.authority) }) { .isDER(path: $0.der(.authority)) },
        Case("a key for a CA", { $0.authorityFile = $1.key(.authority) }) {
            .malformed(path: $0.key(.authority), "PEM certificate")
        },
        Case("a certificate without key", { $0.certificateFile = $1.certificate(.client) }) { _ in
            .certificateWithoutKey
        },
        Case("a key without certificate", { $0.keyFile = $1.key(.client) }) { _ in .keyWithoutCertificate },
        Case(
            "a key of another certificate",
            {
                $0.certificateFile = $1.certificate(.client)
                $0.keyFile = $1.key(.client1)
            },
            { .keyMismatch(certificate: $0.certificate(.client), key: $0.key(.client1)) }
        ),
        Case(
            "a certificate in DER",
            {
                $0.certificateFile = $1.der(.client)
                $0.keyFile = $1.key(.client)
            },
            { .isDER(path: $0.der(.client)) }
        ),
        Case(
            "a certificate for a key",
            {
                $0.certificateFile = $1.certificate(.client)
                $0.keyFile = $1.certificate(.client)
            },
            { .malformed(path: $0.certificate(.client), "PEM key that opens without a passphrase") }
        ),
        Case(
            "an encrypted key without passphrase",
            {
                $0.certificateFile = $1.certificate(.client)
                $0.keyFile = $1.encryptedClientKey
            },
            { .malformed(path: $0.encryptedClientKey, "PEM key that opens without a passphrase") }
        ),
        Case(
            "an encrypted key with another passphrase",
            {
                $0.certificateFile = $1.certificate(.client)
                $0.keyFile = $1.encryptedClientKey
                $0.keyPassphrase = "guess"
            },
            { .malformed(path: $0.encryptedClientKey, "PEM key that opens with the passphrase") }
        ),
        Case(
            "a PKCS#12 file with another passphrase",
            {
                $0.certificateFile = $1.clientBundle
                $0.keyPassphrase = "guess"
            },
            { .malformed(path: $0.clientBundle, "PKCS#12 bundle that can be read with the passphrase") }
        ),
        Case(
            "%i in one path only",
            {
                $0.certificateFile = $1.folder + "/client-%i.pem"
                $0.keyFile = $1.key(.client)
            },
            { _ in .numberInOnePathOnly }
        ),
        Case(
            "versions the wrong way round",
            { settings, _ in
                settings.minimumVersion = .v1_3
                settings.maximumVersion = .v1_2
            },
            { _ in .versions("the lowest is 1.3, the highest 1.2") }
        ),
        Case("a suite of TLS 1.3", { settings, _ in settings.ciphers = ["TLS_AES_128_GCM_SHA256"] }) { _ in
            .cipher("TLS_AES_128_GCM_SHA256 belongs to TLS 1.3, whose suites are fixed")
        },
        Case("an empty protocol name", { settings, _ in settings.applicationProtocols = ["mqtt", ""] }) { _ in
            .applicationProtocol("")
        },
        Case("a protocol name that is not ASCII", { settings, _ in settings.applicationProtocols = ["möbius"] }) { _ in
            .applicationProtocol("möbius")
        },
        Case("an address for a server name", { settings, _ in settings.serverName = "127.0.0.1" }) { _ in
            .serverName("127.0.0.1")
        },
        Case("no server name", { settings, _ in settings.serverName = "" }) { _ in .serverName("") },
        Case("a key log in no directory", { settings, _ in settings.keyLogFile = "/nowhere/keys" }) { _ in
            .keyLog(path: "/nowhere/keys", "No such file or directory")
        },
        Case(
            "a pre-shared key and a certificate",
            {
                $0.preSharedKey = try? TLSPreSharedKey("sensor:0011")
                $0.certificateFile = $1.certificate(.client)
                $0.keyFile = $1.key(.client)
            },
            { _ in .pskWithCertificates }
        ),
        Case(
            "a pre-shared key and TLS 1.3",
            { settings, _ in
                settings.preSharedKey = try? TLSPreSharedKey("sensor:0011")
                settings.minimumVersion = .v1_3
            },
            { _ in .pskWithCertificates }
        ),
    ]

    @Test("one clear line each", arguments: cases)
    func refused(_ wrong: Case) async throws {
        let certificates = try await Certificates.all()
        let expected = wrong.error(certificates)
        #expect(throws: expected) { try TLSContext(wrong.settings(certificates)) }
        #expect(!expected.description.contains("\n"))
    }

    @Test(
        "an unknown suite is refused and does not reach the library, which would trap",
        arguments: ["", "RC4-MD5", "ALL:!NULL"]
    )
    func suite(name: String) {
        var settings = TLSSettings()
        settings.ciphers = [name]
        let error = #expect(throws: TLSSettingsError.self) { try TLSContext(settings) }
        #expect(error?.description.hasPrefix("no cipher suite '\(name)' here; there are ECDHE-ECDSA-AES128") == true)
    }

    @Test(
        "pre-shared keys are hexadecimal",
        arguments: [
            ("sensor", "", TLSSettingsError.pskKey("is empty")),
            ("sensor", "abc", .pskKey("has an odd number of hex digits")),
            ("sensor", "zz", .pskKey("is not hexadecimal")),
            ("sensor", "é1", .pskKey("has an odd number of hex digits")),
            ("sensor", String(repeating: "0", count: 514), .pskKey("has more than 256 bytes")),
            ("", "00", .pskIdentity),
            ("a\0b", "00", .pskIdentity), (String(repeating: "i", count: 129), "00", .pskIdentity),
        ] as [(String, String, TLSSettingsError)]
    )
    func preSharedKey(identity: String, key: String, error: TLSSettingsError) {
        #expect(throws: error) { try TLSPreSharedKey(identity: identity, hexKey: key) }
    }

    @Test("IDENTITY:HEXKEY, the identity with colons or without")
    func preSharedKeyText() throws {
        #expect(try TLSPreSharedKey("urn:sensor:1:00fF").identity == "urn:sensor:1")
        #expect(try TLSPreSharedKey("urn:sensor:1:00fF").key == [0, 0xFF])
        #expect(throws: TLSSettingsError.pskKey("is missing: IDENTITY:HEXKEY is wanted")) {
            try TLSPreSharedKey("00ff")
        }
    }

    @Test("versions by their usual names", arguments: ["1.2", "tlsv1.2", "TLS1.2", "v1.2"])
    func version(text: String) throws { #expect(try TLSProtocolVersion(text) == .v1_2) }

    @Test("other versions are none", arguments: ["", "1.4", "ssl3", "tls", "13"])
    func noVersion(text: String) {
        #expect(throws: TLSSettingsError.version(text)) { try TLSProtocolVersion(text) }
    }

    @Test("a server without certificate and keys cannot be")
    func server() {
        #expect(throws: TLSSettingsError.serverWithoutCertificate) { try TLSServer().makeContext() }
    }
}
