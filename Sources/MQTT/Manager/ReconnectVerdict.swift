import MQTTCodec

/// The reaction to a failed attempt or a lost connection.
package enum ReconnectVerdict: Hashable, Sendable {
    /// The error may be temporary.
    case retry
    /// A retry would fail the same way.
    case giveUp
    /// The server redirects the client, for now or permanently.
    case redirect(ServerReference, permanently: Bool)
}

extension ReconnectVerdict {
    /// Classifies the end of an attempt or of a connection.
    ///
    /// Spec: MQTT 3.1.1 §3.2.2.3; MQTT 5.0 §3.2.2.2, §3.14.2.1, §4.11.
    package init(_ error: MQTTClientError) {
        switch error {
        case .refused(let refusal):
            if let reason = refusal.reason {
                self.init(refusal: reason, reference: refusal.properties.serverReference)
            } else {
                self.init(returnCode: refusal.code)
            }
        case .connectionLost(.disconnected(let reason, let properties)):
            self.init(disconnect: reason, reference: properties.serverReference)
        case .noConnection, .noCredentials, .timedOut, .connectionLost: self = .retry
        default: self = .giveUp
        }
    }

    /// Judges a code of 3.1 and 3.1.1, where codes from 6 on are reserved and have no meaning.
    private init(returnCode: UInt8) {
        switch ConnectReturnCode(rawValue: returnCode) {
        case .unacceptableProtocolVersion, .identifierRejected, .badUserNameOrPassword, .notAuthorized: self = .giveUp
        case .accepted, .serverUnavailable, nil: self = .retry
        }
    }

    /// Judges the reason of a CONNACK of MQTT 5.
    private init(refusal reason: ReasonCode, reference: String?) {
        switch reason {
        case .unspecifiedError, .implementationSpecificError, .serverUnavailable, .serverBusy, .quotaExceeded,
            .connectionRateExceeded:
            self = .retry
        case .useAnotherServer, .serverMoved: self.init(redirection: reason, reference)
        default: self = .giveUp
        }
    }

    /// For a DISCONNECT.
    ///
    /// A session taken over is not reclaimed: two clients with one name would alternate for ever.
    private init(disconnect reason: ReasonCode, reference: String?) {
        switch reason {
        case .notAuthorized, .sessionTakenOver, .topicFilterInvalid, .topicNameInvalid, .packetTooLarge,
            .payloadFormatInvalid, .retainNotSupported, .qosNotSupported, .sharedSubscriptionsNotSupported,
            .subscriptionIdentifiersNotSupported, .wildcardSubscriptionsNotSupported:
            self = .giveUp
        case .useAnotherServer, .serverMoved: self.init(redirection: reason, reference)
        default: self = .retry
        }
    }

    private init(redirection reason: ReasonCode, _ reference: String?) {
        if let server = reference.flatMap({ ServerReference($0) }) {
            self = .redirect(server, permanently: reason == .serverMoved)
        } else {
            // Without a usable reference a permanent move is final. A temporary one is retried as if the server were
            // down.
            self = reason == .serverMoved ? .giveUp : .retry
        }
    }
}
