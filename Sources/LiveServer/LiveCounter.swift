import Synchronization

/// The counts of complete responses by path, and the waiters for one more.
final class LiveCounter: Sendable {
    private struct Waiter {
        let path: String
        /// Requests from this number on began after the wait.
        let first: UInt64
        let resume: @Sendable (Bool) -> Void
    }

    private struct State {
        var isClosed = false
        var counts: [String: Int] = [:]
        var listeners = 0
        /// Of the next request.
        var number: UInt64 = 0
        var waiters: [UInt64: Waiter] = [:]
        var nextWaiter: UInt64 = 0
    }

    private let state = Mutex(State())

    func count(of path: String) -> Int { self.state.withLock { $0.counts[path] ?? 0 } }

    /// Open event streams.
    var listeners: Int { self.state.withLock(\.listeners) }

    func streamBegins() { self.state.withLock { $0.listeners += 1 } }

    func streamEnds() { self.state.withLock { $0.listeners -= 1 } }

    /// The number of a request whose response is about to be made.
    func begin() -> UInt64 {
        self.state.withLock { state in
            defer { state.number += 1 }
            return state.number
        }
    }

    /// Counts a response that is with the kernel as a whole.
    func complete(_ path: String, number: UInt64) {
        let ready = self.state.withLock { state in
            state.counts[path, default: 0] += 1
            let ready = state.waiters.filter { $0.value.path == path && $0.value.first <= number }
            for key in ready.keys { state.waiters[key] = nil }
            return Array(ready.values)
        }
        for waiter in ready { waiter.resume(true) }
    }

    /// Calls `resume` once: with true for a response that began from now on, with false if ``giveUp(_:)`` is first.
    ///
    /// - Parameters:
    ///   - path: that of the awaited request.
    ///   - resume: what to call.
    ///   - schedule: called with the waiter's number, before the server can close.
    func wait(
        for path: String,
        resume: @escaping @Sendable (Bool) -> Void,
        schedule: (_ waiter: UInt64) -> Void
    ) {
        let isOpen = self.state.withLock { state in
            guard !state.isClosed else { return false }
            let key = state.nextWaiter
            state.nextWaiter += 1
            state.waiters[key] = Waiter(path: path, first: state.number, resume: resume)
            schedule(key)
            return true
        }
        if !isOpen { resume(false) }
    }

    func giveUp(_ waiter: UInt64) {
        let waiter = self.state.withLock { $0.waiters.removeValue(forKey: waiter) }
        waiter?.resume(false)
    }

    /// Calls `body` unless the server is closed, which it cannot become meanwhile.
    func whileOpen(_ body: () -> Void) {
        self.state.withLock { state in
            if !state.isClosed { body() }
        }
    }

    /// Whether it was open until now.
    func close() -> Bool {
        let waiters: [Waiter]? = self.state.withLock { state in
            guard !state.isClosed else { return nil }
            state.isClosed = true
            defer { state.waiters = [:] }
            return Array(state.waiters.values)
        }
        for waiter in waiters ?? [] { waiter.resume(false) }
        return waiters != nil
    }
}
