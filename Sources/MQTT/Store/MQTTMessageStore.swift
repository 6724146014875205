public import MQTTCodec

/// A message on its way with QoS 1 or 2 that has to survive.
public struct MQTTStoredMessage: Hashable, Sendable {
    /// How far it has come.
    public enum Stage: Hashable, Sendable {
        /// Ours; it has no packet identifier yet.
        case queued
        /// Ours; its PUBLISH may have been sent under this identifier.
        case published(PacketID)
        /// Ours, QoS 2; PUBREC came, so it is PUBREL that goes out (again). The payload is not needed any more.
        case released(PacketID)
        /// The server's, QoS 2; PUBREC may have been sent, and a repetition must not be delivered ([MQTT-4.3.3-10]).
        case received(PacketID)
    }

    /// The store's order, unique per client and direction.
    ///
    /// Messages go out again as they first went ([MQTT-4.6.0-1]).
    public var sequence: UInt64
    /// How far it has come.
    public var stage: Stage
    /// The message itself, its properties included.
    public var message: MQTTMessage

    /// - Parameters:
    ///   - sequence: the place in the order.
    ///   - stage: how far it has come.
    ///   - message: the message.
    public init(sequence: UInt64, stage: Stage, message: MQTTMessage) {
        self.sequence = sequence
        self.stage = stage
        self.message = message
    }
}

/// A step in the life of stored messages.
public enum MQTTStoreChange: Hashable, Sendable {
    /// A new message of ours or, with the stage `received`, of the server's.
    case insert(MQTTStoredMessage)
    /// A message of ours has gone on to this stage.
    case advance(sequence: UInt64, to: MQTTStoredMessage.Stage)
    /// A message of ours is done with: acknowledged, refused or expired.
    case remove(sequence: UInt64)
    /// A message of the server's is done with: PUBREL came.
    case forget(PacketID)
    /// The session is gone, and everything with it ([MQTT-3.2.2-5]).
    case removeAll
}

/// Where a client keeps the messages that must survive its connection, or its process.
///
/// A client asks once for what there is, and from then on writes only. Nothing here runs on an event loop; a client
/// sends a message, or the PUBREL that lets go of it, only once ``commit(_:client:)`` has returned.
public protocol MQTTMessageStore: Sendable {
    /// Everything kept for a client, in order of `sequence`, those of the server's last.
    ///
    /// An expiry interval goes on in the store: what comes back is what is left of it, and 0 where it has run out
    /// (MQTT 5 §3.3.2.3.3).
    func load(client: String) async throws -> [MQTTStoredMessage]

    /// Makes the changes, in order and all of them or none; returns when they will outlive what the store promises to
    /// outlive: nothing for one in memory, a killed process for one on disk.
    func commit(_ changes: [MQTTStoreChange], client: String) async throws
}
