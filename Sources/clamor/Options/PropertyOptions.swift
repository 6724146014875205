package import MQTTCodec

/// What CONNECT says beside who the client is; MQTT 5 only.
package struct ConnectOptions: Hashable, Sendable {
    package var receiveMaximum: UInt16?
    package var maximumPacketSize: UInt32?
    package var topicAliasMaximum: UInt16?
    package var requestsResponseInformation = false
    package var requestsProblemInformation = true
    package var userProperties: [UserProperty] = []

    package init() {}
}

/// A will; topic and message may hold placeholders.
package struct WillOptions: Hashable, Sendable {
    package var topic: String
    package var message: [UInt8] = []
    package var qos: UInt8 = 0
    package var retain = false
    package var properties = Properties()

    package init(topic: String) {
        self.topic = topic
    }
}
