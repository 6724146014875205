import NIOCore
import NIOPosix

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

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
