import NIOCore
package import NIOSSL

/// How a server here speaks TLS.
package struct TLSServer: Sendable {
    /// PEM file of the certificate and its chain; `nil` for pre-shared keys alone.
    package var certificateFile: String?
    package var keyFile: String?
    /// PEM file of the authorities whose clients are let in: asks each client for a certificate.
    package var clientAuthorityFile: String?
    /// Whether a client without a certificate is refused; of use with ``clientAuthorityFile``.
    package var requiresClientCertificate = true
    /// Clients that show no certificate and hold one of these keys; TLS 1.2 then.
    package var preSharedKeys: [TLSPreSharedKey] = []
    /// ALPN, the most wanted first.
    package var applicationProtocols: [String] = []
    package var minimumVersion = TLSProtocolVersion.v1_2
    package var maximumVersion: TLSProtocolVersion?

    package init(certificateFile: String? = nil, keyFile: String? = nil) {
        self.certificateFile = certificateFile
        self.keyFile = keyFile
    }

    /// The context of all connections; for `NIOSSLServerHandler(context:)`.
    ///
    /// Reads files: not on an event loop.
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
        // A close goes out with its close_notify and does not wait for the other's (RFC 8446 §6.1).
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
    /// Limits itself to what the library can do with pre-shared keys.
    mutating func usePreSharedKeySuites(_ suites: String?) {
        if let suites { self.cipherSuites = suites }
        self.maximumTLSVersion = .tlsv12
        self.certificateVerification = .none
    }
}
