/// The state of an ``MQTTSessionManager``.
public enum MQTTManagerState: Hashable, Sendable {
    /// No connection has been requested yet.
    case starting
    /// The client is connecting.
    case connecting
    /// CONNACK accepted.
    case connected
    /// No connection; the next attempt is scheduled. ``MQTTSessionManager/lastError`` says why the last one ended.
    case waiting
    /// Given up, because a retry would fail the same way; ``MQTTSessionManager/lastError`` says how.
    case failed
    /// The connection is being closed on request.
    case closing
    /// Closed on request.
    case closed
    /// Closed until ``MQTTSessionManager/resume()``.
    case suspended

    /// Whether there is a connection or an attempt to close.
    public var requiresTearDown: Bool { self != .closed && self != .starting }
}
