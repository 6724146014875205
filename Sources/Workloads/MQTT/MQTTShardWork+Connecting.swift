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
        guard let hash = self.load.scram else {
            return connection.start(connect, deadline: deadline, isBare: isBare, descriptor: connected.descriptor)
        }
        do throws(SASLError) {
            let mechanism = try self.load.mechanism(hash, credentials, cache: self.keys)
            let authenticator = MQTTAuthenticator { mechanism }
            connection.start(connect, deadline: deadline, isBare: isBare, authenticator: authenticator)
        } catch {
            self.refuse(place, "auth", "the authentication failed: \(error)")
        }
    }

    package func connected(_ place: Int, _ connack: ConnAck, resumed: Bool, now: NIODeadline) {
        guard self.store?.accepted(place, resumed: resumed, now: now) ?? true else { return }
        defer { self.store?.connected(place) }
        self.recordLogin(place, session: now - self.clients[place].own.tcpUp, now: now)
        if let reason = self.disallowed(place) {
            return self.refuse(place, "not allowed", "CONNACK does not allow what this load does: \(reason.name)")
        }
        if self.slab.probe.place == place { self.slab.probe.restart() }
        let holdsSubscription = resumed && self.clients[place].own.hasSubscribed
        if holdsSubscription || !self.subscribes(place) {
            self.handlePresent(place, resumed: holdsSubscription, now: now)
            self.markUp(place, now: now)
        } else {
            self.subscribe(place, now: now)
        }
    }

    /// Whether the client subscribes at all.
    func subscribes(_ place: Int) -> Bool {
        self.load.subscribingClients.contains(self.number(place))
    }

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
}
