import MQTTCodec
package import NIOCore

/// The cause of a connection's end.
enum DisconnectCause: String {
    case client, closed, keepalive, takeover, `protocol`, injected, shutdown
}

extension Broker {
    mutating func disconnect(_ packet: Disconnect, from connection: ConnectionID, now: NIODeadline) {
        if let seconds = packet.properties.sessionExpiryInterval {
            let session = Int(self.connections[connection].session)
            guard let kept = self.sessions[session].kept else {
                // [MQTT-3.14.2-2]: an expiry of 0 in CONNECT cannot be changed.
                if seconds > 0 { self.fail(connection, .protocolError, now: now) }
                if seconds == 0 { self.leave(connection, packet, now: now) }
                return
            }
            kept.expiry = min(seconds, self.configuration.limits.maximumSessionExpiry)
        }
        self.leave(connection, packet, now: now)
    }

    private mutating func leave(_ connection: ConnectionID, _ packet: Disconnect, now: NIODeadline) {
        // [MQTT-3.14.4-3]
        if packet.reason == .normalDisconnection { self.connections[connection].extras?.will = nil }
        self.end(connection, .client, now: now)
        self.actions.append(.close(connection))
    }

    /// Handles malformed bytes or a packet that is not allowed now; `version` is the CONNECT's, if known.
    mutating func refuse(_ connection: ConnectionID, _ error: DecodeError, version: ProtocolVersion, now: NIODeadline) {
        guard self.connections[connection].state == .awaitingConnect else {
            return self.fail(connection, error.reason, now: now)
        }
        // §4.13.1: a CONNECT is answered by a CONNACK.
        if version == .v5 {
            self.connections[connection].version = .v5
            return self.refuse(connection, code: error.reason.rawValue)
        }
        self.tally.connectsRefused += 1
        self.connections[connection].state = .closing
        // [MQTT-3.1.2-2] of 3.1.1; a client with an unknown level can read no other form.
        if let code = error.returnCode {
            self.connections[connection].version = .v311
            self.send(.connAck(ConnAck(code: code.rawValue)), to: connection)
        }
        self.actions.append(.close(connection))
    }

    /// Ends the connection because of a violation by its client.
    mutating func fail(_ connection: ConnectionID, _ reason: ReasonCode, now: NIODeadline) {
        // [MQTT-3.14.0-1]: no DISCONNECT before CONNACK.
        if self.connections[connection].state == .authenticating {
            return self.refuse(connection, code: reason.rawValue)
        }
        self.disconnect(connection, reason, cause: .protocol, now: now)
    }

    /// Sends the reason in MQTT 5 (§4.13.1), and closes.
    mutating func disconnect(
        _ connection: ConnectionID,
        _ reason: ReasonCode,
        cause: DisconnectCause,
        now: NIODeadline,
        _ properties: Properties = Properties()
    ) {
        guard self.connections[connection].state == .open else { return }
        self.end(connection, cause, now: now)
        if self.connections[connection].isVersion5 {
            var goodbye = Disconnect(reason: reason, properties: properties)
            self.explain(reason.rawValue, in: &goodbye.properties, on: connection)
            self.sendFitting(.disconnect(goodbye), to: connection)
        }
        self.actions.append(.close(connection))
    }

    /// The layer below MQTT has failed.
    ///
    /// Only what is already in the output can still reach the client.
    package mutating func broken(_ connection: ConnectionID, now: NIODeadline) {
        self.clock = now
        guard self.connections[connection].state != .closing else { return }
        self.end(connection, .protocol, now: now)
        self.actions.append(.close(connection))
    }

    /// Removes an open connection from everything except its output; no effect on any other connection.
    mutating func end(_ connection: ConnectionID, _ cause: DisconnectCause, now: NIODeadline) {
        let wasOpen = self.connections[connection].state == .open
        self.connections[connection].state = .closing
        guard wasOpen else { return }
        self.forgetDebt(of: connection)
        self.tally.clientsNow -= 1
        self.tally.disconnects[cause.rawValue, default: 0] += 1
        let session = self.connections[connection].session
        // Runs before waiting messages are given up, since a released message may be for this client.
        self.releaseReordered(of: self.sessions[Int(session)].publisher, now: now)
        if self.connections[connection].isCongested {
            self.connections[connection].isCongested = false
            self.uncongest()
            // Nothing bounds the output of connections that are closing.
            if !self.connections[connection].isWritable { self.dropOutput(connection) }
        }
        let will = self.connections[connection].extras?.will
        self.connections[connection].extras?.will = nil
        self.leave(session, from: connection, for: cause, now: now)
        // A stop of the server is not the client's end (§3.1.2.5 allows a delay).
        if let will, cause != .shutdown { self.releaseWill(will, of: session, now: now) }
        self.forgetIfEmpty(session)
    }

    /// Parks the session, or ends it.
    ///
    /// The subscriptions are forgotten if the client sent DISCONNECT or if the session might have lasted. Otherwise
    /// they sleep.
    private mutating func leave(
        _ session: Int32,
        from connection: ConnectionID,
        for cause: DisconnectCause,
        now: NIODeadline
    ) {
        self.sessions[Int(session)].connection = -1
        let subscriptions = self.sessions[Int(session)].subscriptions
        if !subscriptions.isEmpty { self.version += 1 }
        if let kept = self.sessions[Int(session)].kept, kept.expiry > 0 {
            return self.park(session, from: connection, now: now)
        }
        self.takeBack(connection)
        var deliveries = DeliveryQueue(limit: 0)
        swap(&deliveries, &self.connections[connection].deliveries)
        self.abandon(&deliveries)
        if cause == .client || self.sessions[Int(session)].kept != nil {
            self.sessions[Int(session)].kept = nil
            for (filter, subscription) in subscriptions { self.remove(subscription, filter, of: session) }
        } else {
            for subscription in subscriptions.values { self.sleep(subscription) }
        }
    }

    mutating func forgetIfEmpty(_ session: Int32) {
        guard self.sessions[Int(session)].connection < 0, self.sessions[Int(session)].subscriptions.isEmpty,
            self.sessions[Int(session)].kept == nil
        else { return }
        self.sessionsByKey[self.sessions[Int(session)].key] = nil
        self.sessions[Int(session)] = BrokerSession(key: [])
        self.freeSessions.append(session)
    }

    // MARK: Reason strings

    /// Adds a reason string for the code, if enabled; the caller removes it if it does not fit.
    mutating func explain(_ code: UInt8, in properties: inout Properties, on connection: ConnectionID) {
        guard self.configuration.limits.explains, code >= 0x80, self.connections[connection].isVersion5 else { return }
        properties.reasonString = ReasonCode(rawValue: code)?.name
    }

    /// Sends an answer, without its reason string if that exceeds the client's limit [MQTT-3.2.2-19] [MQTT-3.9.2-1]
    /// [MQTT-3.14.2-3].
    ///
    /// - Returns: false if the answer did not fit even so and was not sent [MQTT-3.1.2-24].
    @discardableResult
    mutating func sendFitting(_ packet: Packet, to connection: ConnectionID) -> Bool {
        let maximum = self.connections[connection].maximumPacketSize
        let explains = self.configuration.limits.explains
        guard explains || maximum < PublishWriter.maximumCount else {
            self.send(packet, to: connection)
            return true
        }
        // [MQTT-3.1.2-29]: except in these two packets, reason strings need the client's request.
        let isAsked =
            packet.type == .connAck || packet.type == .disconnect
            || self.connections[connection].extras?.wantsProblems ?? true
        let shorter = packet.withoutReasons ?? packet
        for form in isAsked ? [packet, shorter] : [shorter] {
            var bytes = ByteBuffer()
            form.encode(as: self.connections[connection].version, into: &bytes)
            guard bytes.readableBytes <= maximum else { continue }
            self.send(form, to: connection)
            return true
        }
        return false
    }

    // MARK: Wills (MQTT 5.0 §3.1.2.5, §3.1.3.2)

    /// The connection ended without DISCONNECT 0x00: its will is published now or after its delay.
    mutating func releaseWill(_ will: StoredWill, of session: Int32, now: NIODeadline) {
        guard will.delay > 0, let kept = self.sessions[Int(session)].kept, kept.ticket > 0 else {
            return self.publish(will, of: session, now: now)
        }
        let due = now + .seconds(Int64(will.delay))
        kept.will = will
        kept.willDue = due
        // The session ends first, and its end publishes the will.
        if let end = kept.endsAt, end < due { return }
        self.sessionsDue.add(DueQueue.Entry(due: due, session: session, ticket: kept.ticket))
        self.tidyDue()
    }

    mutating func publish(_ will: StoredWill, of session: Int32, now: NIODeadline) {
        self.tally.wills[will.qos] += 1
        let kept = KeptMessage(
            topic: will.topic,
            payload: will.payload,
            properties: will.properties,
            qos: will.qos,
            retain: will.retain
        )
        kept.withView { view in
            if view.retain { self.retain(view, now: now) }
            self.distribute(view, from: MessageSource(session: session, connection: -1), now: now)
        }
    }
}
