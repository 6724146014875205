package import MQTTCodec
package import Workloads

/// One stream of messages that each publisher of a group sends.
package struct PublishStream: Hashable, Sendable {
    /// The label `stream`; unique in its group.
    package var name: String
    /// Unused with ``p2p``.
    package var topic = MQTTOptions.usualTopic
    package var p2p: P2POption?
    package var qos: UInt8 = 0
    package var payload = PayloadOption.generated(size: 256)
    package var lines: [String: RowTable] = [:]
    package var ledger = LedgerPlace.payload
    /// A rate is that of the whole group, an interval that of each client; never a closed loop.
    package var pacing = PacingOption.closedLoop
    package var shape = RateShape.level
    package var arrivals = ArrivalOption.even
    package var retain = false
    /// MQTT 5 only; but for the response topic, which may hold placeholders.
    package var properties = Properties()
    package var responseTopic: String?

    package init(name: String) { self.name = name }

    package init(name: String, of options: MQTTOptions) {
        self.name = name
        self.topic = options.topic
        self.p2p = options.p2p
        self.qos = options.highestQoS
        self.payload = options.payload
        self.lines = options.lines
        self.ledger = options.ledger
        self.pacing = options.pacing
        self.shape = options.shape
        self.arrivals = options.arrivals
        self.retain = options.retain
        self.properties = options.publishProperties
        self.responseTopic = options.responseTopic
    }
}

/// Where messages have the header that the ledger reads.
package enum LedgerPlace: String, CaseIterable, Hashable, Sendable {
    /// At the front of a generated payload, or in place of `%{ledger}`.
    case payload
    /// In a user property (MQTT 5.0 §3.3.2.3.7).
    case property
}

/// Messages to single clients: `ROOT/p2p/CLIENTID` reaches a client that subscribed to nothing (SPEC A14).
package struct P2POption: Hashable, Sendable {
    /// The first level of the topic.
    package var root: String
    package var to: P2PReceivers

    package init(root: String, to: P2PReceivers) {
        self.root = root
        self.to = to
    }
}

/// The receivers of messages to single clients; never the sender itself.
package enum P2PReceivers: Hashable, Sendable, CustomStringConvertible {
    /// Any client of the run at that server.
    case random
    /// Any client of that group.
    case group(String)

    package var description: String {
        switch self {
        case .random: "random"
        case .group(let name): name
        }
    }
}

/// One filter of a group's clients, and how they subscribe to it.
package struct SubscriptionOption: Hashable, Sendable {
    /// May hold placeholders.
    package var filter: String
    /// `nil`: the subscriber's of ``MQTTOptions/qualities``.
    package var qos: UInt8?
    /// MQTT 5 only.
    package var options: MQTTLoad.SubscriptionOptions

    package init(_ filter: String, qos: UInt8? = nil, options: MQTTLoad.SubscriptionOptions = .init()) {
        self.filter = filter
        self.qos = qos
        self.options = options
    }
}

extension MQTTOptions {
    package static let usualTopic = "clamor/%i"

    /// The same clients with one stream alone, which is then their own topic, QoS, payload and pace.
    package func with(_ stream: PublishStream) -> MQTTOptions {
        var options = self
        options.streams = []
        options.topic = stream.topic
        options.p2p = stream.p2p
        options.qualities = [stream.qos]
        options.payload = stream.payload
        options.lines = stream.lines
        options.ledger = stream.ledger
        options.pacing = stream.pacing
        options.shape = stream.shape
        options.arrivals = stream.arrivals
        options.retain = stream.retain
        options.publishProperties = stream.properties
        options.responseTopic = stream.responseTopic
        return options
    }

    /// The topics that publishers write to, but for messages to single clients.
    package var topics: [String] {
        self.streams.isEmpty
            ? (self.p2p == nil ? [self.topic] : []) : self.streams.filter { $0.p2p == nil }.map(\.topic)
    }

    /// Whether clients publish to single clients.
    package var hasPeers: Bool { self.p2p != nil || self.streams.contains { $0.p2p != nil } }

    /// Whether messages carry the header, so that each can be accounted for.
    package var hasLedger: Bool {
        self.streams.isEmpty
            ? self.carrier(of: self.payload, self.ledger) != nil
            : self.streams.contains { self.carrier(of: $0.payload, $0.ledger) != nil }
    }

    /// Where a stream's messages have the header.
    func carrier(of payload: PayloadOption, _ ledger: LedgerPlace) -> LedgerCarrier? {
        ledger == .property ? .property : payload.carrier(isAddressed: self.isAddressed)
    }

    /// The bytes that a payload needs for its header.
    var headerSize: Int { LedgerCarrier.leastSize(isAddressed: self.isAddressed) }

    /// Whether a publisher has several audiences.
    package var isAddressed: Bool {
        let only = self.streams.first ?? PublishStream(name: "", of: self)
        return self.streams.count > 1 || only.p2p != nil || self.template(only.topic).variesPerMessage
    }

    /// Whether clients of the group receive messages by a plan of their own.
    package var receives: Bool {
        self.kind == .sub || self.kind == .pubsub || !self.subscriptions.isEmpty || self.hasPeers
    }

    /// Whether clients of the group may hear other groups; those of a topology hear their own publishers.
    package var hearsGroups: Bool { self.kind != .pubsub && self.receives }

    /// Whether publishers have the server keep messages.
    package var retains: Bool { self.retain || self.streams.contains(where: \.retain) }

    /// Whether operations have due times of their own.
    package var isOpenLoop: Bool { self.streams.isEmpty ? self.common.isOpenLoop : true }

    /// Whether each filter has the same QoS and options, as those of a command line have.
    package var hasEqualFilters: Bool {
        self.subscriptions.allSatisfy { $0.qos == nil && $0.options == self.subscribe }
    }
}
