import SwiftASN1
import X509

/// A host name to match with the names of a certificate (RFC 9525 §6.3).
struct HostName {
    private let labels: [String]

    init(_ text: String) {
        var labels = text.lowercased().split(separator: ".", omittingEmptySubsequences: false).map(String.init)
        // The root's empty label.
        if labels.count > 1, labels.last == "" { labels.removeLast() }
        self.labels = labels
    }

    func isSame(as other: HostName) -> Bool { self.labels == other.labels }

    /// Compares without case; `*` as the first label matches exactly one label.
    func matches(_ pattern: String) -> Bool {
        let other = HostName(pattern).labels
        guard other.count == self.labels.count else { return false }
        if other == self.labels { return true }
        return other.count > 1 && other[0] == "*" && other.dropFirst() == self.labels.dropFirst()
    }
}

/// The server identity of a domain's JIDs, to match with a certificate.
///
/// It matches as a host name, with a wildcard for the left-most label at most, as the SRVName `_xmpp-client.DOMAIN`,
/// and as the XmppAddr `DOMAIN`. RFC 6120 §13.7.1.2 lets the common name count where there is none of them; RFC 9525 §2
/// no longer does.
///
/// Spec: RFC 6120 §13.7.1.2, RFC 9525 §6, RFC 4985.
struct XMPPIdentity {
    /// `id-on-dnsSRV` (RFC 4985 §2).
    private static let serviceName: ASN1ObjectIdentifier = [1, 3, 6, 1, 5, 5, 7, 8, 7]
    /// `id-on-xmppAddr` (RFC 6120 §13.7.1.4).
    private static let address: ASN1ObjectIdentifier = [1, 3, 6, 1, 5, 5, 7, 8, 5]
    private static let service = "_xmpp-client."

    private let domain: HostName

    /// - Parameter domain: the domain in ASCII.
    init(_ domain: String) { self.domain = HostName(domain) }

    func isMet(by der: [UInt8]) -> Bool { (try? Certificate(derEncoded: der)).map(self.isMet) ?? false }

    func isMet(by certificate: Certificate) -> Bool {
        ((try? certificate.extensions.subjectAlternativeNames) ?? SubjectAlternativeNames()).contains { name in
            switch name {
            case .dnsName(let host): self.domain.matches(host)
            case .otherName(let other): Self.kind(of: other).map(self.isMet) ?? false
            default: false
            }
        }
    }

    private enum Kind {
        case service(String)
        case address(String)
    }

    private func isMet(by kind: Kind) -> Bool {
        switch kind {
        case .service(let name):
            guard name.lowercased().hasPrefix(Self.service) else { return false }
            return self.domain.isSame(as: HostName(String(name.dropFirst(Self.service.count))))
        case .address(let address):
            return DomainName.ascii(address).map { self.domain.isSame(as: HostName($0)) } ?? false
        }
    }

    private static func kind(of other: GeneralName.OtherName) -> Kind? {
        guard let value = other.value else { return nil }
        switch other.typeID {
        case self.serviceName: return (try? ASN1IA5String(asn1Any: value)).map { .service(String($0)) }
        case self.address: return (try? ASN1UTF8String(asn1Any: value)).map { .address(String($0)) }
        default: return nil
        }
    }

    /// The text for this name in a list of a certificate's names.
    static func text(of other: GeneralName.OtherName) -> String? {
        switch self.kind(of: other) {
        case .service(let name): name
        case .address(let address): "\(address) (XmppAddr)"
        case nil: nil
        }
    }
}
