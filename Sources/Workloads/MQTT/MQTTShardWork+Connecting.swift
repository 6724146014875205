import LoadEngine
import LoopContext
package import MQTT
package import MQTTCodec
import Measurement
package import NIOCore
import SASL
package import Transport

// A client's login.
extension MQTTShardWork {
    package func makeLink(_ place: Int) -> MQTTConnection {
        // [MQTT-3.3.2-7]: aliases end with their connection.
        self.clients[place].own.hasAlias = false
        self.sequences[place] = nil
        return MQTTConnection(client: place, loop: self.context, session: self.sessions + place, observer: self)
    }

    package func logIn(
        _ place: Int,
        _ connection: MQTTConnection,
        _ connected: ConnectedChannel,
        deadline: NIODeadline
    ) {
        let now = self.context.now
        self.clients[place].own.tcpUp = now
        let isBare = connected.isBare
        if let raw = self.load.raw {
            self.sessions[place].connectVerbatim(now: now)
            return connection.start(verbatim: raw, deadline: deadline, isBare: isBare)
        }
        let number = self.number(place)
        let values = self.load.values(of: number)
        // The seed depends on the client only, not on its event loop.
        var random = SplitMix64(seed: self.load.seed &+ UInt64(number))
        let credentials = self.load.credentials(of: values, random: &random)
        let connect = self.sessions[place].connect(
            clientID: String(decoding: values.clientID, as: UTF8.self),
            username: self.load.scram == nil ? credentials.userName : nil,
            password: self.load.scram == nil ? credentials.password : nil,
            will: self.load.will(of: values),
            now: now
        )
        guard let hash = self.load.scram else { return connection.start(connect, deadline: deadline, isBare: isBare) }
        do throws(SASLError) {
            let mechanism = try self.load.mechanism(hash, credentials, cache: self.keys)
            let authenticator = MQTTAuthenticator { mechanism }
            connection.start(connect, deadline: deadline, isBare: isBare, authenticator: authenticator)
        } catch {
            self.refuse(place, "auth", "the authentication failed: \(error)")
        }
    }

    package func connected(_ place: Int, _ connack: ConnAck, resumed: Bool, now: NIODeadline) {
        // A client that cannot do its work has no connect that succeeded.
        if let reason = self.disallowed(place) {
            return self.refuse(place, "not allowed", "CONNACK does not allow what this load does: \(reason.name)")
        }
        self.recordLogin(place, session: now - self.clients[place].own.tcpUp, now: now)
        if self.slab.probe.place == place { self.slab.probe.restart() }
        let holdsSubscription = resumed && self.clients[place].own.hasSubscribed
        if holdsSubscription || !self.subscribes(place) {
            self.handlePresent(place, resumed: holdsSubscription, now: now)
            self.markUp(place, now: now)
        } else {
            self.awaitRetained(place, isNew: !resumed, now: now)
            self.subscribe(place, now: now)
        }
    }

    /// Whether the client subscribes at all.
    func subscribes(_ place: Int) -> Bool { self.load.subscribingClients.contains(self.number(place)) }

    /// The reason if the server's CONNACK forbids a part of the client's plan (MQTT 5.0 §3.2.2.3).
    ///
    /// Sending it anyway would be a protocol error.
    func disallowed(_ place: Int) -> ReasonCode? {
        let limits = self.sessions[place].limits
        if self.subscribes(place) {
            let refusal = limits.refusal(
                of: self.load.subscriptions(of: self.number(place)),
                hasIdentifier: self.load.subscribeOptions.properties.subscriptionIdentifier != nil
            )
            if refusal != nil { return refusal }
        }
        guard self.load.publishes, self.places.isOperator(place) else { return nil }
        for (index, stream) in self.load.streams.enumerated() {
            if case .fixed(let alias)? = stream.topicAlias, alias > limits.topicAliasMaximum {
                return .topicAliasInvalid
            }
            let number = self.number(place)
            let qos = self.load.qos(ofPublisher: number, stream: index)
            let size = (self.writers + index).pointee.begin(number, qos: qos, message: 0, now: 0)
            if let refusal = limits.refusal(ofPublish: qos, retain: stream.retain, size: size) { return refusal }
        }
        return nil
    }

    // MARK: - The end of a client's connection, and its timer

    package func handleEnd(_ place: Int, _ end: ConnectionEnd) -> (isCounted: Bool, goesOn: Bool) {
        self.endTurn(place, isLost: self.clients[place].stage == .up)
        self.endLeave(place, as: .outstanding)
        // The run's own end excuses nothing.
        switch self.clients[place].stage {
        case .finishing, .flushing: self.endRetained(place, .open, now: self.context.now)
        default:
            if end != .pingTimedOut { self.endRetained(place, .excused, now: self.context.now) }
            if end == .pingTimedOut { self.noteSilence(place) } else { self.handleAbsent(place) }
        }
        return (isCounted: true, goesOn: true)
    }

    package func account(of end: ConnectionEnd) -> (kind: String, reason: DisconnectReason, words: String) {
        end.account(version: self.load.version)
    }

    package func close(_ place: Int) {
        guard self.subscribes(place) else { return self.closeLink(place) }
        // The subscriber reads the server's queued messages before it reads the PINGRESP.
        self.clients[place].stage = .flushing
        if self.metrics.unsubscribe != nil, self.unsubscribing[place] == nil,
            let connection = self.clients[place].connection
        {
            let filters = self.load.subscriptions(of: self.number(place)).map(\.filter)
            let now = self.context.refresh()
            guard let id = connection.unsubscribe(filters) else {
                self.error("unsuback", "no packet identifier is free, or the server takes no UNSUBSCRIBE so large")
                return self.probe(place)
            }
            self.unsubscribing[place] = (id, now)
            return self.wantsTimer(place, at: now + self.sessions[place].options.ackTimeout)
        }
        self.probe(place)
    }

    /// UNSUBACK does not come; the drain may be over, so the age is up to now.
    private func endLeave(_ place: Int, as end: UnansweredEnd) {
        guard let id = self.metrics.unsubscribe, let open = self.unsubscribing.removeValue(forKey: place) else {
            return
        }
        self.meter.recordUnanswered(id, (self.context.now - open.sent).nanoseconds, lane: MetricLane.measured, as: end)
    }

    private func probe(_ place: Int) {
        self.probed = min(self.probed ?? .distantFuture, self.context.refresh())
        self.clients[place].connection?.ping()
    }

    /// Whether this UNSUBACK answers the UNSUBSCRIBE of a client that leaves.
    func takesLeave(_ place: Int, _ id: PacketID, codes: [UInt8], now: NIODeadline) -> Bool {
        guard let metric = self.metrics.unsubscribe, let open = self.unsubscribing[place], open.id == id else {
            return false
        }
        self.unsubscribing[place] = nil
        self.meter.record(metric, (now - open.sent).nanoseconds)
        if let code = codes.first(where: { $0 >= 0x80 }) {
            self.error("unsuback 0x" + String(code, radix: 16), "UNSUBACK refused: \(Self.name(of: code))")
        }
        self.probe(place)
        return true
    }

    package func pingAnswered(_ place: Int, after: TimeAmount, now: NIODeadline) {
        self.meter.record(self.metrics.ping, after.nanoseconds)
        guard self.clients[place].stage == .flushing, self.unsubscribing[place] == nil else { return }
        self.clients[place].own.isProved = true
        self.endRetained(place, .proved, now: now)
        self.closeLink(place)
    }

    package func settle(_ place: Int) {
        self.settleMissedTurns()
        self.endRetained(place, .open, now: self.context.now)
        // No connection of this run will answer the messages that the session still holds.
        let now = self.context.now
        self.sessions[place].discardState { publish, timedOut in
            self.abandoned(place, publish, .connectionLost(timedOutBefore: timedOut), now: now)
        }
    }

    // MARK: - Time

    package func linkTimerFired(_ place: Int) {
        if self.clients[place].stage == .connecting, self.subscribeIsOverdue(place) {
            return self.refuse(place, "timeout", "no SUBACK within the acknowledgement timeout")
        }
        if let open = self.unsubscribing[place], self.context.now >= open.sent + self.sessions[place].options.ackTimeout
        {
            self.endLeave(place, as: .failed)
            self.error("timeout", "no UNSUBACK within the acknowledgement timeout")
            self.probe(place)
        }
        self.clients[place].connection?.timerFired(now: self.context.now)
        guard self.clients[place].stage == .connecting else { return }
        if let sequence = self.sequences[place], sequence.isWaiting {
            guard sequence.due > self.context.now else { return self.subscribeNext(place, now: self.context.now) }
            return self.wantsTimer(place, at: sequence.due)
        }
        // SUBACK is awaited after CONNACK, for which this timer was set.
        if self.isSubscribing(place) {
            let sent = self.clients[place].own.subscribeSent
            self.wantsTimer(place, at: sent + self.sessions[place].options.ackTimeout)
        }
    }

    func subscribeIsOverdue(_ place: Int) -> Bool {
        let sent = self.clients[place].own.subscribeSent
        return self.isSubscribing(place) && self.sequences[place]?.isWaiting != true
            && self.context.now >= sent + self.sessions[place].options.ackTimeout
    }

    /// Whether SUBSCRIBE was sent on this connection.
    func isSubscribing(_ place: Int) -> Bool {
        self.clients[place].own.subscribeSent >= self.clients[place].own.tcpUp
            && self.clients[place].own.tcpUp > .distantPast
    }
}
