package import NIOCore

#if canImport(Glibc)
import Glibc
#endif

/// Writes to a channel's socket without the channel: a tenth of what the same costs by way of it.
///
/// Only on the channel's event loop, where nothing lies between the writer and the socket.
package struct DirectSocket {
    /// `nil` until it is asked for, which costs 2 µs, and -1 for a channel without one.
    private var descriptor: CInt?
    /// Something went by way of the channel, which may still have it.
    package var channelMayHold = false
    /// A write was told of the peer's RST.
    ///
    /// The kernel tells it once: a read finds no more than an end behind it.
    package private(set) var wasReset = false

    package init() {}

    /// - Returns: bytes that the kernel has taken; they are gone from `bytes`. The rest, for want of room, because the
    ///   connection is broken or because it would overtake, is for the channel, which writes it or finds what is wrong.
    package mutating func write(_ bytes: inout ByteBuffer, past channel: any Channel) -> Int {
        let taken = bytes.withUnsafeReadableBytes { self.write($0, past: channel) }
        if taken == bytes.readableBytes {
            bytes.clear()
        } else {
            bytes.moveReaderIndex(forwardBy: taken)
        }
        return taken
    }

    /// The same of memory, which stays as it is.
    package mutating func write(_ bytes: UnsafeRawBufferPointer, past channel: any Channel) -> Int {
        guard channel.isActive, channel.isWritable, self.isEmpty(channel) else { return 0 }
        let socket = self.descriptor ?? self.find(channel)
        guard socket >= 0 else { return 0 }
        // NIO has SIGPIPE ignored.
        let taken = send(socket, bytes.baseAddress, bytes.count, 0)
        if taken < 0, errno == ECONNRESET { self.wasReset = true }
        return max(0, taken)
    }

    /// The channel lets go of its socket, whose number may be another's next.
    package mutating func close() { self.descriptor = -1 }

    /// Whether nothing that the channel still has would be overtaken: a single byte leaves it writable.
    private mutating func isEmpty(_ channel: any Channel) -> Bool {
        guard self.channelMayHold else { return true }
        self.channelMayHold = channel.heldBytes > 0
        return !self.channelMayHold
    }

    private mutating func find(_ channel: any Channel) -> CInt {
        let pipeline = channel.pipeline.syncOperations
        let socket = (try? pipeline.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) { $0 }) ?? -1
        self.descriptor = socket
        return socket
    }
}

extension Channel {
    /// Bytes that the kernel has not taken yet.
    ///
    /// Only on the channel's event loop.
    fileprivate var heldBytes: Int { (try? self.syncOptions?.getOption(.bufferedWritableBytes)) ?? 0 }

    /// Bytes handed to the channel that the kernel has not taken; `handed` is what it had not when last asked, and what
    /// came since.
    ///
    /// With TLS or a WebSocket in between (not `isBare`) it is counted in the bytes that came of them, but never more
    /// than were handed. Only on the channel's event loop.
    package func unsent(of handed: Int, isBare: Bool) -> Int {
        guard !self.isWritable else { return 0 }
        // NIO knows it exactly at the peer's FIN and in `errorCaught`, for a failing read is told of before the close.
        // A channel closed by a failing write has forgotten: what was known last is the best there is.
        guard self.isActive else { return handed }
        let held = self.heldBytes
        return isBare ? held : min(held, handed)
    }
}
