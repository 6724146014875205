import MQTTCodec
import NIOCore

/// Why a connection ends.
enum DisconnectCause: String {
    case client, closed, keepalive, takeover, `protocol`, injected, shutdown
}

extension Broker {
    mutating func control(_ packet: Packet, from connection: ConnectionID, now: NIODeadline) {
        switch packet {
        case .connect(let connect): self.connect(connect, on: connection, now: now)
        case .subscribe(let subscribe): self.subscribe(subscribe, from: connection, now: now)
        case .unsubscribe(let unsubscribe): self.unsubscribe(unsubscribe, from: connection)
        case .pingReq: self.send(.pingResp, to: connection)
        case .disconnect(let disconnect): self.disconnect(disconnect, from: connection, now: now)
        // §4.12: no authentication method is supported, so no AUTH can be in order.
        default: self.fail(connection, .protocolError, now: now)
        }
    }

    // MARK: CONNECT

    private mutating func connect(_ connect: Connect, on connection: ConnectionID, now: NIODeadline) {
        self.connections[connection].version = connect.version
        self.beginFaults(now: now)
        let version5 = connect.version == .v5
        if let code = self.faults.refuse {
            self.tally.refused += 1
            return self.refuse(connection, code: ConnectRefusal.code(code, version5: version5))
        }
        if let code = Self.refusal(of: connect) { return self.refuse(connection, code: code) }

        var clientID = connect.clientID
        if clientID.isEmpty {
            self.assignedIDs += 1
            clientID = "clamor-auto-\(self.assignedIDs)"
        }
        let session = self.takeSession(Array(clientID.utf8), for: connection, now: now)
        self.open(connection, session: session, for: connect)
        var answer = ConnAck()
        if version5 {
            let configuration = self.configuration
            if connect.clientID.isEmpty { answer.properties.assignedClientIdentifier = clientID }
            // §3.2.2.3.2: sessions end with their connection here, whatever was asked for.
            if let expiry = connect.properties.sessionExpiryInterval, expiry > 0 {
                answer.properties.sessionExpiryInterval = 0
            }
            if configuration.receiveMaximum < .max { answer.properties.receiveMaximum = configuration.receiveMaximum }
            if configuration.maximumPacketSize < 268_435_460 {
                answer.properties.maximumPacketSize = UInt32(configuration.maximumPacketSize)
            }
        }
        self.tally.connects += 1
        self.tally.clientsNow += 1
        self.tally.clientsMaximum = max(self.tally.clientsMaximum, self.tally.clientsNow)
        self.send(.connAck(answer), to: connection)
    }

    /// The CONNACK code that the CONNECT deserves, if not 0.
    private static func refusal(of connect: Connect) -> UInt8? {
        // §4.12: no method is known.
        if connect.version == .v5, connect.properties.authenticationMethod != nil { return 0x8C }
        let length = connect.clientID.utf8.count
        switch connect.version {
        // MQTT 3.1 §3.1: 1 to 23 characters.
        case .v31: return length == 0 || length > 23 ? 2 : nil
        // [MQTT-3.1.3-8] of 3.1.1.
        case .v311: return length == 0 && !connect.cleanStart ? 2 : nil
        case .v5: return nil
        }
    }

    private mutating func open(_ connection: ConnectionID, session: Int32, for connect: Connect) {
        let properties = connect.properties
        self.connections[connection].state = .open
        self.connections[connection].session = session
        if connect.keepAlive > 0 {
            self.connections[connection].silenceLimit = .milliseconds(Int64(connect.keepAlive) * 1_500)
        }
        if let maximum = properties.maximumPacketSize { self.connections[connection].maximumPacketSize = Int(maximum) }
        let receiveMaximum = properties.receiveMaximum ?? .max
        self.connections[connection].window = OutboundWindow(
            limit: Int(min(self.configuration.maximumInFlight, receiveMaximum))
        )
    }

    private mutating func takeSession(_ key: [UInt8], for connection: ConnectionID, now: NIODeadline) -> Int32 {
        if let session = self.sessionsByKey[key] {
            let old = ConnectionID(self.sessions[Int(session)].connection)
            if old >= 0 {
                // [MQTT-3.1.4-3]
                self.disconnect(old, .sessionTakenOver, cause: .takeover, now: now)
            }
        }
        // Ended with its connection, unless it left subscriptions behind.
        if let session = self.sessionsByKey[key] {
            self.sessions[Int(session)].connection = Int32(connection)
            return session
        }
        var new = BrokerSession(key: key, connection: Int32(connection))
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

    private mutating func refuse(_ connection: ConnectionID, code: UInt8) {
        self.tally.connectsRefused += 1
        self.send(.connAck(ConnAck(code: code)), to: connection)
        self.connections[connection].state = .closing
        self.actions.append(.close(connection))
    }

    // MARK: The end

    private mutating func disconnect(_ packet: Disconnect, from connection: ConnectionID, now: NIODeadline) {
        self.end(connection, .client, now: now)
        self.actions.append(.close(connection))
    }

    /// Bytes that are no packet, or not one that may come now.
    mutating func refuse(_ connection: ConnectionID, _ error: DecodeError, now: NIODeadline) {
        if self.connections[connection].state == .awaitingConnect {
            self.tally.connectsRefused += 1
            self.connections[connection].state = .closing
            // [MQTT-3.1.2-2] of 3.1.1; a client of an unknown level can read no other form.
            if let code = error.returnCode {
                self.connections[connection].version = .v311
                self.send(.connAck(ConnAck(code: code.rawValue)), to: connection)
            }
            self.actions.append(.close(connection))
        } else {
            self.fail(connection, error.reason, now: now)
        }
    }

    /// Ends the connection for what its client did.
    mutating func fail(_ connection: ConnectionID, _ reason: ReasonCode, now: NIODeadline) {
        self.disconnect(connection, reason, cause: .protocol, now: now)
    }

    /// Says why, in MQTT 5 (§4.13.1), and closes.
    mutating func disconnect(
        _ connection: ConnectionID,
        _ reason: ReasonCode,
        cause: DisconnectCause,
        now: NIODeadline
    ) {
        guard self.connections[connection].state == .open else { return }
        self.end(connection, cause, now: now)
        if self.connections[connection].isVersion5 {
            self.send(.disconnect(Disconnect(reason: reason)), to: connection)
        }
        self.actions.append(.close(connection))
    }

    /// Takes an open connection out of everything but its output; without effect on any other.
    mutating func end(_ connection: ConnectionID, _ cause: DisconnectCause, now: NIODeadline) {
        let wasOpen = self.connections[connection].state == .open
        self.connections[connection].state = .closing
        guard wasOpen else { return }
        self.tally.clientsNow -= 1
        self.tally.disconnects[cause.rawValue, default: 0] += 1
        let session = self.connections[connection].session
        // Before what waits is given up, for it may be for this very client.
        self.releaseReordered(of: self.sessions[Int(session)].publisher, now: now)
        while let tally = self.connections[connection].window.abandonNext() { self.abandon(tally) }
        if self.connections[connection].isCongested {
            self.connections[connection].isCongested = false
            self.uncongest()
        }
        self.leave(session, for: cause)
    }

    private mutating func abandon(_ tally: Tally) {
        guard tally.kind == .copy else { return }
        self.tally.waiting[tally.qos] -= 1
        self.tally.undelivered[tally.qos] += 1
    }

    /// Forgets the subscriptions of a client that said DISCONNECT, and puts to sleep those of any other.
    private mutating func leave(_ session: Int32, for cause: DisconnectCause) {
        self.sessions[Int(session)].connection = -1
        let subscriptions = self.sessions[Int(session)].subscriptions
        if !subscriptions.isEmpty { self.version += 1 }
        if cause == .client {
            for (filter, subscription) in subscriptions { self.remove(subscription, filter, of: session) }
        } else {
            for subscription in subscriptions.values { self.sleep(subscription) }
        }
        self.forgetIfEmpty(session)
    }

    mutating func forgetIfEmpty(_ session: Int32) {
        guard self.sessions[Int(session)].connection < 0, self.sessions[Int(session)].subscriptions.isEmpty else {
            return
        }
        self.sessionsByKey[self.sessions[Int(session)].key] = nil
        self.sessions[Int(session)] = BrokerSession(key: [])
        self.freeSessions.append(session)
    }
}
