// One accessor per property; `nil` is absent, and takes it away.

extension Properties {
    /// 1: the payload is UTF-8; 0: unspecified bytes (§3.3.2.3.2).
    public var payloadFormatIndicator: UInt8? {
        get { self.byte(.payloadFormatIndicator) }
        set { self.setByte(.payloadFormatIndicator, newValue) }
    }

    /// Seconds that the message is worth delivering (§3.3.2.3.3).
    public var messageExpiryInterval: UInt32? {
        get { self.fourBytes(.messageExpiryInterval) }
        set { self.setFourBytes(.messageExpiryInterval, newValue) }
    }

    /// The kind of payload, as defined by the application (§3.3.2.3.9).
    public var contentType: String? {
        get { self.text(.contentType) }
        set { self.setText(.contentType, newValue) }
    }

    /// The topic for the response (§3.3.2.3.5).
    public var responseTopic: String? {
        get { self.text(.responseTopic) }
        set { self.setText(.responseTopic, newValue) }
    }

    /// Matches a response to its request (§3.3.2.3.6).
    public var correlationData: [UInt8]? {
        get { self.binary(.correlationData) }
        set { self.setBinary(.correlationData, newValue) }
    }

    /// The number of a subscription, 1 to 268,435,455 (§3.8.2.1.2).
    public var subscriptionIdentifier: UInt32? {
        get { self.variable(.subscriptionIdentifier) }
        set { self.setVariable(.subscriptionIdentifier, newValue) }
    }

    /// Seconds that the session outlives the connection; 0xFFFFFFFF: it never expires (§3.1.2.11.2).
    public var sessionExpiryInterval: UInt32? {
        get { self.fourBytes(.sessionExpiryInterval) }
        set { self.setFourBytes(.sessionExpiryInterval, newValue) }
    }

    /// The identifier that the server gave to a client without one (§3.2.2.3.7).
    public var assignedClientIdentifier: String? {
        get { self.text(.assignedClientIdentifier) }
        set { self.setText(.assignedClientIdentifier, newValue) }
    }

    /// The keep-alive in seconds that the server requires instead of the client's (§3.2.2.3.14).
    public var serverKeepAlive: UInt16? {
        get { self.twoBytes(.serverKeepAlive) }
        set { self.setTwoBytes(.serverKeepAlive, newValue) }
    }

    /// The name of the authentication method (§3.1.2.11.9).
    public var authenticationMethod: String? {
        get { self.text(.authenticationMethod) }
        set { self.setText(.authenticationMethod, newValue) }
    }

    /// A message of the authentication method (§3.1.2.11.10).
    public var authenticationData: [UInt8]? {
        get { self.binary(.authenticationData) }
        set { self.setBinary(.authenticationData, newValue) }
    }

    /// Whether the server may explain failures anywhere (§3.1.2.11.7).
    public var requestProblemInformation: Bool? {
        get { self.flag(.requestProblemInformation) }
        set { self.setFlag(.requestProblemInformation, newValue) }
    }

    /// Seconds between the loss of the connection and the will (§3.1.3.2.2).
    public var willDelayInterval: UInt32? {
        get { self.fourBytes(.willDelayInterval) }
        set { self.setFourBytes(.willDelayInterval, newValue) }
    }

    /// Whether the client requests response information (§3.1.2.11.6).
    public var requestResponseInformation: Bool? {
        get { self.flag(.requestResponseInformation) }
        set { self.setFlag(.requestResponseInformation, newValue) }
    }

    /// The basis on which a client may build its response topics (§3.2.2.3.15).
    public var responseInformation: String? {
        get { self.text(.responseInformation) }
        set { self.setText(.responseInformation, newValue) }
    }

    /// Another server to use (§4.11).
    public var serverReference: String? {
        get { self.text(.serverReference) }
        set { self.setText(.serverReference, newValue) }
    }

    /// Why, in words for people (§3.2.2.3.9).
    public var reasonString: String? {
        get { self.text(.reasonString) }
        set { self.setText(.reasonString, newValue) }
    }

    /// Publishes at QoS 1 and 2 that the sender of this takes at once, from 1 on (§3.1.2.11.3).
    public var receiveMaximum: UInt16? {
        get { self.twoBytes(.receiveMaximum) }
        set { self.setTwoBytes(.receiveMaximum, newValue) }
    }

    /// The largest topic alias that the sender of this takes (§3.1.2.11.5).
    public var topicAliasMaximum: UInt16? {
        get { self.twoBytes(.topicAliasMaximum) }
        set { self.setTwoBytes(.topicAliasMaximum, newValue) }
    }

    /// A number in place of a topic, from 1 on (§3.3.2.3.4).
    public var topicAlias: UInt16? {
        get { self.twoBytes(.topicAlias) }
        set { self.setTwoBytes(.topicAlias, newValue) }
    }

    /// 0 or 1: the most that the server takes (§3.2.2.3.4).
    public var maximumQoS: UInt8? {
        get { self.byte(.maximumQoS) }
        set { self.setByte(.maximumQoS, newValue) }
    }

    /// Whether the server keeps messages (§3.2.2.3.5).
    public var retainAvailable: Bool? {
        get { self.flag(.retainAvailable) }
        set { self.setFlag(.retainAvailable, newValue) }
    }

    /// Bytes of a packet that the sender of this takes, from 1 on (§3.1.2.11.4).
    public var maximumPacketSize: UInt32? {
        get { self.fourBytes(.maximumPacketSize) }
        set { self.setFourBytes(.maximumPacketSize, newValue) }
    }

    /// Whether the server takes filters with wildcards (§3.2.2.3.11).
    public var wildcardSubscriptionAvailable: Bool? {
        get { self.flag(.wildcardSubscriptionAvailable) }
        set { self.setFlag(.wildcardSubscriptionAvailable, newValue) }
    }

    /// Whether the server takes subscription identifiers (§3.2.2.3.12).
    public var subscriptionIdentifierAvailable: Bool? {
        get { self.flag(.subscriptionIdentifierAvailable) }
        set { self.setFlag(.subscriptionIdentifierAvailable, newValue) }
    }

    /// Whether the server takes shared subscriptions (§3.2.2.3.13).
    public var sharedSubscriptionAvailable: Bool? {
        get { self.flag(.sharedSubscriptionAvailable) }
        set { self.setFlag(.sharedSubscriptionAvailable, newValue) }
    }
}
