import Synchronization

/// Hands values to as many streams as there are.
package final class Broadcast<Value: Sendable>: Sendable {
    private struct State {
        var streams: [Int: AsyncStream<Value>.Continuation] = [:]
        var next = 0
        var isFinished = false
        var latest: Value?
        var listener: (@Sendable (Value) -> Void)?
    }

    /// Values that a stream keeps for a reader who is late; older ones are dropped.
    private static var kept: Int { 256 }
    private let state: Mutex<State>

    /// - Parameter initial: what a new stream begins with until there is something newer; `nil` for nothing.
    package init(initial: Value? = nil) { self.state = Mutex(State(latest: initial)) }

    /// The latest value, if the broadcast began with one.
    package var latest: Value? { self.state.withLock { $0.latest } }

    /// A new stream, from now on.
    package func stream() -> AsyncStream<Value> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: Value.self,
            bufferingPolicy: .bufferingNewest(Self.kept)
        )
        let number = self.state.withLock { state -> Int? in
            if let latest = state.latest { continuation.yield(latest) }
            guard !state.isFinished else { return nil }
            state.next += 1
            state.streams[state.next] = continuation
            return state.next
        }
        guard let number else {
            continuation.finish()
            return stream
        }
        continuation.onTermination = { [weak self] _ in
            self?.state.withLock { _ = $0.streams.removeValue(forKey: number) }
        }
        return stream
    }

    package func send(_ value: Value) {
        // Yielded under the lock, so that all streams have the same order; nothing of a stream's reader runs in it.
        let listener = self.state.withLock { state in
            if state.latest != nil { state.latest = value }
            for stream in state.streams.values { stream.yield(value) }
            return state.listener
        }
        listener?(value)
    }

    /// Calls one listener with each value, on the thread that sends it.
    package func hear(_ body: @escaping @Sendable (Value) -> Void) { self.state.withLock { $0.listener = body } }

    package func finish() {
        let streams = self.state.withLock { state in
            state.isFinished = true
            state.listener = nil
            defer { state.streams = [:] }
            return Array(state.streams.values)
        }
        for stream in streams { stream.finish() }
    }
}
