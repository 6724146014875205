import NIOCore
import NIOSSL
import SwiftASN1
import X509

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// State shared by all TLS clients: the checked settings and the library's one context.
///
/// Create it once, off the event loops (it reads files), and create a ``TLSLayer`` from it on each loop. Clients with
/// their own certificates (`%i`) share it too. Such a certificate is read when the server asks for one. It costs its
/// client 7 KiB, on top of the 26 KiB of any TLS client.
package final class TLSContext: Sendable {
    let settings: TLSSettings
    let native: NIOSSLContext
    /// Replaces the library's own verification; `nil` without pins.
    let pinCheck: TLSCertificateCheck?
    /// The handshakes that are running on each loop at the moment.
    let current: TLSCurrentHandshakes
    private let keyLog: TLSKeyLog?

    package init(_ settings: TLSSettings) throws(TLSSettingsError) {
        let usesPreSharedKey = settings.preSharedKey != nil
        try settings.check()
        let identity = try settings.sharedIdentity()
        let current = TLSCurrentHandshakes()
        let keyLog: TLSKeyLog?
        if let path = settings.keyLogFile { keyLog = try TLSKeyLog(path) } else { keyLog = nil }
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.minimumTLSVersion = settings.minimumVersion.native
        configuration.maximumTLSVersion = settings.maximumVersion?.native
        configuration.applicationProtocols = settings.applicationProtocols
        // A close sends close_notify and does not wait for the server's (RFC 8446 §6.1).
        configuration.shutdownTimeout = .zero
        if let suites = try TLSCiphers.list(settings.ciphers, usesPreSharedKey: usesPreSharedKey) {
            configuration.cipherSuites = suites
        }
        let authorities = try settings.authorityFile.map { path throws(TLSSettingsError) in
            try TLSFiles.certificates(path)
        }
        if let authorities { configuration.trustRoots = .certificates(authorities) }
        configuration.certificateVerification = settings.verification
        if settings.pinning.mode != .none { configuration.trustRoots = .certificates([]) }
        if let keyLog { configuration.keyLogCallback = { keyLog.write($0) } }
        if let key = settings.preSharedKey {
            configuration.usePreSharedKeySuites(nil)
            configuration.pskClientProvider = { _ in
                PSKClientIdentityResponse(key: NIOSSLSecureBytes(key.key), identity: key.identity)
            }
        } else if let identity {
            configuration.use(identity)
        } else {
            configuration.sslContextCallback = { _, promise in current.answer(promise) }
        }
        do {
            self.native = try NIOSSLContext(configuration: configuration)
        } catch {
            throw .refused(TLSFailure.words(ofLibrary: error))
        }
        self.settings = settings
        self.pinCheck = settings.pinning.mode == .none ? nil : settings.certificateCheck(authorities)
        self.current = current
        self.keyLog = keyLog
    }

    /// A check that finds the reason when the library refused a chain without one.
    func diagnosis() -> TLSCertificateCheck {
        let authorities = self.settings.authorityFile.flatMap { try? TLSFiles.certificates($0) }
        return self.settings.certificateCheck(authorities)
    }

    /// Whether the certificate must match the name, and the library has to check this too.
    var verifiesNames: Bool { self.pinCheck == nil && self.settings.checksNames && self.settings.preSharedKey == nil }

    /// The name to expect in a target's certificate.
    func name(for target: Target) -> TLSCertificateCheck.ServerName {
        if let domain = self.settings.xmppDomain {
            return domain.isAddress ? .address(domain.withoutBrackets) : .xmpp(DomainName.ascii(domain) ?? domain)
        }
        if let name = self.settings.serverName { return .host(name) }
        let isAddress = (try? SocketAddress(ipAddress: target.host, port: target.port)) != nil
        return isAddress ? .address(target.host) : .host(target.host)
    }
}

extension TLSSettings {
    /// Whether the path of the client's certificate depends on the client's number.
    package var hasCertificatePerClient: Bool { self.certificateFile?.hasNumber ?? false }

    fileprivate func check() throws(TLSSettingsError) {
        let usesPreSharedKey = self.preSharedKey != nil
        try TLSVersions.check(self.minimumVersion, self.maximumVersion, usesPreSharedKey: usesPreSharedKey)
        try TLSNames.check(applicationProtocols: self.applicationProtocols)
        try self.pinning.check()
        if usesPreSharedKey, self.certificateFile != nil || self.pinning.mode != .none { throw .pskWithCertificates }
        if let domain = self.xmppDomain {
            guard domain.isAddress || DomainName.ascii(domain) != nil else { throw .serverName(domain) }
        }
        if let name = self.serverName {
            let isAddress = (try? SocketAddress(ipAddress: name, port: 0)) != nil
            guard (1...255).contains(name.utf8.count), !name.utf8.contains(0), !isAddress else {
                throw .serverName(name)
            }
        }
        guard let certificate = self.certificateFile else {
            if self.keyFile != nil { throw .keyWithoutCertificate }
            return
        }
        if TLSFiles.isBundle(certificate) { return }
        guard let key = self.keyFile else { throw .certificateWithoutKey }
        guard certificate.hasNumber == key.hasNumber else { throw .numberInOnePathOnly }
    }

    /// The certificate that all clients share, if there is one.
    fileprivate func sharedIdentity() throws(TLSSettingsError) -> TLSIdentity? {
        guard let certificate = self.certificateFile, !self.hasCertificatePerClient else { return nil }
        return try TLSFiles.identity(certificate: certificate, key: self.keyFile, passphrase: self.keyPassphrase)
    }

    func identity(ofClient client: Int) throws(TLSSettingsError) -> TLSIdentity? {
        guard let certificate = self.certificateFile else { return nil }
        let number = "\(client + self.firstClientNumber)"
        return try TLSFiles.identity(
            certificate: certificate.replacingNumber(number),
            key: self.keyFile?.replacingNumber(number),
            passphrase: self.keyPassphrase
        )
    }

    fileprivate var verification: CertificateVerification {
        // With pins ``TLSCertificateCheck`` verifies the name, not the library.
        if self.pinning.mode != .none { return .noHostnameVerification }
        guard self.verifies, !self.pinning.allowsInvalidCertificates else { return .none }
        // The library checks only host names and the peer's address. SRVName, XmppAddr and an address as domain are
        // checked after the handshake.
        let isItsAffair = self.checksNames && self.xmppDomain == nil
        return isItsAffair ? .fullVerification : .noHostnameVerification
    }

    /// Whether the certificate must match the name.
    fileprivate var checksNames: Bool {
        self.verifies && !self.pinning.allowsInvalidCertificates && self.pinning.validatesDomainName
    }

    fileprivate func certificateCheck(_ authorities: [NIOSSLCertificate]?) -> TLSCertificateCheck {
        var check = TLSCertificateCheck()
        check.pinning = self.pinning
        if self.pinning.mode == .certificate {
            check.anchors = .certificates(self.pinning.certificates.compactMap { try? Certificate(derEncoded: $0) })
            check.checksName = self.pinning.validatesDomainName && self.verifies
            return check
        }
        let believesAnybody = !self.verifies || self.pinning.allowsInvalidCertificates
        check.checksName = self.pinning.validatesDomainName && !believesAnybody
        guard !believesAnybody else { return check }
        let known = authorities?.compactMap { authority in
            (try? authority.toDERBytes()).flatMap { try? Certificate(derEncoded: $0) }
        }
        check.anchors = known.map { .certificates($0) } ?? .system
        return check
    }
}

extension String {
    /// The IPv6 address of a JID has brackets (RFC 7622 §3.2).
    fileprivate var withoutBrackets: String {
        self.hasPrefix("[") && self.hasSuffix("]") ? String(self.dropFirst().dropLast()) : self
    }

    fileprivate var isAddress: Bool { (try? SocketAddress(ipAddress: self.withoutBrackets, port: 0)) != nil }
    fileprivate var hasNumber: Bool { self.contains("%i") }

    fileprivate func replacingNumber(_ number: String) -> String {
        self.split(separator: "%i", omittingEmptySubsequences: false).joined(separator: number)
    }
}

/// Appends session secrets to a file that only its owner can read.
final class TLSKeyLog: Sendable {
    private let descriptor: CInt

    init(_ path: String) throws(TLSSettingsError) {
        self.descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        guard self.descriptor >= 0 else { throw .keyLog(path: path, TLSFiles.systemWord()) }
    }

    deinit { close(self.descriptor) }

    /// Writes a line; O_APPEND keeps the lines of several loops apart.
    ///
    /// With a full disk lines are lost, but connections continue.
    func write(_ line: ByteBuffer) {
        line.withUnsafeReadableBytes { bytes in
            #if canImport(Glibc)
            _ = Glibc.write(self.descriptor, bytes.baseAddress, bytes.count)
            #else
            _ = Darwin.write(self.descriptor, bytes.baseAddress, bytes.count)
            #endif
        }
    }
}
