/// A reason code of MQTT 5.0, all packets together.
///
/// Spec: MQTT 5.0 §2.4, table 2-6.
package enum ReasonCode: UInt8, Hashable, Sendable, CaseIterable {
    case success = 0x00
    case grantedQoS1 = 0x01
    case grantedQoS2 = 0x02
    case disconnectWithWillMessage = 0x04
    case noMatchingSubscribers = 0x10
    case noSubscriptionExisted = 0x11
    case continueAuthentication = 0x18
    case reAuthenticate = 0x19
    case unspecifiedError = 0x80
    case malformedPacket = 0x81
    case protocolError = 0x82
    case implementationSpecificError = 0x83
    case unsupportedProtocolVersion = 0x84
    case clientIdentifierNotValid = 0x85
    case badUserNameOrPassword = 0x86
    case notAuthorized = 0x87
    case serverUnavailable = 0x88
    case serverBusy = 0x89
    case banned = 0x8A
    case serverShuttingDown = 0x8B
    case badAuthenticationMethod = 0x8C
    case keepAliveTimeout = 0x8D
    case sessionTakenOver = 0x8E
    case topicFilterInvalid = 0x8F
    case topicNameInvalid = 0x90
    case packetIdentifierInUse = 0x91
    case packetIdentifierNotFound = 0x92
    case receiveMaximumExceeded = 0x93
    case topicAliasInvalid = 0x94
    case packetTooLarge = 0x95
    case messageRateTooHigh = 0x96
    case quotaExceeded = 0x97
    case administrativeAction = 0x98
    case payloadFormatInvalid = 0x99
    case retainNotSupported = 0x9A
    case qosNotSupported = 0x9B
    case useAnotherServer = 0x9C
    case serverMoved = 0x9D
    case sharedSubscriptionsNotSupported = 0x9E
    case connectionRateExceeded = 0x9F
    case maximumConnectTime = 0xA0
    case subscriptionIdentifiersNotSupported = 0xA1
    case wildcardSubscriptionsNotSupported = 0xA2

    /// What 0 means in a DISCONNECT.
    package static let normalDisconnection = ReasonCode.success
    /// What 0 means in a SUBACK.
    package static let grantedQoS0 = ReasonCode.success

    /// From 0x80 on the operation has failed (§2.4).
    package var isError: Bool { self.rawValue >= 0x80 }

    /// The words of the standard.
    package var name: String {
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
            // §3.15.2.1: the server says success, the client asks for re-authentication.
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
