/// A reason code of MQTT 5.0, all packets together.
///
/// Spec: MQTT 5.0 §2.4, table 2-6.
public enum ReasonCode: UInt8, Hashable, Sendable, CaseIterable {
    /// Success; a DISCONNECT calls it ``normalDisconnection``, and a SUBACK ``grantedQoS0``.
    case success = 0x00
    /// Granted QoS 1.
    case grantedQoS1 = 0x01
    /// Granted QoS 2.
    case grantedQoS2 = 0x02
    /// Disconnect with Will Message.
    case disconnectWithWillMessage = 0x04
    /// No matching subscribers.
    case noMatchingSubscribers = 0x10
    /// No subscription existed.
    case noSubscriptionExisted = 0x11
    /// Continue authentication.
    case continueAuthentication = 0x18
    /// Re-authenticate.
    case reAuthenticate = 0x19
    /// Unspecified error.
    case unspecifiedError = 0x80
    /// Malformed Packet.
    case malformedPacket = 0x81
    /// Protocol Error.
    case protocolError = 0x82
    /// Implementation specific error.
    case implementationSpecificError = 0x83
    /// Unsupported Protocol Version.
    case unsupportedProtocolVersion = 0x84
    /// Client Identifier not valid.
    case clientIdentifierNotValid = 0x85
    /// Bad User Name or Password.
    case badUserNameOrPassword = 0x86
    /// Not authorized.
    case notAuthorized = 0x87
    /// Server unavailable.
    case serverUnavailable = 0x88
    /// Server busy.
    case serverBusy = 0x89
    /// Banned.
    case banned = 0x8A
    /// Server shutting down.
    case serverShuttingDown = 0x8B
    /// Bad authentication method.
    case badAuthenticationMethod = 0x8C
    /// Keep Alive timeout.
    case keepAliveTimeout = 0x8D
    /// Session taken over.
    case sessionTakenOver = 0x8E
    /// Topic Filter invalid.
    case topicFilterInvalid = 0x8F
    /// Topic Name invalid.
    case topicNameInvalid = 0x90
    /// Packet Identifier in use.
    case packetIdentifierInUse = 0x91
    /// Packet Identifier not found.
    case packetIdentifierNotFound = 0x92
    /// Receive Maximum exceeded.
    case receiveMaximumExceeded = 0x93
    /// Topic Alias invalid.
    case topicAliasInvalid = 0x94
    /// Packet too large.
    case packetTooLarge = 0x95
    /// Message rate too high.
    case messageRateTooHigh = 0x96
    /// Quota exceeded.
    case quotaExceeded = 0x97
    /// Administrative action.
    case administrativeAction = 0x98
    /// Payload format invalid.
    case payloadFormatInvalid = 0x99
    /// Retain not supported.
    case retainNotSupported = 0x9A
    /// QoS not supported.
    case qosNotSupported = 0x9B
    /// Use another server.
    case useAnotherServer = 0x9C
    /// Server moved.
    case serverMoved = 0x9D
    /// Shared Subscriptions not supported.
    case sharedSubscriptionsNotSupported = 0x9E
    /// Connection rate exceeded.
    case connectionRateExceeded = 0x9F
    /// Maximum connect time.
    case maximumConnectTime = 0xA0
    /// Subscription Identifiers not supported.
    case subscriptionIdentifiersNotSupported = 0xA1
    /// Wildcard Subscriptions not supported.
    case wildcardSubscriptionsNotSupported = 0xA2

    /// The meaning of 0 in a DISCONNECT.
    public static let normalDisconnection = ReasonCode.success
    /// The meaning of 0 in a SUBACK.
    public static let grantedQoS0 = ReasonCode.success

    /// From 0x80 on the operation has failed (§2.4).
    public var isError: Bool { self.rawValue >= 0x80 }

    /// The words of the standard.
    public var name: String {
        switch self {
        case .success: "Success"
        case .grantedQoS1: "Granted QoS 1"
        case .grantedQoS2: "Granted QoS 2"
        case .disconnectWithWillMessage: "Disconnect with Will Message"
        case .noMatchingSubscribers: "No matching subscribers"
        case .noSubscriptionExisted: "No subscription existed"
        case .continueAuthentication: "Continue authentication"
        case .reAuthenticate: "Re-authenticate"
        case .unspecifiedError: "Unspecified error"
        case .malformedPacket: "Malformed Packet"
        case .protocolError: "Protocol Error"
        case .implementationSpecificError: "Implementation specific error"
        case .unsupportedProtocolVersion: "Unsupported Protocol Version"
        case .clientIdentifierNotValid: "Client Identifier not valid"
        case .badUserNameOrPassword: "Bad User Name or Password"
        case .notAuthorized: "Not authorized"
        case .serverUnavailable: "Server unavailable"
        case .serverBusy: "Server busy"
        case .banned: "Banned"
        case .serverShuttingDown: "Server shutting down"
        case .badAuthenticationMethod: "Bad authentication method"
        case .keepAliveTimeout: "Keep Alive timeout"
        case .sessionTakenOver: "Session taken over"
        case .topicFilterInvalid: "Topic Filter invalid"
        case .topicNameInvalid: "Topic Name invalid"
        case .packetIdentifierInUse: "Packet Identifier in use"
        case .packetIdentifierNotFound: "Packet Identifier not found"
        case .receiveMaximumExceeded: "Receive Maximum exceeded"
        case .topicAliasInvalid: "Topic Alias invalid"
        case .packetTooLarge: "Packet too large"
        case .messageRateTooHigh: "Message rate too high"
        case .quotaExceeded: "Quota exceeded"
        case .administrativeAction: "Administrative action"
        case .payloadFormatInvalid: "Payload format invalid"
        case .retainNotSupported: "Retain not supported"
        case .qosNotSupported: "QoS not supported"
        case .useAnotherServer: "Use another server"
        case .serverMoved: "Server moved"
        case .sharedSubscriptionsNotSupported: "Shared Subscriptions not supported"
        case .connectionRateExceeded: "Connection rate exceeded"
        case .maximumConnectTime: "Maximum connect time"
        case .subscriptionIdentifiersNotSupported: "Subscription Identifiers not supported"
        case .wildcardSubscriptionsNotSupported: "Wildcard Subscriptions not supported"
        }
    }
}

extension ReasonCode {
    /// Whether `packet` may carry the code; the direction counts for DISCONNECT and AUTH.
    package func isAllowed(in packet: PacketType, toServer: Bool) -> Bool {
        switch packet {
        case .connAck: Self.inConnAck.contains(self)
        case .pubAck, .pubRec: Self.inPubAck.contains(self)
        case .pubRel, .pubComp: self == .success || self == .packetIdentifierNotFound
        case .subAck: Self.inSubAck.contains(self)
        case .unsubAck: Self.inUnsubAck.contains(self)
        case .disconnect: (toServer ? Self.inDisconnectToServer : Self.inDisconnectToClient).contains(self)
        case .auth:
            // §3.15.2.1: the server sends success, the client requests re-authentication.
            self == .continueAuthentication || self == (toServer ? .reAuthenticate : .success)
        default: false
        }
    }

    /// Refuses codes that `packet` does not have.
    @discardableResult
    static func check(_ raw: UInt8, in packet: PacketType, toServer: Bool) throws(DecodeError) -> ReasonCode {
        guard let code = ReasonCode(rawValue: raw), code.isAllowed(in: packet, toServer: toServer) else {
            throw .unknownReason(packet, raw)
        }
        return code
    }

    private static let inPubAck: Set<ReasonCode> = [
        .success, .noMatchingSubscribers, .unspecifiedError, .implementationSpecificError, .notAuthorized,
        .topicNameInvalid, .packetIdentifierInUse, .quotaExceeded, .payloadFormatInvalid,
    ]
    private static let inConnAck: Set<ReasonCode> = [
        .success, .unspecifiedError, .malformedPacket, .protocolError, .implementationSpecificError,
        .unsupportedProtocolVersion, .clientIdentifierNotValid, .badUserNameOrPassword, .notAuthorized,
        .serverUnavailable, .serverBusy, .banned, .badAuthenticationMethod, .topicNameInvalid, .packetTooLarge,
        .quotaExceeded, .payloadFormatInvalid, .retainNotSupported, .qosNotSupported, .useAnotherServer, .serverMoved,
        .connectionRateExceeded,
    ]
    private static let inSubAck: Set<ReasonCode> = [
        .grantedQoS0, .grantedQoS1, .grantedQoS2, .unspecifiedError, .implementationSpecificError, .notAuthorized,
        .topicFilterInvalid, .packetIdentifierInUse, .quotaExceeded, .sharedSubscriptionsNotSupported,
        .subscriptionIdentifiersNotSupported, .wildcardSubscriptionsNotSupported,
    ]
    private static let inUnsubAck: Set<ReasonCode> = [
        .success, .noSubscriptionExisted, .unspecifiedError, .implementationSpecificError, .notAuthorized,
        .topicFilterInvalid, .packetIdentifierInUse,
    ]
    private static let inDisconnectToServer: Set<ReasonCode> = [
        .normalDisconnection, .disconnectWithWillMessage, .unspecifiedError, .malformedPacket, .protocolError,
        .implementationSpecificError, .topicNameInvalid, .receiveMaximumExceeded, .topicAliasInvalid, .packetTooLarge,
        .messageRateTooHigh, .quotaExceeded, .administrativeAction, .payloadFormatInvalid,
    ]
    private static let inDisconnectToClient: Set<ReasonCode> = [
        .normalDisconnection, .unspecifiedError, .malformedPacket, .protocolError, .implementationSpecificError,
        .notAuthorized, .serverBusy, .serverShuttingDown, .keepAliveTimeout, .sessionTakenOver, .topicFilterInvalid,
        .topicNameInvalid, .receiveMaximumExceeded, .topicAliasInvalid, .packetTooLarge, .messageRateTooHigh,
        .quotaExceeded, .administrativeAction, .payloadFormatInvalid, .retainNotSupported, .qosNotSupported,
        .useAnotherServer, .serverMoved, .sharedSubscriptionsNotSupported, .connectionRateExceeded,
        .maximumConnectTime, .subscriptionIdentifiersNotSupported, .wildcardSubscriptionsNotSupported,
    ]
}
