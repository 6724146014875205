import NIOCore
import NIOPosix

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// Errors of the operating system and of NIO, in words for people.
package enum SystemError {
    /// The system's words for an error number, and the number.
    package static func words(_ code: Int32) -> String { "\(String(cString: strerror(code))) (errno \(code))" }

    /// The words of an error that a channel or a thread pool gave; how Swift prints it where it is not known here.
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
