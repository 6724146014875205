import LoopContext

/// The queue of stanzas between the event loop and the reading task: limited in number and size, it keeps the newest.
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
    func finish() {
        let readers = self.state.withLock { state in
            state.isFinished = true
            defer { state.readers = [] }
            return state.readers
        }
        for reader in readers { reader.continuation.resume(returning: nil) }
    }

    /// The next stanza; `nil` after the end of the input, or if the task is cancelled.
    func next() async -> XMPPElement? {
        let number = self.state.withLock { state in
            state.nextReader += 1
            return state.nextReader
        }
        let stanza = await withTaskCancellationHandler {
            await withCheckedContinuation { self.read(number, $0) }
        } onCancel: {
            self.cancel(number)
        }
        // The stanza may have been faster than the cancellation.
        if Task.isCancelled { self.state.withLock { _ = $0.cancelled.remove(number) } }
        return stanza
    }

    private func read(_ number: UInt64, _ continuation: CheckedContinuation<XMPPElement?, Never>) {
        let answer = self.state.withLock { state -> XMPPElement?? in
            if state.cancelled.remove(number) != nil { return .some(nil) }
            if let first = state.stanzas.popFirst() {
                state.bytes -= first.size
                return .some(first.stanza)
            }
            if state.isFinished { return .some(nil) }
            state.readers.append((number, continuation))
            return nil
        }
        if let answer { continuation.resume(returning: answer) }
    }

    private func cancel(_ number: UInt64) {
        let reader = self.state.withLock { state -> CheckedContinuation<XMPPElement?, Never>? in
            if let index = state.readers.firstIndex(where: { $0.number == number }) {
                return state.readers.remove(at: index).continuation
            }
            state.cancelled.insert(number)
            return nil
        }
        reader?.resume(returning: nil)
    }
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
