import NIOCore
import NIOSSL

#if canImport(Glibc)
import Glibc
#endif

/// The end of a connection as seen above TLS.
package enum PeerClosing {
    /// Whether an error means that the peer's FIN came without the `close_notify` that TLS requires before it.
    package static func isBareFIN(_ error: any Error) -> Bool {
        if case .uncleanShutdown? = error as? NIOSSLError { true } else { false }
    }
}

/// The meaning of a channel error for the connection above, for any protocol.
package enum ChannelFailure {
    /// The peer's FIN: most servers end TLS without `close_notify`.
    case finished
    case webSocket(WebSocketViolation)
    case insecure(TLSFailure)
    /// The system's error number; an error without one counts as a reset.
    case system(Int32)

    /// `isBare`: no layer lies between the connection and the socket.
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
