/// Data known to both ends of a TLS session only, and not to a man in the middle.
///
/// Spec: RFC 5056, RFC 5929, RFC 9266.
package struct SASLChannelBinding: Hashable, Sendable {
    /// The types by their registered names; `tls-unique` has no meaning in TLS 1.3, and is left out.
    package enum Kind: String, Hashable, Sendable {
        /// The hash of the server's certificate.
        case tlsServerEndPoint = "tls-server-end-point"
        /// Keying material of the session; for a TLS library that gives it out.
        case tlsExporter = "tls-exporter"
    }

    package let kind: Kind
    package let data: [UInt8]

    package init(_ kind: Kind, _ data: [UInt8]) {
        self.kind = kind
        self.data = data
    }
}

/// The channel binding flag of a SCRAM client (RFC 5802 §6).
package enum SCRAMBinding: Hashable, Sendable {
    /// It has none, or the server offers it and it is not used: `n`.
    case unsupported
    /// The client has one, and the server offered no mechanism with it: `y`, so that the server notices if its offer
    /// was stripped.
    ///
    /// Never sent if the server offers one.
    case notOffered
    /// It uses this one: `p=`, and the mechanism's name ends in `-PLUS`.
    case bound(SASLChannelBinding)

    var flag: String {
        switch self {
        case .unsupported: "n"
        case .notOffered: "y"
        case .bound(let binding): "p=\(binding.kind.rawValue)"
        }
    }

    var data: [UInt8]? {
        if case .bound(let binding) = self { binding.data } else { nil }
    }
}
