import MQTTCodec
import NIOCore

// The receive path for options that need more checks than the hot path has. Such options are topic aliases, this side's
// receive maximum, acknowledgement by the owner and packet hooks. Without them nothing here is called.
extension MQTTConnection {
    func decodeCarefully(_ bytes: UnsafeRawBufferPointer, now: NIODeadline) throws(DecodeError) {
        self.needsExtras.unflushed = 0
        var sink = CarefulSink(connection: self, options: self.session.pointee.options, now: now)
        try self.decoder.pointee.decode(bytes, into: &sink)
    }

    /// Whether the owner wants a packet handled; the owner sees each packet before it has any effect.
    fileprivate func admits(_ packet: Packet?, _ options: SessionOptions, now: NIODeadline) -> Bool {
        guard options.showsPackets, let packet else { return true }
        return self.observer.admits(self.client, packet, now: now)
    }

    fileprivate func receivedCarefully(_ view: PublishView, _ options: SessionOptions, now: NIODeadline) -> Bool {
        guard self.session.pointee.state != .connecting else {
            self.refuseBeforeConnack(.publish)
            return false
        }
        guard !view.rawProperties.isEmpty, let alias = view.topicAlias else {
            return self.account(view, options, now: now)
        }
        guard alias <= options.topicAliasMaximum else {
            let words = "topic alias \(alias), and \(options.topicAliasMaximum) is the largest ([MQTT-3.1.2-26])"
            self.refuse(.topicAliasInvalid, words)
            return false
        }
        let extras = self.needsExtras
        if !view.topic.isEmpty {
            extras.aliases[alias] = Array(view.topic)
            return self.account(view, options, now: now)
        }
        guard let topic = extras.aliases[alias] else {
            self.refuse(.protocolError, "topic alias \(alias) stands for no topic yet (§3.3.2.3.4)")
            return false
        }
        return topic.withUnsafeBytes { self.account(view.withTopic($0), options, now: now) }
    }

    /// Counts and delivers a message whose topic is resolved.
    private func account(_ view: PublishView, _ options: SessionOptions, now: NIODeadline) -> Bool {
        if options.showsPackets, !self.admits((try? Publish(view)).map { .publish($0) }, options, now: now) {
            return self.end == nil
        }
        guard self.end == nil else { return false }
        let isOwners = options.acknowledgesMessages == .byOwner
        if view.qos != .atMostOnce, let limit = options.receiveMaximum,
            !self.needsExtras.takesQuota(Int(limit), view.qos, id: view.packetID, isOwners: isOwners)
        {
            self.refuse(.receiveMaximumExceeded, "over \(limit) messages unacknowledged ([MQTT-3.3.4-9])")
            return false
        }
        switch self.session.pointee.receivedPublish(view.qos, id: view.packetID) {
        case .deliver:
            self.observer.message(self.client, view, now: now)
        case .deliverAndAcknowledge:
            if isOwners { self.needsExtras.unacknowledged.insert(view.packetID) }
            self.observer.message(self.client, view, now: now)
            if !isOwners {
                self.acknowledge(.pubAck, view.packetID)
                self.needsExtras.unflushed += 1
            }
        case .deliverAndRecord:
            if isOwners { self.session.pointee.deferRecord(view.packetID) }
            self.observer.message(self.client, view, now: now)
            if !isOwners { self.acknowledge(.pubRec, view.packetID) }
        case .recordAgain: self.recordAgain(view.packetID)
        }
        return self.end == nil
    }

    fileprivate func receivedCarefully(
        _ type: PacketType,
        id: UInt16,
        reason: UInt8,
        rawProperties: UnsafeRawBufferPointer,
        _ options: SessionOptions,
        now: NIODeadline
    ) -> Bool {
        guard self.session.pointee.state != .connecting else {
            self.refuseBeforeConnack(type)
            return false
        }
        if options.showsPackets {
            let packet = Packet(acknowledgement: type, id: id, reason: reason, rawProperties: rawProperties)
            guard self.admits(packet, options, now: now) else { return self.end == nil }
        }
        if options.tellsProperties, !rawProperties.isEmpty, let id = PacketID(rawValue: id),
            let properties = try? Properties(validated: rawProperties)
        {
            self.observer.properties(self.client, of: type, id, properties, now: now)
        }
        guard self.end == nil else { return false }
        guard type == .pubRel else { return self.received(type, id: id, reason: reason, now: now) }
        if options.defersCompletions, self.session.pointee.inbound.isAwaitingCompletion(id) {
            // PUBREL came again: the owner may still be storing the first one, and learns which connection has to
            // answer.
            self.observer.released(self.client, id, now: now)
            return self.end == nil
        }
        let answer = self.session.pointee.receivedPubRel(id: id)
        if answer == .success, options.defersCompletions { self.session.pointee.inbound.deferCompletion(id) }
        if let extras = self.extras {
            extras.unreleased.remove(id)
            extras.returnQuota(inRead: true)
        }
        if answer == .success { self.observer.released(self.client, id, now: now) }
        if answer != .success || !options.defersCompletions { self.complete(id, answer) }
        return self.end == nil
    }

    fileprivate func receivedCarefully(_ packet: Packet, _ options: SessionOptions, now: NIODeadline) -> Bool {
        guard self.admits(packet, options, now: now) else { return self.end == nil }
        if options.tellsProperties {
            switch packet {
            case .subAck(let answer) where !answer.properties.isEmpty:
                self.observer.properties(self.client, of: .subAck, answer.packetID, answer.properties, now: now)
            case .unsubAck(let answer) where !answer.properties.isEmpty:
                self.observer.properties(self.client, of: .unsubAck, answer.packetID, answer.properties, now: now)
            default: break
            }
        }
        return self.end == nil && self.received(packet, now: now)
    }
}

/// ``InboundSink`` for a connection with the extra checks.
private struct CarefulSink: PacketSink {
    let connection: MQTTConnection
    let options: SessionOptions
    let now: NIODeadline

    mutating func publish(_ view: PublishView) -> Bool {
        self.connection.receivedCarefully(view, self.options, now: self.now)
    }

    mutating func acknowledgement(
        _ type: PacketType,
        id: UInt16,
        reason: UInt8,
        rawProperties: UnsafeRawBufferPointer
    ) -> Bool {
        self.connection.receivedCarefully(
            type,
            id: id,
            reason: reason,
            rawProperties: rawProperties,
            self.options,
            now: self.now
        )
    }

    mutating func control(_ packet: Packet) -> Bool {
        self.connection.receivedCarefully(packet, self.options, now: self.now)
    }
}
