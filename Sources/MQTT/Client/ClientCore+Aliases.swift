import MQTTCodec
import NIOCore

/// The topic aliases of one connection: the next begins with none ([MQTT-3.3.2-7]).
struct ConnectionAliases {
    private var table = TopicAliases()
    /// The number of the connection; 0 for none.
    private var epoch = 0

    /// The table for this connection, empty at its first message: a resumed session's come before all others.
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
    /// What alias and its property add to a PUBLISH at most: three bytes, and one each for two lengths that may grow.
    private static var aliasSize: Int { 5 }

    /// The same packet with an alias, if it may have one; it must be what is written next.
    func aliased(_ publish: Publish) -> Publish {
        let wanted = self.configuration.outboundTopicAliases
        let limits = self.session.pointee.limits
        guard wanted > 0, limits.topicAliasMaximum > 0, !publish.topic.isEmpty, publish.properties.topicAlias == nil
        else { return publish }
        if let limit = limits.maximumPacketSize {
            // A packet that introduces an alias and then is not sent would leave the server without it.
            var buffer = ByteBuffer()
            Packet.publish(publish).encode(as: self.configuration.version, into: &buffer)
            guard buffer.readableBytes + Self.aliasSize <= Int(limit) else { return publish }
        }
        var publish = publish
        switch self.aliases.choose(
            publish.topic,
            on: self.epoch,
            wanted: wanted,
            allowed: limits.topicAliasMaximum
        ) {
        case .topic: break
        case .define(let alias): publish.properties.topicAlias = alias
        case .alias(let alias):
            publish.topic = ""
            publish.properties.topicAlias = alias
        }
        return publish
    }

    /// Why a message must not bring an alias of its own; `nil` if it has none, or may.
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
