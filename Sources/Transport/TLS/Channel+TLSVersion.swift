package import NIOCore
import NIOSSL

extension Channel {
    /// The version of TLS that the channel negotiated, as its specification writes it; nil without TLS.
    ///
    /// Call this on the channel's event loop.
    package var tlsVersion: String? {
        (try? self.pipeline.syncOperations.nioSSL_tlsVersion())?.name
    }
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
