import EmbeddedBroker
import MQTTCodec
import NIOCore

/// The model's state of one connection.
final class ModelConnection {
    /// The client id; nil before CONNECT and behind the end.
    var client: String?
    var version = ProtocolVersion.v311
    var receiveMaximum = 65_535
    var will: Will?
    var aliases: [UInt16: String] = [:]
    /// Packet identifiers of PUBLISH to the client.
    private var outstanding: Set<UInt16> = []
    /// It has acknowledged what it has not got yet, so nothing is known any more.
    private var isBlurred = false

    func acknowledges(_ id: UInt16) { if self.outstanding.remove(id) == nil { self.isBlurred = true } }

    /// Packet identifiers that the client has sent PUBREC for.
    var received: Set<UInt16> = []

    /// A flow that an earlier connection began goes on, unless this is the answer to a PUBREC.
    func isReleased(_ id: UInt16) { if !self.received.contains(id) { self.outstanding.insert(id) } }

    func receives(_ publish: Publish, _ configuration: BrokerConfiguration) throws(Finding) {
        guard let id = publish.packetID?.rawValue, !self.isBlurred else { return }
        try Finding.unless(self.outstanding.insert(id).inserted, "packet identifier \(id) is in use")
        let limit = min(self.receiveMaximum, Int(configuration.maximumInFlight))
        try Finding.unless(self.outstanding.count <= limit, "\(self.outstanding.count) in flight, \(limit) allowed")
    }
}

/// The subscriptions, and the deliveries that they give each PUBLISH: the definition, without tree, cache or routes.
struct BrokerModel {
    private struct Held {
        let filter: TopicFilter
        var noLocal: Bool
        var isLive = true
    }

    private struct Client {
        weak var connection: ModelConnection?
        /// By the whole filter's bytes.
        var filters: [[UInt8]: Held] = [:]
        /// QoS 2 packet identifiers received and not released.
        var held: Set<UInt16> = []
        /// Seconds that the session outlives its connection.
        var expiry: UInt32 = 0
        /// Above 0 while the client is away and its session is not over: the order of going.
        var away = 0
        var endsAt = NIODeadline.distantFuture
        var will: Will?
        var willDue = NIODeadline.distantFuture
    }

    private(set) var expected = CountPerQoS()
    private var clients: [String: Client] = [:]
    private var assigned = 0
    private var goings = 0

    var sessionsAway: Int { self.clients.values.count { $0.away > 0 } }

    mutating func take(
        _ packet: Packet,
        from connection: ModelConnection,
        isAccepted: Bool,
        _ configuration: BrokerConfiguration,
        now: NIODeadline
    ) {
        switch packet {
        case .connect(let connect):
            if isAccepted { self.connect(connect, on: connection, now: now) }
        case .publish(let publish): self.publish(publish, from: connection, configuration)
        case .pubRel(let packet):
            if let client = connection.client { self.clients[client]?.held.remove(packet.packetID.rawValue) }
        case .pubAck(let packet): connection.acknowledges(packet.packetID.rawValue)
        case .pubRec(let packet):
            connection.received.insert(packet.packetID.rawValue)
            if packet.reason.isError { connection.acknowledges(packet.packetID.rawValue) }
        case .pubComp(let packet): connection.acknowledges(packet.packetID.rawValue)
        case .subscribe(let packet): self.subscribe(packet, from: connection)
        case .unsubscribe(let packet):
            guard let client = connection.client else { return }
            for filter in packet.filters {
                let key = Array(filter.utf8)
                if self.clients[client]?.filters[key]?.isLive == true { self.clients[client]?.filters[key] = nil }
            }
        case .disconnect(let packet): self.disconnect(packet, from: connection, now: now)
        default: break
        }
    }

    private mutating func subscribe(_ packet: Subscribe, from connection: ModelConnection) {
        guard let client = connection.client else { return }
        for wanted in packet.subscriptions {
            // A client of 3.1 is disconnected for it, behind what it has subscribed to so far.
            guard let filter = try? TopicFilter(validating: wanted.filter), filter.levels.count < 1_000 else {
                if connection.version == .v31 { return }
                continue
            }
            let held = Held(filter: filter, noLocal: wanted.noLocal)
            self.clients[client]?.filters[Array(wanted.filter.utf8)] = held
        }
    }

    // MARK: Sessions

    private mutating func connect(_ connect: Connect, on connection: ModelConnection, now: NIODeadline) {
        var name = connect.clientID
        if name.isEmpty {
            self.assigned += 1
            name = "clamor-auto-\(self.assigned)"
        }
        if let old = self.clients[name]?.connection { self.end(old, byClient: false, isDown: false, now: now) }
        if connect.cleanStart, let client = self.clients[name], client.away > 0 { self.discard(name) }
        connection.client = name
        connection.version = connect.version
        connection.receiveMaximum = Int(connect.properties.receiveMaximum ?? .max)
        connection.will = connect.will
        var client = self.clients[name] ?? Client()
        if client.away == 0 { client.held = [] }
        client.connection = connection
        client.away = 0
        client.will = nil
        client.willDue = .distantFuture
        client.endsAt = .distantFuture
        client.expiry =
            connect.version == .v5 ? connect.properties.sessionExpiryInterval ?? 0 : connect.cleanStart ? 0 : .max
        self.clients[name] = client
    }

    private mutating func disconnect(_ packet: Disconnect, from connection: ModelConnection, now: NIODeadline) {
        guard let name = connection.client, let client = self.clients[name] else { return }
        if let seconds = packet.properties.sessionExpiryInterval {
            if client.expiry == 0, seconds > 0 {
                return self.end(connection, byClient: false, isDown: false, now: now)
            }
            self.clients[name]?.expiry = seconds
        }
        if packet.reason == .normalDisconnection { connection.will = nil }
        self.end(connection, byClient: true, isDown: false, now: now)
    }

    mutating func end(_ connection: ModelConnection, byClient: Bool, isDown: Bool, now: NIODeadline) {
        guard let name = connection.client, var client = self.clients[name] else { return }
        connection.client = nil
        client.connection = nil
        if client.expiry > 0 {
            self.goings += 1
            client.away = self.goings
            if client.expiry < .max { client.endsAt = now + .seconds(Int64(client.expiry)) }
        } else if byClient {
            client.filters = [:]
        } else {
            for key in client.filters.keys.map({ $0 }) { client.filters[key]?.isLive = false }
        }
        var due: Will?
        if let will = connection.will, !isDown {
            let delay = connection.version == .v5 ? will.properties.willDelayInterval ?? 0 : 0
            if delay > 0, client.away > 0 {
                client.will = will
                client.willDue = now + .seconds(Int64(delay))
            } else {
                due = will
            }
        }
        self.clients[name] = client
        if let due { self.publish(due, of: name) }
        self.forgetIfEmpty(name)
    }

    private mutating func discard(_ name: String) {
        guard let client = self.clients[name] else { return }
        if let will = client.will { self.publish(will, of: name) }
        self.clients[name] = nil
    }

    private mutating func forgetIfEmpty(_ name: String) {
        guard let client = self.clients[name], client.connection == nil, client.filters.isEmpty, client.away == 0 else {
            return
        }
        self.clients[name] = nil
    }

    /// Publishes what wills have waited long enough, and ends sessions, in the order in which they are due.
    mutating func advance(to now: NIODeadline) {
        while true {
            let next = self.clients.filter { $0.value.away > 0 && min($0.value.endsAt, $0.value.willDue) <= now }
                .min {
                    (min($0.value.endsAt, $0.value.willDue), $0.value.away)
                        < (min($1.value.endsAt, $1.value.willDue), $1.value.away)
                }
            guard let (name, client) = next else { return }
            if let will = client.will, client.willDue <= now {
                self.clients[name]?.will = nil
                self.clients[name]?.willDue = .distantFuture
                self.publish(will, of: name)
            }
            if client.endsAt <= now { self.discard(name) }
        }
    }

    // MARK: Messages

    private mutating func publish(
        _ publish: Publish,
        from connection: ModelConnection,
        _ configuration: BrokerConfiguration
    ) {
        guard let source = connection.client else { return }
        var topic = publish.topic
        if let alias = publish.properties.topicAlias {
            guard alias <= configuration.limits.topicAliasMaximum else { return }
            if topic.isEmpty {
                guard let known = connection.aliases[alias] else { return }
                topic = known
            } else {
                connection.aliases[alias] = topic
            }
        }
        if publish.qos == .exactlyOnce, let id = publish.packetID {
            guard self.clients[source]?.held.insert(id.rawValue).inserted == true,
                self.clients[source]?.held.count ?? 0 <= Int(configuration.receiveMaximum)
            else { return }
        }
        self.expect(topic, publish.qos, from: source)
    }

    private mutating func publish(_ will: Will, of name: String) { self.expect(will.topic, will.qos, from: name) }

    private mutating func expect(_ topic: String, _ qos: QoS, from source: String) {
        var groups: Set<[UInt8]> = []
        for (name, client) in self.clients {
            var matches = 0
            // Of those that are live, or of all when none is.
            var isLive = false
            var noLocal = true
            for (key, held) in client.filters where held.filter.matches(topic: topic) {
                if held.filter.share != nil {
                    groups.insert(key)
                    continue
                }
                matches += 1
                if held.isLive == isLive {
                    noLocal = noLocal && held.noLocal
                } else if held.isLive {
                    isLive = true
                    noLocal = held.noLocal
                }
            }
            if matches == 0 || noLocal && name == source { continue }
            self.expected[qos.rawValue] += 1
        }
        self.expected[qos.rawValue] += UInt64(groups.count)
    }
}
