import MQTTCodec
import NIOCore

// PUBLISH packets that need a check: topic aliases, limits, rules.
extension Broker {
    /// Replaces a topic alias by its topic, and removes the alias from the forwarded properties.
    ///
    /// Spec: MQTT 5.0 §3.3.2.3.4.
    mutating func publishAliased(
        _ view: PublishView,
        aliasOffset offset: Int,
        from connection: ConnectionID,
        now: NIODeadline
    ) -> Bool {
        let alias = UInt16(bigEndian: view.rawProperties.loadUnaligned(fromByteOffset: offset, as: UInt16.self))
        guard alias <= self.configuration.limits.topicAliasMaximum else {
            // [MQTT-3.3.2-9]
            self.fail(connection, .topicAliasInvalid, now: now)
            return false
        }
        var topic: [UInt8]
        if view.topic.isEmpty {
            guard let known = self.connections[connection].extras?.aliases[alias] else {
                self.fail(connection, .protocolError, now: now)
                return false
            }
            topic = known
        } else {
            topic = Array(view.topic)
            self.extras(of: connection).aliases[alias] = topic
        }
        // An alias belongs to its connection and is not forwarded.
        let properties = Array(view.rawProperties[..<(offset - 1)]) + Array(view.rawProperties[(offset + 2)...])
        return topic.withUnsafeBytes { topic in
            properties.withUnsafeBytes { self.take(view, topic, $0, from: connection, now: now) }
        }
    }

    /// Checks a PUBLISH, and reports a violation to its client.
    ///
    /// - Returns: nil if it is accepted; otherwise whether the connection continues.
    mutating func object(
        to view: PublishView,
        _ topic: UnsafeRawBufferPointer,
        on connection: ConnectionID,
        now: NIODeadline
    ) -> Bool? {
        let limits = self.configuration.limits
        var reason: ReasonCode?
        if self.connections[connection].state != .open {
            // [MQTT-3.1.2-30]
            reason = .protocolError
        } else if view.qos.rawValue > limits.maximumQoS {
            // [MQTT-3.2.2-11]
            reason = .qosNotSupported
        } else if view.retain, !limits.retainAvailable {
            // [MQTT-3.2.2-14]
            reason = .retainNotSupported
        }
        if let reason {
            self.fail(connection, reason, now: now)
            return false
        }
        let user = self.connections[connection].extras?.user
        if user?.mayPublish(to: topic) == false { return self.turnDown(view, .notAuthorized, on: connection, now: now) }
        if limits.checksPayloadFormat, !self.isFormatRight(view) {
            return self.turnDown(view, .payloadFormatInvalid, on: connection, now: now)
        }
        return nil
    }

    /// Answers a rejected PUBLISH, which is not forwarded.
    ///
    /// Before MQTT 5 the only rejection is to close the connection (3.1.1 §3.3.5.2), so the packet is acknowledged
    /// instead.
    private mutating func turnDown(
        _ view: PublishView,
        _ reason: ReasonCode,
        on connection: ConnectionID,
        now: NIODeadline
    ) -> Bool {
        self.tally.turnedDown[view.qos.rawValue] += 1
        guard view.qos != .atMostOnce else {
            // §3.3.2.3.2: QoS 0 has no answer that could carry the reason.
            if reason == .notAuthorized || !self.connections[connection].isVersion5 { return true }
            self.fail(connection, reason, now: now)
            return false
        }
        let type: PacketType = view.qos == .atLeastOnce ? .pubAck : .pubRec
        if type == .pubRec, !self.connections[connection].isVersion5 {
            self.connections[connection].heldIDs.insert(view.packetID)
        }
        self.acknowledge(type, view.packetID, reason, to: connection)
        return true
    }

    /// §3.3.2.3.2: the value 1 declares a UTF-8 payload.
    private func isFormatRight(_ view: PublishView) -> Bool {
        guard let offset = RawProperties.offset(of: RawProperties.payloadFormat, in: view.rawProperties),
            view.rawProperties[offset] == 1
        else { return true }
        return String(validating: view.payload, as: UTF8.self) != nil
    }

    /// The connection's rarely used state, allocated at first use.
    mutating func extras(of connection: ConnectionID) -> ConnectionExtras {
        if let extras = self.connections[connection].extras { return extras }
        let extras = ConnectionExtras()
        self.connections[connection].extras = extras
        return extras
    }

    // MARK: The broker's aliases

    /// Writes a PUBLISH with an alias if the client allows one.
    ///
    /// - Returns: false if the caller must write it unchanged.
    mutating func writeAliased(_ writer: PublishWriter, _ packetID: UInt16, to connection: ConnectionID) -> Bool {
        guard let extras = self.connections[connection].extras, extras.ownAliasMaximum > 0 else { return false }
        let topic = Array(writer.message.topic)
        let known = extras.ownAliases[topic]
        guard let alias = known ?? extras.nextAlias else { return false }
        // [MQTT-3.3.2-12]: the packet that sets the alias carries the topic.
        let value = [RawProperties.topicAlias, UInt8(alias >> 8), UInt8(truncatingIfNeeded: alias)]
        let message = writer.message
        return (value + message.properties).withUnsafeBytes { properties in
            let view = MessageView(
                topic: known == nil ? message.topic : UnsafeRawBufferPointer(start: nil, count: 0),
                payload: message.payload,
                properties: properties,
                qos: message.qos,
                retain: message.retain
            )
            let aliased = PublishWriter(
                view,
                version5: true,
                qos: writer.qos,
                retain: writer.retain,
                identifiers: writer.identifiers
            )
            let count = aliased.count
            guard count <= self.connections[connection].maximumPacketSize else { return false }
            extras.ownAliases[topic] = alias
            self.connections[connection].out.writeWithUnsafeMutableBytes(minimumWritableBytes: count) { memory in
                if let base = memory.baseAddress { aliased.write(to: base, packetID: packetID) }
                return count
            }
            return true
        }
    }
}

extension ConnectionExtras {
    /// The lowest unused alias.
    fileprivate var nextAlias: UInt16? {
        self.ownAliases.count < Int(self.ownAliasMaximum) ? UInt16(self.ownAliases.count + 1) : nil
    }
}
