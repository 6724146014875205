import LoopContext
import NIOCore
import Transport

// The write side: what the owner and the answers add up to, and how it gets to the kernel.
extension XMPPConnection {
    /// The bytes that may wait for a peer that does not read; beyond them its requests are no longer answered.
    static let maximumUnsent = 8 << 20

    /// Where to append; the loop's, shared by all its connections: what another one has left there goes out first.
    var out: UnsafeMutablePointer<ByteBuffer> {
        if self.loop.scratchOwner !== self {
            (self.loop.scratchOwner as? XMPPConnection)?.flush()
            self.loop.scratchOwner = self
        }
        return self.loop.scratch
    }

    /// Whether something of this connection's waits for a ``flush()``.
    var hasUnwritten: Bool { self.loop.scratchOwner === self && self.loop.scratch.pointee.readableBytes > 0 }

    /// Drops appended bytes, so that they never reach the peer of another connection.
    func dropUnwritten() {
        guard self.loop.scratchOwner === self else { return }
        self.loop.scratchOwner = nil
        self.loop.scratch.pointee.clear()
    }

    /// Writes what waits.
    ///
    /// - Returns: bytes of this connection that the kernel has not taken.
    @discardableResult
    package func flush() -> Int {
        guard let context = self.context, self.end == nil else {
            self.dropUnwritten()
            return 0
        }
        guard self.hasUnwritten else { return self.unsent }
        self.loop.scratchOwner = nil
        let count = self.loop.scratch.pointee.readableBytes
        self.extras?.receipts?.note(handed: count)
        if self.stream.pointee.noteSent(count, now: self.loop.now) { self.updateTimer() }
        if self.sendAtOnce(count) {
            if self.stream.pointee.isFull { self.isBlocked = true }
            self.extras?.receipts?.settle(unsent: 0)
            return 0
        }
        self.pendingBytes += self.loop.scratch.pointee.readableBytes
        let out = self.loop.scratch.pointee
        self.loop.scratch.pointee = ByteBuffer()
        self.isFlushing = true
        self.socket.channelMayHold = true
        if self.isWebSocket {
            self.writeMessages(out, context)
        } else {
            context.writeAndFlush(self.wrapOutboundOut(out), promise: nil)
        }
        self.isFlushing = false
        // If the kernel took everything the bytes are the loop's own again, and `clear` keeps their memory. A write that
        // failed may have made others say something.
        if self.loop.scratchOwner == nil {
            self.loop.scratch.pointee = consume out
            self.loop.scratch.pointee.clear()
        }
        let unsent = self.countTaken()
        self.isBlocked = unsent > 0 || self.stream.pointee.isFull
        return unsent
    }

    /// One message for each element (RFC 7395 §3.3).
    private func writeMessages(_ out: ByteBuffer, _ context: ChannelHandlerContext) {
        let ends = self.stream.pointee.takeBoundaries()
        var start = out.readerIndex
        for end in ends where end > start {
            if let message = out.getSlice(at: start, length: end - start) {
                context.write(self.wrapOutboundOut(message), promise: nil)
            }
            start = end
        }
        context.flush()
    }

    /// Writes to the socket itself where that may be.
    ///
    /// - Returns: whether the kernel took all. What it did not take is still in the scratch buffer.
    private func sendAtOnce(_ count: Int) -> Bool {
        guard self.isBare, !self.isSecuring, let channel = self.channel else { return false }
        let taken = self.socket.write(&self.loop.scratch.pointee, past: channel)
        if taken > 0 { self.observer.wrote(self.client, bytes: taken) }
        return taken == count
    }

    /// Reports the bytes that the kernel has taken since the last report.
    ///
    /// - Returns: bytes that it has not taken.
    @discardableResult
    func countTaken() -> Int {
        let unsent = self.unsent
        if self.pendingBytes > unsent { self.observer.wrote(self.client, bytes: self.pendingBytes - unsent) }
        self.pendingBytes = unsent
        self.extras?.receipts?.settle(unsent: unsent)
        return unsent
    }

    /// Bytes handed to the channel that the kernel has not taken.
    package var unsent: Int { self.channel?.unsent(of: self.pendingBytes, isBare: self.isBare) ?? 0 }

    func flushUnlessReading() {
        if !self.isReading { self.flush() }
    }
}

/// Callbacks that wait until the kernel has the bytes sent.
package final class XMPPReceiptsOfSending {
    private var waiting = CircularBuffer<(end: Int, told: (Bool) -> Void)>()
    /// Bytes handed over since the first receipt was requested; earlier bytes may be included, which makes it late.
    private var handed = 0

    package init() {}

    /// `pending`: bytes up to the end of what is meant, not handed over yet.
    package func add(pending: Int, _ told: @escaping (Bool) -> Void) {
        self.waiting.append((self.handed + pending, told))
    }

    package func note(handed count: Int) { self.handed += count }

    package func settle(unsent: Int) {
        while let first = self.waiting.first, first.end <= self.handed - unsent {
            self.waiting.removeFirst()
            first.told(true)
        }
    }

    package func fail() {
        while let first = self.waiting.popFirst() { first.told(false) }
    }
}
