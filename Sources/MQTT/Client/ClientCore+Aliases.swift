import MQTTCodec
import NIOCore

/// The topic aliases of one connection: the next one starts without any ([MQTT-3.3.2-7]).
struct ConnectionAliases {
    private var table = TopicAliases()
    /// The number of the connection; 0 for none.
    private var epoch = 0

    /// Uses this connection's table, which is empty at its first message: resumed messages are sent before all others.
    mutating func choose(_ topic: String, on epoch: Int, wanted: UInt16, allowed: UInt16) -> TopicAliases.Choice {
        if epoch != self.epoch {
            self.epoch = epoch
            self.table = TopicAliases(wanted: wanted)
            self.table.reset(maximum: allowed)
        }
        return self.table.choose(topic)
    }
}

extension ClientCore {
    /// The bytes that an alias adds to a PUBLISH at most: three, and one for each of two lengths that may grow.
    private static var aliasSize: Int { 5 }

    /// The same packet with an alias, if it may have one; it must be the next packet written.
    func aliased(_ publish: Publish) -> Publish {
        let wanted = self.configuration.outboundTopicAliases
        let limits = self.session.pointee.limits
        guard wanted > 0, limits.topicAliasMaximum > 0, !publish.topic.isEmpty, publish.properties.topicAlias == nil
        else { return publish }
        if let limit = limits.maximumPacketSize {
            // A packet that defines an alias but is too large to be sent would leave the server without the alias.
            var buffer = ByteBuffer()
            Packet.publish(publish).encode(as: self.configuration.version, into: &buffer)
            guard buffer.readableBytes + Self.aliasSize <= Int(limit) else { return publish }
        }
        var publish = publish
        switch self.aliases.choose(publish.topic, on: self.epoch, wanted: wanted, allowed: limits.topicAliasMaximum) {
        case .topic: break
        case .define(let alias): publish.properties.topicAlias = alias
        case .alias(let alias):
            publish.topic = ""
            publish.properties.topicAlias = alias
        }
        return publish
    }

    /// The reason why a message must not set an alias itself; `nil` if it has none, or may.
    func aliasProblem(of message: MQTTMessage) -> MQTTClientError? {
        guard self.configuration.validates, self.configuration.version == .v5,
            let alias = message.properties.topicAlias
        else { return nil }
        if self.configuration.outboundTopicAliases > 0 {
            return .invalid("the client chooses the topic aliases here (outboundTopicAliases): leave the property out")
        }
        if message.qos != .atMostOnce {
            return .invalid(
                "a message at QoS 1 or 2 may go out again on another connection, where its topic alias is not known "
                    + "([MQTT-3.3.2-7]): leave the property out"
            )
        }
        let isAllowed = self.state != .connected || alias <= self.session.pointee.limits.topicAliasMaximum
        return isAllowed ? nil : .notAllowed(.topicAliasInvalid)
    }
}
