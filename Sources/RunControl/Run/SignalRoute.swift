import LoadEngine
import Synchronization

/// Routes SIGINT, SIGTERM and SIGHUP to the run, and to tasks before and after it.
///
/// The first signal ends the load in an orderly way, the second closes everything. Clean-up after the run continues
/// until the second.
final class SignalRoute: Sendable {
    private struct State {
        var count = 0
        var hasBegun = false
        var listeners: [(events: AsyncStream<RunEvent>.Continuation, hearsFirst: Bool)] = []
    }

    private let state = Mutex(State())
    private let isRegularEnd: Bool

    /// - Parameter isRegularEnd: whether a signal is the run's normal end, because it has no duration.
    init(isRegularEnd: Bool) { self.isRegularEnd = isRegularEnd }

    var count: Int { self.state.withLock(\.count) }

    /// Records the start of the run: before it no signal is its regular end.
    func begins() { self.state.withLock { $0.hasBegun = true } }

    /// Also sends later signals there; `hearsFirst`: the first one as well.
    func add(_ events: AsyncStream<RunEvent>.Continuation, hearsFirst: Bool = true) {
        self.state.withLock { $0.listeners.append((events, hearsFirst)) }
    }

    /// Must be called once.
    func listen(in world: RunWorld) -> Task<Void, Never> {
        world.makeTask { [self] in
            for await _ in world.signals() {
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
