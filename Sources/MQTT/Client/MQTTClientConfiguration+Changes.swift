package import Transport

/// A value without equality; copies of its owner share the object, and are equal by it.
final class SharedValue<Value: Sendable>: Sendable {
    let value: Value

    init(_ value: Value) { self.value = value }
}

/// The difference between two configurations, host and port apart.
package enum MQTTConfigurationChange: Hashable, Sendable {
    case none
    /// The client and its session stay the same.
    case settings
    /// Another client identifier: another session, and another key in the store.
    case client
}

extension MQTTClientConfiguration {
    func isChanged(from old: MQTTClientConfiguration) -> Bool {
        self.host != old.host || self.port != old.port || old.change(to: self) != .none
    }

    /// Compares everything but host and port.
    package func change(to new: MQTTClientConfiguration) -> MQTTConfigurationChange {
        if self.clientID != new.clientID { return .client }
        return self.hasEqualSettings(new) ? .none : .settings
    }

    private func hasEqualSettings(_ new: MQTTClientConfiguration) -> Bool {
        self.connectsLike(new) && self.session(equals: new)
            && self.validates == new.validates && self.rawConnect == new.rawConnect
            && self.timeouts == new.timeouts && self.limits == new.limits
            && self.acknowledgement == new.acknowledgement && self.sharedHooks === new.sharedHooks
    }

    private func connectsLike(_ new: MQTTClientConfiguration) -> Bool {
        self.transport.identity == new.transport.identity && self.addressPreference == new.addressPreference
            && self.version == new.version && self.cleanStart == new.cleanStart
            && self.credentials == new.credentials && self.provider === new.provider
            && self.sharedAuthentication === new.sharedAuthentication && self.will == new.will
            && self.keepAlive == new.keepAlive && self.keepAliveJitter == new.keepAliveJitter
    }

    private func session(equals new: MQTTClientConfiguration) -> Bool {
        self.sessionExpiry == new.sessionExpiry && self.receiveMaximum == new.receiveMaximum
            && self.maximumPacketSize == new.maximumPacketSize && self.topicAliasMaximum == new.topicAliasMaximum
            && self.outboundTopicAliases == new.outboundTopicAliases
            && self.requestsResponseInformation == new.requestsResponseInformation
            && self.requestsProblemInformation == new.requestsProblemInformation
            && self.userProperties == new.userProperties && self.repeatsAfter == new.repeatsAfter
    }

    /// The way to connect to the addresses of a name.
    package var racing: AddressRacing { AddressRacing(choice: self.addressPreference) }
}

extension MQTTAddressPreference: AddressChoice {}
