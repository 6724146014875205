import Synchronization

/// A call that waits for its end, which comes once: as an answer, as an error, or because the task was cancelled.
///
/// The side of the task; what it waits for happens on an event loop.
package final class CallWaiter<Value: Sendable, Failure: Error>: Sendable {
    package typealias Outcome = Result<Value, Failure>

    private enum State {
        case idle
        case waiting(CheckedContinuation<Outcome, Never>)
        /// The outcome came before the caller waits.
        case early(Outcome)
        case done
    }

    private let state = Mutex(State.idle)

    package init() {}

    /// Whether no caller waits any more.
    package var isDone: Bool {
        self.state.withLock { state in
            switch state {
            case .idle, .waiting: false
            case .early, .done: true
            }
        }
    }

    /// Waits for the end of what `start` begins; `start` is not called if the end is there already.
    package func wait(_ start: () -> Void) async -> Outcome {
        await withCheckedContinuation { continuation in
            let early = self.state.withLock { state -> Outcome? in
                if case .early(let outcome) = state {
                    state = .done
                    return outcome
                }
                state = .waiting(continuation)
                return nil
            }
            if let early { continuation.resume(returning: early) } else { start() }
        }
    }

    /// Ends the wait; the first end counts.
    ///
    /// - Returns: whether this was the first.
    @discardableResult
    package func complete(_ outcome: Outcome) -> Bool {
        let (isFirst, continuation) = self.state.withLock { state -> (Bool, CheckedContinuation<Outcome, Never>?) in
            switch state {
            case .idle:
                state = .early(outcome)
                return (true, nil)
            case .waiting(let continuation):
                state = .done
                return (true, continuation)
            case .early, .done:
                return (false, nil)
            }
        }
        continuation?.resume(returning: outcome)
        return isFirst
    }

    /// Ends the wait with an error; the first end counts.
    package func fail(_ error: Failure) { self.complete(.failure(error)) }
}
