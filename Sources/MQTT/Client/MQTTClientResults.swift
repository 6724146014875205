public import MQTTCodec

/// The contents of the CONNACK that accepted the connection.
public struct MQTTConnectResult: Hashable, Sendable {
    /// The server kept the session of this client: subscriptions and unacknowledged messages remain.
    public var sessionPresent: Bool
    /// The identifier in use: the configured one, or the one that the server assigned (§3.2.2.3.7).
    public var clientID: String
    /// The limits that the server declared.
    public var limits: MQTTServerLimits
    /// All properties of the CONNACK; MQTT 5 only.
    public var properties: Properties
}

/// The limits declared by a server's CONNACK; before 5.0, and for missing properties, there are none (§3.2.2.3).
public struct MQTTServerLimits: Hashable, Sendable {
    /// Unacknowledged messages at QoS 1 and 2 that the server accepts.
    public var receiveMaximum: UInt16
    /// The highest QoS that the server accepts.
    public var maximumQoS: QoS
    /// Whether the server supports retained messages.
    public var retainAvailable: Bool
    /// The largest accepted packet in bytes; `nil` without a limit.
    public var maximumPacketSize: UInt32?
    /// The largest topic alias.
    public var topicAliasMaximum: UInt16
    /// Whether filters may have wildcards.
    public var wildcardsAvailable: Bool
    /// Whether subscriptions may have identifiers.
    public var subscriptionIdentifiersAvailable: Bool
    /// Whether the server supports shared subscriptions.
    public var sharedAvailable: Bool
    /// Keep-alive in force, in seconds, set by the server if it gave one; 0 is off.
    public var keepAlive: UInt16
    /// Seconds for which the server keeps the session after the connection, set by the server if it gave a value.
    ///
    /// 0xFFFFFFFF is for ever.
    public var sessionExpiry: UInt32

    init(_ limits: MQTTSession.Limits) {
        self.receiveMaximum = limits.receiveMaximum
        self.maximumQoS = limits.maximumQoS
        self.retainAvailable = limits.retainAvailable
        self.maximumPacketSize = limits.maximumPacketSize
        self.topicAliasMaximum = limits.topicAliasMaximum
        self.wildcardsAvailable = limits.wildcardAvailable
        self.subscriptionIdentifiersAvailable = limits.subscriptionIdentifiersAvailable
        self.sharedAvailable = limits.sharedAvailable
        self.keepAlive = limits.keepAlive
        self.sessionExpiry = limits.sessionExpiry
    }
}

/// The result of a published message.
public struct MQTTPublishResult: Hashable, Sendable {
    /// The server's reason code; success at QoS 0 and before 5.0.
    ///
    /// At QoS 2 it is PUBREC's, unless PUBCOMP has an error: only PUBREC can say that there are no subscribers.
    public var reason: ReasonCode
    /// The message's packet identifier; `nil` at QoS 0.
    public var packetID: PacketID?
    /// Reason string and user properties of the last acknowledgement; MQTT 5 only.
    ///
    /// This is PUBACK, PUBCOMP, or the PUBREC that rejected the message.
    public var properties: Properties
    /// Reason string and user properties of the PUBREC before a PUBCOMP; MQTT 5 only.
    public var recordedProperties: Properties

    package init(
        reason: ReasonCode = .success,
        packetID: PacketID? = nil,
        properties: Properties = Properties(),
        recordedProperties: Properties = Properties()
    ) {
        self.reason = reason
        self.packetID = packetID
        self.properties = properties
        self.recordedProperties = recordedProperties
    }
}

/// The result for one filter of a SUBSCRIBE.
public struct MQTTSubscribeResult: Hashable, Sendable {
    /// The filter as requested.
    public var filter: String
    /// Granted QoS 0, 1 or 2, or the error; before 5.0 an error is always ``ReasonCode/unspecifiedError``.
    public var reason: ReasonCode
    /// Reason string and user properties of the SUBACK, shared by all filters of its SUBSCRIBE; MQTT 5 only.
    public var properties: Properties

    package init(filter: String, reason: ReasonCode, properties: Properties = Properties()) {
        self.filter = filter
        self.reason = reason
        self.properties = properties
    }

    /// The highest QoS of messages for this filter; `nil` if the server rejected it.
    public var granted: QoS? { QoS(rawValue: self.reason.rawValue) }
}

/// The result for one filter of an UNSUBSCRIBE.
public struct MQTTUnsubscribeResult: Hashable, Sendable {
    /// The filter as requested.
    public var filter: String
    /// Success, no such subscription, or the error that kept it; before 5.0 always success.
    public var reason: ReasonCode
    /// Reason string and user properties of the UNSUBACK, shared by all filters of its UNSUBSCRIBE; MQTT 5 only.
    public var properties: Properties
}
