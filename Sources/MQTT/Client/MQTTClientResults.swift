public import MQTTCodec

/// What the server said when it accepted the connection.
public struct MQTTConnectResult: Hashable, Sendable {
    /// The server kept the session of this client: subscriptions and unacknowledged messages are in force.
    public var sessionPresent: Bool
    /// The identifier in use: the configured one, or the one that the server assigned (§3.2.2.3.7).
    public var clientID: String
    /// What the server allows.
    public var limits: MQTTServerLimits
    /// All properties of the CONNACK; MQTT 5 only.
    public var properties: Properties

    package init(sessionPresent: Bool, clientID: String, limits: MQTTServerLimits, properties: Properties) {
        self.sessionPresent = sessionPresent
        self.clientID = clientID
        self.limits = limits
        self.properties = properties
    }
}

/// What a server allows, as its CONNACK said; before 5.0, and where it said nothing, everything (§3.2.2.3).
public struct MQTTServerLimits: Hashable, Sendable {
    /// Messages at QoS 1 and 2 that it takes unacknowledged.
    public var receiveMaximum: UInt16
    /// The highest QoS of a message.
    public var maximumQoS: QoS
    /// Whether it keeps messages.
    public var retainAvailable: Bool
    /// Bytes of a whole packet; `nil` without a limit.
    public var maximumPacketSize: UInt32?
    /// The largest topic alias.
    public var topicAliasMaximum: UInt16
    /// Whether filters may have wildcards.
    public var wildcardsAvailable: Bool
    /// Whether subscriptions may have identifiers.
    public var subscriptionIdentifiersAvailable: Bool
    /// Whether there are shared subscriptions.
    public var sharedAvailable: Bool
    /// Seconds of keep-alive in force, the server's if it said so; 0 is off.
    public var keepAlive: UInt16
    /// Seconds that it keeps the session behind the connection, its own if it said so; 0xFFFFFFFF is for ever.
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

/// What became of a message.
public struct MQTTPublishResult: Hashable, Sendable {
    /// The server's; success at QoS 0 and before 5.0.
    ///
    /// At QoS 2 it is what PUBREC said, unless PUBCOMP says that something is wrong: PUBREC alone can tell that nobody has
    /// subscribed.
    public var reason: ReasonCode
    /// The identifier under which the message went; `nil` at QoS 0.
    public var packetID: PacketID?
    /// Reason string and user properties of the last acknowledgement: PUBACK, PUBCOMP, or the PUBREC that refused; MQTT 5
    /// only.
    public var properties: Properties
    /// Those of the PUBREC in front of a PUBCOMP; MQTT 5 only.
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

/// What became of one filter of a SUBSCRIBE.
public struct MQTTSubscribeResult: Hashable, Sendable {
    /// The filter as it was asked for.
    public var filter: String
    /// Granted QoS 0, 1 or 2, or why not; before 5.0 a failure is always ``ReasonCode/unspecifiedError``.
    public var reason: ReasonCode
    /// Reason string and user properties of the SUBACK, which speaks for all filters of its SUBSCRIBE; MQTT 5 only.
    public var properties: Properties

    package init(filter: String, reason: ReasonCode, properties: Properties = Properties()) {
        self.filter = filter
        self.reason = reason
        self.properties = properties
    }

    /// The QoS at most of the messages that come; `nil` if the server refused the filter.
    public var granted: QoS? { QoS(rawValue: self.reason.rawValue) }
}

/// What became of one filter of an UNSUBSCRIBE.
public struct MQTTUnsubscribeResult: Hashable, Sendable {
    /// The filter as it was given.
    public var filter: String
    /// Success, that there was no such subscription, or why it goes on; before 5.0 always success.
    public var reason: ReasonCode
    /// Reason string and user properties of the UNSUBACK, which speaks for all filters of its UNSUBSCRIBE; MQTT 5 only.
    public var properties: Properties

    package init(filter: String, reason: ReasonCode, properties: Properties = Properties()) {
        self.filter = filter
        self.reason = reason
        self.properties = properties
    }
}
