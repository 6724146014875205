package import NIOCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// How a connection is ended that is not simply closed.
package enum SocketEnd {
    /// Bytes that the kernel has taken and the peer's has not acknowledged; 0 where it cannot be asked.
    package static func unsentBytes(_ channel: any Channel) -> Int {
        #if os(Linux)
        let bytes = try? channel.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: CInt.self) { descriptor in
            var bytes: CInt = 0
            // SIOCOUTQ has no name in the Swift overlay.
            return ioctl(descriptor, 0x5411, &bytes) == 0 ? Int(bytes) : 0
        }
        return bytes ?? 0
        #else
        return 0
        #endif
    }

    /// Ends the connection by RST: SO_LINGER of 0 seconds.
    package static func reset(_ context: ChannelHandlerContext) {
        if let socket = context.channel as? any SocketOptionProvider {
            socket.unsafeSetSocketOption(level: .socket, name: .so_linger, value: linger(l_onoff: 1, l_linger: 0))
                .whenComplete { _ in }
        }
        context.close(promise: nil)
    }
}
