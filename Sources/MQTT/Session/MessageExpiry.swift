package import NIOCore

/// How long a message that waits is still worth sending.
///
/// Pure. Spec: MQTT 5.0 §3.3.2.3.3.
package struct MessageExpiry: Hashable, Sendable {
    /// Seconds, as the application gave them.
    package let interval: UInt32
    /// When the application gave them.
    package let since: NIODeadline

    package init(interval: UInt32, since: NIODeadline) {
        self.interval = interval
        self.since = since
    }

    /// What the PUBLISH says that goes out now: the interval less the whole seconds waited ([MQTT-3.3.2-6]).
    ///
    /// - Returns: `nil` when it has expired and must not begin to be sent ([MQTT-3.3.2-5]).
    package func remaining(now: NIODeadline) -> UInt32? {
        let waited = max(0, (now - self.since).nanoseconds)
        // Never 0 for one that is sent: a receiver would take it for expired.
        guard waited < Int64(self.interval) * 1_000_000_000 else { return nil }
        return self.interval - UInt32(waited / 1_000_000_000)
    }
}
