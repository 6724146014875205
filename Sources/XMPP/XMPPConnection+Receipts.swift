import NIOCore

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
