import Synchronization

/// The counts of complete responses by path, and of open event streams.
final class LiveCounter: Sendable {
    private struct State {
        var isClosed = false
        var counts: [String: Int] = [:]
        var listeners = 0
    }

    private let state = Mutex(State())

    func count(of path: String) -> Int { self.state.withLock { $0.counts[path] ?? 0 } }

    /// Open event streams.
    var listeners: Int { self.state.withLock(\.listeners) }
    func streamBegins() { self.state.withLock { $0.listeners += 1 } }
    func streamEnds() { self.state.withLock { $0.listeners -= 1 } }

    /// Counts a response that is with the kernel as a whole.
    func complete(_ path: String) { self.state.withLock { $0.counts[path, default: 0] += 1 } }

    /// Calls `body` unless the server is closed, which it cannot become meanwhile.
    func whileOpen(_ body: () -> Void) {
        self.state.withLock { state in
            if !state.isClosed { body() }
        }
    }

    /// Whether it was open until now.
    func close() -> Bool {
        self.state.withLock { state in
            defer { state.isClosed = true }
            return !state.isClosed
        }
    }
}
