package import MQTTCodec

/// The contents of CONNECT apart from the client's identity; MQTT 5 only.
package struct ConnectOptions: Hashable, Sendable {
    package var receiveMaximum: UInt16?
    package var maximumPacketSize: UInt32?
    package var topicAliasMaximum: UInt16?
    package var requestsResponseInformation = false
    package var requestsProblemInformation = true
    package var userProperties: [UserProperty] = []

    package init() {}
}

extension Properties {
    /// Payload format indicator 1: the payload is UTF-8 text.
    package var isText: Bool {
        get { self.payloadFormatIndicator == 1 }
        set { self.payloadFormatIndicator = newValue ? 1 : nil }
    }

    /// Correlation data that is text.
    package var correlationText: String? {
        get { self.correlationData.map { String(decoding: $0, as: UTF8.self) } }
        set { self.correlationData = newValue.map { Array($0.utf8) } }
    }
}

/// A will; topic and message may hold placeholders.
package struct WillOptions: Hashable, Sendable, OptionsRoot {
    package static let usual = Self(topic: "")

    package var topic: String
    package var message: [UInt8] = []
    package var qos: UInt8 = 0
    package var retain = false
    package var properties = Properties()

    package init(topic: String) { self.topic = topic }
}
