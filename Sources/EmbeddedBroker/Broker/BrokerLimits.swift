import MQTTCodec

/// What a broker grants its clients: all of it, unless a test wants less.
package struct BrokerLimits: Hashable, Sendable {
    /// Where clients are sent instead of being served.
    package struct Redirect: Hashable, Sendable {
        /// 0x9D, Server moved, instead of 0x9C, Use another server.
        package var isPermanent: Bool
        package var reference: String

        package init(to reference: String, isPermanent: Bool = false) {
            self.isPermanent = isPermanent
            self.reference = reference
        }
    }

    /// Highest QoS of a PUBLISH, a will and a subscription.
    package var maximumQoS: UInt8 = 2
    package var retainAvailable = true
    package var wildcardsAvailable = true
    package var subscriptionIdentifiersAvailable = true
    package var sharedAvailable = true
    /// Topic aliases that a client may set; 0 is none.
    package var topicAliasMaximum: UInt16 = 10
    /// Whether topic aliases are set towards clients that allow them.
    package var setsTopicAliases = false
    /// Seconds, for every client of MQTT 5 in place of its own.
    package var serverKeepAlive: UInt16?
    /// Seconds that a session may outlive its connection; `.max` is for ever.
    package var maximumSessionExpiry = UInt32.max
    /// For clients that ask for it.
    package var responseInformation: String?
    /// Every CONNECT is refused with it.
    package var redirect: Redirect?
    /// Whether refusals have a reason string.
    package var explains = false
    /// Whether a payload that says that it is UTF-8 has to be.
    package var checksPayloadFormat = false

    package init() {}

    /// Whether a PUBLISH can break one of these.
    var restrictPublish: Bool { self.maximumQoS < 2 || !self.retainAvailable || self.checksPayloadFormat }

    /// What CONNACK says of it.
    ///
    /// Spec: MQTT 5.0 §3.2.2.3.
    func announce(in properties: inout Properties) {
        if self.maximumQoS < 2 { properties.append(.maximumQoS(self.maximumQoS)) }
        if !self.retainAvailable { properties.retainAvailable = false }
        if self.topicAliasMaximum > 0 { properties.topicAliasMaximum = self.topicAliasMaximum }
        if !self.wildcardsAvailable { properties.wildcardSubscriptionAvailable = false }
        if !self.subscriptionIdentifiersAvailable { properties.subscriptionIdentifierAvailable = false }
        if !self.sharedAvailable { properties.sharedSubscriptionAvailable = false }
        if let seconds = self.serverKeepAlive { properties.serverKeepAlive = seconds }
    }
}
