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

    /// Options that all subscriptions share besides their QoS; those of the protocol are of MQTT 5.
    package struct SubscriptionOptions: Hashable, Sendable {
        package var noLocal = false
        package var retainAsPublished = false
        package var retainHandling = Subscription.RetainHandling.send
        package var properties = Properties()
        /// Filters made of one text, with their numbers in place of `%s`; `nil`: one, as it is.
        package var count: Int?
        package var packets = SubscribePackets.one
        /// SUBSCRIBE packets of each client per second, where it sends several; `nil`: each follows the last SUBACK.
        package var pace: Double?
        /// Clients unsubscribe before they leave.
        package var unsubscribes = false

        package init() {}
    }

    /// How many SUBSCRIBE packets a client's filters take.
    package enum SubscribePackets: String, Hashable, Sendable, CaseIterable {
        case one, each
    }

    /// The part that a segment of a load has in common with the other segments.
    package enum SegmentBond: Hashable, Sendable {
        /// Nothing: its messages stay inside.
        case none
        /// Its end: clients elsewhere need its clients until they are done.
        case end
        /// Its end and its ledger: messages go to clients elsewhere.
        case ledger
    }

    /// The clients that a stream's messages go to, one by one: `ROOT/p2p/CLIENTID`.
    package struct P2PTarget: Hashable, Sendable {
        package var root: [UInt8]
        /// Places of the groups in the run.
        package var groups: [Int]

        package init(root: [UInt8], groups: [Int]) {
            self.root = root
            self.groups = groups
        }
    }

    /// A stream of messages that every publisher of the load sends.
    package struct Stream: Sendable {
        /// The value of the label `stream`, in a load with several.
        package var name = ""
        package var topic: Template
        /// Replaces ``topic``: each message goes to one client, drawn for the message.
        package var p2p: P2PTarget?
        package var payload: LoadPayload
        /// Where its messages carry the ledger's header, in a load that has a ledger; `nil`: nowhere, and it is not
        /// followed.
        package var carrier: LedgerCarrier? = .front
        /// Publishers use these QoS levels in turn.
        package var qualities: [QoS]
        package var retain = false
        /// MQTT 5 only.
        ///
        /// Excludes the response topic, which may differ per client.
        package var properties = Properties()
        package var responseTopic: Template?
        package var topicAlias: TopicAlias?

        package init(topic: Template, payload: LoadPayload, qualities: [QoS]) {
            self.topic = topic
            self.payload = payload
            self.qualities = qualities
        }

        /// Whether a publisher's topic, and so its audience, may change from message to message.
        package var topicVaries: Bool { self.p2p != nil || self.topic.variesPerMessage }
        var hasHeader: Bool { self.carrier != nil }
        /// The filter that matches the messages of all publishers.
        var filterOfAllClients: String {
            self.p2p.map { String(decoding: $0.root, as: UTF8.self) + "/p2p/+" } ?? self.topic.filterOfAllClients
        }
    }

    /// Whether short headers name the audience; elsewhere each publisher has one.
    package var isAddressed: Bool { self.hasStreams || self.stream.topicVaries }

    /// A filter of each subscriber.
    package struct FilterTemplate: Sendable {
        package var template: Template
        /// `nil`: the subscriber's of ``subscriberQualities``.
        package var qos: QoS?
        package var options: SubscriptionOptions

        package init(_ template: Template, qos: QoS? = nil, options: SubscriptionOptions = SubscriptionOptions()) {
            self.template = template
            self.qos = qos
            self.options = options
        }

        /// The filter that covers those of all clients.
        var pattern: String { self.template.filterOfAllClients }
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

    /// The load has at least one; without publishers, none of them is sent.
    package var streams: [Stream]
    /// The cells for columns in the templates.
    package var rows: RowTable?
    package var subscribeOptions = SubscriptionOptions()
    package var will: WillTemplate?
    /// Messages per write at QoS 0 in closed loop.
    package var batch = 1
    package var isOpenLoop = false

    package var topology = Topology.pair
    /// Filters of each subscriber; empty if the topology defines them.
    package var filters: [FilterTemplate] = []
    /// The publishers subscribe too, to ``filters``.
    package var publishersSubscribe = false
    /// Subscribers of `sub` use these QoS levels in turn.
    ///
    /// Those of `pubsub` use the publishers' highest.
    package var subscriberQualities: [QoS]

    /// The run's number, in the header of each of its messages.
    package var run: UInt32
    package var hasLedger = true
    package var bond = SegmentBond.none
    package var connectTimeout = TimeAmount.seconds(10)
    package var connectRetries = 0
    package var reconnects = 0
    package var backoff = Backoff()
    package var failsOver = false
    package var reply: Reply?
    /// The filter of short-lived subscriptions, which clients make in turn.
    package var subscriptionChurn: Template?
    /// The reasons for which clients leave by plan.
    package var departures: Set<DeparturePlan.Cause> = []
    package var dueWhileAway: Cycle.Due?
    /// The layers between TCP and MQTT.
    package var layers: Set<ConnectError.Phase> = []
    package var seed: UInt64 = 0
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
        self.streams = [Stream(topic: topic, payload: payload, qualities: qualities)]
        self.subscriberQualities = subscriberQualities
        self.run = run
        self.realtimeOffset = realtimeOffset
    }

    /// Whether RETAIN marks a message as a copy that the server had stored.
    ///
    /// With Retain As Published it is the publisher's own flag (MQTT 5.0 §3.8.3.1). Stored copies then arrive only if
    /// Retain Handling requests them.
    package var marksStoredCopies: Bool {
        !self.filterOptions.contains { $0.retainAsPublished && $0.retainHandling == .doNotSend }
    }

    private var filterOptions: [SubscriptionOptions] {
        self.filters.isEmpty ? [self.subscribeOptions] : self.filters.map(\.options)
    }

    var subscribesEach: Bool { self.filterOptions.contains { $0.packets == .each } }
    var subscribeInterval: TimeAmount? {
        // An hour is longer than any run waits for its clients.
        self.filterOptions.compactMap(\.pace).min().map { .nanoseconds(Int64(min(1e9 / $0, 3_600e9))) }
    }
    var unsubscribes: Bool { self.filterOptions.contains(where: \.unsubscribes) }

    /// Whether clients connect more than once.
    package var comesBack: Bool { self.reconnects > 0 || !self.departures.isEmpty }

    /// The only stream, or the first one.
    package var stream: Stream {
        get { self.streams[0] }
        set { self.streams[0] = newValue }
    }
    package var topic: Template { self.stream.topic }
    /// Empty if the load has no publishers.
    package var qualities: [QoS] { self.stream.qualities }
    package var clients: Int { self.publishers + self.subscribers }
    package var publishes: Bool { self.publishers > 0 && self.streams.contains { !$0.qualities.isEmpty } }
    package var subscribes: Bool { !self.subscribingClients.isEmpty }

    /// The clients that subscribe, by their number in the run.
    package var subscribingClients: Range<Int> {
        if self.topology == .request { return 0..<self.clients }
        if self.publishersSubscribe { return 0..<self.publishers }
        return self.publishers..<self.clients
    }

    /// The clients that the ledger follows messages to.
    ///
    /// `hasP2P`: messages reach clients that subscribe to nothing.
    func receivingClients(hasP2P: Bool) -> Range<Int> {
        if self.topology == .request { return 0..<self.publishers }
        return hasP2P ? 0..<self.clients : self.subscribingClients
    }

    /// `qualities` is empty if the load has no publishers.
    package func qos(ofPublisher number: Int, stream: Int = 0) -> QoS {
        let qualities = self.streams[stream].qualities
        return qualities.isEmpty ? .atMostOnce : qualities[number % qualities.count]
    }

    /// Whether a publisher has messages that are acknowledged; of such a client only those count as acknowledged.
    func awaitsAcknowledgement(publisher number: Int) -> Bool {
        self.streams.indices.contains { self.qos(ofPublisher: number, stream: $0) != .atMostOnce }
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
            let template = self.stream.responseTopic ?? Template(parsing: "")
            let topic = template.rendered(self.values(of: number), random: &random)
            // QoS 0, as answers are sent.
            return [self.subscription(String(decoding: topic, as: UTF8.self), .atMostOnce)]
        }
        let place = self.publishersSubscribe ? number : number - self.publishers
        let qos = self.qos(ofSubscriber: place)
        guard self.filters.isEmpty else {
            let values = self.values(of: number)
            return self.filters.map { filter in
                let text = String(decoding: filter.template.rendered(values, random: &random), as: UTF8.self)
                return self.subscription(text, filter.qos ?? qos, filter.options)
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

    /// Whether the clients' filters differ.
    var filtersVary: Bool {
        if self.topology == .request { return true }
        guard self.filters.isEmpty else { return self.filters.contains { $0.template.variesPerClient } }
        return self.topology.readsOnePublisher && self.topic.variesPerClient
    }

    /// The QoS that a subscriber asks for in one of its filters.
    func requestedQoS(of number: Int, filter: Int) -> QoS {
        let place = self.publishersSubscribe ? number : number - self.publishers
        return (filter < self.filters.count ? self.filters[filter].qos : nil) ?? self.qos(ofSubscriber: place)
    }

    // MARK: - Targets that are separate servers

    /// The server that a client connects to, from 0.
    ///
    /// Each server has contiguous publishers and contiguous subscribers. A subscriber to one publisher is on that
    /// publisher's server.
    package func server(of number: Int) -> Int {
        guard self.servers > 1 else { return 0 }
        guard !self.isPublisher(number) else { return self.block(holding: number, of: self.publishers) }
        let place = number - self.publishers
        if self.topology.readsOnePublisher, self.filters.isEmpty, self.publishers > 0 {
            return self.block(holding: place % self.publishers, of: self.publishers)
        }
        return self.block(holding: place, of: self.subscribers)
    }

    /// The number that selects a client's target and source address if targets are used in turn.
    package func route(of number: Int) -> Int {
        self.servers > 1 ? number * self.servers + self.server(of: number) : number
    }

    private func block(holding place: Int, of count: Int) -> Int { ((place + 1) * self.servers - 1) / count }
}
