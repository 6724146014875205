import Measurement
package import NIOCore

/// How long a client waits before each attempt to connect again; times are in nanoseconds.
///
/// A loss that all clients see at once otherwise brings all of them back at once, and again after each refusal.
package struct Backoff: Hashable, Sendable {
    /// Before the first attempt after a loss.
    package var from: Int64 = 1_000_000_000
    /// The longest wait, before jitter; `nil`: a day.
    package var to: Int64?
    /// Each wait is so many times the one before; `nil`: twice with a longest wait, else the same.
    package var factor: Double?
    /// The share of a wait by which it is longer or shorter at most, drawn for each attempt: 0 to 1.
    package var jitter = 0.0

    package init() {}

    private static var longestWait: Int64 { 86_400_000_000_000 }

    /// The wait of a client before the attempt that follows so many others since it was last up.
    package func delay(after attempts: Int, of client: Int, seed: UInt64) -> TimeAmount {
        let longest = Double(self.to ?? Self.longestWait)
        let factor = self.factor ?? (self.to == nil ? 1 : 2)
        var delay = Double(self.from)
        for _ in 0..<attempts where delay < longest { delay = min(delay * factor, longest) }
        let seed = seed &+ UInt64(client) &* 0xD134_2543_DE82_EF95 &+ UInt64(attempts)
        return .nanoseconds(Int64(bounded: SplitMix64.jitter(delay, share: self.jitter, seed: seed)))
    }

    /// The longest time that so many waits take together, in nanoseconds.
    package func longest(of attempts: Int) -> Double {
        let factor = self.factor ?? (self.to == nil ? 1 : 2)
        let longest = Double(self.to ?? Self.longestWait)
        var (sum, delay, left) = (0.0, Double(self.from), attempts)
        while factor > 1, delay > 0, delay < longest, left > 0 {
            sum += delay
            delay = min(delay * factor, longest)
            left -= 1
        }
        return (sum + Double(left) * delay) * (1 + self.jitter)
    }
}
