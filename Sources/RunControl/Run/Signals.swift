import Foundation
import Synchronization

/// SIGINT, SIGTERM and SIGHUP as events, and what the terminal asks of the board.
///
/// They are blocked in every thread and awaited in one, so no code runs in a signal handler.
package enum Signals {
    /// A change of the terminal.
    enum TerminalEvent: Sendable {
        case resized
        /// The shell wants to stop this process (Ctrl-Z); it has to stop itself.
        case stop
    }

    private struct State {
        var isAwaited = false
        /// Whether a signal to end has come.
        var hasEnded = false
        var number = 0
        var listeners: [Int: AsyncStream<Int32>.Continuation] = [:]
        var terminal: AsyncStream<TerminalEvent>.Continuation?
    }

    private static let state = Mutex(State())

    /// Must be called first in `main`: threads inherit the blocked signals.
    package static func block() {
        var set = Self.set
        pthread_sigmask(SIG_BLOCK, &set, nil)
        // A peer that closes during a write is an error of that connection.
        signal(SIGPIPE, SIG_IGN)
    }

    /// The signals to end from now on, by number; every stream gets each of them.
    package static func stream() -> AsyncStream<Int32> {
        let (stream, continuation) = AsyncStream<Int32>.makeStream()
        let number = Self.state.withLock { state in
            state.number += 1
            state.listeners[state.number] = continuation
            return state.number
        }
        continuation.onTermination = { _ in Self.state.withLock { $0.listeners[number] = nil } }
        Self.startAwaiting()
        return stream
    }

    /// The changes of the terminal, for the only board of this process.
    static func terminal() -> AsyncStream<TerminalEvent> {
        let (stream, continuation) = AsyncStream<TerminalEvent>.makeStream(bufferingPolicy: .bufferingNewest(1))
        Self.state.withLock { $0.terminal = continuation }
        Self.startAwaiting()
        return stream
    }

    /// Waits for a value; a signal to end cancels the wait.
    package static func cancelling<Value: Sendable, Failure: Error>(
        _ body: @escaping @Sendable () async throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        let waiting = Task { () async -> Result<Value, Failure> in
            do throws(Failure) { return .success(try await body()) } catch { return .failure(error) }
        }
        let signals = Task {
            for await _ in Self.stream() { waiting.cancel() }
        }
        defer { signals.cancel() }
        return try await waiting.value.get()
    }

    /// Starts the thread that awaits them, once.
    private static func startAwaiting() {
        let isFirst = Self.state.withLock { state in
            defer { state.isAwaited = true }
            return !state.isAwaited
        }
        guard isFirst else { return }
        Thread.detachNewThread {
            var set = Self.set
            while true {
                var signal: Int32 = 0
                if sigwait(&set, &signal) == 0 { Self.take(signal) }
            }
        }
    }

    private static func take(_ signal: Int32) {
        let (listeners, terminal) = Self.state.withLock { (Array($0.listeners.values), $0.terminal) }
        switch signal {
        case SIGWINCH: terminal?.yield(.resized)
        case SIGTSTP:
            // Without a board the process stops as if the signal were not blocked.
            if terminal == nil { kill(getpid(), SIGSTOP) } else { terminal?.yield(.stop) }
        default:
            // The kernel and the shell both tell of a terminal that is gone: SIGHUP is no second signal.
            let isRepeated = Self.state.withLock { state in
                defer { state.hasEnded = true }
                return state.hasEnded && signal == SIGHUP
            }
            if !isRepeated { for listener in listeners { listener.yield(signal) } }
        }
    }

    private static var set: sigset_t {
        var set = sigset_t()
        sigemptyset(&set)
        for signal in [SIGINT, SIGTERM, SIGWINCH, SIGTSTP] + self.hangup { sigaddset(&set, signal) }
        return set
    }

    /// A terminal that is gone ends the run in good order, unless `nohup` started it.
    private static let hangup: [Int32] = {
        let before = unsafeBitCast(signal(SIGHUP, SIG_DFL), to: Int.self)
        guard before == unsafeBitCast(SIG_IGN, to: Int.self) else { return [SIGHUP] }
        signal(SIGHUP, SIG_IGN)
        return []
    }()
}
