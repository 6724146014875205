package import Ledger
package import LoadEngine
package import MQTT
package import MQTTCodec
package import Measurement
package import NIOCore
package import SASL
package import Transport

/// The settings and behaviour of a run's MQTT clients, as plain values shared by all shards.
package struct MQTTLoad: Sendable {
    /// The publishers that each subscriber of this run receives from.
    package enum Topology: String, CaseIterable, Hashable, Sendable {
        /// Subscriber k receives from publisher k.
        case pair
        /// Every subscriber receives from all publishers.
        case fanIn = "fan-in"
        /// Every subscriber receives from the only publisher.
        case fanOut = "fan-out"
        /// Each message goes to one of the subscribers.
        case shared
        /// Each message is a request (MQTT 5.0 §4.10). One subscriber answers it, and its publisher receives the
        /// answer.
        case request

        /// Whether a subscriber's filter is derived from the topic of one publisher.
        package var readsOnePublisher: Bool { self == .pair || self == .fanOut }
    }

    /// The alias of a publisher's topic: the name is sent once per connection, then the alias.
    package enum TopicAlias: Hashable, Sendable {
        /// 1, if the server allows aliases.
        case automatic
        /// This alias, even if the server does not allow it.
        case fixed(UInt16)
    }

    /// Options that all subscriptions share besides their QoS; MQTT 5 only.
    package struct SubscriptionOptions: Hashable, Sendable {
        package var noLocal = false
        package var retainAsPublished = false
        package var retainHandling = Subscription.RetainHandling.send
        package var properties = Properties()

        package init() {}
    }

    /// A part of a load whose other parts run in other processes.
    package struct JointLoad: Hashable, Sendable {
        /// No segment begins its load before all subscriptions of all segments are in effect.
        package var beginsTogether: Bool

        package init(beginsTogether: Bool) { self.beginsTogether = beginsTogether }
    }

    package struct WillTemplate: Sendable {
        package var topic: Template
        package var message: Template
        package var qos: QoS
        package var retain: Bool
        package var properties: Properties

        package init(topic: Template, message: Template, qos: QoS, retain: Bool, properties: Properties) {
            self.topic = topic
            self.message = message
            self.qos = qos
            self.retain = retain
            self.properties = properties
        }
    }

    package var version: ProtocolVersion
    package var publisherSession: SessionOptions
    package var subscriberSession: SessionOptions
    package var publisherID: Template
    package var subscriberID: Template
    package var username: Template?
    package var password: Template?
    /// Replaces user name and password; they contain its secrets.
    package var account: MQTTAlibabaCloud?
    /// User name and password are sent by SCRAM instead of in CONNECT.
    package var scram: SCRAMHash?
    /// Bytes sent instead of CONNECT.
    package var raw: [UInt8]?
    /// `%i` of the first publisher and of the first subscriber.
    package var firstNumber = 1
    package var publishers: Int
    package var subscribers: Int
    /// Addresses that clients connect to in turn.
    package var targets = 1
    /// Targets that do not forward messages to each other, each with a share of all clients.
    ///
    /// 1: all targets are one server.
    package var servers = 1
    /// The run's stages; empty in a run without stages.
    package var stages: [MetricStage] = []

    package var topic: Template
    package var payload: LoadPayload
    /// The cells for columns in the templates.
    package var rows: RowTable?
    /// Publishers use these QoS levels in turn.
    package var qualities: [QoS]
    package var retain = false
    /// MQTT 5 only.
    ///
    /// Excludes the response topic, which may differ per client.
    package var publishProperties = Properties()
    package var responseTopic: Template?
    package var topicAlias: TopicAlias?
    package var subscribeOptions = SubscriptionOptions()
    package var will: WillTemplate?
    /// Messages per write at QoS 0 in closed loop.
    package var batch = 1
    package var isOpenLoop = false

    package var topology = Topology.pair
    /// In pairs: whether a subscriber's filter excludes other publishers' messages, see ``separatesPublishers``.
    package var publishersAreApart = true
    /// Filters of `sub`; empty if the topology defines them.
    package var filters: [Template] = []
    /// Subscribers of `sub` use these QoS levels in turn.
    ///
    /// Those of `pubsub` use the publishers' highest.
    package var subscriberQualities: [QoS]

    /// In the header of every message of this run.
    package var run: UInt32
    package var hasLedger = true
    /// For a segment of a run whose publishers and subscribers may be in different segments.
    package var joint: JointLoad?
    package var connectTimeout = TimeAmount.seconds(10)
    package var connectRetries = 0
    package var reconnects = 0
    package var reconnectPeriod = TimeAmount.seconds(1)
    /// The filter of short-lived subscriptions, which clients make in turn.
    package var subscriptionChurn: Template?
    /// The reasons for which clients leave by plan.
    package var departures: Set<DeparturePlan.Cause> = []
    /// The layers between TCP and MQTT.
    package var layers: Set<ConnectError.Phase> = []
    package var seed: UInt64 = 0
    /// QoS 1 and 2 flows are stored, and each step waits for the store.
    package var keepsFlows = false
    /// CLOCK_REALTIME minus the monotonic clock, read once.
    ///
    /// Headers hold the former, the run counts in the latter.
    package var realtimeOffset: Int64

    package init(
        version: ProtocolVersion,
        publisherSession: SessionOptions,
        subscriberSession: SessionOptions,
        publisherID: Template,
        subscriberID: Template,
        publishers: Int,
        subscribers: Int,
        topic: Template,
        payload: LoadPayload,
        qualities: [QoS],
        subscriberQualities: [QoS],
        run: UInt32,
        realtimeOffset: Int64
    ) {
        self.version = version
        self.publisherSession = publisherSession
        self.subscriberSession = subscriberSession
        self.publisherID = publisherID
        self.subscriberID = subscriberID
        self.publishers = publishers
        self.subscribers = subscribers
        self.topic = topic
        self.payload = payload
        self.qualities = qualities
        self.subscriberQualities = subscriberQualities
        self.run = run
        self.realtimeOffset = realtimeOffset
    }

    /// Whether RETAIN marks a message as a copy that the server had stored.
    ///
    /// With Retain As Published it is the publisher's own flag (MQTT 5.0 §3.8.3.1). Stored copies then arrive only if
    /// Retain Handling requests them.
    package var marksStoredCopies: Bool {
        !self.subscribeOptions.retainAsPublished || self.subscribeOptions.retainHandling != .doNotSend
    }

    /// Whether clients connect more than once.
    package var comesBack: Bool { self.reconnects > 0 || !self.departures.isEmpty }

    /// `qualities` is empty if the load has no publishers.
    package func qos(ofPublisher number: Int) -> QoS {
        self.qualities.isEmpty ? .atMostOnce : self.qualities[number % self.qualities.count]
    }

    package func qos(ofSubscriber number: Int) -> QoS {
        self.subscriberQualities[number % self.subscriberQualities.count]
    }

    package func isPublisher(_ number: Int) -> Bool { number < self.publishers }

    /// The values of a client's placeholders, by its number in the run.
    ///
    /// Every call returns the same values: a client keeps its random id over reconnects and in its topics.
    package func values(of number: Int) -> PlaceholderValues {
        var random = SplitMix64(seed: self.seed &+ UInt64(number) &* 0xD134_2543_DE82_EF95)
        let isPublisher = self.isPublisher(number)
        var values = PlaceholderValues(
            clientNumber: self.firstNumber + (isPublisher ? number : number - self.publishers),
            rows: self.rows
        )
        if let username = self.username { values.username = username.rendered(values, random: &random) }
        let id = isPublisher ? self.publisherID : self.subscriberID
        values.clientID = id.rendered(values, random: &random)
        return values
    }

    /// The subscriber's requested subscriptions, one filter each.
    package func subscriptions(of number: Int) -> [Subscription] {
        var random = SplitMix64(seed: self.seed &+ UInt64(number))
        if self.topology == .request, self.isPublisher(number) {
            let template = self.responseTopic ?? Template(parsing: "")
            let topic = template.rendered(self.values(of: number), random: &random)
            // QoS 0, as answers are sent.
            return [self.subscription(String(decoding: topic, as: UTF8.self), .atMostOnce)]
        }
        let place = number - self.publishers
        let qos = self.qos(ofSubscriber: place)
        guard self.filters.isEmpty else {
            let values = self.values(of: number)
            return self.filters.map { filter in
                let text = String(decoding: filter.rendered(values, random: &random), as: UTF8.self)
                return self.subscription(text, qos)
            }
        }
        switch self.topology {
        case .pair, .fanOut:
            // The publisher's values, since its topic may contain its client id.
            let values = self.values(of: place % max(1, self.publishers))
            return [self.subscription(self.topic.filter(ofClient: values), qos)]
        case .fanIn:
            return [self.subscription(self.topic.filterOfAllClients, qos)]
        case .shared:
            return [self.subscription("$share/clamor/" + self.topic.filterOfAllClients, qos)]
        case .request:
            // A single subscriber needs no group, and not every server supports groups.
            let group = self.subscribers > 1 ? "$share/clamor/" : ""
            return [self.subscription(group + self.topic.filterOfAllClients, qos)]
        }
    }

    /// The number, from 0, of a client's subscription that the ledger follows.
    package func subscription(of number: Int) -> Int? {
        switch self.topology {
        case .request: self.isPublisher(number) ? number : nil
        case .shared: self.isPublisher(number) ? nil : self.server(of: number)
        case .pair, .fanIn, .fanOut: self.isPublisher(number) ? nil : number - self.publishers
        }
    }

    /// Whether each publisher's topic has a filter of its own.
    ///
    /// It has none without a level that differs per client.
    package var separatesPublishers: Bool {
        self.publishers < 2
            || self.topic.filter(ofClient: self.values(of: 0)) != self.topic.filter(ofClient: self.values(of: 1))
    }

    /// Whether a subscription receives the messages of one publisher only.
    private var hearsOnePublisher: Bool {
        self.topology.readsOnePublisher && self.publishersAreApart && self.publishers > 0
    }

    /// The publishers that feed each subscription; a share group counts as one subscription.
    ///
    /// Subscriptions are numbered like their subscribers, from 0.
    package var feeds: [SubscriptionFeed] {
        switch self.topology {
        case .shared:
            return (0..<self.servers).map { server in
                SubscriptionFeed(subscription: UInt32(server), publishers: self.publishers(of: server))
            }
        case .request:
            return (0..<UInt32(self.publishers)).map { SubscriptionFeed(subscription: $0, publishers: $0..<$0 + 1) }
        case _ where self.hearsOnePublisher:
            return (0..<self.subscribers).map { place in
                let publisher = UInt32(place % self.publishers)
                return SubscriptionFeed(subscription: UInt32(place), publishers: publisher..<publisher + 1)
            }
        case .pair, .fanIn, .fanOut:
            return (0..<self.subscribers).map { place in
                let server = self.server(of: self.publishers + place)
                return SubscriptionFeed(subscription: UInt32(place), publishers: self.publishers(of: server))
            }
        }
    }

    /// The publishers that feed each subscription, and from which message on, given the loops' results.
    ///
    /// Publishers that did not wait may have published before a subscription was in effect. A message sent before its
    /// SUBACK is expected only if it arrived. Without any SUBACK this applies to every message.
    package func feeds(_ results: [MQTTResult]) -> [SubscriptionFeed] {
        let early = results.flatMap(\.earlySubscriptions)
        let begun = results.reduce(into: Set()) { $0.formUnion($1.subscriptions) }
        var bounds: [UInt32: [UInt32: UInt64]] = [:]
        // The first member of a share group counts.
        for entry in early {
            let known = bounds[entry.subscription]?[entry.publisher] ?? .max
            bounds[entry.subscription, default: [:]][entry.publisher] = min(known, entry.sequence)
        }
        return self.feeds.map { feed in
            var feed = feed
            if begun.contains(feed.subscription) {
                feed.expectedFrom = bounds[feed.subscription] ?? [:]
            } else {
                for publisher in feed.publishers { feed.expectedFrom[publisher] = .max }
            }
            return feed
        }
    }

    /// Whether the subscription receives the publisher's messages.
    package func feeds(_ subscription: UInt32, from publisher: Int) -> Bool {
        switch self.topology {
        case .request: return Int(subscription) == publisher
        case _ where self.hearsOnePublisher: return Int(subscription) % self.publishers == publisher
        case .shared: return Int(subscription) == self.server(of: publisher)
        case .pair, .fanIn, .fanOut:
            return self.server(of: self.publishers + Int(subscription)) == self.server(of: publisher)
        }
    }

    /// The number of subscriptions that receive a publisher's messages, which is the number of deliveries per message.
    package func deliveries(ofPublisher number: Int) -> Int {
        switch self.topology {
        case .shared, .request: self.subscribers > 0 ? 1 : 0
        case _ where self.hearsOnePublisher:
            self.subscribers / self.publishers + (number < self.subscribers % self.publishers ? 1 : 0)
        case .pair, .fanIn, .fanOut:
            Self.block(self.server(of: number), of: self.subscribers, among: self.servers).count
        }
    }
}

// Targets that are separate servers.
extension MQTTLoad {
    /// The server that a client connects to, from 0.
    ///
    /// Each server has contiguous publishers and contiguous subscribers. A subscriber to one publisher is on that
    /// publisher's server.
    package func server(of number: Int) -> Int {
        guard self.servers > 1 else { return 0 }
        guard !self.isPublisher(number) else { return self.block(holding: number, of: self.publishers) }
        let place = number - self.publishers
        if self.hearsOnePublisher {
            return self.block(holding: place % self.publishers, of: self.publishers)
        }
        return self.block(holding: place, of: self.subscribers)
    }

    /// The number that selects a client's target and source address if targets are used in turn.
    package func route(of number: Int) -> Int {
        self.servers > 1 ? number * self.servers + self.server(of: number) : number
    }

    private func publishers(of server: Int) -> Range<UInt32> {
        let block = Self.block(server, of: self.publishers, among: self.servers)
        return UInt32(block.lowerBound)..<UInt32(block.upperBound)
    }

    /// The clients of `count` that belong to a server.
    private static func block(_ server: Int, of count: Int, among servers: Int) -> Range<Int> {
        server * count / servers..<(server + 1) * count / servers
    }

    private func block(holding place: Int, of count: Int) -> Int { ((place + 1) * self.servers - 1) / count }
}
