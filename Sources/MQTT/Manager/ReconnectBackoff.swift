/// The reconnect policy of an ``MQTTSessionManager``.
public struct MQTTReconnectPolicy: Hashable, Sendable {
    /// Delay before the first attempt after a lost connection.
    public var firstDelay = Duration.seconds(1)
    /// Each delay is twice the previous one, up to this limit.
    public var maximumDelay = Duration.seconds(64)
    /// Whether each delay is drawn at random between zero and its full length.
    ///
    /// Clients that lost the same server then do not reconnect at the same moment.
    public var hasJitter = true
    /// Redirects in a row that the client follows (MQTT 5, §4.11); 0 follows none.
    public var maximumRedirects = 5
    /// Whether a rejected user name or password is retried: for tokens that another program renews.
    public var retriesRefusedLogin = false

    /// 1 s doubling to 64 s, with jitter; five redirects; a rejected login is final.
    public init() {}
}

/// The delays between connection attempts.
///
/// Pure: the random source is an argument, and nothing sleeps here.
package struct ReconnectBackoff: Sendable {
    private let policy: MQTTReconnectPolicy
    private var next: Duration

    package init(_ policy: MQTTReconnectPolicy) {
        self.policy = policy
        self.next = max(min(policy.firstDelay, policy.maximumDelay), .zero)
    }

    /// The delay before the next attempt.
    package mutating func delay(using generator: inout some RandomNumberGenerator) -> Duration {
        let full = self.next
        // The limit is reached exactly, even if it is no power of two.
        self.next = full >= self.policy.maximumDelay / 2 ? max(self.policy.maximumDelay, .zero) : full * 2
        guard self.policy.hasJitter else { return full }
        return .nanoseconds(Int64.random(in: 0...Self.nanoseconds(full), using: &generator))
    }

    /// Resets the delay after a connection or a user's request: the next attempt counts as the first.
    package mutating func reset() { self = ReconnectBackoff(self.policy) }

    private static func nanoseconds(_ duration: Duration) -> Int64 {
        let (seconds, attoseconds) = duration.components
        let (product, overflows) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        return overflows ? .max : product.addingReportingOverflow(attoseconds / 1_000_000_000).partialValue
    }
}
