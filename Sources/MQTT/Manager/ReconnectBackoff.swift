/// How an ``MQTTSessionManager`` comes back to a server it has lost.
public struct MQTTReconnectPolicy: Hashable, Sendable {
    /// The wait before the first attempt behind a connection.
    public var firstDelay = Duration.seconds(1)
    /// Each wait is twice the one before, up to this.
    public var maximumDelay = Duration.seconds(64)
    /// Whether a wait is drawn between nothing and its full length, so that clients who lost the same server do not
    /// all come back at once.
    public var hasJitter = true
    /// How often in a row a server may send the client to another one (MQTT 5, §4.11); 0 follows none.
    public var maximumRedirects = 5
    /// Whether a refused user name or password is tried again: for tokens that are renewed from outside.
    public var retriesRefusedLogin = false

    /// 1 s doubling to 64 s, with jitter; five redirections; a refused login is final.
    public init() {}
}

/// The waits between attempts to connect.
///
/// Pure: the chance is passed in, and nothing sleeps here.
package struct ReconnectBackoff: Sendable {
    private let policy: MQTTReconnectPolicy
    private var next: Duration

    package init(_ policy: MQTTReconnectPolicy) {
        self.policy = policy
        self.next = max(min(policy.firstDelay, policy.maximumDelay), .zero)
    }

    /// The wait before the next attempt.
    package mutating func delay(using generator: inout some RandomNumberGenerator) -> Duration {
        let full = self.next
        // The cap is reached exactly, also when it is no power of two.
        self.next = full >= self.policy.maximumDelay / 2 ? max(self.policy.maximumDelay, .zero) : full * 2
        guard self.policy.hasJitter else { return full }
        return .nanoseconds(Int64.random(in: 0...Self.nanoseconds(full), using: &generator))
    }

    /// There is a connection, or somebody asked for one: what comes next is a first attempt again.
    package mutating func reset() { self = ReconnectBackoff(self.policy) }

    private static func nanoseconds(_ duration: Duration) -> Int64 {
        let (seconds, attoseconds) = duration.components
        let (product, overflows) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        return overflows ? .max : product.addingReportingOverflow(attoseconds / 1_000_000_000).partialValue
    }
}
