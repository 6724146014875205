import NIOCore
package import XMPPCodec

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

extension XMPPConnection {
    /// Sends an element and reports its fate once: `true` when the kernel has all of it, `false` when a filter dropped
    /// it or the connection is gone.
    ///
    /// Only stream management reports that the server has it.
    package func send(_ element: XMPPElement, told: @escaping (Bool) -> Void) throws(XMPPWriteError) {
        guard self.takesStanzas, let element = self.filtered(element), self.takesStanzas else { return told(false) }
        try self.stream.pointee.send(element, into: &self.out.pointee)
        let extras = self.needsExtras
        let receipts = extras.receipts ?? XMPPReceiptsOfSending()
        extras.receipts = receipts
        receipts.add(pending: self.out.pointee.readableBytes, told)
        self.flushUnlessReading()
    }
}
