import CPosix
import Foundation

/// SIGINT and SIGTERM as events.
///
/// They are blocked in every thread and awaited in one, so no code runs in a signal handler.
enum Signals {
    /// Must be called first in `main`: threads inherit the blocked signals.
    static func block() {
        var set = Self.set
        pthread_sigmask(SIG_BLOCK, &set, nil)
        // A peer that closes during a write is an error of that connection.
        signal(SIGPIPE, SIG_IGN)
    }

    /// The signals from now on, by number.
    static func stream() -> AsyncStream<Int32> {
        AsyncStream { continuation in
            Thread.detachNewThread {
                var set = Self.set
                while true {
                    var signal: Int32 = 0
                    guard sigwait(&set, &signal) == 0 else { continue }
                    continuation.yield(signal)
                }
            }
        }
    }

    private static var set: sigset_t {
        var set = sigset_t()
        sigemptyset(&set)
        sigaddset(&set, SIGINT)
        sigaddset(&set, SIGTERM)
        return set
    }
}
