/// Where an ``MQTTSessionManager`` stands.
public enum MQTTManagerState: Hashable, Sendable {
    /// Nobody has asked for a connection yet.
    case starting
    /// An attempt is under way.
    case connecting
    /// CONNACK accepted.
    case connected
    /// There is no connection, and the next attempt comes in its time; ``MQTTSessionManager/lastError`` says why.
    case waiting
    /// Given up, since the next attempt would end like the last one; ``MQTTSessionManager/lastError`` says how.
    case failed
    /// The connection is being closed, as somebody asked.
    case closing
    /// Closed, as somebody asked.
    case closed
    /// Closed until ``MQTTSessionManager/resume()``.
    case suspended

    /// Whether there is something to be closed.
    public var requiresTearDown: Bool { self != .closed && self != .starting }
}
