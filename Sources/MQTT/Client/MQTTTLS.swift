package import Transport

/// TLS settings of a client.
///
/// By default a server's certificate must lead to a trusted authority, be valid now and match the server's name. If a
/// check fails, `connect` throws the reason, and CONNECT is not sent. Sessions are not resumed.
public struct MQTTTLS: Hashable, Sendable {
    /// A version of the protocol.
    public enum Version: String, Hashable, Sendable, CaseIterable {
        /// TLS 1.0.
        case v1_0 = "1.0"
        /// TLS 1.1.
        case v1_1 = "1.1"
        /// TLS 1.2.
        case v1_2 = "1.2"
        /// TLS 1.3.
        case v1_3 = "1.3"
    }

    /// A key that both sides hold, in place of certificates; up to TLS 1.2.
    public struct PreSharedKey: Hashable, Sendable {
        /// 1 to 128 bytes.
        public var identity: String
        /// Hexadecimal, up to 256 bytes.
        public var hexKey: String

        /// - Parameters:
        ///   - identity: 1 to 128 bytes.
        ///   - hexKey: hexadecimal, up to 256 bytes.
        public init(identity: String, hexKey: String) {
            self.identity = identity
            self.hexKey = hexKey
        }
    }

    /// `false` accepts any certificate, or any with a pinned key: for tests only.
    public var verifies = true
    /// PEM file of the authorities to trust; `nil` trusts the system's.
    public var authorityFile: String?
    /// The server name to send (SNI) and to expect in the certificate; `nil` uses the host.
    public var serverName: String?
    /// ALPN protocols, most preferred first; empty offers none.
    public var applicationProtocols: [String] = []
    /// The oldest accepted version.
    public var minimumVersion = Version.v1_2
    /// The newest offered version; `nil` is the newest supported one.
    public var maximumVersion: Version?
    /// Cipher suites up to TLS 1.2, by OpenSSL's or the standard's name; empty uses the library's list.
    public var ciphers: [String] = []
    /// PEM file of the client's certificate and chain, or a PKCS#12 file (`.p12`, `.pfx`) with the key in it.
    public var certificateFile: String?
    /// PEM file of the client's key.
    public var keyFile: String?
    /// Passphrase of the key or the PKCS#12 file.
    public var keyPassphrase: String?
    /// Pre-shared key to use instead of certificates.
    public var preSharedKey: PreSharedKey?
    /// File for the session secrets, in the format of SSLKEYLOGFILE.
    public var keyLogFile: String?
    /// Trusted keys or certificates: `sha256/BASE64` of a public key, or the path of a certificate; the server must
    /// have one.
    ///
    /// If the list has a key, the authorities are checked too, unless ``verifies`` is `false`. If it has only
    /// certificates, these are the only authorities.
    public var pins: [String] = []
    /// Whether each certificate of the server's chain must match a pin, not only the server's own.
    public var pinsWholeChain = false
    /// Whether the certificate must match the server's name.
    public var validatesName = true

    /// The defaults: the system's authorities, TLS 1.2 and newer.
    public init() {}

    func context() throws(MQTTClientError) -> TLSContext {
        do throws(TLSSettingsError) {
            return try TLSContext(try self.settings())
        } catch {
            throw .invalid(error.description)
        }
    }

    package func settings() throws(TLSSettingsError) -> TLSSettings {
        var settings = TLSSettings()
        settings.verifies = self.verifies
        settings.authorityFile = self.authorityFile
        settings.serverName = self.serverName
        settings.applicationProtocols = self.applicationProtocols
        settings.minimumVersion = try TLSProtocolVersion(self.minimumVersion.rawValue)
        settings.maximumVersion = try self.maximumVersion.map { version throws(TLSSettingsError) in
            try TLSProtocolVersion(version.rawValue)
        }
        settings.ciphers = self.ciphers
        settings.certificateFile = self.certificateFile
        settings.keyFile = self.keyFile
        settings.keyPassphrase = self.keyPassphrase
        settings.preSharedKey = try self.preSharedKey.map { key throws(TLSSettingsError) in
            try TLSPreSharedKey(identity: key.identity, hexKey: key.hexKey)
        }
        settings.keyLogFile = self.keyLogFile
        if !self.pins.isEmpty {
            settings.pinning = try TLSPinning(pins: self.pins)
            settings.pinning.validatesCertificateChain = self.pinsWholeChain
        }
        settings.pinning.validatesDomainName = self.validatesName
        return settings
    }
}
