import MQTTCodec
package import NIOCore

extension Broker {
    /// - Returns: false if the connection was ended.
    mutating func publish(_ view: PublishView, from connection: ConnectionID, now: NIODeadline) -> Bool {
        if view.firstByte & 0b1000 == 0 {
            self.tally.received[view.firstByte >> 1 & 3] &+= 1
        } else {
            self.tally.receivedDUP[view.firstByte >> 1 & 3] &+= 1
        }
        if let rounds = self.faults.spin { self.spin(rounds) }
        if !view.rawProperties.isEmpty,
            let offset = RawProperties.offset(of: RawProperties.topicAlias, in: view.rawProperties)
        {
            return self.publishAliased(view, aliasOffset: offset, from: connection, now: now)
        }
        return self.take(view, view.topic, view.rawProperties, from: connection, now: now)
    }

    /// Accepts a PUBLISH with its full topic and the properties to forward.
    @inline(__always)
    mutating func take(
        _ view: PublishView,
        _ topic: UnsafeRawBufferPointer,
        _ properties: UnsafeRawBufferPointer,
        from connection: ConnectionID,
        now: NIODeadline
    ) -> Bool {
        if self.connections[connection].isRestricted {
            return self.takeRestricted(view, topic, properties, from: connection, now: now)
        }
        return self.accept(view, topic, properties, .success, from: connection, now: now)
    }

    @inline(never)
    private mutating func takeRestricted(
        _ view: PublishView,
        _ topic: UnsafeRawBufferPointer,
        _ properties: UnsafeRawBufferPointer,
        from connection: ConnectionID,
        now: NIODeadline
    ) -> Bool {
        if let isOpen = self.object(to: view, topic, on: connection, now: now) { return isOpen }
        let reason = self.reason(toAccept: topic)
        return self.accept(view, topic, properties, reason, from: connection, now: now)
    }

    /// Acknowledges a PUBLISH with the reason, and distributes it.
    @inline(__always)
    private mutating func accept(
        _ view: PublishView,
        _ topic: UnsafeRawBufferPointer,
        _ properties: UnsafeRawBufferPointer,
        _ reason: ReasonCode,
        from connection: ConnectionID,
        now: NIODeadline
    ) -> Bool {
        let qos = view.firstByte >> 1 & 3
        if qos == 1 {
            self.acknowledge(.pubAck, view.packetID, reason, to: connection)
        } else if qos == 2 {
            let isNew = self.connections[connection].heldIDs.insert(view.packetID).inserted
            if isNew, self.connections[connection].heldIDs.count > Int(self.configuration.receiveMaximum) {
                // [MQTT-3.3.4-9]
                self.fail(connection, .receiveMaximumExceeded, now: now)
                return false
            }
            self.acknowledge(.pubRec, view.packetID, reason, to: connection)
            if !isNew {
                // [MQTT-4.3.3-10]
                self.tally.receivedRepeated.qos2 &+= 1
                return true
            }
        }
        var message = MessageView(
            topic: topic,
            payload: view.payload,
            properties: properties,
            qos: qos,
            retain: view.firstByte & 1 != 0
        )
        if qos == 0, view.rawProperties.isEmpty {
            message.setBody(isVersion5: self.connections[connection].isVersion5)
        }
        if message.retain { self.retain(message, now: now) }
        let source = MessageSource(session: self.connections[connection].session, connection: connection)
        self.distribute(message, from: source, now: now)
        return true
    }

    mutating func retain(_ message: MessageView, now: NIODeadline) {
        if self.addressee(of: message.topic) != nil { return }
        // [MQTT-3.3.1-6]
        if message.payload.isEmpty { return self.retained.remove(Array(message.topic)) }
        let isKept = self.retained.set(KeptMessage(message, now: now), limit: self.configuration.retainedBytes)
        if !isKept { self.tally.retainedFull += 1 }
    }

    /// Delivers a message to every client with a matching subscription, and to one member of every share group.
    package mutating func distribute(_ message: MessageView, from source: MessageSource, now: NIODeadline) {
        let route = self.route(message.topic)
        self.frames.beginMessage()
        for target in route.targets where !target.noLocal || target.session != source.session {
            self.deliver(message, to: target, from: source, now: now)
        }
        for group in route.groups { self.deliver(message, toGroup: group, from: source, now: now) }
    }

    @inline(__always)
    private mutating func deliver(
        _ message: MessageView,
        to target: RouteTarget,
        from source: MessageSource,
        now: NIODeadline
    ) {
        guard target.connection >= 0 else { return self.deliver(message, toAbsent: target, from: source, now: now) }
        let connection = ConnectionID(target.connection)
        let qos = min(message.qos, target.qos)
        // [MQTT-3.3.1-12], [MQTT-3.3.1-13]
        let retain = message.retain && target.retainAsPublished
        if self.faults.touchesPublish {
            let publisher = self.sessions[Int(source.session)].publisher
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
        if self.connections[connection].isCongested, source.connection >= 0 { self.pause(source.connection) }
    }

    /// Delivers to an offline client: the message waits in its session, if it has one and the QoS is above 0.
    private mutating func deliver(
        _ message: MessageView,
        toAbsent target: RouteTarget,
        from source: MessageSource,
        now: NIODeadline
    ) {
        guard target.isLive, min(message.qos, target.qos) > 0, self.sessions[Int(target.session)].kept != nil else {
            self.tally.notDeliveredOffline[message.qos] &+= 1
            return
        }
        if self.faults.touchesPublish {
            let publisher = self.sessions[Int(source.session)].publisher
            return self.inject(
                message,
                into: target.subscription,
                of: publisher,
                identifiers: target.identifiers,
                now: now
            )
        }
        self.store(
            message,
            in: target.session,
            qos: min(message.qos, target.qos),
            retain: message.retain && target.retainAsPublished,
            identifiers: target.identifiers,
            tally: Tally(kind: .copy, qos: message.qos)
        )
    }

    private mutating func deliver(
        _ message: MessageView,
        toGroup group: Int32,
        from source: MessageSource,
        now: NIODeadline
    ) {
        guard let member = self.nextMember(of: Int(group), forQoS: message.qos) else {
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

    /// The group's next member in turn.
    ///
    /// Connected members come first, then those whose session can store the message.
    private mutating func nextMember(of group: Int, forQoS qos: UInt8) -> Int32? {
        if let member = self.nextMember(of: group, isConnected: true) { return member }
        return qos > 0 ? self.nextMember(of: group, isConnected: false) : nil
    }

    private mutating func nextMember(of group: Int, isConnected: Bool) -> Int32? {
        let count = self.groups[group].members.count
        for _ in 0..<count {
            let position = self.groups[group].next % count
            self.groups[group].next = position + 1
            let member = self.groups[group].members[position]
            guard self.subscriptions[Int(member)].isLive else { continue }
            let session = Int(self.subscriptions[Int(member)].session)
            if isConnected {
                if self.sessions[session].connection >= 0 { return member }
            } else if self.sessions[session].kept != nil, self.subscriptions[Int(member)].qos > 0 {
                return member
            }
        }
        return nil
    }
}

package struct MessageSource {
    var session: Int32
    /// -1 for a will.
    var connection: ConnectionID

    package init(session: Int32, connection: ConnectionID) {
        self.session = session
        self.connection = connection
    }
}
