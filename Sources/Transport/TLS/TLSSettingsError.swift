/// An error in the TLS settings, found before any client connects; one line of text.
package enum TLSSettingsError: Error, Hashable, Sendable, CustomStringConvertible {
    /// A file that cannot be read, with the system's reason.
    case unreadable(path: String, String)
    /// The file has the wrong content: no PEM, no certificate or no key.
    case malformed(path: String, String)
    /// DER instead of PEM.
    case isDER(path: String)
    /// PEM instead of DER.
    case isPEM(String)
    case certificateWithoutKey
    case keyWithoutCertificate
    case serverWithoutCertificate
    /// The key does not belong to the certificate.
    case keyMismatch(certificate: String, key: String)
    /// Only one of the paths of certificate and key contains `%i`.
    case numberInOnePathOnly
    case pskKey(String)
    case pskIdentity
    /// A pre-shared key together with settings that need certificates.
    case pskWithCertificates
    case versions(String)
    case version(String)
    case cipher(String)
    case applicationProtocol(String)
    case serverName(String)
    case pin(String)
    /// A pinning mode without any pin.
    case noPins
    case keyLog(path: String, String)
    /// The library refused the settings, with its text.
    case refused(String)

    package var description: String {
        switch self {
        case .unreadable(let path, let reason): "cannot read \(path): \(reason)"
        case .malformed(let path, let wanted): "\(path) holds no \(wanted)"
        case .isDER(let path): "\(path) is DER; a PEM file is wanted (openssl x509 -inform DER -in \(path))"
        case .isPEM(let name): "\(name) is PEM; DER bytes are wanted (openssl x509 -outform DER)"
        case .certificateWithoutKey: "a client certificate needs its key file"
        case .keyWithoutCertificate: "a key file needs its certificate"
        case .serverWithoutCertificate: "a TLS server needs a certificate file, or pre-shared keys"
        case .keyMismatch(let certificate, let key):
            "the key in \(key) does not belong to the certificate in \(certificate)"
        case .numberInOnePathOnly: "%i is in only one of the paths of certificate and key; use it in both or in neither"
        case .pskKey(let reason): "the pre-shared key \(reason)"
        case .pskIdentity: "the identity of the pre-shared key has 1 to 128 bytes and no NUL"
        case .pskWithCertificates: "a pre-shared key is used without certificates, pins and TLS 1.3"
        case .versions(let text): "no TLS version is left: \(text)"
        case .version(let text): "'\(text)' is no TLS version: 1.0, 1.1, 1.2 or 1.3"
        case .cipher(let reason): reason
        case .applicationProtocol(let name): "'\(name)' is no ALPN protocol name: 1 to 255 ASCII bytes"
        case .serverName(let name): "'\(name)' is no server name: a host name of 1 to 255 bytes, no address"
        case .pin(let reason): reason
        case .noPins: "nothing is pinned: a pinning mode needs at least one pin"
        case .keyLog(let path, let reason): "cannot write the key log \(path): \(reason)"
        case .refused(let words): "TLS cannot be set up: \(words)"
        }
    }
}
