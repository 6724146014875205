import MQTTCodec
import NIOCore

extension Broker {
    mutating func control(_ packet: Packet, from connection: ConnectionID, now: NIODeadline) {
        if self.connections[connection].state == .authenticating {
            return self.control(packet, beforeConnAckOn: connection, now: now)
        }
        switch packet {
        case .connect(let connect): self.connect(connect, on: connection, now: now)
        case .subscribe(let subscribe): self.subscribe(subscribe, from: connection, now: now)
        case .unsubscribe(let unsubscribe): self.unsubscribe(unsubscribe, from: connection)
        case .pingReq: self.send(.pingResp, to: connection)
        case .disconnect(let disconnect): self.disconnect(disconnect, from: connection, now: now)
        case .auth(let auth): self.authenticate(auth, on: connection, now: now)
        default: self.fail(connection, .protocolError, now: now)
        }
    }

    private mutating func connect(_ connect: Connect, on connection: ConnectionID, now: NIODeadline) {
        self.connections[connection].version = connect.version
        if let maximum = connect.properties.maximumPacketSize {
            self.connections[connection].maximumPacketSize = min(Int(maximum), PublishWriter.maximumCount)
        }
        self.beginFaults(now: now)
        if let code = self.faults.refuse {
            self.tally.refused += 1
            return self.refuse(connection, code: code)
        }
        if let redirect = self.configuration.limits.redirect {
            let code: ReasonCode = redirect.isPermanent ? .serverMoved : .useAnotherServer
            return self.refuse(connection, code: code.rawValue, [.serverReference(redirect.reference)])
        }
        if let code = self.refusal(of: connect) { return self.refuse(connection, code: code) }
        if connect.version == .v5, connect.properties.authenticationMethod != nil {
            return self.beginAuthentication(connect, on: connection, now: now)
        }
        if self.isGuessing(connection, as: connect.clientID) {
            return self.refuse(connection, code: ReasonCode.serverBusy.rawValue)
        }
        let code = self.configuration.access.code(of: connect)
        guard code == 0 else { return self.refuseLogin(connection, code: code, now: now) }
        self.accept(connect, user: connect.username, on: connection, ConnAck(), now: now)
    }

    /// The CONNACK code for an invalid CONNECT, or nil; a code of MQTT 5, or of 3.1 and 3.1.1.
    private func refusal(of connect: Connect) -> UInt8? {
        if let will = connect.will {
            // [MQTT-3.2.2-12], [MQTT-3.2.2-13]
            if will.qos.rawValue > self.configuration.limits.maximumQoS { return ReasonCode.qosNotSupported.rawValue }
            if will.retain, !self.configuration.limits.retainAvailable { return ReasonCode.retainNotSupported.rawValue }
        }
        let length = connect.clientID.utf8.count
        switch connect.version {
        // MQTT 3.1 §3.1: 1 to 23 characters.
        case .v31: return length == 0 || length > 23 ? 2 : nil
        // [MQTT-3.1.3-8] of 3.1.1.
        case .v311: return length == 0 && !connect.cleanStart ? 2 : nil
        case .v5: return nil
        }
    }

    /// Opens the session and sends CONNACK.
    mutating func accept(
        _ connect: Connect,
        user: String?,
        on connection: ConnectionID,
        _ answer: ConnAck,
        now: NIODeadline
    ) {
        var answer = answer
        var clientID = connect.clientID
        if clientID.isEmpty {
            // [MQTT-3.2.2-16]: an id that no client has, including ids that clients chose themselves.
            repeat {
                self.assignedIDs += 1
                clientID = "clamor-auto-\(self.assignedIDs)"
            } while self.sessionsByKey[Array(clientID.utf8)] != nil
        }
        let users = self.configuration.access.users
        let rules = user.flatMap { users[$0]?.rights(of: clientID) }
        if let will = connect.will, rules?.mayPublish(to: will.topic) == false {
            return self.refuse(connection, code: ReasonCode.notAuthorized.rawValue)
        }
        let isFull = self.sessions.count - self.freeSessions.count >= self.configuration.maximumSessions
        if isFull, self.sessionsByKey[Array(clientID.utf8)] == nil {
            return self.refuse(connection, code: ReasonCode.quotaExceeded.rawValue)
        }
        let (session, isPresent) = self.takeSession(Array(clientID.utf8), of: connect, for: connection, now: now)
        self.subscribeOwn(session)
        self.open(connection, session: session, for: connect, rules)
        if isPresent { self.adopt(connection) }
        // [MQTT-3.2.2-2], [MQTT-3.2.2-3]; 3.1 has no such flag.
        answer.sessionPresent = isPresent && connect.version != .v31
        if connect.version == .v5 {
            if connect.clientID.isEmpty { answer.properties.assignedClientIdentifier = clientID }
            self.announce(to: connect, in: &answer.properties)
        }
        self.tally.connects += 1
        self.tally.clientsNow += 1
        self.tally.clientsMaximum = max(self.tally.clientsMaximum, self.tally.clientsNow)
        guard self.sendFitting(.connAck(answer), to: connection) else {
            // Even the CONNACK does not fit, so nothing can be sent.
            self.end(connection, .protocol, now: now)
            return self.actions.append(.close(connection))
        }
        if isPresent { self.resume(connection) }
    }

    private func announce(to connect: Connect, in properties: inout Properties) {
        let configuration = self.configuration
        // §3.2.2.3.2: sent if it differs from the requested value.
        if let wanted = connect.properties.sessionExpiryInterval, wanted != self.sessionExpiry(of: connect) {
            properties.sessionExpiryInterval = self.sessionExpiry(of: connect)
        }
        if configuration.receiveMaximum < .max { properties.receiveMaximum = configuration.receiveMaximum }
        if configuration.maximumPacketSize < PacketProblem.largestPacket {
            properties.maximumPacketSize = UInt32(configuration.maximumPacketSize)
        }
        configuration.limits.announce(in: &properties)
        if connect.properties.requestResponseInformation == true {
            properties.responseInformation = configuration.limits.responseInformation
        }
    }

    private mutating func open(
        _ connection: ConnectionID,
        session: Int32,
        for connect: Connect,
        _ rules: BrokerAccess.User?
    ) {
        let properties = connect.properties
        let limits = self.configuration.limits
        self.connections[connection].state = .open
        self.connections[connection].session = session
        let keepAlive = connect.version == .v5 ? limits.serverKeepAlive ?? connect.keepAlive : connect.keepAlive
        self.connections[connection].silenceLimit = keepAlive > 0 ? .milliseconds(Int64(keepAlive) * 1_500) : nil
        let receiveMaximum = properties.receiveMaximum ?? .max
        self.connections[connection].deliveries = DeliveryQueue(
            limit: Int(min(self.configuration.maximumInFlight, receiveMaximum)),
            isKept: self.sessions[Int(session)].kept != nil
        )
        if let will = connect.will { self.extras(of: connection).will = StoredWill(will) }
        if limits.setsTopicAliases, let maximum = properties.topicAliasMaximum, maximum > 0 {
            self.extras(of: connection).ownAliasMaximum = maximum
        }
        if properties.requestProblemInformation == false { self.extras(of: connection).wantsProblems = false }
        let hasRules = rules?.hasRules == true
        if hasRules { self.extras(of: connection).user = rules }
        self.connections[connection].isRestricted = hasRules || limits.restrictPublish || !self.p2pPrefixes.isEmpty
    }

    /// Answers a rejected CONNECT, with a code of either family.
    mutating func refuse(_ connection: ConnectionID, code: UInt8, _ properties: Properties = Properties()) {
        self.tally.connectsRefused += 1
        let version5 = self.connections[connection].isVersion5
        let code = ConnectRefusal.code(code, version5: version5)
        var answer = ConnAck(code: code, properties: version5 ? properties : Properties())
        self.explain(code, in: &answer.properties, on: connection)
        self.sendFitting(.connAck(answer), to: connection)
        self.connections[connection].state = .closing
        self.actions.append(.close(connection))
    }
}
