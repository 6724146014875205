import CPosix
package import NIOCore

#if canImport(Glibc)
import Glibc
#endif

/// Writes to a channel's socket without the channel, at a tenth of the cost.
///
/// Only on the channel's event loop, with no layer between the writer and the socket.
package struct DirectSocket {
    /// `nil` until it is looked up, which costs 2 µs; -1 for a channel without one.
    private var descriptor: CInt?
    /// Bytes were written to the channel, which may still have some of them.
    package var channelMayHold = false
    /// A write failed because of the peer's RST.
    ///
    /// The kernel reports the reset once: a later read finds only the end of the stream.
    package private(set) var wasReset = false

    package init() {}

    /// Writes from memory, which stays unchanged.
    ///
    /// With `isLast` the FIN must follow at once: the kernel holds the bytes back and sends both in one segment.
    ///
    /// - Returns: the number of bytes that the kernel has taken. The channel must write the rest. Bytes remain if there
    ///   is no room, if the connection is broken, or if they would overtake others.
    package mutating func write(
        _ bytes: UnsafeRawBufferPointer,
        past channel: any Channel,
        isLast: Bool = false
    ) -> Int {
        guard channel.isActive, channel.isWritable, self.isEmpty(channel) else { return 0 }
        let socket = self.descriptor ?? self.find(channel)
        guard socket >= 0 else { return 0 }
        let taken = clamor_send(socket, bytes.baseAddress, bytes.count, isLast ? 1 : 0)
        if taken < 0, errno == ECONNRESET { self.wasReset = true }
        return max(0, taken)
    }

    /// Called when the channel closes its socket: the system may reuse the descriptor's number.
    package mutating func close() { self.descriptor = -1 }

    /// Whether the channel has no bytes that a direct write would overtake: a single byte leaves it writable.
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

    /// Bytes passed to the channel that the kernel has not taken.
    ///
    /// `handed` is the last known number of such bytes, plus all bytes passed since.
    ///
    /// With TLS or a WebSocket (not `isBare`) the encoded bytes are counted, but never more than were passed. Only on
    /// the channel's event loop.
    package func unsent(of handed: Int, isBare: Bool) -> Int {
        guard !self.isWritable else { return 0 }
        // NIO has the exact number at the peer's FIN and in `errorCaught`, because a failed read is reported before the
        // close. A channel closed by a failed write has lost it: the last known number is used.
        guard self.isActive else { return handed }
        let held = self.heldBytes
        return isBare ? held : min(held, handed)
    }
}
