import LoopContext
package import XMPPCodec

/// Where elements wait between the event loop and the task that takes them: so many and so large at most, the newest.
final class XMPPInbox<Element: Sendable>: Sendable {
    private let queue = TakeQueue<Element, Void>(())
    private let count: Int
    private let bytes: Int

    init(count: Int, bytes: Int) {
        self.count = count
        self.bytes = bytes
    }

    func put(_ element: Element, size: Int) {
        self.queue.put(element, size: size) { waiting in
            // The newest stays, however large it is.
            while waiting.count > self.count || waiting.size > self.bytes && waiting.count > 1 { waiting.removeFirst() }
        }
    }

    /// Elements that wait can still be taken.
    func finish() { self.queue.finish() }

    /// The next element; `nil` when none comes any more, or the task is cancelled.
    func next() async -> Element? { await self.queue.next() }
}

extension XMPPElement {
    /// Bytes that it takes in memory, or so.
    package var estimatedSize: Int {
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
