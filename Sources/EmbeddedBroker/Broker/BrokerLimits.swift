import MQTTCodec

/// The limits that a broker grants its clients: the maximum, unless a test lowers them.
package struct BrokerLimits: Hashable, Sendable {
    /// A server that clients are referred to instead of being served.
    package struct Redirect: Hashable, Sendable {
        /// 0x9D, Server moved; otherwise 0x9C, Use another server.
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
    /// Topic aliases that a client may set; 0 means none.
    package var topicAliasMaximum: UInt16 = 10
    /// Whether the broker sets topic aliases for clients that allow them.
    package var setsTopicAliases = false
    /// Keep-alive in seconds for every MQTT 5 client, overriding the client's own.
    package var serverKeepAlive: UInt16?
    /// Seconds that a session may outlive its connection; `.max` means forever.
    package var maximumSessionExpiry = UInt32.max
    /// Sent to clients that request it.
    package var responseInformation: String?
    /// Every CONNECT is answered with this redirect.
    package var redirect: Redirect?
    /// Whether refusals have a reason string.
    package var explains = false
    /// Whether payloads that are declared as UTF-8 are checked.
    package var checksPayloadFormat = false

    package init() {}

    /// Whether a PUBLISH can violate one of these limits.
    var restrictPublish: Bool { self.maximumQoS < 2 || !self.retainAvailable || self.checksPayloadFormat }

    /// Adds the limits to the properties of CONNACK.
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
