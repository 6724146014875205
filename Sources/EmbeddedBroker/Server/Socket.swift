import NIOCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// Socket calls that a channel does not offer.
enum Socket {
    /// A channel's descriptor, or -1 without one.
    ///
    /// Valid until the channel closes; NIO runs none of this code between the close and `channelInactive`.
    static func descriptor(of channel: any Channel) -> CInt {
        let descriptor = try? channel.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: CInt.self) { $0 }
        return descriptor ?? -1
    }

    /// Writes to a channel's descriptor, which is non-blocking and whose SIGPIPE NIO has switched off.
    ///
    /// - Returns: bytes that the kernel took; 0 for any error.
    static func write(_ bytes: UnsafeRawBufferPointer, to descriptor: CInt) -> Int {
        while true {
            #if canImport(Glibc)
            let count = Glibc.write(descriptor, bytes.baseAddress, bytes.count)
            #elseif canImport(Musl)
            let count = Musl.write(descriptor, bytes.baseAddress, bytes.count)
            #else
            let count = Darwin.write(descriptor, bytes.baseAddress, bytes.count)
            #endif
            if count >= 0 { return count }
            guard errno == EINTR else { return 0 }
        }
    }
}
