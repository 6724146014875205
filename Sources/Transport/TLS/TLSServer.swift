import NIOCore
package import NIOSSL

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// TLS settings of a server in this process.
package struct TLSServer: Sendable {
    /// PEM file of the certificate and its chain; `nil` with only pre-shared keys.
    package var certificateFile: String?
    package var keyFile: String?
    /// PEM file of the authorities for client certificates: each client is asked for a certificate.
    package var clientAuthorityFile: String?
    /// Whether a client without a certificate is refused; used with ``clientAuthorityFile``.
    package var requiresClientCertificate = true
    /// Accepts clients that have no certificate and hold one of these keys; only with TLS 1.2.
    package var preSharedKeys: [TLSPreSharedKey] = []
    /// ALPN protocols, most preferred first.
    package var applicationProtocols: [String] = []
    package var minimumVersion = TLSProtocolVersion.v1_2
    package var maximumVersion: TLSProtocolVersion?

    package init(certificateFile: String? = nil, keyFile: String? = nil) {
        self.certificateFile = certificateFile
        self.keyFile = keyFile
    }

    /// The context of all connections; for `NIOSSLServerHandler(context:)`.
    ///
    /// Reads files: must not be called on an event loop.
    package func makeContext() throws(TLSSettingsError) -> NIOSSLContext {
        let usesPreSharedKey = !self.preSharedKeys.isEmpty
        try TLSVersions.check(self.minimumVersion, self.maximumVersion, usesPreSharedKey: usesPreSharedKey)
        try TLSNames.check(applicationProtocols: self.applicationProtocols)
        var configuration = TLSConfiguration.makePreSharedKeyConfiguration()
        if let certificateFile {
            guard !usesPreSharedKey else { throw .pskWithCertificates }
            let identity = try TLSFiles.identity(certificate: certificateFile, key: self.keyFile, passphrase: nil)
            guard let leaf = identity.chain.first else { throw .malformed(path: certificateFile, "certificate") }
            configuration = .makeServerConfiguration(
                certificateChain: [.certificate(leaf)],
                privateKey: .privateKey(identity.key)
            )
            configuration.use(identity)
        } else if !usesPreSharedKey {
            throw .serverWithoutCertificate
        }
        configuration.minimumTLSVersion = self.minimumVersion.native
        configuration.maximumTLSVersion = self.maximumVersion?.native
        configuration.applicationProtocols = self.applicationProtocols
        // A close sends close_notify and does not wait for the peer's (RFC 8446 §6.1).
        configuration.shutdownTimeout = .zero
        if let clientAuthorityFile {
            configuration.trustRoots = .certificates(try TLSFiles.certificates(clientAuthorityFile))
            configuration.certificateVerification =
                self.requiresClientCertificate ? .noHostnameVerification : .optionalVerification
            configuration.sendCANameList = true
        }
        if usesPreSharedKey {
            let keys = Dictionary(self.preSharedKeys.map { ($0.identity, $0.key) }) { first, _ in first }
            configuration.usePreSharedKeySuites(try TLSCiphers.list([], usesPreSharedKey: true))
            configuration.pskServerProvider = { request in
                guard let key = keys[request.clientIdentity] else { throw TLSUnknownIdentity() }
                return PSKServerIdentityResponse(key: NIOSSLSecureBytes(key))
            }
        }
        do {
            return try NIOSSLContext(configuration: configuration)
        } catch {
            throw .refused(TLSFailure.words(ofLibrary: error))
        }
    }
}

private struct TLSUnknownIdentity: Error {}

extension TLSConfiguration {
    /// Restricts the settings to those that the library supports with pre-shared keys.
    mutating func usePreSharedKeySuites(_ suites: String?) {
        if let suites { self.cipherSuites = suites }
        self.maximumTLSVersion = .tlsv12
        self.certificateVerification = .none
    }

    mutating func use(_ identity: TLSIdentity) {
        self.certificateChain = identity.chain.map { .certificate($0) }
        self.privateKey = .privateKey(identity.key)
    }
}

/// Reads certificates and keys, with an error that names the fault.
enum TLSFiles {
    /// More than any bundle of authorities needs.
    private static let sizeLimit = 16 << 20

    static func load(_ path: String) throws(TLSSettingsError) -> [UInt8] {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw .unreadable(path: path, self.systemWord()) }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = chunk.withUnsafeMutableBytes { read(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw .unreadable(path: path, self.systemWord()) }
            if count == 0 { return bytes }
            bytes += chunk[..<count]
            guard bytes.count <= self.sizeLimit else { throw .unreadable(path: path, "larger than 16 MiB") }
        }
    }

    /// The certificates of a PEM file, the leaf first.
    static func certificates(_ path: String) throws(TLSSettingsError) -> [NIOSSLCertificate] {
        let bytes = try self.load(path)
        if self.isDER(bytes) { throw .isDER(path: path) }
        guard let found = try? NIOSSLCertificate.fromPEMBytes(bytes), !found.isEmpty else {
            throw .malformed(path: path, "PEM certificate")
        }
        return found
    }

    static func key(_ path: String, passphrase: String?) throws(TLSSettingsError) -> NIOSSLPrivateKey {
        let bytes = try self.load(path)
        if self.isDER(bytes) { throw .isDER(path: path) }
        let secret = Array((passphrase ?? "").utf8)
        guard let key = try? NIOSSLPrivateKey(bytes: bytes, format: .pem, passphraseCallback: { $0(secret) }) else {
            let way = passphrase == nil ? "without a" : "with the"
            throw .malformed(path: path, "PEM key that opens \(way) passphrase")
        }
        return key
    }

    /// Certificate chain and key from two PEM files, or from one PKCS#12 file (`.p12`, `.pfx`) that holds both.
    static func identity(
        certificate: String,
        key: String?,
        passphrase: String?
    ) throws(TLSSettingsError) -> TLSIdentity {
        if self.isBundle(certificate) {
            let bytes = try self.load(certificate)
            let secret = passphrase.map { Array($0.utf8) }
            guard let bundle = try? NIOSSLPKCS12Bundle(buffer: bytes, passphrase: secret) else {
                throw .malformed(path: certificate, "PKCS#12 bundle that can be read with the passphrase")
            }
            return TLSIdentity(chain: bundle.certificateChain, key: bundle.privateKey)
        }
        guard let key else { throw .certificateWithoutKey }
        let identity = TLSIdentity(
            chain: try self.certificates(certificate),
            key: try self.key(key, passphrase: passphrase)
        )
        guard identity.fits else { throw .keyMismatch(certificate: certificate, key: key) }
        return identity
    }

    static func isBundle(_ path: String) -> Bool {
        let name = path.lowercased()
        return name.hasSuffix(".p12") || name.hasSuffix(".pfx")
    }

    /// DER starts with a SEQUENCE of more than 127 bytes; PEM is text.
    static func isDER(_ bytes: [UInt8]) -> Bool { bytes.count > 2 && bytes[0] == 0x30 && bytes[1] >= 0x80 }
    static func systemWord() -> String { String(cString: strerror(errno)) }
}

/// A certificate chain, the leaf first, and the leaf's key.
struct TLSIdentity: Sendable {
    let chain: [NIOSSLCertificate]
    let key: NIOSSLPrivateKey

    /// Whether the key matches the first certificate; the library refuses it otherwise.
    var fits: Bool {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.certificateVerification = .none
        configuration.use(self)
        return (try? NIOSSLContext(configuration: configuration)) != nil
    }

    var override: NIOSSLContextConfigurationOverride {
        var override = NIOSSLContextConfigurationOverride()
        override.certificateChain = self.chain.map { .certificate($0) }
        override.privateKey = .privateKey(self.key)
        return override
    }
}
