import MQTTCodec
import NIOCore

extension Broker {
    /// - Returns: false when the connection has been ended.
    mutating func publish(_ view: PublishView, from connection: ConnectionID, now: NIODeadline) -> Bool {
        let qos = view.firstByte >> 1 & 3
        if view.firstByte & 0b1000 == 0 {
            self.tally.received[qos] &+= 1
        } else {
            self.tally.receivedDUP[qos] &+= 1
        }
        if !view.rawProperties.isEmpty,
            RawProperties.offset(of: RawProperties.topicAlias, in: view.rawProperties) != nil
        {
            // [MQTT-3.3.2-9]: our Topic Alias Maximum is 0.
            self.fail(connection, .topicAliasInvalid, now: now)
            return false
        }
        if qos == 1 {
            self.acknowledge(.pubAck, view.packetID, to: connection)
        } else if qos == 2 {
            let isNew = self.connections[connection].heldIDs.insert(view.packetID).inserted
            if isNew, self.connections[connection].heldIDs.count > Int(self.configuration.receiveMaximum) {
                // [MQTT-3.3.4-9]
                self.fail(connection, .receiveMaximumExceeded, now: now)
                return false
            }
            self.acknowledge(.pubRec, view.packetID, to: connection)
            if !isNew {
                // [MQTT-4.3.3-10]
                self.tally.receivedRepeated.qos2 &+= 1
                return true
            }
        }
        var message = MessageView(
            topic: view.topic,
            payload: view.payload,
            properties: view.rawProperties,
            qos: qos,
            retain: view.firstByte & 1 != 0
        )
        if qos == 0, view.rawProperties.isEmpty {
            message.setBody(isVersion5: self.connections[connection].isVersion5)
        }
        if message.retain { self.retain(message, now: now) }
        self.distribute(message, from: connection, now: now)
        return true
    }

    private mutating func retain(_ message: MessageView, now: NIODeadline) {
        // [MQTT-3.3.1-6]
        if message.payload.isEmpty { return self.retained.remove(Array(message.topic)) }
        let seconds = RawProperties.messageExpirySeconds(in: message.properties)
        self.retained.set(
            RetainedStore.Message(
                topic: Array(message.topic),
                payload: Array(message.payload),
                properties: Array(message.properties),
                qos: message.qos,
                expiry: seconds.map { now + .seconds(Int64($0)) }
            )
        )
    }

    /// Gives a message to every client with a matching subscription, and to one member of every share group.
    private mutating func distribute(_ message: MessageView, from connection: ConnectionID, now: NIODeadline) {
        let route = self.route(message.topic)
        let source = self.connections[connection].session
        self.frames.beginMessage()
        for target in route.targets where !target.noLocal || target.session != source {
            self.deliver(message, to: target, from: connection, now: now)
        }
        for group in route.groups { self.deliver(message, toGroup: group, from: connection, now: now) }
    }

    @inline(__always)
    private mutating func deliver(
        _ message: MessageView,
        to target: RouteTarget,
        from source: ConnectionID,
        now: NIODeadline
    ) {
        guard target.connection >= 0 else {
            self.tally.notDeliveredOffline[message.qos] &+= 1
            return
        }
        let connection = ConnectionID(target.connection)
        let qos = min(message.qos, target.qos)
        // [MQTT-3.3.1-12], [MQTT-3.3.1-13]
        let retain = message.retain && target.retainAsPublished
        if self.faults.touchesPublish {
            let publisher = self.sessions[Int(self.connections[source].session)].publisher
            self.inject(message, into: target.subscription, of: publisher, identifiers: target.identifiers, now: now)
        } else if qos == 0, target.identifiers.isEmpty {
            self.share(message, to: connection, retain: retain)
        } else {
            self.send(
                message,
                to: connection,
                qos: qos,
                retain: retain,
                identifiers: target.identifiers,
                tally: Tally(kind: .copy, qos: message.qos)
            )
        }
        if self.connections[connection].isCongested { self.pause(source) }
    }

    private mutating func deliver(
        _ message: MessageView,
        toGroup group: Int32,
        from source: ConnectionID,
        now: NIODeadline
    ) {
        guard let member = self.nextMember(of: Int(group)) else {
            self.tally.notDeliveredOffline[message.qos] &+= 1
            return
        }
        let session = self.subscriptions[Int(member)].session
        var target = RouteTarget(
            session: session,
            connection: self.sessions[Int(session)].connection,
            subscription: member,
            qos: self.subscriptions[Int(member)].qos,
            noLocal: false,
            retainAsPublished: self.subscriptions[Int(member)].retainAsPublished
        )
        let identifiers = self.subscriptions[Int(member)].identifier
        identifiers.withUnsafeBytes {
            target.identifiers = $0
            self.deliver(message, to: target, from: source, now: now)
        }
    }

    /// The members in turn, those that are away passed over.
    private mutating func nextMember(of group: Int) -> Int32? {
        let count = self.groups[group].members.count
        for _ in 0..<count {
            let position = self.groups[group].next % count
            self.groups[group].next = position + 1
            let member = self.groups[group].members[position]
            if self.subscriptions[Int(member)].isLive { return member }
        }
        return nil
    }
}
