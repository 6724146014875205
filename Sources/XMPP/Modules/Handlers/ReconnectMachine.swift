package import NIOCore

/// Decides whether and when to reconnect; it connects nothing itself.
///
/// Only an unintended loss of a stream that had become ready leads to a reconnect: a stream that never worked would
/// fail again. Delays double, and each is randomized, so that thousands of clients do not return at once.
package struct ReconnectMachine: Hashable, Sendable {
    package enum Verdict: Hashable, Sendable {
        /// Do not reconnect until the caller asks for it.
        case stay
        case connect(at: NIODeadline, to: XMPPHost?)
    }

    private let first: TimeAmount
    private let most: TimeAmount
    private var failures = 0
    private var wasReady = false
    /// Redirects in a row.
    ///
    /// A login does not reset the count, because a server may redirect after each login.
    private var redirects = 0
    /// Hops that are made at once.
    private static let maximumHops = 3

    /// - Parameters:
    ///   - first: the delay after the first loss.
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

    /// Resets the state: the owner gives up, or starts again.
    package mutating func reset() {
        self.failures = 0
        self.wasReady = false
        self.redirects = 0
    }

    /// `random`: 0 up to 1, of which the delay takes between half and all.
    package mutating func ended(_ retry: XMPPRetry, now: NIODeadline, random: Double) -> Verdict {
        switch retry {
        case .never:
            // The next connect is a first one again.
            self.wasReady = false
            return .stay
        // Requested by the server, before or after the login.
        case .at(let host):
            self.redirects += 1
            let isChased = self.redirects > Self.maximumHops
            let delay = isChased ? self.delay(self.redirects - Self.maximumHops - 1, random) : .zero
            return .connect(at: now + delay, to: host)
        case .soon, .later:
            guard self.wasReady else { return .stay }
            // If the server asked the client to wait, the first delay is longer.
            if retry == .later { self.failures = max(self.failures, 2) }
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
