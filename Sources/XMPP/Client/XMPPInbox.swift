import LoopContext

/// Where stanzas wait between the event loop and the task that takes them: so many and so large at most, the newest.
final class XMPPInbox: Sendable {
    private let queue = TakeQueue<XMPPElement, Void>(())
    private let count: Int
    private let bytes: Int

    init(count: Int, bytes: Int) {
        self.count = count
        self.bytes = bytes
    }

    func put(_ stanza: XMPPElement) {
        self.queue.put(stanza, size: stanza.estimatedSize) { waiting in
            // The newest stays, however large it is.
            while waiting.count > self.count || waiting.size > self.bytes && waiting.count > 1 { waiting.removeFirst() }
        }
    }

    /// What waits can still be taken.
    func finish() { self.queue.finish() }

    /// The next stanza; `nil` when none comes any more, or the task is cancelled.
    func next() async -> XMPPElement? { await self.queue.next() }
}

extension XMPPElement {
    /// Bytes that it takes in memory, or so.
    fileprivate var estimatedSize: Int {
        var size = 96 + self.name.utf8.count
        for attribute in self.attributes { size += 64 + attribute.name.utf8.count + attribute.value.utf8.count }
        for child in self.children {
            switch child {
            case .element(let element): size += element.estimatedSize
            case .text(let text): size += 32 + text.utf8.count
            }
        }
        return size
    }
}
