import MQTTCodec
import NIOCore

/// State that few connections have, so that the others need only one pointer.
final class ConnectionExtras {
    var will: StoredWill?
    /// The client's topic aliases [MQTT-3.3.2-7].
    var aliases: [UInt16: [UInt8]] = [:]
    /// The broker's aliases for the client, and how many it allows.
    var ownAliases: [[UInt8]: UInt16] = [:]
    var ownAliasMaximum: UInt16 = 0
    var user: BrokerAccess.User?
    /// Request Problem Information (§3.1.2.11.7).
    var wantsProblems = true
    var authentication: Authentication?
    /// The client's address, where wrong credentials are counted.
    var peer: String?
}

/// The state of a session while its client is offline, and its expiry.
///
/// A connected client has the state in its connection, and here only the expiry.
///
/// Spec: MQTT 5.0 §4.1.
final class KeptSession {
    /// Seconds after the end of the connection; `.max` means forever.
    var expiry: UInt32
    /// The version of the last connection, for which waiting messages are encoded.
    var version: ProtocolVersion
    var deliveries = DeliveryQueue(limit: 0)
    /// QoS 2 packet identifiers between PUBLISH and PUBREL.
    var heldIDs: Set<UInt16> = []
    /// Time when the session ends while the client is offline; nil means never.
    var endsAt: NIODeadline?
    /// A will that waits for its delay.
    var will: StoredWill?
    var willDue = NIODeadline.distantFuture
    /// Distinguishes this absence from others in the ``DueQueue``.
    var ticket: UInt64 = 0

    init(expiry: UInt32, version: ProtocolVersion) {
        self.expiry = expiry
        self.version = version
    }
}

/// A will in the form in which it is published.
struct StoredWill {
    var topic: [UInt8]
    var payload: [UInt8]
    /// Encoded as in a PUBLISH.
    var properties: [UInt8]
    var qos: UInt8
    var retain: Bool
    /// The will is delayed by so many seconds.
    var delay: UInt32

    init(_ will: Will) {
        self.topic = Array(will.topic.utf8)
        self.payload = will.payload
        self.qos = will.qos.rawValue
        self.retain = will.retain
        self.delay = will.properties.willDelayInterval ?? 0
        // All properties except the delay belong to the message (§3.1.3.2).
        var publish = Publish(topic: "w", properties: will.properties)
        publish.properties.entries.removeAll { $0.id == .willDelayInterval }
        self.properties = RawProperties.encoded(publish.properties)
    }
}
