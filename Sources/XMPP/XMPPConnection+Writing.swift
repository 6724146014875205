import LoopContext
import NIOCore
import Transport

// The write side: what the owner and the answers add up to, and how it gets to the kernel.
extension XMPPConnection {
    /// The bytes that may wait for a peer that does not read; beyond them its requests are no longer answered.
    static let maximumUnsent = 8 << 20

    /// Where to append.
    var out: UnsafeMutablePointer<ByteBuffer> { self.wire.out }

    /// Writes what waits.
    ///
    /// - Returns: bytes of this connection that the kernel has not taken.
    @discardableResult
    package func flush() -> Int {
        guard self.wire.isOpen, self.end == nil else {
            self.wire.dropUnwritten()
            return 0
        }
        guard self.wire.hasUnwritten else { return self.unsent }
        let count = self.wire.unwritten
        self.extras?.receipts?.note(handed: count)
        if self.stream.pointee.noteSent(count, now: self.loop.now) { self.updateTimer() }
        // RFC 7395 §3.3: one message for each element.
        let unsent = self.wire.flush(messages: self.isWebSocket ? self.stream.pointee.takeBoundaries() : nil)
        if self.stream.pointee.isFull { self.awaitsRoom = true }
        self.settleReceipts()
        return unsent
    }

    /// Tells the callers whose bytes the kernel has taken.
    func settleReceipts() { self.extras?.receipts?.settle(unsent: self.unsent) }

    /// Bytes passed on that the kernel has not taken.
    package var unsent: Int { self.wire.unsent }

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
