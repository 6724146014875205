import NIOCore
import NIOPosix

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// What a channel does not offer itself.
enum Socket {
    /// Bytes that the kernel has taken and the peer's has not acknowledged; 0 where it cannot be asked.
    static func unsentBytes(_ channel: any Channel) -> Int {
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

    /// A channel's descriptor, or -1 without one.
    ///
    /// Valid until the channel closes; NIO lets nothing of ours run between that and `channelInactive`.
    static func descriptor(of channel: any Channel) -> CInt {
        let descriptor = try? channel.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: CInt.self) { $0 }
        return descriptor ?? -1
    }

    /// Writes to a channel's descriptor, which does not block and whose SIGPIPE NIO has switched off.
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

    /// Ends the connection by RST: SO_LINGER of 0 seconds.
    static func reset(_ context: ChannelHandlerContext) {
        if let socket = context.channel as? any SocketOptionProvider {
            socket.unsafeSetSocketOption(level: .socket, name: .so_linger, value: linger(l_onoff: 1, l_linger: 0))
                .whenComplete { _ in }
        }
        context.close(promise: nil)
    }
}

/// CLOCK_REALTIME, for stalls to be placed in a report, and a sleep for them.
enum WallClock {
    /// Nanoseconds since 1970.
    static func now() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    /// Blocks the calling thread.
    static func sleep(until end: NIODeadline) {
        while true {
            let left = (end - NIODeadline.now()).nanoseconds
            guard left > 0 else { return }
            var time = timespec(tv_sec: Int(left / 1_000_000_000), tv_nsec: Int(left % 1_000_000_000))
            nanosleep(&time, nil)
        }
    }
}
