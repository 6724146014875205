public import MQTTCodec

/// An application message, to be published or received.
public struct MQTTMessage: Hashable, Sendable {
    /// A topic name, without wildcards.
    public var topic: String
    /// Any bytes; the application defines their meaning.
    public var payload: [UInt8]
    /// The delivery guarantee.
    public var qos: QoS
    /// Whether the server keeps it for later subscribers; for a received message, whether the server had kept it.
    public var retain: Bool
    /// MQTT 5 only: expiry, response topic, correlation data, user properties and others (§3.3.2.3).
    public var properties: Properties

    /// - Parameters:
    ///   - topic: a topic name, without wildcards.
    ///   - payload: any bytes.
    ///   - qos: the delivery guarantee.
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
