import NIOSSL

/// TLS settings of clients.
///
/// Plain values: ``TLSContext`` reads the files and finds all errors.
package struct TLSSettings: Sendable {
    /// Whether the server's certificate must lead to a trusted authority, be valid now and match the server's name.
    package var verifies = true
    /// PEM file of the authorities to trust; `nil` trusts the system's.
    package var authorityFile: String?
    /// The server name to send (SNI) and to expect in the certificate; `nil` uses the target's.
    package var serverName: String?
    /// The domain of the JIDs; overrides ``serverName``.
    ///
    /// It is sent as SNI. The certificate must have it as a host name, an SRVName or an XmppAddr, for any host from the
    /// DNS (RFC 6120 §13.7.1.2).
    package var xmppDomain: String?
    /// ALPN protocols, most preferred first; empty offers none.
    package var applicationProtocols: [String] = []
    package var minimumVersion = TLSProtocolVersion.v1_2
    /// `nil` is the newest version.
    package var maximumVersion: TLSProtocolVersion?
    /// Cipher suites up to TLS 1.2, by OpenSSL's or the standard's name; empty uses the library's list.
    ///
    /// The suites of TLS 1.3 are fixed.
    package var ciphers: [String] = []
    /// PEM file of the client's certificate and chain, or a PKCS#12 file (`.p12`, `.pfx`) with the key in it.
    ///
    /// `%i` in the path is replaced by the client's number, from 1: each client then has its own certificate.
    package var certificateFile: String?
    /// The number that replaces `%i` for client 0.
    package var firstClientNumber = 1
    /// PEM file of the client's key.
    package var keyFile: String?
    /// Passphrase of the key or the PKCS#12 file.
    package var keyPassphrase: String?
    package var preSharedKey: TLSPreSharedKey?
    /// File for the session secrets, in the format of SSLKEYLOGFILE.
    package var keyLogFile: String?
    package var pinning = TLSPinning()

    package init() {}
}

package enum TLSProtocolVersion: String, Hashable, Sendable, CaseIterable, Comparable {
    case v1_0 = "1.0"
    case v1_1 = "1.1"
    case v1_2 = "1.2"
    case v1_3 = "1.3"

    /// Parses `1.2`, `tlsv1.2`, `TLS1.2`.
    package init(_ text: String) throws(TLSSettingsError) {
        var number = text.lowercased()[...]
        if number.hasPrefix("tls") { number = number.dropFirst(3) }
        if number.hasPrefix("v") { number = number.dropFirst() }
        guard let version = Self(rawValue: number == "1" ? "1.0" : String(number)) else { throw .version(text) }
        self = version
    }

    package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }

    var native: TLSVersion {
        switch self {
        case .v1_0: .tlsv1
        case .v1_1: .tlsv11
        case .v1_2: .tlsv12
        case .v1_3: .tlsv13
        }
    }
}

/// A key that both sides hold, instead of certificates; the library supports it up to TLS 1.2.
package struct TLSPreSharedKey: Hashable, Sendable {
    package let identity: String
    package let key: [UInt8]

    /// RFC 4279 §5.3 allows identities of 128 bytes and keys of 64; the library accepts keys of up to 256 bytes.
    package init(identity: String, hexKey: String) throws(TLSSettingsError) {
        guard (1...128).contains(identity.utf8.count), !identity.utf8.contains(0) else { throw .pskIdentity }
        guard !hexKey.isEmpty else { throw .pskKey("is empty") }
        guard hexKey.utf8.count.isMultiple(of: 2) else { throw .pskKey("has an odd number of hex digits") }
        guard hexKey.utf8.count <= 512 else { throw .pskKey("has more than 256 bytes") }
        var key: [UInt8] = []
        var high: UInt8?
        for character in hexKey {
            guard character.isASCII, let digit = character.hexDigitValue else { throw .pskKey("is not hexadecimal") }
            if let first = high {
                key.append(first << 4 | UInt8(digit))
                high = nil
            } else {
                high = UInt8(digit)
            }
        }
        self.identity = identity
        self.key = key
    }

    /// Parses `IDENTITY:HEXKEY`; the key follows the last colon.
    package init(_ text: String) throws(TLSSettingsError) {
        guard let colon = text.lastIndex(of: ":") else { throw .pskKey("is missing: IDENTITY:HEXKEY is wanted") }
        try self.init(identity: String(text[..<colon]), hexKey: String(text[text.index(after: colon)...]))
    }
}

/// The names of cipher suites.
///
/// The library traps on a list without a known suite, so unknown names must not reach it.
enum TLSCiphers {
    /// Pairs of OpenSSL's name and the standard's name.
    private static let names: [(openSSL: String, standard: String)] = [
        ("ECDHE-ECDSA-AES128-GCM-SHA256", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"),
        ("ECDHE-RSA-AES128-GCM-SHA256", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"),
        ("ECDHE-ECDSA-AES256-GCM-SHA384", "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"),
        ("ECDHE-RSA-AES256-GCM-SHA384", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"),
        ("ECDHE-ECDSA-CHACHA20-POLY1305", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"),
        ("ECDHE-RSA-CHACHA20-POLY1305", "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"),
        ("ECDHE-ECDSA-AES128-SHA", "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA"),
        ("ECDHE-RSA-AES128-SHA", "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA"),
        ("ECDHE-ECDSA-AES256-SHA", "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA"),
        ("ECDHE-RSA-AES256-SHA", "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA"),
        ("AES128-GCM-SHA256", "TLS_RSA_WITH_AES_128_GCM_SHA256"),
        ("AES256-GCM-SHA384", "TLS_RSA_WITH_AES_256_GCM_SHA384"),
        ("AES128-SHA", "TLS_RSA_WITH_AES_128_CBC_SHA"),
        ("AES256-SHA", "TLS_RSA_WITH_AES_256_CBC_SHA"),
    ]
    private static let preShared: [(openSSL: String, standard: String)] = [
        ("ECDHE-PSK-AES128-CBC-SHA", "TLS_ECDHE_PSK_WITH_AES_128_CBC_SHA"),
        ("ECDHE-PSK-AES256-CBC-SHA", "TLS_ECDHE_PSK_WITH_AES_256_CBC_SHA"),
        ("PSK-AES128-CBC-SHA", "TLS_PSK_WITH_AES_128_CBC_SHA"),
        ("PSK-AES256-CBC-SHA", "TLS_PSK_WITH_AES_256_CBC_SHA"),
    ]
    private static let fixed = ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"]

    /// The library's list for the given names, most preferred first; `nil` is its default.
    ///
    /// With a pre-shared key only the suites for such keys are usable.
    static func list(_ wanted: [String], usesPreSharedKey: Bool) throws(TLSSettingsError) -> String? {
        let known = usesPreSharedKey ? self.preShared : self.names
        if wanted.isEmpty { return usesPreSharedKey ? known.map(\.standard).joined(separator: ":") : nil }
        var list: [String] = []
        for name in wanted {
            let upper = name.uppercased()
            if self.fixed.contains(upper) { throw .cipher("\(name) belongs to TLS 1.3, whose suites are fixed") }
            guard let found = known.first(where: { $0.openSSL == upper || $0.standard == upper }) else {
                let names = known.map(\.openSSL).joined(separator: ", ")
                throw .cipher("no cipher suite '\(name)' here; there are \(names)")
            }
            list.append(found.standard)
        }
        return list.joined(separator: ":")
    }
}

/// Names that are sent to the server; the library traps on invalid ones.
enum TLSNames {
    static func check(applicationProtocols: [String]) throws(TLSSettingsError) {
        for name in applicationProtocols {
            let isRight = (1...255).contains(name.utf8.count) && name.utf8.allSatisfy { $0 < 0x80 }
            guard isRight else { throw .applicationProtocol(name) }
        }
    }
}

/// The range of versions, checked.
enum TLSVersions {
    static func check(
        _ minimum: TLSProtocolVersion,
        _ maximum: TLSProtocolVersion?,
        usesPreSharedKey: Bool
    ) throws(TLSSettingsError) {
        if let maximum, maximum < minimum {
            throw .versions("the lowest is \(minimum.rawValue), the highest \(maximum.rawValue)")
        }
        // The library supports pre-shared keys up to TLS 1.2.
        if usesPreSharedKey, minimum > .v1_2 { throw .pskWithCertificates }
    }
}
