package import MQTTCodec
package import NIOCore

/// Options shared by all sessions of one kind: one object for thousands of clients.
package final class SessionOptions: Sendable {
    /// The sender of PUBACK and PUBREC: connection or owner.
    package enum Acknowledging: Hashable, Sendable {
        /// The connection, during the read of the message.
        case atOnce
        /// The owner, by ``MQTTConnection/acknowledge(_:id:reason:)``.
        case byOwner
    }

    package let version: ProtocolVersion
    package let cleanStart: Bool
    /// Keep-alive in seconds; 0 disables it (§3.1.2.10).
    package let keepAlive: UInt16
    /// Session expiry interval in seconds; MQTT 5 only (§3.1.2.11.2).
    package let sessionExpiry: UInt32?
    /// Whether the owner wants a session of its own, from its first CONNECT to its last DISCONNECT; MQTT 5 only.
    ///
    /// As long as this side holds no session, CONNECT asks for a clean start.
    /// ``MQTTConnection/finishForGood()`` ends the session at the server; otherwise it lasts until its expiry.
    package let sessionEndsWithOwner: Bool
    /// Whether a session that the server kept of an earlier owner is continued: one without open flows on this side.
    package let takesUpSession: Bool
    /// Publishes at QoS 1 and 2 in flight at most; the peer's receive maximum may be lower.
    package let window: Int
    /// Acknowledgement timeout, from the write on.
    package let ackTimeout: TimeAmount
    /// PINGRESP timeout; the keep-alive itself if that is shorter.
    package let pingTimeout: TimeAmount
    /// Largest accepted packet in bytes, sent in MQTT 5; `nil` is the protocol's own limit.
    package let maximumPacketSize: Int?
    /// Unacknowledged messages at QoS 1 and 2 that the server may have in flight; MQTT 5 only (§3.1.2.11.3).
    package let receiveMaximum: UInt16?
    /// The largest topic alias that the server may use; MQTT 5 only (§3.1.2.11.5).
    package let topicAliasMaximum: UInt16
    /// Asks for a response topic to build on (§3.1.2.11.6).
    package let requestsResponseInformation: Bool
    /// Lets the server add reason strings and user properties to all packets that allow them (§3.1.2.11.7).
    package let requestsProblemInformation: Bool
    /// User properties of CONNECT (§3.1.2.11.8).
    package let userProperties: [UserProperty]
    /// Time after which an unacknowledged publish is sent again on the same connection; `nil` is never.
    ///
    /// MQTT 5 forbids this ([MQTT-4.4.0-1]) and 3.1.1 discourages it.
    package let dupTimeout: TimeAmount?
    /// Only ``MQTTConnection/release(_:)`` sends PUBREL: the owner calls it after it has stored that PUBREC came.
    package let defersReleases: Bool
    /// Only ``MQTTConnection/complete(_:)`` sends PUBCOMP: the owner calls it after it has stored that PUBREL came.
    package let defersCompletions: Bool
    package let acknowledgesMessages: Acknowledging
    /// The owner receives the properties of answers, not only their codes.
    package let tellsProperties: Bool
    /// The owner sees each packet first, and may drop it.
    package let showsPackets: Bool

    /// The shortest time from a write to a possible timeout.
    let firstCheck: TimeAmount

    package init(
        version: ProtocolVersion,
        cleanStart: Bool = true,
        keepAlive: UInt16 = 300,
        sessionExpiry: UInt32? = nil,
        sessionEndsWithOwner: Bool = false,
        takesUpSession: Bool = false,
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
        self.sessionEndsWithOwner = version == .v5 && sessionEndsWithOwner
        self.takesUpSession = takesUpSession
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

    /// Whether an option requires checks of received packets that the hot path does not make.
    var isCareful: Bool {
        self.receiveMaximum != nil || self.topicAliasMaximum > 0 || self.acknowledgesMessages == .byOwner
            || self.defersCompletions || self.tellsProperties || self.showsPackets
    }

    /// The properties of CONNECT, in the order of the specification's identifier table; empty before MQTT 5
    /// (§3.1.2.11).
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
