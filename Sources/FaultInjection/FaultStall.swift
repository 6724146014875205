package import NIOCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// A time in which nothing is read or written, once.
package struct FaultStall: Hashable, Sendable {
    package var length: TimeAmount
    /// Counted from the first client.
    package var after: TimeAmount

    package init(length: TimeAmount, after: TimeAmount) {
        self.length = length
        self.after = after
    }
}

/// CLOCK_REALTIME, for stalls to be placed in a report, and a sleep for them.
package enum StallClock {
    /// How long a sleep goes on without asking whether it is still wanted.
    private static let slice: Int64 = 50_000_000

    /// Nanoseconds since 1970.
    package static func now() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    /// Blocks the calling thread until then, or until `isWanted` says no.
    package static func sleep(until end: NIODeadline, while isWanted: () -> Bool = { true }) {
        while isWanted() {
            let left = min((end - NIODeadline.now()).nanoseconds, Self.slice)
            guard left > 0 else { return }
            var time = timespec(tv_sec: 0, tv_nsec: Int(left))
            nanosleep(&time, nil)
        }
    }
}
