import NIOCore
import NIOSSL

#if canImport(Glibc)
import Glibc
#endif

/// How the end of a connection shows above TLS.
package enum PeerClosing {
    /// Whether an error says that the peer's FIN came without the `close_notify` that TLS wants in front of it.
    package static func isBareFIN(_ error: any Error) -> Bool {
        if case .uncleanShutdown? = error as? NIOSSLError { true } else { false }
    }
}

/// What an error in a channel is to the connection above it, whatever that speaks.
package enum ChannelFailure {
    /// The peer's FIN: most servers end TLS without its own goodbye.
    case finished
    case webSocket(WebSocketViolation)
    case insecure(TLSFailure)
    /// The system's error number; what has none is taken for a reset.
    case system(Int32)

    /// `isBare`: nothing stands between the connection and the socket.
    package init(_ error: any Error, isBare: Bool) {
        if !isBare, PeerClosing.isBareFIN(error) {
            self = .finished
        } else if let violation = error as? WebSocketViolation {
            self = .webSocket(violation)
        } else if let failure = error as? TLSFailure {
            self = .insecure(failure)
        } else {
            self = .system((error as? IOError)?.errnoCode ?? ECONNRESET)
        }
    }
}
