package import MQTTCodec
package import NIOCore

/// What all sessions of one kind have in common: one object for thousands of clients.
package final class SessionOptions: Sendable {
    /// Who sends PUBACK and PUBREC.
    package enum Acknowledging: Hashable, Sendable {
        /// The connection, with the read that brought the message.
        case atOnce
        /// The owner, by ``MQTTConnection/acknowledge(_:id:reason:)``.
        case byOwner
    }

    package let version: ProtocolVersion
    package let cleanStart: Bool
    /// Seconds; 0 switches the keep-alive off (§3.1.2.10).
    package let keepAlive: UInt16
    /// Seconds; MQTT 5 only (§3.1.2.11.2).
    package let sessionExpiry: UInt32?
    /// Publishes at QoS 1 and 2 in flight at most; the peer's receive maximum may be lower.
    package let window: Int
    /// How long an acknowledgement is awaited from the write on.
    package let ackTimeout: TimeAmount
    /// How long PINGRESP is awaited; the keep-alive itself if that is shorter.
    package let pingTimeout: TimeAmount
    /// Bytes of a packet that is accepted; announced in MQTT 5 when it is below the protocol's own limit.
    package let maximumPacketSize: Int?
    /// Messages at QoS 1 and 2 that the server may have unacknowledged at once; MQTT 5 only (§3.1.2.11.3).
    package let receiveMaximum: UInt16?
    /// The largest topic alias that the server may use; MQTT 5 only (§3.1.2.11.5).
    package let topicAliasMaximum: UInt16
    /// Asks for a response topic to build on (§3.1.2.11.6).
    package let requestsResponseInformation: Bool
    /// Lets the server explain failures anywhere, not only where it always may (§3.1.2.11.7).
    package let requestsProblemInformation: Bool
    /// Those of CONNECT (§3.1.2.11.8).
    package let userProperties: [UserProperty]
    /// How long a publish waits before it goes out again on the same connection, which MQTT 5 forbids ([MQTT-4.4.0-1])
    /// and 3.1.1 discourages; `nil` is never.
    package let dupTimeout: TimeAmount?
    /// PUBREL goes out by ``MQTTConnection/release(_:)`` alone: when the owner has written down that PUBREC came.
    package let defersReleases: Bool
    /// PUBCOMP goes out by ``MQTTConnection/complete(_:)`` alone: when the owner has written down that PUBREL came.
    package let defersCompletions: Bool
    package let acknowledgesMessages: Acknowledging
    /// The owner hears what answers say beyond their codes.
    package let tellsProperties: Bool
    /// The owner sees each packet first, and may have it dropped.
    package let showsPackets: Bool

    /// How long after a write something may be due about it.
    let firstCheck: TimeAmount

    package init(
        version: ProtocolVersion,
        cleanStart: Bool = true,
        keepAlive: UInt16 = 300,
        sessionExpiry: UInt32? = nil,
        window: Int = 16,
        ackTimeout: TimeAmount = .seconds(30),
        pingTimeout: TimeAmount = .seconds(10),
        maximumPacketSize: Int? = nil,
        receiveMaximum: UInt16? = nil,
        topicAliasMaximum: UInt16 = 0,
        requestsResponseInformation: Bool = false,
        requestsProblemInformation: Bool = true,
        userProperties: [UserProperty] = [],
        dupTimeout: TimeAmount? = nil,
        defersReleases: Bool = false,
        defersCompletions: Bool = false,
        acknowledgesMessages: Acknowledging = .atOnce,
        tellsProperties: Bool = false,
        showsPackets: Bool = false
    ) {
        self.version = version
        self.cleanStart = cleanStart
        self.keepAlive = keepAlive
        self.sessionExpiry = sessionExpiry
        self.window = window
        self.ackTimeout = ackTimeout
        self.pingTimeout = pingTimeout
        self.maximumPacketSize = maximumPacketSize
        self.receiveMaximum = version == .v5 ? receiveMaximum : nil
        self.topicAliasMaximum = topicAliasMaximum
        self.requestsResponseInformation = requestsResponseInformation
        self.requestsProblemInformation = requestsProblemInformation
        self.userProperties = userProperties
        self.dupTimeout = version == .v5 ? nil : dupTimeout
        self.defersReleases = defersReleases
        self.defersCompletions = defersCompletions
        self.acknowledgesMessages = acknowledgesMessages
        self.tellsProperties = tellsProperties
        self.showsPackets = showsPackets
        self.firstCheck = min(ackTimeout, self.dupTimeout ?? ackTimeout)
    }

    /// Whether an option wants a closer look at what is received than the hot path takes.
    var isCareful: Bool {
        self.receiveMaximum != nil || self.topicAliasMaximum > 0 || self.acknowledgesMessages == .byOwner
            || self.defersCompletions || self.tellsProperties || self.showsPackets
    }

    /// The properties of CONNECT, in the order of their identifiers' table; none before MQTT 5 (§3.1.2.11).
    var connectProperties: Properties {
        guard self.version == .v5 else { return Properties() }
        var properties = Properties()
        if let expiry = self.sessionExpiry { properties.append(.sessionExpiryInterval(expiry)) }
        if let maximum = self.receiveMaximum { properties.append(.receiveMaximum(maximum)) }
        if let size = self.maximumPacketSize { properties.append(.maximumPacketSize(UInt32(clamping: size))) }
        if self.topicAliasMaximum > 0 { properties.append(.topicAliasMaximum(self.topicAliasMaximum)) }
        if self.requestsResponseInformation { properties.append(.requestResponseInformation(true)) }
        if !self.requestsProblemInformation { properties.append(.requestProblemInformation(false)) }
        for property in self.userProperties { properties.append(.userProperty(property.name, property.value)) }
        return properties
    }
}
