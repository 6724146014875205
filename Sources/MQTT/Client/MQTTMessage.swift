public import MQTTCodec

/// An application message, to be published or received.
public struct MQTTMessage: Hashable, Sendable {
    /// A topic name, without wildcards.
    public var topic: String
    /// Any bytes; what they mean is the application's.
    public var payload: [UInt8]
    /// How hard the delivery is tried.
    public var qos: QoS
    /// To be kept for later subscribers; of a received message, that it had been kept.
    public var retain: Bool
    /// MQTT 5 only: expiry, response topic, correlation data, user properties and others (§3.3.2.3).
    public var properties: Properties

    /// - Parameters:
    ///   - topic: a topic name, without wildcards.
    ///   - payload: any bytes.
    ///   - qos: how hard the delivery is tried.
    ///   - retain: whether the server keeps it for later subscribers.
    ///   - properties: MQTT 5 only.
    public init(
        topic: String,
        payload: some Sequence<UInt8> = [],
        qos: QoS = .atMostOnce,
        retain: Bool = false,
        properties: Properties = Properties()
    ) {
        self.topic = topic
        self.payload = Array(payload)
        self.qos = qos
        self.retain = retain
        self.properties = properties
    }
}
