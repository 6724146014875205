import DequeModule
import MQTTCodec
import NIOCore

// Sessions that outlive their connections.
//
// Spec: MQTT 5.0 §3.1.2.11.2, §4.1, §4.4.
extension Broker {
    /// Seconds that the CONNECT's session outlives its connection.
    func sessionExpiry(of connect: Connect) -> UInt32 {
        // §3.1.2.11.2: Clean Session 0 means that the session never expires.
        let wanted =
            connect.version == .v5 ? connect.properties.sessionExpiryInterval ?? 0 : connect.cleanStart ? 0 : .max
        return min(wanted, self.configuration.limits.maximumSessionExpiry)
    }

    /// Attaches the client's session to the connection, or a new one if it has none.
    mutating func takeSession(
        _ key: [UInt8],
        of connect: Connect,
        for connection: ConnectionID,
        now: NIODeadline
    ) -> (session: Int32, isPresent: Bool) {
        if let session = self.sessionsByKey[key] {
            let old = ConnectionID(self.sessions[Int(session)].connection)
            // [MQTT-3.1.4-3]
            if old >= 0 { self.disconnect(old, .sessionTakenOver, cause: .takeover, now: now) }
        }
        // [MQTT-3.1.2-4]
        if connect.cleanStart, let session = self.sessionsByKey[key] { self.discard(session, now: now) }
        let session = self.sessionsByKey[key] ?? self.makeSession(key)
        self.sessions[Int(session)].connection = Int32(connection)
        let expiry = self.sessionExpiry(of: connect)
        guard let kept = self.sessions[Int(session)].kept else {
            if expiry > 0 { self.sessions[Int(session)].kept = KeptSession(expiry: expiry, version: connect.version) }
            return (session, false)
        }
        self.sessionsAway -= 1
        self.storedBytes -= kept.deliveries.storedBytes
        // [MQTT-3.1.3-9]: the client is back in time, so the will is dropped.
        kept.will = nil
        kept.willDue = .distantFuture
        kept.endsAt = nil
        kept.ticket = 0
        kept.expiry = expiry
        self.version += 1
        return (session, true)
    }

    private mutating func makeSession(_ key: [UInt8]) -> Int32 {
        var new = BrokerSession(key: key)
        if self.faults.touchesOrder {
            let publisher = self.publishers[key] ?? UInt32(self.publishers.count + 1)
            self.publishers[key] = publisher
            new.publisher = publisher
        }
        let session: Int32
        if let reused = self.freeSessions.popLast() {
            session = reused
            self.sessions[Int(session)] = new
        } else {
            session = Int32(self.sessions.count)
            self.sessions.append(new)
        }
        self.sessionsByKey[key] = session
        return session
    }

    /// Attaches the session's in-flight and waiting messages to the connection, so that they survive any kind of end.
    mutating func adopt(_ connection: ConnectionID) {
        guard let kept = self.sessions[Int(self.connections[connection].session)].kept else { return }
        let version = self.connections[connection].version
        var deliveries = DeliveryQueue(limit: 0)
        swap(&deliveries, &kept.deliveries)
        deliveries.limit = self.connections[connection].deliveries.limit
        deliveries.convert(from: kept.version, to: version)
        kept.version = version
        self.connections[connection].deliveries = deliveries
        self.connections[connection].heldIDs = kept.heldIDs
        kept.heldIDs = []
    }

    /// Resumes the session after CONNACK.
    mutating func resume(_ connection: ConnectionID) {
        let session = Int(self.connections[connection].session)
        // A session that now ends with its connection does not need its stored state.
        if self.sessions[session].kept?.expiry == 0 { self.sessions[session].kept = nil }
        self.refill(connection)
        let owed = self.sessions[session].subscriptions.values.filter { self.subscriptions[Int($0)].search != nil }
        guard !owed.isEmpty else { return }
        self.debts.append(RetainedDebt(connection: connection, subscriptions: Deque(owed.sorted())))
        self.debtsDue = min(self.debtsDue, self.clock + .milliseconds(1))
    }

    /// Takes back the session's messages that were never handed out.
    mutating func takeBack(_ connection: ConnectionID) {
        guard self.connections[connection].deliveries.journal != nil else { return }
        var copies = CountPerQoS()
        var extra = CountPerQoS()
        var retained = CountPerQoS()
        var resent = CountPerQoS()
        self.connections[connection].deliveries.park { tally, isRepetition in
            guard !isRepetition else { return resent[tally.qos] += 1 }
            switch tally.kind {
            case .copy: copies[tally.qos] += 1
            case .duplicate: extra[tally.qos] += 1
            case .retained: retained[tally.qos] += 1
            case .statistics: break
            }
        }
        self.tally.delivered -= copies
        self.tally.delivered -= extra
        self.tally.duplicated -= extra
        self.tally.deliveredRetained -= retained
        self.tally.resent -= resent
        self.tally.waiting += copies
        // Messages that the session will send again must not also reach the old connection.
        if copies.total + extra.total + retained.total + resent.total > 0 { self.dropOutput(connection) }
    }

    /// The connection has ended and the session continues.
    mutating func park(_ session: Int32, from connection: ConnectionID, now: NIODeadline) {
        guard let kept = self.sessions[Int(session)].kept else { return }
        self.takeBack(connection)
        var deliveries = DeliveryQueue(limit: 0)
        swap(&deliveries, &self.connections[connection].deliveries)
        kept.deliveries = deliveries
        kept.heldIDs = self.connections[connection].heldIDs
        kept.version = self.connections[connection].version
        self.sessionsAway += 1
        self.storedBytes += kept.deliveries.storedBytes
        self.sessionTickets += 1
        kept.ticket = self.sessionTickets
        self.tidyDue()
        guard kept.expiry < .max else { return }
        let end = now + .seconds(Int64(kept.expiry))
        kept.endsAt = end
        self.sessionsDue.add(DueQueue.Entry(due: end, session: session, ticket: kept.ticket))
    }

    /// Removes the entries of clients that came back in time, so that they do not pile up.
    mutating func tidyDue() {
        guard self.sessionsDue.count > 4 * self.sessionsAway + 1_024 else { return }
        let sessions = self.sessions
        self.sessionsDue.keep { sessions[Int($0.session)].kept?.ticket == $0.ticket }
    }

    /// Ends the session of an offline client, and discards its state.
    mutating func discard(_ session: Int32, now: NIODeadline) {
        guard let kept = self.sessions[Int(session)].kept else { return }
        self.sessionsAway -= 1
        self.storedBytes -= kept.deliveries.storedBytes
        self.sessions[Int(session)].kept = nil
        self.abandon(&kept.deliveries)
        let will = kept.will
        kept.will = nil
        // §3.1.3.2.2: the session's end also ends the delay.
        if let will { self.publish(will, of: session, now: now) }
        for (filter, subscription) in self.sessions[Int(session)].subscriptions {
            self.remove(subscription, filter, of: session)
        }
        self.version += 1
        self.forgetIfEmpty(session)
    }

    /// Counts the messages that a session still had to send when it ended.
    mutating func abandon(_ deliveries: inout DeliveryQueue) {
        for tally in deliveries.undelivered { self.abandon(tally) }
        while let tally = deliveries.abandonNext() { self.abandon(tally) }
    }

    private mutating func abandon(_ tally: Tally) {
        guard tally.kind == .copy else { return }
        self.tally.waiting[tally.qos] -= 1
        self.tally.undelivered[tally.qos] += 1
    }

    // MARK: Messages for offline clients

    mutating func store(
        _ message: MessageView,
        in session: Int32,
        qos: UInt8,
        retain: Bool,
        identifiers: UnsafeRawBufferPointer,
        tally: Tally
    ) {
        guard let kept = self.sessions[Int(session)].kept else { return }
        let writer = PublishWriter(
            message,
            version5: kept.version == .v5,
            qos: qos,
            retain: retain,
            identifiers: identifiers
        )
        guard writer.count <= PublishWriter.maximumCount else {
            if tally.kind == .copy { self.tally.tooLarge[tally.qos] += 1 }
            return
        }
        let bytes = writer.count + MessageQueue.Header.byteCount
        guard kept.deliveries.queuedCount < self.configuration.sessionQueueMessages,
            kept.deliveries.queuedBytes + bytes <= self.configuration.sessionQueueBytes,
            self.storedBytes + bytes <= self.configuration.storedBytes
        else {
            if tally.kind == .copy { self.tally.queueFull[tally.qos] += 1 }
            return
        }
        self.storedBytes += bytes
        if tally.kind == .copy { self.tally.waiting[tally.qos] += 1 }
        kept.deliveries.enqueue(writer, tally: tally, now: self.clock)
    }

    // MARK: Time

    /// Publishes wills whose delay has passed, and ends sessions.
    mutating func advanceSessions(now: NIODeadline) {
        while let entry = self.sessionsDue.popDue(at: now) {
            guard let kept = self.sessions[Int(entry.session)].kept, kept.ticket == entry.ticket else { continue }
            if let will = kept.will, kept.willDue <= now {
                kept.will = nil
                self.publish(will, of: entry.session, now: now)
            }
            if let end = kept.endsAt, end <= now {
                self.tally.sessionsExpired += 1
                self.discard(entry.session, now: now)
            }
        }
    }
}
