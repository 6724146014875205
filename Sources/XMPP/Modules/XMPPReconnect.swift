package import NIOCore
import XMPPCodec

/// When to connect again, and whether to; it connects nothing itself.
///
/// Only after a loss that nobody wanted, of a stream that had come up: what never worked would not work again. Delays
/// double, and each is spread at random, so that thousands of clients do not come back at once.
package struct XMPPReconnect: Hashable, Sendable {
    package enum Verdict: Hashable, Sendable {
        /// Not again; somebody has to say so.
        case stay
        case connect(at: NIODeadline, to: XMPPHost?)
    }

    private let first: TimeAmount
    private let most: TimeAmount
    private var failures = 0
    private var wasReady = false
    /// Hops in a row; a login between them does not count, for a server may redirect behind it without end.
    private var redirects = 0
    /// Hops that are made at once.
    private static let maximumHops = 3

    /// - Parameters:
    ///   - first: the delay behind the first loss.
    ///   - most: the longest delay.
    package init(first: TimeAmount = .seconds(2), most: TimeAmount = .seconds(60)) {
        self.first = first
        self.most = max(first, most)
    }

    /// The stream is ready: what is lost from now on is worth coming back for.
    package mutating func ready() {
        self.failures = 0
        self.wasReady = true
    }

    /// The owner wants no more of it, or starts afresh.
    package mutating func reset() {
        self.failures = 0
        self.wasReady = false
        self.redirects = 0
    }

    /// `random`: 0 up to 1, of which the delay takes between half and all.
    package mutating func ended(_ end: XMPPConnectionEnd, now: NIODeadline, random: Double) -> Verdict {
        switch end.retry {
        case .never: return .stay
        // Asked for by the server, before or behind the login.
        case .at(let host):
            self.redirects += 1
            let isChased = self.redirects > Self.maximumHops
            let delay = isChased ? self.delay(self.redirects - Self.maximumHops - 1, random) : .zero
            return .connect(at: now + delay, to: host)
        case .soon, .later:
            guard self.wasReady else { return .stay }
            // Whoever was asked to wait begins with a longer one.
            if end.retry == .later { self.failures = max(self.failures, 2) }
            let delay = self.delay(self.failures, random)
            self.failures += 1
            self.redirects = 0
            return .connect(at: now + delay, to: nil)
        }
    }

    private func delay(_ failures: Int, _ random: Double) -> TimeAmount {
        let doubled = self.first.nanoseconds.multipliedReportingOverflow(by: 1 << min(failures, 30))
        let delay = doubled.overflow ? self.most.nanoseconds : min(doubled.partialValue, self.most.nanoseconds)
        let share = 0.5 + min(max(random, 0), 1) / 2
        return .nanoseconds(Int64(Double(delay) * share))
    }
}
