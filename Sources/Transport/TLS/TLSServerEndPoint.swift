import Crypto
package import NIOCore
import NIOSSL
import SwiftASN1

/// The channel binding `tls-server-end-point`: a hash of the server's certificate.
///
/// It is the only supported type: the TLS library exports no keying material for `tls-exporter` (RFC 9266).
///
/// Spec: RFC 5929 §4.
package enum TLSServerEndPoint {
    /// The value for the TLS session of a channel; called on its loop.
    ///
    /// - Returns: `nil` without TLS, without a certificate, or if the type is not defined for it.
    package static func data(of channel: any Channel) -> [UInt8]? {
        guard let certificate = try? channel.pipeline.syncOperations.nioSSL_peerCertificate(),
            let der = try? certificate.toDERBytes()
        else { return nil }
        return self.data(ofCertificate: der)
    }

    /// - Parameter der: the certificate in DER as the server sent it.
    /// - Returns: `nil` if the type is not defined: the signature uses no hash, or an unknown one.
    package static func data(ofCertificate der: [UInt8]) -> [UInt8]? {
        switch self.hash(of: der) {
        // SHA-256 replaces MD5 and SHA-1 (§4.1).
        case .md5, .sha1, .sha256: Array(SHA256.hash(data: der))
        case .sha384: Array(SHA384.hash(data: der))
        case .sha512: Array(SHA512.hash(data: der))
        case nil: nil
        }
    }

    private enum Hash {
        case md5, sha1, sha256, sha384, sha512
    }

    private static let rsa: [UInt] = [1, 2, 840, 113_549, 1, 1]
    private static let ecdsa: [UInt] = [1, 2, 840, 10_045, 4]
    private static let secure: [UInt] = [2, 16, 840, 1, 101, 3, 4, 2]

    private static func hash(of der: [UInt8]) -> Hash? {
        guard let root = try? DER.parse(der), case .constructed(let parts) = root.content,
            let algorithm = Array(parts).dropFirst().first, case .constructed(let fields) = algorithm.content,
            let first = Array(fields).first, let identifier = try? ASN1ObjectIdentifier(derEncoded: first)
        else { return nil }
        let numbers = Array(identifier.oidComponents)
        if numbers == self.rsa + [10] { return self.hashOfPSS(Array(fields).dropFirst().first) }
        return self.byAlgorithm.first { $0.numbers == numbers }?.hash
    }

    private static let byAlgorithm: [(numbers: [UInt], hash: Hash)] = [
        (rsa + [4], .md5), (rsa + [5], .sha1), (rsa + [11], .sha256), (rsa + [12], .sha384), (rsa + [13], .sha512),
        (ecdsa + [1], .sha1), (ecdsa + [3, 2], .sha256), (ecdsa + [3, 3], .sha384), (ecdsa + [3, 4], .sha512),
    ]

    /// The hash is in the parameters under `[0]`, and SHA-1 by default (RFC 4055 §3.1).
    private static func hashOfPSS(_ parameters: ASN1Node?) -> Hash? {
        guard let parameters, case .constructed(let fields) = parameters.content else { return .sha1 }
        let tag = ASN1Identifier(tagWithNumber: 0, tagClass: .contextSpecific)
        guard let tagged = Array(fields).first(where: { $0.identifier == tag }) else { return .sha1 }
        guard case .constructed(let inner) = tagged.content, let algorithm = Array(inner).first,
            case .constructed(let names) = algorithm.content, let name = Array(names).first,
            let identifier = try? ASN1ObjectIdentifier(derEncoded: name)
        else { return nil }
        switch Array(identifier.oidComponents) {
        case self.secure + [1]: return .sha256
        case self.secure + [2]: return .sha384
        case self.secure + [3]: return .sha512
        default: return nil
        }
    }
}

extension Channel {
    /// The version of TLS that the channel negotiated, as its specification writes it; nil without TLS.
    ///
    /// Call this on the channel's event loop.
    package var tlsVersion: String? { (try? self.pipeline.syncOperations.nioSSL_tlsVersion())?.name }
}

extension TLSVersion {
    fileprivate var name: String {
        switch self {
        case .tlsv1: "TLSv1"
        case .tlsv11: "TLSv1.1"
        case .tlsv12: "TLSv1.2"
        case .tlsv13: "TLSv1.3"
        }
    }
}
