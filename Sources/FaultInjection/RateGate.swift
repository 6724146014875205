package import NIOCore

/// How much may go now, so that over time it is `rate` a second: PUBLISH of a broker, bytes of a proxy.
///
/// A token bucket that holds 5 ms worth and one, so that a pause is not made up for by a burst.
package struct RateGate {
    private let perNanosecond: Double
    private let capacity: Double
    private var tokens: Double
    private var last: NIODeadline

    package init(rate: Double, now: NIODeadline) {
        self.perNanosecond = rate / 1e9
        self.capacity = 1 + rate * 0.005
        self.tokens = self.capacity
        self.last = now
    }

    /// Whole ones that may go at `now`.
    package mutating func available(now: NIODeadline) -> Int {
        if now > self.last {
            self.tokens = min(self.capacity, self.tokens + Double((now - self.last).nanoseconds) * self.perNanosecond)
            self.last = now
        }
        return Int(self.tokens)
    }

    package mutating func take(_ count: Int) { self.tokens -= Double(count) }

    /// When `count` whole ones are there, or as many as can be saved up, but not before half a millisecond: a wake-up
    /// has its price.
    package func nextDue(for count: Int = 1, now: NIODeadline) -> NIODeadline {
        let wanted = min(Double(max(1, count)), self.capacity.rounded(.down))
        let missing = max(0, wanted - self.tokens) / self.perNanosecond
        return now + .nanoseconds(Int64(min(max(missing, 500_000), 3.6e12)))
    }
}
