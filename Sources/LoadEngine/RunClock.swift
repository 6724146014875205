package import NIOCore

/// The time that a run goes by, and what wakes it.
package protocol RunClock: Sendable {
    var now: NIODeadline { get }

    /// Calls `body` once, at `time` or a little later.
    func wake(at time: NIODeadline, _ body: @escaping @Sendable () -> Void)
}

/// The clock of this host.
package struct SystemRunClock: RunClock {
    package init() {}

    package var now: NIODeadline { .now() }

    package func wake(at time: NIODeadline, _ body: @escaping @Sendable () -> Void) {
        Task {
            // The clock that sleeps is another one, and may wake a moment too early.
            while case let wait = time - .now(), wait > .zero {
                try? await Task.sleep(for: .nanoseconds(wait.nanoseconds))
            }
            body()
        }
    }
}
