package import MQTTCodec

extension MQTTSession {
    /// The limits that the server's CONNACK declared, valid until the next CONNACK (§3.2.2.3).
    package struct Limits: Hashable, Sendable {
        package var receiveMaximum: UInt16 = 65_535
        package var maximumQoS = QoS.exactlyOnce
        package var retainAvailable = true
        package var maximumPacketSize: UInt32?
        package var topicAliasMaximum: UInt16 = 0
        package var wildcardAvailable = true
        package var subscriptionIdentifiersAvailable = true
        package var sharedAvailable = true
        /// Keep-alive in force, in seconds; 0 is off.
        package var keepAlive: UInt16 = 0
        /// Seconds for which the server keeps the session after the connection; `UInt32.max` is for ever.
        package var sessionExpiry: UInt32 = 0

        /// The limits of a CONNACK without properties.
        package init() {}

        init(_ properties: Properties, options: SessionOptions) {
            self.keepAlive = properties.serverKeepAlive ?? options.keepAlive
            self.receiveMaximum = properties.receiveMaximum ?? 65_535
            self.maximumQoS = properties.maximumQoS.flatMap(QoS.init(rawValue:)) ?? .exactlyOnce
            self.retainAvailable = properties.retainAvailable ?? true
            self.maximumPacketSize = properties.maximumPacketSize
            self.topicAliasMaximum = properties.topicAliasMaximum ?? 0
            self.wildcardAvailable = properties.wildcardSubscriptionAvailable ?? true
            self.subscriptionIdentifiersAvailable = properties.subscriptionIdentifierAvailable ?? true
            self.sharedAvailable = properties.sharedSubscriptionAvailable ?? true
            // Before MQTT 5 a session ends with its connection or lives for ever (5.0 §3.1.2.4).
            let asked = options.version == .v5 ? options.sessionExpiry ?? 0 : options.cleanStart ? 0 : .max
            self.sessionExpiry = properties.sessionExpiryInterval ?? asked
        }

        /// The reason why this server would reject a publish; `nil` if it would accept it.
        ///
        /// - Parameters:
        ///   - qos: of the publish.
        ///   - retain: whether it is to be retained.
        ///   - size: of the whole packet, in bytes.
        /// - Returns: the server's reason code ([MQTT-3.2.2-11], [MQTT-3.2.2-14], [MQTT-3.2.2-15]).
        package func refusal(ofPublish qos: QoS, retain: Bool, size: Int) -> ReasonCode? {
            if qos > self.maximumQoS { return .qosNotSupported }
            if retain, !self.retainAvailable { return .retainNotSupported }
            if let limit = self.maximumPacketSize, size > Int(limit) { return .packetTooLarge }
            return nil
        }

        /// The reason why this server would reject a SUBSCRIBE; `nil` if it would accept it (§3.2.2.3.11 to
        /// §3.2.2.3.13).
        package func refusal(of subscriptions: [Subscription], hasIdentifier: Bool = false) -> ReasonCode? {
            if hasIdentifier, !self.subscriptionIdentifiersAvailable { return .subscriptionIdentifiersNotSupported }
            for filter in subscriptions.map(\.filter) {
                if !self.sharedAvailable, filter.hasPrefix("$share/") { return .sharedSubscriptionsNotSupported }
                if !self.wildcardAvailable, filter.contains("#") || filter.contains("+") {
                    return .wildcardSubscriptionsNotSupported
                }
            }
            return nil
        }
    }
}
