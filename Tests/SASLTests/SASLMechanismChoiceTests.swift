import SASL
import Testing

@Suite("The choice of a mechanism")
struct SASLMechanismChoiceTests {
    static let everything = [
        "PLAIN", "DIGEST-MD5", "X-OAUTH2", "SCRAM-SHA-1", "SCRAM-SHA-1-PLUS", "SCRAM-SHA-256", "SCRAM-SHA-256-PLUS",
        "SCRAM-SHA-512", "SCRAM-SHA-512-PLUS", "EXTERNAL", "ANONYMOUS",
    ]
    static let endPoint = SASLChannelBinding(.tlsServerEndPoint, [1, 2, 3])

    static func credentials(certificate: Bool = false, password: String? = "p") -> SASLMechanismChoice.Credentials {
        SASLMechanismChoice.Credentials(
            user: "u",
            password: password,
            domain: "x.test",
            hasCertificate: certificate
        )
    }

    static func choose(
        _ offered: [String],
        bindings: [String]? = nil,
        isSecure: Bool = true,
        available: [SASLChannelBinding] = [endPoint],
        certificate: Bool = false,
        password: String? = "p",
        without refused: Set<String> = [],
        _ change: (inout SASLMechanismChoice) -> Void = { _ in }
    ) throws -> (name: String, first: String?) {
        var choice = SASLMechanismChoice()
        change(&choice)
        var mechanism = try choice.choose(
            from: .init(offered, bindings: bindings, isSecure: isSecure, available: available),
            for: self.credentials(certificate: certificate, password: password),
            without: refused,
            cache: SCRAMKeyCache(capacity: 1)
        )
        let first = try? mechanism.begin()
        return (mechanism.name, first.map { String(decoding: $0, as: UTF8.self) })
    }

    @Test("[RFC 6120 §6.3.3] takes the best that is left, and each only once", arguments: [true, false])
    func order(isBound: Bool) throws {
        var refused: Set<String> = []
        var taken: [String] = []
        let types = isBound ? ["tls-unique", "tls-server-end-point"] : nil
        while let next = try? Self.choose(
            Self.everything,
            bindings: types,
            certificate: true,
            without: refused,
            { $0.allowsDigestMD5 = true }
        ) {
            taken.append(next.name)
            refused.insert(next.name)
        }
        let bound = isBound ? ["SCRAM-SHA-512-PLUS", "SCRAM-SHA-256-PLUS", "SCRAM-SHA-1-PLUS"] : []
        let plain = ["SCRAM-SHA-512", "SCRAM-SHA-256", "SCRAM-SHA-1", "DIGEST-MD5", "PLAIN"]
        // RFC 5802 §6: who refuses a binding that the server offered is trusted with nothing unbound.
        #expect(taken == ["EXTERNAL"] + (isBound ? bound : plain))
        #expect(
            throws: isBound
                ? SASLChoiceError.noBinding(offered: Self.everything) : .noneShared(offered: Self.everything)
        ) {
            try Self.choose(Self.everything, bindings: types, certificate: true, without: refused) {
                $0.allowsDigestMD5 = true
            }
        }
    }

    @Test("[SPEC C4] EXTERNAL needs a certificate, DIGEST-MD5 and ANONYMOUS have to be asked for")
    func asked() throws {
        #expect(try Self.choose(["EXTERNAL", "PLAIN"]).name == "PLAIN")
        #expect(try Self.choose(["EXTERNAL", "PLAIN"], certificate: true).name == "EXTERNAL")
        #expect(try Self.choose(["EXTERNAL"], certificate: true, password: nil).first == "")
        #expect(try Self.choose(["DIGEST-MD5", "PLAIN"]).name == "PLAIN")
        #expect(try Self.choose(["DIGEST-MD5", "PLAIN"]) { $0.allowsDigestMD5 = true }.name == "DIGEST-MD5")
        #expect(try Self.choose(["ANONYMOUS", "PLAIN"]).name == "PLAIN")
        #expect(try Self.choose(["ANONYMOUS", "PLAIN"]) { $0.isAnonymous = true }.name == "ANONYMOUS")
        #expect(try Self.choose(["anonymous"], isSecure: false) { $0.isAnonymous = true }.name == "ANONYMOUS")
        #expect(throws: SASLChoiceError.noneShared(offered: ["PLAIN"])) {
            try Self.choose(["PLAIN"]) { $0.isAnonymous = true }
        }
        #expect(throws: SASLChoiceError.noneShared(offered: ["DIGEST-MD5"])) { try Self.choose(["DIGEST-MD5"]) }
        #expect(throws: SASLChoiceError.noneShared(offered: ["PLAIN"])) { try Self.choose(["PLAIN"], password: nil) }
    }

    @Test("[RFC 6120 §6.3.3] a password goes in clear inside TLS, or where the user allows it")
    func plain() throws {
        #expect(throws: SASLChoiceError.plainWithoutTLS) { try Self.choose(["PLAIN"], isSecure: false) }
        #expect(throws: SASLChoiceError.plainWithoutTLS) {
            try Self.choose(["PLAIN"], isSecure: false) { $0.forced = "PLAIN" }
        }
        #expect(try Self.choose(["PLAIN", "SCRAM-SHA-1"], isSecure: false).name == "SCRAM-SHA-1")
        #expect(try Self.choose(["PLAIN"], isSecure: false) { $0.allowsPlainWithoutTLS = true }.first == "\0u\0p")
        #expect(throws: SASLChoiceError.nothingOffered) { try Self.choose([]) }
    }

    @Test("[RFC 5802 §6] y only where no -PLUS is offered, and p= only for a type that the server has")
    func flags() throws {
        func flag(
            _ offered: [String],
            _ types: [String]? = nil,
            isSecure: Bool = true,
            available: [SASLChannelBinding] = [SASLMechanismChoiceTests.endPoint],
            forced: String? = nil
        ) throws -> String {
            let chosen = try Self.choose(offered, bindings: types, isSecure: isSecure, available: available) {
                $0.forced = forced
            }
            return "\(chosen.name) \(chosen.first?.prefix { $0 != "," } ?? "")"
        }
        let both = ["SCRAM-SHA-256", "SCRAM-SHA-256-PLUS"]
        #expect(try flag(both, ["tls-server-end-point"]) == "SCRAM-SHA-256-PLUS p=tls-server-end-point")
        #expect(try flag(["SCRAM-SHA-256"]) == "SCRAM-SHA-256 y")
        #expect(try flag(["SCRAM-SHA-256"], available: []) == "SCRAM-SHA-256 n")
        #expect(try flag(["SCRAM-SHA-256"], isSecure: false) == "SCRAM-SHA-256 n")
        // Offered, but with types of its own, or with none told: not to be called missing.
        #expect(try flag(both, ["tls-exporter"]) == "SCRAM-SHA-256 n")
        #expect(try flag(both) == "SCRAM-SHA-256 n")
        #expect(try flag(both, ["tls-server-end-point"], forced: "SCRAM-SHA-256") == "SCRAM-SHA-256 n")
        #expect(try flag(both, forced: "scram-sha-256-plus") == "SCRAM-SHA-256-PLUS p=tls-server-end-point")
        let exporter = SASLChannelBinding(.tlsExporter, [4])
        let types = ["tls-server-end-point", "tls-exporter"]
        let best = try flag(both, types, available: [exporter, Self.endPoint])
        #expect(best == "SCRAM-SHA-256-PLUS p=tls-exporter")
    }

    @Test("[XEP-0440 §4] a list without -PLUS from a server that has types of channel binding was cut")
    func stripped() throws {
        #expect(throws: SASLChoiceError.bindingStripped(["tls-exporter"])) {
            try Self.choose(["SCRAM-SHA-1", "PLAIN"], bindings: ["tls-exporter"])
        }
        #expect(try Self.choose(["SCRAM-SHA-1"], bindings: []).name == "SCRAM-SHA-1")
    }

    @Test("[XEP-0440 §3] with SASL2 a list of -PLUS without types of channel binding was cut")
    func typesStripped() throws {
        let both = ["SCRAM-SHA-256", "SCRAM-SHA-256-PLUS"]
        for types in [nil, []] as [[String]?] {
            #expect(throws: SASLChoiceError.bindingTypesStripped) {
                try Self.choose(both, bindings: types) { $0.requiresBindingTypes = true }
            }
            // A client without a binding of its own, or outside TLS, has nothing to lose.
            #expect(
                try Self.choose(both, bindings: types, available: []) { $0.requiresBindingTypes = true }.name
                    == "SCRAM-SHA-256"
            )
            #expect(
                try Self.choose(both, bindings: types, isSecure: false) { $0.requiresBindingTypes = true }.name
                    == "SCRAM-SHA-256"
            )
        }
        #expect(
            try Self.choose(["SCRAM-SHA-256"]) { $0.requiresBindingTypes = true }.name == "SCRAM-SHA-256"
        )
        #expect(
            try Self.choose(both, bindings: ["tls-exporter"]) { $0.requiresBindingTypes = true }.name
                == "SCRAM-SHA-256"
        )
    }

    @Test("channel binding can be insisted on")
    func required() throws {
        let both = ["SCRAM-SHA-256", "SCRAM-SHA-256-PLUS", "PLAIN"]
        let chosen = try Self.choose(both, bindings: ["tls-server-end-point"]) { $0.requiresChannelBinding = true }
        #expect(chosen.name == "SCRAM-SHA-256-PLUS")
        for (offered, types) in [(both, ["tls-unique"]), (["PLAIN"], nil)] as [([String], [String]?)] {
            #expect(throws: SASLChoiceError.noBinding(offered: offered)) {
                try Self.choose(offered, bindings: types) { $0.requiresChannelBinding = true }
            }
        }
        #expect(throws: SASLChoiceError.noBinding(offered: both)) {
            try Self.choose(both, bindings: ["tls-server-end-point"]) {
                $0.requiresChannelBinding = true
                $0.forced = "PLAIN"
            }
        }
    }

    @Test("a requested mechanism is used, or the reason why not is reported")
    func forced() throws {
        #expect(try Self.choose(Self.everything) { $0.forced = "PLAIN" }.name == "PLAIN")
        #expect(throws: SASLChoiceError.noneShared(offered: ["PLAIN"])) {
            try Self.choose(["PLAIN"], without: ["PLAIN"]) { $0.forced = "plain" }
        }
        #expect(try Self.choose(Self.everything) { $0.forced = "DIGEST-MD5" }.name == "DIGEST-MD5")
        #expect(try Self.choose(Self.everything) { $0.forced = "ANONYMOUS" }.name == "ANONYMOUS")
        #expect(throws: SASLChoiceError.notOffered("SCRAM-SHA-1", offered: ["PLAIN"])) {
            try Self.choose(["PLAIN"]) { $0.forced = "SCRAM-SHA-1" }
        }
        #expect(throws: SASLChoiceError.unknown("X-OAUTH2")) {
            try Self.choose(Self.everything) { $0.forced = "X-OAUTH2" }
        }
        #expect(throws: SASLChoiceError.noPassword("PLAIN")) {
            try Self.choose(["PLAIN"], password: nil) { $0.forced = "PLAIN" }
        }
        #expect(throws: SASLChoiceError.noBinding(offered: ["SCRAM-SHA-1-PLUS"])) {
            try Self.choose(["SCRAM-SHA-1-PLUS"], available: []) { $0.forced = "SCRAM-SHA-1-PLUS" }
        }
    }

    @Test(
        "the reason is one line, whatever the server says",
        arguments: [
            (.noneShared(offered: ["A\nB"]), #"the server offers A\u{A}B, none of which can be used here"#),
            (
                .noneShared(offered: (0..<20).map { "M\($0)" }),
                "the server offers M0, M1, M2, M3, M4, M5, M6, M7, M8, M9, M10, M11 and 8 more, none of which can be "
                    + "used here"
            ),
            (.notOffered("PLAIN", offered: []), "PLAIN was requested, but the server offers nothing"),
            (
                .plainWithoutTLS,
                "the server accepts the password only in clear, and there is no TLS: require TLS, or allow PLAIN without it"
            ),
            (
                .bindingStripped(["tls-exporter"]),
                "the server supports channel binding (tls-exporter) but no -PLUS mechanism: its list was cut"
            ),
            (
                .bindingTypesStripped,
                "the server offers -PLUS mechanisms but no types of channel binding: its list was cut"
            ),
        ] as [(SASLChoiceError, String)]
    )
    func words(_ error: SASLChoiceError, _ words: String) {
        #expect(error.description == words)
    }

    @Test("a user name that the mechanism cannot send is reported as such")
    func unusable() {
        var choice = SASLMechanismChoice()
        choice.forced = "PLAIN"
        let long = String(repeating: "u", count: 256)
        let words = "PLAIN needs a user name of 1 to 255 bytes, and it has 256"
        #expect(throws: SASLChoiceError.credentials(.credentials(words))) {
            _ = try choice.choose(
                from: .init(["PLAIN"], isSecure: true),
                for: .init(user: long, password: "p", domain: "x.test"),
                cache: SCRAMKeyCache(capacity: 1)
            )
        }
    }
}
