package import NIOCore

extension Channel {
    /// Bytes written to the channel that the kernel has not taken yet; `nil` once it is closed.
    ///
    /// On the channel's loop only.
    package var unsentBytes: Int? {
        guard let options = self.syncOptions else { return nil }
        return try? options.getOption(.bufferedWritableBytes)
    }
}

/// Follows how many bytes of a connection the kernel has taken, so that after its loss it is known which messages
/// were sent.
///
/// A closed channel answers nothing: NIO throws its pending writes away before it fails their promises and calls
/// `channelInactive`. So the count has to be read before, and these are the moments, all of them needed:
///
/// - ``willWrite(_:)`` before each `writeAndFlush`, ``update(from:)`` after it;
/// - ``update(from:)`` at `channelWritabilityChanged`, at the event `ChannelEvent.inputClosed` (the peer's FIN), in
///   `errorCaught` (the peer's RST: the read fails first, the channel is still open), and before closing it oneself;
/// - ``update(from:)`` in `ReceiveBuffer.beforeRead`: when a write fails, NIO reads what is left and closes without
///   `errorCaught`. Only a channel that is not writable needs it.
///
/// At `channelInactive` ``taken`` is exact then, with one exception: NIO reads no more after the peer's FIN, so who
/// still has bytes pending behind it, and does not close, learns of a failing write from its promise alone, and
/// ``taken`` is that of the last update.
///
/// With the stream position of each message's first byte kept (``written`` before its write, plus its offset), a
/// message was sent if that position is below ``taken``. 16 bytes.
package struct UnsentBytes: Hashable, Sendable {
    /// Bytes given to the channel since it was connected.
    package private(set) var written: UInt64 = 0
    /// Bytes of those that the kernel has taken, as of the last update.
    package private(set) var taken: UInt64 = 0

    package init() {}

    /// Counts a write that comes next.
    package mutating func willWrite(_ bytes: Int) { self.written += UInt64(bytes) }

    /// Reads the channel's count; keeps the last one when the channel is closed already.
    ///
    /// Its water marks of 1 make a writable channel an empty one, which is quicker to ask; no packet is shorter than
    /// 2 bytes.
    package mutating func update(from channel: any Channel) {
        guard channel.isActive else { return }
        if channel.isWritable {
            self.taken = self.written
        } else if let unsent = channel.unsentBytes {
            self.taken = self.written - min(self.written, UInt64(unsent))
        }
    }
}
