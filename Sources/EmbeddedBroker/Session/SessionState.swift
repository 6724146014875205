import MQTTCodec
import NIOCore

/// What few connections have, so that the others pay one pointer for it.
final class ConnectionExtras {
    var will: StoredWill?
    /// The client's topic aliases [MQTT-3.3.2-7].
    var aliases: [UInt16: [UInt8]] = [:]
    /// Ours towards the client, and how many it allows.
    var ownAliases: [[UInt8]: UInt16] = [:]
    var ownAliasMaximum: UInt16 = 0
    var user: BrokerAccess.User?
    /// Request Problem Information (§3.1.2.11.7).
    var wantsProblems = true
    var authentication: Authentication?
}

/// What remains of a session while its client is away, and how long.
///
/// A client that is connected has its own in the connection, and here only the terms.
///
/// Spec: MQTT 5.0 §4.1.
final class KeptSession {
    /// Seconds behind the end of the connection; `.max` is for ever.
    var expiry: UInt32
    /// The last connection's: what waits is encoded for it.
    var version: ProtocolVersion
    var deliveries = DeliveryQueue(limit: 0)
    /// QoS 2 packet identifiers between PUBLISH and PUBREL.
    var heldIDs: Set<UInt16> = []
    /// While the client is away; nil is never.
    var endsAt: NIODeadline?
    /// A will that waits for its delay.
    var will: StoredWill?
    var willDue = NIODeadline.distantFuture
    /// Tells this absence from others in the ``DueQueue``.
    var ticket: UInt64 = 0

    init(expiry: UInt32, version: ProtocolVersion) {
        self.expiry = expiry
        self.version = version
    }
}

/// A will as it is published.
struct StoredWill {
    var topic: [UInt8]
    var payload: [UInt8]
    /// As a PUBLISH has them, encoded.
    var properties: [UInt8]
    var qos: UInt8
    var retain: Bool
    /// Seconds.
    var delay: UInt32

    init(_ will: Will) {
        self.topic = Array(will.topic.utf8)
        self.payload = will.payload
        self.qos = will.qos.rawValue
        self.retain = will.retain
        self.delay = will.properties.willDelayInterval ?? 0
        // All but the delay belong to the message (§3.1.3.2).
        var publish = Publish(topic: "w", properties: will.properties)
        publish.properties.entries.removeAll { $0.id == .willDelayInterval }
        self.properties = RawProperties.encoded(publish.properties)
    }
}
