import NIOCore
package import NIOSSL

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
            guard let leaf = identity.chain.first else {
                throw .malformed(path: certificateFile, "certificate")
            }
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
}
