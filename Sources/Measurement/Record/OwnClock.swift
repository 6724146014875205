import CPosix

/// The clock of this process: CLOCK_MONOTONIC plus one offset, so that setting CLOCK_REALTIME does not change it.
package struct OwnClock: Hashable, Sendable {
    /// CLOCK_REALTIME minus CLOCK_MONOTONIC in nanoseconds, when it was read.
    private let offset: Int64
    /// Nanoseconds per second that the clock gains, and since when: so that tests have clocks of several hosts on one.
    private let gain: Int64
    private let since: Int64
    /// An identity that all processes with this clock have; `nil` if the kernel has none.
    package let identity: String?

    /// - Parameters:
    ///   - offset: CLOCK_REALTIME minus CLOCK_MONOTONIC as another process of this host read it; `nil`: read now.
    ///   - ahead: nanoseconds that the clock is ahead of the host's.
    ///   - gain: nanoseconds per second that it gains on the host's.
    package init(offset: Int64? = nil, ahead: Int64 = 0, gain: Int64 = 0) {
        self.offset = (offset ?? HostClock.realtimeOffset()) &+ ahead
        self.gain = gain
        self.since = clamor_monotonic_nanoseconds()
        self.identity = HostClock.host(ahead: ahead ^ gain)
    }

    /// This clock minus CLOCK_MONOTONIC.
    package func offset(at monotonic: Int64) -> Int64 {
        guard self.gain != 0 else { return self.offset }
        // In steps of a second: durations inside one of them are true.
        return self.offset &+ (monotonic &- self.since) / 1_000_000_000 &* self.gain
    }

    package var now: Int64 {
        let monotonic = clamor_monotonic_nanoseconds()
        return monotonic &+ self.offset(at: monotonic)
    }

    /// This clock minus CLOCK_MONOTONIC, now.
    package var offsetNow: Int64 { self.offset(at: clamor_monotonic_nanoseconds()) }
}

/// How far another clock is ahead of this one, during a whole run: estimates follow each other, since clocks drift.
package struct ClockTrack: Hashable, Sendable {
    private var window: [ClockExchange] = []
    /// The correction in effect; `nil` before the first estimate.
    package private(set) var offset: Int64?
    /// The largest error that any correction has had while it was in effect.
    package private(set) var error: Int64 = 0
    package private(set) var exchanges = 0

    package init() {}

    package mutating func add(_ exchange: ClockExchange) { self.window.append(exchange) }

    /// The exchanges since the last estimate.
    package var pending: Int { self.window.count }

    /// Estimates anew from the exchanges since the last estimate; without any, the correction stays.
    package mutating func estimate() {
        defer { self.window = [] }
        guard let estimate = ClockEstimate(self.window) else { return }
        self.exchanges += estimate.exchanges
        // The previous correction was in effect until now, and is wrong by what the clocks have drifted since.
        let drift = self.offset.map { Int64((estimate.offset &- $0).magnitude) } ?? 0
        self.error = max(self.error, estimate.error + drift)
        self.offset = estimate.offset
    }
}
