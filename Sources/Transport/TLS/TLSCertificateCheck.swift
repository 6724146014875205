import DataEncodings
import NIOSSL
import SwiftASN1
import X509

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// Checks a server's certificates.
///
/// With pins it replaces the TLS library's check; without, it finds the reason of a refusal. It runs off the event
/// loops.
struct TLSCertificateCheck: Sendable {
    /// The trusted certificates that a chain must lead to.
    enum Anchors: Sendable {
        case system
        case certificates([Certificate])
    }

    enum ServerName: Hashable, Sendable {
        case host(String)
        case address(String)
        /// The domain of JIDs, in ASCII.
        case xmpp(String)

        var text: String {
            switch self {
            case .host(let text), .address(let text), .xmpp(let text): text
            }
        }
    }

    /// `nil` skips the checks of the issuer and the dates.
    var anchors: Anchors?
    var checksName = true
    /// Its mode decides whether pins are compared.
    var pinning = TLSPinning()

    /// Checks a chain.
    ///
    /// - Parameters:
    ///   - presented: the certificates in DER as the server sent them, its own first.
    ///   - name: the expected name.
    /// - Returns: the error; `nil` if the chain is valid.
    func failure(of presented: [[UInt8]], for name: ServerName) async -> TLSFailure? {
        guard let first = presented.first else { return .otherCertificate("the server showed none") }
        guard let leaf = try? Certificate(derEncoded: first) else {
            return .otherCertificate("the server's certificate cannot be read")
        }
        let others = presented.dropFirst().compactMap { try? Certificate(derEncoded: $0) }
        var path = [leaf] + others
        if let anchors {
            switch await Self.path(from: leaf, others: others, to: anchors) {
            case .path(let found): path = found
            case .refused(let failure): return failure
            case .none where self.pinning.mode == .certificate:
                return .pinMismatch("no certificate of the chain of \(leaf.subject) is pinned")
            case .none: return .unknownIssuer("\(leaf.issuer)")
            }
            if !leaf.isForServers { return .otherCertificate("\(leaf.subject) is not meant for servers") }
        }
        if self.checksName, let failure = await Self.nameFailure(of: leaf, for: name) { return failure }
        return self.pinFailure(of: path)
    }

    static func names(_ der: [UInt8]) -> [String] { (try? Certificate(derEncoded: der))?.names ?? [] }

    private enum Search {
        case path([Certificate])
        case refused(TLSFailure)
        case none
    }

    private static func path(from leaf: Certificate, others: [Certificate], to anchors: Anchors) async -> Search {
        // A pinned certificate is trusted itself: the verifier would require an authority for it.
        if case .certificates(let known) = anchors, known.contains(leaf) {
            return Self.validityFailure(of: [leaf]).map { .refused($0) } ?? .path([leaf])
        }
        let roots: CertificateStore =
            switch anchors {
            case .system: .systemTrustRoots
            case .certificates(let certificates): CertificateStore(certificates)
            }
        var verifier = Verifier(rootCertificates: roots) {
            RFC5280Policy()
            CheckedElsewhere()
        }
        switch await verifier.validate(leaf: leaf, intermediates: CertificateStore(others)) {
        case .validCertificate(let chain): return .path(Array(chain))
        case .couldNotValidate(let failures):
            guard let first = failures.first else { return .none }
            // The verifier's error does not contain the dates.
            return .refused(
                Self.validityFailure(of: Array(first.chain)) ?? .otherCertificate("\(first.policyFailureReason)")
            )
        }
    }

    private static func validityFailure(of path: [Certificate]) -> TLSFailure? {
        let now = time(nil)
        for certificate in path {
            // The TLS library reads the dates, because that needs no Foundation.
            guard let der = certificate.der, let times = try? NIOSSLCertificate(bytes: der, format: .der) else {
                return .otherCertificate("\(certificate.subject) cannot be read")
            }
            if now > times.notValidAfter {
                return .expired("\(certificate.subject)", since: Self.words(times.notValidAfter))
            }
            if now < times.notValidBefore {
                return .notYetValid("\(certificate.subject)", until: Self.words(times.notValidBefore))
            }
        }
        return nil
    }

    private static func words(_ seconds: time_t) -> String {
        var seconds = seconds
        var parts = tm()
        gmtime_r(&seconds, &parts)
        func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let day = "\(parts.tm_year + 1900)-\(two(parts.tm_mon + 1))-\(two(parts.tm_mday))"
        return "\(day) \(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec)) UTC"
    }

    private static func nameFailure(of leaf: Certificate, for name: ServerName) async -> TLSFailure? {
        if case .xmpp(let domain) = name {
            return XMPPIdentity(domain).isMet(by: leaf) ? nil : .wrongName(wanted: domain, names: leaf.names)
        }
        // The verifier takes the common name where there is no other.
        guard !leaf.names.isEmpty else { return .wrongName(wanted: name.text, names: []) }
        // With the certificate as its own authority, only its name is checked.
        var verifier = Verifier(rootCertificates: CertificateStore([leaf])) {
            switch name {
            case .host(let host): ServerIdentityPolicy(serverHostname: host, serverIP: nil)
            case .address(let address): ServerIdentityPolicy(serverHostname: nil, serverIP: address)
            case .xmpp: CheckedElsewhere()
            }
            CheckedElsewhere()
        }
        let verdict = await verifier.validate(leaf: leaf, intermediates: CertificateStore())
        if case .validCertificate = verdict { return nil }
        return .wrongName(wanted: name.text, names: leaf.names)
    }

    private func pinFailure(of path: [Certificate]) -> TLSFailure? {
        let looked = self.pinning.validatesCertificateChain ? path[...] : path.prefix(1)
        switch self.pinning.mode {
        case .none: return nil
        case .certificate:
            // The path already ends at a pinned certificate.
            guard self.pinning.validatesCertificateChain else { return nil }
            let foreign = looked.first { !self.pinning.certificates.contains($0.der ?? []) }
            return foreign.map { .pinMismatch("the certificate of \($0.subject) is not pinned") }
        case .publicKey:
            let foreign = looked.first { !self.pinning.keyDigests.contains($0.keyDigest) }
            return foreign.map {
                .pinMismatch("the key of \($0.subject) is sha256/\(Base64.encode($0.keyDigest))")
            }
        }
    }
}

/// Extensions that other code checks, or that do not affect trust.
private struct CheckedElsewhere: VerifierPolicy {
    let verifyingCriticalExtensions: [ASN1ObjectIdentifier] = [
        .X509ExtensionID.subjectAlternativeName, .X509ExtensionID.extendedKeyUsage, .X509ExtensionID.keyUsage,
        .X509ExtensionID.basicConstraints, .X509ExtensionID.nameConstraints,
    ]

    func chainMeetsPolicyRequirements(chain: UnverifiedCertificateChain) -> PolicyEvaluationResult { .meetsPolicy }
}

extension Certificate {
    fileprivate var der: [UInt8]? {
        var serializer = DER.Serializer()
        guard (try? serializer.serialize(self)) != nil else { return nil }
        return serializer.serializedBytes
    }

    /// Without the extension a certificate is valid for all purposes (RFC 5280 §4.2.1.12).
    fileprivate var isForServers: Bool {
        guard let usages = try? self.extensions.extendedKeyUsage else { return true }
        return usages.contains(.serverAuth) || usages.contains(.any)
    }

    /// The names in the subject alternative name; the common name is none (RFC 9525 §2).
    fileprivate var names: [String] {
        let alternatives = (try? self.extensions.subjectAlternativeNames) ?? nil
        return alternatives?.compactMap { name -> String? in
            switch name {
            case .dnsName(let host): host
            case .ipAddress(let address): Self.text(Array(address.bytes))
            case .otherName(let other): XMPPIdentity.text(of: other)
            default: nil
            }
        } ?? []
    }

    private static func text(_ address: [UInt8]) -> String? {
        guard address.count == 4 || address.count == 16 else { return nil }
        let family = address.count == 4 ? AF_INET : AF_INET6
        var text = [UInt8](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        let isWritten = text.withUnsafeMutableBytes { bytes in
            let text = bytes.bindMemory(to: CChar.self)
            return inet_ntop(family, address, text.baseAddress, socklen_t(text.count)) != nil
        }
        return isWritten ? String(decoding: text.prefix { $0 != 0 }, as: UTF8.self) : nil
    }
}
