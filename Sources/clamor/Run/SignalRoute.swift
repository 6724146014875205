import LoadEngine
import Synchronization

/// Where SIGINT and SIGTERM go: to the run, and to whatever is under way before it and behind it.
///
/// The first ends the load in good order, the second closes everything. What has to be put in order behind the run goes
/// on until the second.
final class SignalRoute: Sendable {
    private struct State {
        var count = 0
        var hasBegun = false
        var listeners: [(events: AsyncStream<RunEvent>.Continuation, hearsFirst: Bool)] = []
    }

    private let state = Mutex(State())
    private let isRegularEnd: Bool

    /// - Parameter isRegularEnd: whether the run has no end of its own.
    init(isRegularEnd: Bool) { self.isRegularEnd = isRegularEnd }

    /// Signals so far.
    var count: Int { self.state.withLock(\.count) }

    /// The run begins: before that no signal is its regular end.
    func begins() { self.state.withLock { $0.hasBegun = true } }

    /// Signals from now on go there too; `hearsFirst`: the first one as well.
    func add(_ events: AsyncStream<RunEvent>.Continuation, hearsFirst: Bool = true) {
        self.state.withLock { $0.listeners.append((events, hearsFirst)) }
    }

    /// Call once.
    func listen() -> Task<Void, Never> {
        Task {
            for await _ in Signals.stream() {
                let (count, hasBegun, listeners) = self.state.withLock { state in
                    state.count += 1
                    return (state.count, state.hasBegun, state.listeners)
                }
                let first = RunEvent.stop(self.isRegularEnd && hasBegun ? .planned : .interrupted)
                for listener in listeners where count > 1 || listener.hearsFirst {
                    listener.events.yield(count == 1 ? first : .abort)
                }
            }
        }
    }
}
