public import MQTTCodec

/// A message at QoS 1 or 2 whose flow is not complete.
public struct MQTTStoredMessage: Hashable, Sendable {
    /// The progress of its flow.
    public enum Stage: Hashable, Sendable {
        /// Ours; it has no packet identifier yet.
        case queued
        /// Ours; its PUBLISH may have been sent under this identifier.
        case published(PacketID)
        /// Ours, QoS 2; PUBREC came, so PUBREL is sent (again). The payload is not needed any more.
        case released(PacketID)
        /// The server's, QoS 2; PUBREC may have been sent, and a retransmission must not be delivered
        /// ([MQTT-4.3.3-10]).
        case received(PacketID)
    }

    /// The position in the store's order, unique per client and direction.
    ///
    /// Messages are sent again in the order of their first sending ([MQTT-4.6.0-1]).
    public var sequence: UInt64
    /// The progress of its flow.
    public var stage: Stage
    /// The message, including its properties.
    public var message: MQTTMessage

    /// - Parameters:
    ///   - sequence: the position in the order.
    ///   - stage: the progress of its flow.
    ///   - message: the message.
    public init(sequence: UInt64, stage: Stage, message: MQTTMessage) {
        self.sequence = sequence
        self.stage = stage
        self.message = message
    }
}

/// A change to the stored messages.
public enum MQTTStoreChange: Hashable, Sendable {
    /// A new message of ours or, with the stage `received`, of the server's.
    case insert(MQTTStoredMessage)
    /// A message of ours has reached this stage.
    case advance(sequence: UInt64, to: MQTTStoredMessage.Stage)
    /// A message of ours is complete: acknowledged, rejected or expired.
    case remove(sequence: UInt64)
    /// A message of the server's is complete: PUBREL came.
    case forget(PacketID)
    /// The session has ended, and all its messages with it ([MQTT-3.2.2-5]).
    case removeAll
}

/// Storage for messages that must survive a client's connection, or its process.
///
/// A client loads once, and then only writes. No method runs on an event loop. A client sends a message or its PUBREL
/// only after ``commit(_:client:)`` has returned.
public protocol MQTTMessageStore: Sendable {
    /// All messages of a client, by `sequence`, the server's last.
    ///
    /// An expiry interval keeps running in the store: the result has the time that is left, and 0 after it expired
    /// (MQTT 5 §3.3.2.3.3).
    func load(client: String) async throws -> [MQTTStoredMessage]

    /// Makes all the changes in order, or none of them; returns when they are as durable as the store promises.
    ///
    /// A store in memory promises nothing; a store on disk promises to survive a killed process.
    func commit(_ changes: [MQTTStoreChange], client: String) async throws
}
