import Synchronization

/// The events of a module, for any number of streams.
///
/// A stream gets all events from its creation on. A reader that is more than ``maximumPending`` events or 16 MiB late misses the
/// oldest.
public final class XMPPEvents<Event: Sendable>: Sendable {
    /// Events that wait for one reader at most.
    public static var maximumPending: Int { 4_096 }

    private struct Reader {
        /// A stream owns its queue: with the stream the queue is gone.
        weak let queue: XMPPInbox<Event>?
    }

    private struct State {
        var readers: [Reader] = []
        var isFinished = false
    }

    private let state = Mutex(State())
    private let size: @Sendable (Event) -> Int

    /// - Parameter size: the bytes that an event takes in memory, about, with all that it refers to.
    public init(size: @escaping @Sendable (Event) -> Int) { self.size = size }

    /// Makes the source of events that refer to nothing, so that all are of one size.
    public convenience init() where Event: BitwiseCopyable { self.init { _ in MemoryLayout<Event>.stride } }

    /// A new stream of all events from now on, for one reader.
    public func stream() -> AsyncStream<Event> {
        let queue = XMPPInbox<Event>(count: Self.maximumPending, bytes: 16 << 20)
        let isFinished = self.state.withLock { state in
            state.readers.removeAll { $0.queue == nil }
            state.readers.append(Reader(queue: queue))
            return state.isFinished
        }
        if isFinished { queue.finish() }
        return AsyncStream { await queue.next() }
    }

    /// Hands an event to all streams.
    public func send(_ event: Event) {
        let readers = self.state.withLock { $0.readers }
        guard !readers.isEmpty else { return }
        let size = self.size(event)
        for reader in readers { reader.queue?.put(event, size: size) }
    }

    /// Ends all streams, after the events that wait.
    public func finish() {
        let readers = self.state.withLock { state in
            state.isFinished = true
            defer { state.readers = [] }
            return state.readers
        }
        for reader in readers { reader.queue?.finish() }
    }
}

extension XMPPEvents where Event == XMPPReconnect.Event {
    convenience init() {
        self.init { event in
            switch event {
            case .waits(_, let end), .stays(let end): 128 + end.kind.utf8.count + end.words.utf8.count
            }
        }
    }
}

extension JID {
    /// Bytes that it takes in memory, or so.
    var estimatedSize: Int { 48 + self.description.utf8.count }
}

extension StanzaError {
    /// Bytes that it takes in memory, or so.
    package var estimatedSize: Int {
        let texts = [self.text, self.language, self.by, self.address]
        return texts.reduce(256) { $0 + ($1?.utf8.count ?? 0) } + (self.application?.estimatedSize ?? 0)
    }
}
