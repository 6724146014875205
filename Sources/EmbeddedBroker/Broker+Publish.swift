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
        let message = MessageView(
            topic: view.topic,
            payload: view.payload,
            properties: view.rawProperties,
            qos: qos,
            retain: view.firstByte & 1 != 0
        )
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
        let index = self.route(message.topic)
        let targets = self.cache.routes[index].targets
        let source = self.connections[connection].session
        for target in targets where !target.noLocal || target.session != source {
            self.deliver(message, to: target, from: connection, now: now)
        }
        for group in self.cache.routes[index].groups {
            self.deliver(message, toGroup: group, from: connection, now: now)
        }
    }

    private mutating func deliver(
        _ message: MessageView,
        to target: Route.Target,
        from source: ConnectionID,
        now: NIODeadline
    ) {
        guard target.connection >= 0 else {
            self.tally.notDeliveredOffline[message.qos] &+= 1
            return
        }
        let connection = ConnectionID(target.connection)
        if self.faults.touchesPublish {
            let publisher = self.sessions[Int(self.connections[source].session)].publisher
            self.inject(message, into: target.subscription, of: publisher, identifiers: target.identifiers, now: now)
        } else {
            self.send(
                message,
                to: connection,
                qos: min(message.qos, target.qos),
                // [MQTT-3.3.1-12], [MQTT-3.3.1-13]
                retain: message.retain && target.retainAsPublished,
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
        let subscription = self.subscriptions[Int(member)]
        let target = Route.Target(
            session: subscription.session,
            connection: self.sessions[Int(subscription.session)].connection,
            subscription: member,
            qos: subscription.qos,
            noLocal: false,
            retainAsPublished: subscription.retainAsPublished,
            identifiers: subscription.identifier
        )
        self.deliver(message, to: target, from: source, now: now)
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

    /// Writes one copy to a client's output, or into its queue when its window is full.
    mutating func send(
        _ message: MessageView,
        to connection: ConnectionID,
        qos: UInt8,
        retain: Bool,
        identifiers: [UInt8],
        tally: Tally
    ) {
        let writer = PublishWriter(
            message,
            version5: self.connections[connection].isVersion5,
            qos: qos,
            retain: retain,
            identifiers: identifiers
        )
        let count = writer.count
        // [MQTT-3.1.2-24]
        if count > self.connections[connection].maximumPacketSize {
            if tally.kind == .copy { self.tally.tooLarge[tally.qos] += 1 }
            return
        }
        let waitingBytes = self.connections[connection].waitingBytes
        if waitingBytes + count > self.configuration.queueLimit {
            if tally.kind == .copy { self.tally.queueFull[tally.qos] += 1 }
            return
        }
        if waitingBytes > self.configuration.highWaterMark { self.checkCongestion(connection) }

        var packetID: UInt16 = 0
        if qos > 0 {
            packetID = self.connections[connection].window.take(qos: qos)
            if packetID == 0 {
                if tally.kind == .copy { self.tally.waiting[tally.qos] &+= 1 }
                self.connections[connection].window.enqueue(writer, tally: tally)
                return
            }
        }
        self.prepareOutput(connection)
        self.connections[connection].out.writeWithUnsafeMutableBytes(minimumWritableBytes: count) { memory in
            if let base = memory.baseAddress { writer.write(to: base, packetID: packetID) }
            return count
        }
        self.count(tally, on: connection)
        self.markDirty(connection)
        if self.connections[connection].out.readableBytes > Self.urgentBytes { self.hurry(connection) }
    }

    /// Has a large output written at once, for the rest of the turn would only make it larger.
    private mutating func hurry(_ connection: ConnectionID) {
        guard self.connections[connection].isWritable, !self.connections[connection].isUrgent else { return }
        self.connections[connection].isUrgent = true
        self.actions.append(.flushNow(connection))
    }

    /// Books a copy that has reached a client's output.
    private mutating func count(_ tally: Tally, on connection: ConnectionID) {
        switch tally.kind {
        case .copy:
            self.tally.delivered[tally.qos] &+= 1
            self.connections[connection].unwritten[tally.qos] &+= 1
        case .duplicate:
            self.tally.delivered[tally.qos] &+= 1
            self.tally.duplicated[tally.qos] &+= 1
            self.connections[connection].unwrittenExtra[tally.qos] &+= 1
        case .retained: self.tally.deliveredRetained[tally.qos] &+= 1
        case .statistics: break
        }
    }

    // MARK: Acknowledgements

    /// - Returns: false when the connection has been ended.
    mutating func acknowledged(
        _ type: PacketType,
        id: UInt16,
        reason: UInt8,
        from connection: ConnectionID,
        now: NIODeadline
    ) -> Bool {
        let outcome: OutboundWindow.Outcome
        switch type {
        case .pubAck:
            self.tally.acknowledgementsReceived.puback &+= 1
            outcome = self.connections[connection].window.pubAck(id)
        case .pubRec:
            self.tally.acknowledgementsReceived.pubrec &+= 1
            outcome = self.connections[connection].window.pubRec(id, failed: reason >= 0x80)
            self.answer(
                .pubRel,
                id,
                isKnown: outcome != .unknown,
                isDue: outcome == .release || outcome == .unknown,
                connection
            )
        case .pubRel:
            self.tally.acknowledgementsReceived.pubrel &+= 1
            let isKnown = self.connections[connection].heldIDs.remove(id) != nil
            self.answer(.pubComp, id, isKnown: isKnown, isDue: true, connection)
            return true
        default:
            self.tally.acknowledgementsReceived.pubcomp &+= 1
            outcome = self.connections[connection].window.pubComp(id)
        }
        switch outcome {
        case .done: self.refill(connection)
        case .release, .unknown: break
        case .wrong:
            self.fail(connection, .protocolError, now: now)
            return false
        }
        return true
    }

    /// The next step of a QoS 2 flow; in MQTT 5 with 0x92 when there is no such flow (§3.6.2.1, §3.7.2.1).
    private mutating func answer(
        _ type: PacketType,
        _ id: UInt16,
        isKnown: Bool,
        isDue: Bool,
        _ connection: ConnectionID
    ) {
        guard isDue, let packetID = PacketID(rawValue: id) else { return }
        guard !isKnown, self.connections[connection].isVersion5 else {
            return self.acknowledge(type, id, to: connection)
        }
        let reason = ReasonCode.packetIdentifierNotFound
        if type == .pubRel {
            self.send(.pubRel(PubRel(packetID, reason: reason)), to: connection)
            self.tally.acknowledgementsSent.pubrel &+= 1
        } else {
            self.send(.pubComp(PubComp(packetID, reason: reason)), to: connection)
            self.tally.acknowledgementsSent.pubcomp &+= 1
        }
    }

    /// Lets waiting messages go as far as the window has room.
    private mutating func refill(_ connection: ConnectionID) {
        guard self.connections[connection].window.hasQueue else { return }
        self.prepareOutput(connection)
        var out = ByteBuffer()
        swap(&out, &self.connections[connection].out)
        while let tally = self.connections[connection].window.moveNext(to: &out) {
            if tally.kind == .copy { self.tally.waiting[tally.qos] &-= 1 }
            self.count(tally, on: connection)
        }
        swap(&out, &self.connections[connection].out)
        self.markDirty(connection)
        if self.connections[connection].isCongested { self.easeCongestion(connection) }
    }

    // MARK: Back-pressure

    private mutating func checkCongestion(_ connection: ConnectionID) {
        guard !self.connections[connection].isCongested else { return }
        // What a writable client has in its output goes out at the end of this turn.
        let output = self.connections[connection].isWritable ? 0 : self.connections[connection].out.readableBytes
        let waiting = output + self.connections[connection].window.queuedBytes
        guard waiting > self.configuration.highWaterMark else { return }
        self.connections[connection].isCongested = true
        self.congested += 1
    }

    mutating func easeCongestion(_ connection: ConnectionID) {
        guard self.connections[connection].waitingBytes <= self.configuration.highWaterMark / 2 else { return }
        self.connections[connection].isCongested = false
        self.uncongest()
    }

    mutating func uncongest() {
        self.congested -= 1
        guard self.congested == 0 else { return }
        for publisher in self.paused where self.connections[publisher].isPaused {
            self.connections[publisher].isPaused = false
            self.actions.append(.resumeReading(publisher))
        }
        self.paused.removeAll(keepingCapacity: true)
    }

    /// Stops reading a publisher that feeds a slow consumer; but not one whose acknowledgements others wait for.
    private mutating func pause(_ publisher: ConnectionID) {
        guard !self.connections[publisher].isPaused, !self.connections[publisher].isCongested,
            !self.connections[publisher].window.hasQueue
        else { return }
        self.connections[publisher].isPaused = true
        self.paused.append(publisher)
        self.tally.publishersPaused += 1
        self.actions.append(.pauseReading(publisher))
    }
}
