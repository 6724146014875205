import Crypto
import DataEncodings
import NIOSSL
import SwiftASN1
import X509

/// The servers to trust in addition to, or instead of, those of the authorities.
///
/// Spec: A13 (the policy of the original, with its defects left out).
package struct TLSPinning: Hashable, Sendable {
    package enum Mode: Hashable, Sendable {
        /// Only the authorities decide.
        case none
        /// The pinned certificates are the only authorities.
        case certificate
        /// The authorities decide, and the key must be pinned as well.
        case publicKey
    }

    package var mode = Mode.none
    /// Whether each certificate of the chain must be pinned, not only the server's own.
    package var validatesCertificateChain = true
    package var validatesDomainName = true
    /// Whether the authorities are skipped; no effect in ``Mode/certificate``, which uses the pins.
    package var allowsInvalidCertificates = false
    /// Pinned certificates in DER, without duplicates.
    package private(set) var certificates: [[UInt8]] = []
    /// SHA-256 of pinned keys (SubjectPublicKeyInfo), including those of pinned certificates.
    package private(set) var keyDigests: Set<[UInt8]> = []

    package init() {}

    /// Parses pins of the command line: `sha256/BASE64` of a public key, or the path of a certificate in PEM or DER.
    ///
    /// If one pin is a key, the keys of all pins count, otherwise the certificates. Only the server's own must be
    /// pinned.
    package init(pins: [String]) throws(TLSSettingsError) {
        self.validatesCertificateChain = false
        for pin in pins {
            if pin.hasPrefix("sha256/") {
                self.mode = .publicKey
                try self.pin(keyDigest: Self.digest(pin))
            } else {
                if self.mode == .none { self.mode = .certificate }
                for certificate in try Self.certificates(pin) { try self.pin(certificate: certificate, named: pin) }
            }
        }
    }

    /// Pins a certificate in DER; a duplicate has no effect.
    package mutating func pin(
        certificate der: [UInt8],
        named name: String = "the pinned certificate"
    ) throws(TLSSettingsError) {
        guard !der.starts(with: "-----BEGIN".utf8) else { throw .isPEM(name) }
        guard let certificate = try? Certificate(derEncoded: der) else {
            throw .malformed(path: name, "DER certificate")
        }
        if !self.certificates.contains(der) { self.certificates.append(der) }
        self.keyDigests.insert(certificate.keyDigest)
    }

    /// Pins a key by the SHA-256 of its SubjectPublicKeyInfo.
    package mutating func pin(keyDigest: [UInt8]) throws(TLSSettingsError) {
        guard keyDigest.count == 32 else { throw .pin("a pinned key is the 32 bytes of a SHA-256") }
        self.keyDigests.insert(keyDigest)
    }

    func check() throws(TLSSettingsError) {
        switch self.mode {
        case .none: return
        case .certificate: if self.certificates.isEmpty { throw .noPins }
        case .publicKey: if self.keyDigests.isEmpty { throw .noPins }
        }
    }

    private static func certificates(_ path: String) throws(TLSSettingsError) -> [[UInt8]] {
        let bytes = try TLSFiles.load(path)
        if TLSFiles.isDER(bytes) { return [bytes] }
        var found: [[UInt8]] = []
        for certificate in try TLSFiles.certificates(path) {
            guard let der = try? certificate.toDERBytes() else { throw .malformed(path: path, "certificate") }
            found.append(der)
        }
        return found
    }

    private static func digest(_ pin: String) throws(TLSSettingsError) -> [UInt8] {
        guard let bytes = Base64.decode(pin.utf8.dropFirst("sha256/".utf8.count)), bytes.count == 32 else {
            throw .pin("'\(pin)' is no pin: sha256/ and the base64 of 32 bytes are wanted")
        }
        return bytes
    }
}

extension Certificate {
    /// SHA-256 of the SubjectPublicKeyInfo, as in `sha256/` pins.
    var keyDigest: [UInt8] {
        var serializer = DER.Serializer()
        // A parsed key can be serialised; if not, no pin equals an empty digest.
        guard (try? serializer.serialize(self.publicKey)) != nil else { return [] }
        return Array(SHA256.hash(data: serializer.serializedBytes))
    }
}
