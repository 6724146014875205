// One accessor per property; `nil` is absent.

extension Properties {
    package var payloadFormatIndicator: UInt8? {
        get { self.byte(.payloadFormatIndicator) }
        set { self.setByte(.payloadFormatIndicator, newValue) }
    }

    package var messageExpiryInterval: UInt32? {
        get { self.fourBytes(.messageExpiryInterval) }
        set { self.setFourBytes(.messageExpiryInterval, newValue) }
    }

    package var contentType: String? {
        get { self.text(.contentType) }
        set { self.setText(.contentType, newValue) }
    }

    package var responseTopic: String? {
        get { self.text(.responseTopic) }
        set { self.setText(.responseTopic, newValue) }
    }

    package var correlationData: [UInt8]? {
        get { self.binary(.correlationData) }
        set { self.setBinary(.correlationData, newValue) }
    }

    package var subscriptionIdentifier: UInt32? {
        get { self.variable(.subscriptionIdentifier) }
        set { self.setVariable(.subscriptionIdentifier, newValue) }
    }

    package var sessionExpiryInterval: UInt32? {
        get { self.fourBytes(.sessionExpiryInterval) }
        set { self.setFourBytes(.sessionExpiryInterval, newValue) }
    }

    package var assignedClientIdentifier: String? {
        get { self.text(.assignedClientIdentifier) }
        set { self.setText(.assignedClientIdentifier, newValue) }
    }

    package var serverKeepAlive: UInt16? {
        get { self.twoBytes(.serverKeepAlive) }
        set { self.setTwoBytes(.serverKeepAlive, newValue) }
    }

    package var authenticationMethod: String? {
        get { self.text(.authenticationMethod) }
        set { self.setText(.authenticationMethod, newValue) }
    }

    package var authenticationData: [UInt8]? {
        get { self.binary(.authenticationData) }
        set { self.setBinary(.authenticationData, newValue) }
    }

    package var requestProblemInformation: Bool? {
        get { self.flag(.requestProblemInformation) }
        set { self.setFlag(.requestProblemInformation, newValue) }
    }

    package var willDelayInterval: UInt32? {
        get { self.fourBytes(.willDelayInterval) }
        set { self.setFourBytes(.willDelayInterval, newValue) }
    }

    package var requestResponseInformation: Bool? {
        get { self.flag(.requestResponseInformation) }
        set { self.setFlag(.requestResponseInformation, newValue) }
    }

    package var responseInformation: String? {
        get { self.text(.responseInformation) }
        set { self.setText(.responseInformation, newValue) }
    }

    package var serverReference: String? {
        get { self.text(.serverReference) }
        set { self.setText(.serverReference, newValue) }
    }

    package var reasonString: String? {
        get { self.text(.reasonString) }
        set { self.setText(.reasonString, newValue) }
    }

    package var receiveMaximum: UInt16? {
        get { self.twoBytes(.receiveMaximum) }
        set { self.setTwoBytes(.receiveMaximum, newValue) }
    }

    package var topicAliasMaximum: UInt16? {
        get { self.twoBytes(.topicAliasMaximum) }
        set { self.setTwoBytes(.topicAliasMaximum, newValue) }
    }

    package var topicAlias: UInt16? {
        get { self.twoBytes(.topicAlias) }
        set { self.setTwoBytes(.topicAlias, newValue) }
    }

    package var maximumQoS: UInt8? {
        get { self.byte(.maximumQoS) }
        set { self.setByte(.maximumQoS, newValue) }
    }

    package var retainAvailable: Bool? {
        get { self.flag(.retainAvailable) }
        set { self.setFlag(.retainAvailable, newValue) }
    }

    package var maximumPacketSize: UInt32? {
        get { self.fourBytes(.maximumPacketSize) }
        set { self.setFourBytes(.maximumPacketSize, newValue) }
    }

    package var wildcardSubscriptionAvailable: Bool? {
        get { self.flag(.wildcardSubscriptionAvailable) }
        set { self.setFlag(.wildcardSubscriptionAvailable, newValue) }
    }

    package var subscriptionIdentifierAvailable: Bool? {
        get { self.flag(.subscriptionIdentifierAvailable) }
        set { self.setFlag(.subscriptionIdentifierAvailable, newValue) }
    }

    package var sharedSubscriptionAvailable: Bool? {
        get { self.flag(.sharedSubscriptionAvailable) }
        set { self.setFlag(.sharedSubscriptionAvailable, newValue) }
    }
}
