import NIOSSL

/// The reason why there is no TLS session, or why it ended.
package enum TLSFailure: Error, Hashable, Sendable {
    /// The server's certificate leads to no trusted authority.
    case unknownIssuer(String)
    /// The server's certificate is for other names.
    case wrongName(wanted: String, names: [String])
    /// A certificate of the server's chain has expired, with day and time.
    case expired(String, since: String)
    case notYetValid(String, until: String)
    /// The server's certificate was refused for another reason.
    case otherCertificate(String)
    /// The certificate or key is not pinned.
    case pinMismatch(String)
    /// The server requires a certificate, and the client has none.
    case clientCertificateRequired
    /// The server refused the client's certificate, with its alert.
    case clientCertificateRefused(String)
    /// Local error: the client's certificate cannot be read.
    case clientCertificateFile(String)
    /// The server refused the identity or the key.
    case preSharedKeyRefused
    case noSharedVersion
    case noSharedCipher
    case noSharedApplicationProtocol
    /// The server's bytes are not TLS.
    case notTLS
    /// The server closed before the handshake was complete.
    case closed
    /// Any other error: the library's text or the alert's.
    case handshake(String)

    /// Whether this host caused the error, and not the server.
    package var isLocal: Bool {
        if case .clientCertificateFile = self { true } else { false }
    }

    /// An error of the TLS library as text: BoringSSL's reason, or the name of the error.
    package static func words(ofLibrary error: any Error) -> String {
        switch error {
        case NIOSSLError.handshakeFailed(let inner), NIOSSLError.shutdownFailed(let inner):
            return self.words(ofLibrary: inner)
        case BoringSSLError.sslError(let stack), BoringSSLError.unknownError(let stack),
            BoringSSLError.invalidSNIName(let stack), BoringSSLError.failedToSetALPN(let stack):
            return TLSCaught.words(stack)
        default:
            let text = "\(error)"
            let prefix = "\(type(of: error))."
            let named = text.hasPrefix(prefix) ? text.dropFirst(prefix.count) : text[...]
            let name = named.prefix(while: \.isLetter)
            return self.spaced(name) + named[name.endIndex...]
        }
    }

    /// `writeDuringTLSShutdown` as `write during TLS shutdown`.
    private static func spaced(_ name: Substring) -> String {
        let letters = Array(name)
        var words = ""
        for (index, letter) in letters.enumerated() {
            let isBeforeSmall = index + 1 < letters.count && letters[index + 1].isLowercase
            let beginsWord = letter.isUppercase && index > 0 && (isBeforeSmall || letters[index - 1].isLowercase)
            if beginsWord { words += " " }
            words += isBeforeSmall ? letter.lowercased() : String(letter)
        }
        return words
    }
}

extension TLSFailure: CustomStringConvertible {
    /// The error and its remedy without the server's name; always one line, even if a certificate has control
    /// characters.
    package var description: String {
        let words = self.words.unicodeScalars.prefix(400).map { scalar in
            scalar.properties.generalCategory == .control ? "?" : Character(scalar)
        }
        return String(words)
    }

    private var words: String {
        switch self {
        case .unknownIssuer(let issuer):
            "certificate not trusted: issued by \(issuer), which is no known authority (trust it with a CA file)"
        case .wrongName(let wanted, let names):
            "certificate not for \(wanted), but for \(Self.listed(names))"
        case .expired(let subject, let since): "certificate of \(subject) expired on \(since)"
        case .notYetValid(let subject, let until): "certificate of \(subject) not valid before \(until)"
        case .otherCertificate(let words): "certificate refused: \(words)"
        case .pinMismatch(let words): "not what is pinned: \(words)"
        case .clientCertificateRequired: "the server requires a client certificate and its key"
        case .clientCertificateRefused(let alert): "the server refused the client certificate: \(alert)"
        case .clientCertificateFile(let words): "no client certificate: \(words)"
        case .preSharedKeyRefused: "the server refused the pre-shared key or its identity"
        case .noSharedVersion: "no TLS version in common"
        case .noSharedCipher: "no cipher suite in common"
        case .noSharedApplicationProtocol: "no ALPN protocol in common"
        case .notTLS: "the server does not speak TLS on this port"
        case .closed: "the server closed during the handshake"
        case .handshake(let words): "TLS failed: \(words)"
        }
    }

    private static func listed(_ names: [String]) -> String {
        guard !names.isEmpty else { return "no host (its subject alternative name has none)" }
        let more = names.count > 5 ? " and \(names.count - 5) more" : ""
        return names.prefix(5).joined(separator: ", ") + more
    }
}

/// An error caught above TLS, classified.
enum TLSCaught {
    case failure(TLSFailure)
    /// The server's certificate was refused; a diagnosis finds the reason.
    case unverified
    /// End of stream without close_notify: MQTT and XMPP frame their data, so truncation cannot go unnoticed.
    case endWithoutClose
    /// Not a TLS error.
    case other(any Error)

    /// Classifies an error; with a pre-shared key some alerts mean a wrong key.
    init(_ error: any Error, usesPreSharedKey: Bool) {
        switch error {
        case NIOSSLError.uncleanShutdown: self = .endWithoutClose
        case let error as TLSSettingsError: self = .failure(.clientCertificateFile(error.description))
        case let error as TLSFailure: self = .failure(error)
        case NIOSSLError.handshakeFailed(let inner), NIOSSLError.shutdownFailed(let inner):
            self.init(inner, usesPreSharedKey: usesPreSharedKey)
        case let error as BoringSSLError: self.init(error, usesPreSharedKey: usesPreSharedKey)
        case NIOSSLError.readInInvalidTLSState: self = .failure(.handshake("data behind the end of the session"))
        case NIOSSLError.noCertificateToValidate: self = .failure(.otherCertificate("the server showed none"))
        case is NIOSSLCloseTimedOutError: self = .endWithoutClose
        case let error as NIOSSLExtraError
        where error == .failedToValidateHostname || error == .serverHostnameImpossibleToMatch:
            self = .failure(.wrongName(wanted: "", names: []))
        case is NIOSSLExtraError, is NIOSSLError: self = .failure(.handshake(TLSFailure.words(ofLibrary: error)))
        default: self = .other(error)
        }
    }

    private init(_ error: BoringSSLError, usesPreSharedKey: Bool) {
        switch error {
        case .sslError(let stack), .unknownError(let stack):
            if stack.contains(.eofDuringHandshake) || stack.contains(.eofDuringAdditionalCertficiateChainValidation) {
                self = .failure(.closed)
                return
            }
            // The first error is the cause, the others are its consequences.
            let reasons = stack.map(Self.reason)
            self = Self.known(reasons, usesPreSharedKey: usesPreSharedKey)
        case .zeroReturn: self = .endWithoutClose
        default: self = .failure(.handshake(TLSFailure.words(ofLibrary: error)))
        }
    }

    private static func known(_ reasons: [String], usesPreSharedKey: Bool) -> TLSCaught {
        for reason in reasons {
            switch reason {
            case "CERTIFICATE_VERIFY_FAILED": return .unverified
            case "TLSV1_ALERT_CERTIFICATE_REQUIRED": return .failure(.clientCertificateRequired)
            case "TLSV1_ALERT_UNKNOWN_CA", "SSLV3_ALERT_BAD_CERTIFICATE", "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE",
                "SSLV3_ALERT_CERTIFICATE_REVOKED", "SSLV3_ALERT_CERTIFICATE_EXPIRED",
                "SSLV3_ALERT_CERTIFICATE_UNKNOWN", "TLSV1_ALERT_ACCESS_DENIED":
                return .failure(.clientCertificateRefused(self.words(reason)))
            case "TLSV1_ALERT_UNKNOWN_PSK_IDENTITY": return .failure(.preSharedKeyRefused)
            case "SSLV3_ALERT_BAD_RECORD_MAC", "TLSV1_ALERT_DECRYPT_ERROR", "SSLV3_ALERT_HANDSHAKE_FAILURE",
                "SSLV3_ALERT_ILLEGAL_PARAMETER":
                if usesPreSharedKey { return .failure(.preSharedKeyRefused) }
            case "UNSUPPORTED_PROTOCOL", "TLSV1_ALERT_PROTOCOL_VERSION", "WRONG_SSL_VERSION":
                return .failure(.noSharedVersion)
            // The alert that answers the first message: no offered parameter was acceptable.
            case "HANDSHAKE_FAILURE_ON_CLIENT_HELLO", "TLSV1_ALERT_INSUFFICIENT_SECURITY", "NO_SHARED_CIPHER",
                "WRONG_CIPHER_RETURNED", "UNKNOWN_CIPHER_RETURNED":
                return .failure(.noSharedCipher)
            case "TLSV1_ALERT_NO_APPLICATION_PROTOCOL", "INVALID_ALPN_PROTOCOL":
                return .failure(.noSharedApplicationProtocol)
            case "WRONG_VERSION_NUMBER", "HTTP_REQUEST", "HTTPS_PROXY_REQUEST", "UNEXPECTED_RECORD",
                "BAD_RECORD_TYPE":
                return .failure(.notTLS)
            default: break
            }
        }
        return .failure(.handshake(reasons.first.map(self.words) ?? "no reason given"))
    }

    /// The library's name of a reason, from `error:…:OPENSSL_internal:REASON at file:line`.
    private static func reason(_ error: BoringSSLInternalError) -> String {
        let text = error.description
        guard let head = text.lastRange(of: "OPENSSL_internal:") else { return text }
        let rest = text[head...]
        return String(rest.prefix { $0 != " " })
    }

    /// The text of a stack's first error, which is the cause.
    fileprivate static func words(_ stack: NIOBoringSSLErrorStack) -> String {
        stack.first.map { Self.words(Self.reason($0)) } ?? "no reason given"
    }

    /// `SSLV3_ALERT_CERTIFICATE_EXPIRED` as text: `alert certificate expired`.
    private static func words(_ reason: String) -> String {
        var words = reason.lowercased().split(whereSeparator: { $0 == "_" || $0 == " " })
        if let first = words.first, first == "sslv3" || first == "tlsv1" { words.removeFirst() }
        return words.joined(separator: " ")
    }
}

extension String {
    fileprivate func lastRange(of mark: String) -> Index? {
        var index = self.startIndex
        var found: Index?
        while let next = self[index...].firstIndex(of: mark.first ?? " ") {
            if self[next...].hasPrefix(mark) { found = self.index(next, offsetBy: mark.count) }
            index = self.index(after: next)
        }
        return found
    }
}
