import NIOCore
import NIOPosix
import NIOSSL

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// The reason why a client has no connection.
package struct ConnectError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The step in progress at the deadline.
    package enum Phase: String, Hashable, Sendable {
        case dns, tcp, proxy, tls
        case webSocket = "websocket"

        fileprivate var words: String {
            switch self {
            case .dns: "the DNS lookup"
            case .tcp: "the TCP handshake"
            case .proxy: "the PROXY header"
            case .tls: "the TLS handshake"
            case .webSocket: "the WebSocket handshake"
            }
        }
    }

    package enum Reason: Error, Hashable, Sendable, CustomStringConvertible {
        /// The name has no address; the resolver's words.
        case resolve(String)
        case refused
        case timedOut(Phase)
        case unreachable
        case reset
        case webSocket(WebSocketFailure)
        /// Local error: no source port is left for the target.
        case localPortsExhausted
        /// Local error: no descriptor is left for a socket.
        case descriptorsExhausted
        /// Local error: the given source address is not this host's, or not of the target's family.
        case sourceAddress
        case cancelled
        case other(errno: Int32)
        case tls(TLSFailure)

        /// The reason without the target; ``ConnectError/description`` has both.
        package var description: String {
            switch self {
            case .resolve(let text): "the name cannot be resolved: \(text)"
            case .refused: "connection refused"
            case .timedOut(let phase): "\(phase.words) did not finish in time"
            case .unreachable: "no route to the server"
            case .reset: "connection reset by the server"
            case .webSocket(let failure): failure.description
            case .localPortsExhausted: "no local port left"
            case .descriptorsExhausted: "no descriptor left"
            case .sourceAddress: "the source address cannot be used"
            case .cancelled: "the attempt was given up"
            case .other(let code): SystemError.words(code)
            case .tls(let failure): failure.description
            }
        }
    }

    package let reason: Reason
    package let target: Target
    /// The time spent in each step before the error.
    package let phases: ConnectPhases

    package init(_ reason: Reason, target: Target, phases: ConnectPhases = ConnectPhases()) {
        self.reason = reason
        self.target = target
        self.phases = phases
    }

    /// The word for this error in the `errors` table.
    package var kind: String {
        switch self.reason {
        case .resolve: "resolve"
        case .refused: "refused"
        case .timedOut: "timeout"
        case .unreachable: "unreachable"
        case .reset: "reset"
        case .webSocket: "websocket"
        case .localPortsExhausted: "ports"
        case .descriptorsExhausted: "descriptors"
        case .sourceAddress: "source"
        case .cancelled: "cancelled"
        case .other: "connect"
        case .tls: "tls"
        }
    }

    /// Whether this host caused the error, and not the server.
    package var isLocal: Bool {
        switch self.reason {
        case .localPortsExhausted, .descriptorsExhausted, .sourceAddress, .cancelled: true
        case .tls(let failure): failure.isLocal
        case .resolve, .refused, .timedOut, .unreachable, .reset, .webSocket, .other: false
        }
    }

    /// One line, with host and port.
    package var description: String {
        switch self.reason {
        case .resolve(let text): "cannot resolve \(self.target): \(text)"
        case .refused: "\(self.target) refused the connection"
        case .timedOut(.dns): "no address for \(self.target) in time"
        case .timedOut(.tcp): "no TCP connection to \(self.target) in time"
        case .timedOut(.proxy): "no room for the PROXY header to \(self.target) in time"
        case .timedOut(.tls): "no TLS handshake with \(self.target) in time"
        case .timedOut(.webSocket): "no WebSocket to \(self.target) in time"
        case .unreachable: "no route to \(self.target)"
        case .reset: "\(self.target) reset the connection"
        case .webSocket(let failure): "no WebSocket with \(self.target): \(failure)"
        case .localPortsExhausted: "no local port left for a connection to \(self.target)"
        case .descriptorsExhausted: "no descriptor left for a connection to \(self.target)"
        case .sourceAddress: "no connection to \(self.target) from the source addresses given"
        case .cancelled: "the connection to \(self.target) was given up"
        case .other(let code): "no connection to \(self.target): \(SystemError.words(code))"
        case .tls(let failure): "no TLS with \(self.target): \(failure)"
        }
    }
}

extension ConnectError.Reason {
    /// Converts the error of a failed connect.
    ///
    /// - Parameters:
    ///   - error: the error from NIO.
    ///   - isBinding: whether bind(2) failed: EADDRNOTAVAIL means a foreign address there, and no free port in
    ///     connect(2).
    package init(_ error: any Error, isBinding: Bool) {
        guard let error = error as? IOError else {
            self = .cancelled
            return
        }
        switch error.errnoCode {
        case ECONNREFUSED: self = .refused
        case ETIMEDOUT: self = .timedOut(.tcp)
        case ENETUNREACH, EHOSTUNREACH, ENETDOWN, EHOSTDOWN: self = .unreachable
        case ECONNRESET, ECONNABORTED, EPIPE: self = .reset
        case EADDRNOTAVAIL: self = isBinding ? .sourceAddress : .localPortsExhausted
        case EADDRINUSE: self = .localPortsExhausted
        case EMFILE, ENFILE: self = .descriptorsExhausted
        case EAFNOSUPPORT where isBinding: self = .sourceAddress
        default: self = .other(errno: error.errnoCode)
        }
    }
}

/// Errors of the operating system and of NIO in plain words.
package enum SystemError {
    /// The system's text for an error number, with the number.
    package static func words(_ code: Int32) -> String { "\(String(cString: strerror(code))) (errno \(code))" }

    /// The text for an error from a channel or a thread pool; Swift's own description for unknown errors.
    package static func words(_ error: any Error) -> String {
        switch error {
        case let error as IOError: self.words(error.errnoCode)
        case let error as SocketAddressError.UnknownHost:
            "the host \(error.host) has no address: \(error.errorDescription)"
        case is CancellationError, is NIOThreadPoolError.ThreadPoolInactive: "the program is stopping"
        default: "\(error)"
        }
    }
}

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
