import MQTTCodec

/// What to do about a connection that is not there.
package enum ReconnectVerdict: Hashable, Sendable {
    /// It may heal by waiting.
    case retry
    /// The next attempt would end the same way.
    case giveUp
    /// The server names another one: for now, or for good.
    case redirect(ServerReference, permanently: Bool)
}

extension ReconnectVerdict {
    /// Judges the end of an attempt or of a connection.
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

    /// Of 3.1 and 3.1.1, where the codes from 6 on are reserved and say nothing.
    private init(returnCode: UInt8) {
        switch ConnectReturnCode(rawValue: returnCode) {
        case .unacceptableProtocolVersion, .identifierRejected, .badUserNameOrPassword, .notAuthorized: self = .giveUp
        case .accepted, .serverUnavailable, nil: self = .retry
        }
    }

    /// Of a CONNACK.
    private init(refusal reason: ReasonCode, reference: String?) {
        switch reason {
        case .unspecifiedError, .implementationSpecificError, .serverUnavailable, .serverBusy, .quotaExceeded,
            .connectionRateExceeded:
            self = .retry
        case .useAnotherServer, .serverMoved: self.init(redirection: reason, reference)
        default: self = .giveUp
        }
    }

    /// Of a DISCONNECT.
    ///
    /// A session that was taken over is not taken back: two clients of one name would go on for ever.
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
            // Moved for good, to where we cannot know. Another server for a while is no server for a while.
            self = reason == .serverMoved ? .giveUp : .retry
        }
    }
}
