import LoadEngine
import LoopContext
import MQTT
package import MQTTCodec
import Measurement
package import NIOCore
import SASL
import Transport

// A client from the first connect of a connection until it is up.
extension MQTTShardWork {
    package func connect(_ place: Int, due: NIODeadline) {
        self.meter.record(self.metrics.connect.lag, (self.context.now - due).nanoseconds)
        self.begin(place)
    }

    func begin(_ place: Int) {
        let now = self.context.refresh()
        self.clients[place].stage = .connecting
        self.clients[place].begun = now
        let deadline = now + self.load.connectTimeout
        self.connector.connect(
            client: self.number(place),
            deadline: deadline,
            handler: { [unowned self] in self.makeConnection(place) },
            done: { [unowned self] result in self.tcpEnded(place, result, deadline: deadline) }
        )
    }

    func makeConnection(_ place: Int) -> MQTTConnection {
        let connection = MQTTConnection(
            client: place,
            loop: self.context,
            session: self.sessions + place,
            maximumPacketSize: self.sessions[place].options.maximumPacketSize,
            observer: self.store ?? self
        )
        self.clients[place].connection = connection
        // [MQTT-3.3.2-7]: aliases end with their connection.
        self.clients[place].hasAlias = false
        return connection
    }

    func tcpEnded(_ place: Int, _ result: Result<ConnectedChannel, ConnectError>, deadline: NIODeadline) {
        let now = self.context.refresh()
        switch result {
        case .success(let connected):
            self.meter.record(connected.phases, self.connectMetrics(place))
            self.clients[place].tcpUp = now
            guard let connection = self.clients[place].connection else { return }
            if self.clients[place].stage != .connecting { return connection.abort() }
            self.start(place, connection, deadline: deadline, isBare: connected.isBare)
        case .failure(let error):
            self.clients[place].connection = nil
            self.meter.error(error.kind, at: Int64(now.uptimeNanoseconds)) { error.description }
            self.connectFailed(place)
        }
    }

    private func start(_ place: Int, _ connection: MQTTConnection, deadline: NIODeadline, isBare: Bool) {
        let now = self.context.now
        if let raw = self.load.raw {
            self.sessions[place].connectVerbatim(now: now)
            return connection.start(verbatim: raw, deadline: deadline, isBare: isBare)
        }
        let number = self.number(place)
        let values = self.load.values(of: number)
        // Whichever event loop it is on.
        var random = SplitMix64(seed: self.load.seed &+ UInt64(number))
        let credentials = self.load.credentials(of: values, random: &random)
        let connect = self.sessions[place].connect(
            clientID: String(decoding: values.clientID, as: UTF8.self),
            username: self.load.scram == nil ? credentials.userName : nil,
            password: self.load.scram == nil ? credentials.password : nil,
            will: self.load.will(of: values),
            now: now
        )
        guard let hash = self.load.scram else {
            return connection.start(connect, deadline: deadline, isBare: isBare)
        }
        do throws(SASLError) {
            let mechanism = try self.load.mechanism(hash, credentials, cache: self.keys)
            let authenticator = MQTTAuthenticator { mechanism }
            connection.start(connect, deadline: deadline, isBare: isBare, authenticator: authenticator)
        } catch {
            self.refuse(place, "auth", "the authentication failed: \(error)")
        }
    }

    /// Where the phases of the connect under way belong: to the first ones, or to those that come back.
    private func connectMetrics(_ place: Int) -> ConnectMetrics {
        self.tallies[place].connectNanoseconds == 0 ? self.metrics.connect : self.metrics.reconnect
    }

    /// The client could not come up this time.
    func connectFailed(_ place: Int) {
        // Its connector may report only after the run gave it up.
        if self.clients[place].stage == .finished { return }
        if self.clients[place].stage == .finishing { return self.finished(place) }
        let isFirst = self.tallies[place].connectNanoseconds == 0
        let canRetry =
            isFirst
            ? self.clients[place].attempts < self.load.connectRetries
            : self.clients[place].reconnects < self.load.reconnects
        guard canRetry, self.clients[place].attempts != .max else {
            self.clients[place].stage = .idle
            self.clients[place].attempts = .max
            self.shard.settled(place, up: false)
            self.shard.checkDrained(place)
            return
        }
        if isFirst { self.clients[place].attempts += 1 } else { self.clients[place].reconnects += 1 }
        self.clients[place].stage = .waiting
        self.shard.returnEnded(place)
        self.schedule(place, at: self.context.now + self.load.reconnectPeriod)
    }

    package func connected(_ place: Int, _ connack: ConnAck, resumed: Bool, now: NIODeadline) {
        let session = now - self.clients[place].tcpUp
        let total = now - self.clients[place].begun
        let ids = self.connectMetrics(place)
        self.meter.record(ids.session, session.nanoseconds)
        self.meter.record(ids.total, total.nanoseconds)
        if self.tallies[place].connectNanoseconds == 0 {
            self.tallies[place].connectNanoseconds = max(1, total.nanoseconds)
        } else {
            self.meter.add(self.metrics.traffic.reconnects)
        }
        if let reason = self.disallowed(place) {
            return self.refuse(place, "not allowed", "CONNACK does not allow what this load does: \(reason.name)")
        }
        self.clients[place].connectionFirst = self.clients[place].sequence
        self.clients[place].unsent = 0
        self.clients[place].lost = 0
        if self.probe.place == place { self.probe.restart() }
        let holdsSubscription = resumed && self.clients[place].hasSubscribed
        if holdsSubscription || !self.subscribes(place) {
            self.isUp(place, now: now)
        } else {
            self.subscribe(place, now: now)
        }
    }

    /// Whether the client reads anything.
    func subscribes(_ place: Int) -> Bool {
        self.places.isOperator(place) ? self.load.topology == .request : self.load.subscribers > 0
    }

    /// What the plan wants of this client and the server's CONNACK forbids (MQTT 5.0 §3.2.2.3): it would be a protocol
    /// error to send it.
    func disallowed(_ place: Int) -> ReasonCode? {
        let limits = self.sessions[place].limits
        if self.subscribes(place) || !self.places.isOperator(place) {
            let refusal = limits.refusal(
                of: self.load.subscriptions(of: self.number(place)),
                hasIdentifier: self.load.subscribeOptions.properties.subscriptionIdentifier != nil
            )
            guard refusal == nil, self.places.isOperator(place) else { return refusal }
        }
        guard !self.load.qualities.isEmpty else { return nil }
        if case .fixed(let alias)? = self.load.topicAlias, alias > limits.topicAliasMaximum {
            return .topicAliasInvalid
        }
        let qos = self.clients[place].qos
        let size = self.writer.pointee.begin(self.number(place), qos: qos, message: 0, now: 0)
        return limits.refusal(ofPublish: qos, retain: self.load.retain, size: size)
    }

    func isUp(_ place: Int, now: NIODeadline) {
        self.clients[place].stage = .up
        self.clients[place].isLive = true
        self.live += 1
        self.shard.up(place, at: now)
        self.shard.settled(place, up: true)
    }
}
