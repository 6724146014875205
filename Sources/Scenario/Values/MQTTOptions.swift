package import MQTTCodec
package import Workloads

/// The options of `conn`, `pub`, `sub` and `pubsub`, read and checked.
///
/// Options shared with other protocols are in ``common``, and have the same names here. Texts may contain placeholders
/// where DESIGN section 2 allows them.
package struct MQTTOptions: ProtocolOptions, Hashable, Sendable, OptionsRoot {
    package static let usual = Self(kind: .pubsub)

    package enum Kind: String, CaseIterable, Sendable {
        case conn, pub, sub, pubsub
    }

    package var kind: Kind
    package var common: LoadOptions

    // Clients.
    /// The protocol level on the wire: 3 (3.1), 4 (3.1.1) or 5.
    package var protocolLevel: UInt8 = 5
    /// Client identifiers of publishers (and of `conn`), and of subscribers.
    package var publisherID = "clamor-pub-%i"
    package var subscriberID = "clamor-sub-%i"
    /// The prefix of client ids if none was given: drawn for this run, or from its seed.
    package var drawnPrefix: String?
    package var username: String?
    package var password: String?
    /// Seconds; 0 is off.
    package var keepAlive: UInt16 = 300
    package var clean = true
    package var keepsSessions = false
    /// Seconds; MQTT 5 only.
    package var sessionExpiry: UInt32?
    package var connect = ConnectOptions()
    package var will: WillOptions?
    package var auth = AuthOption.password
    /// Bytes sent unchanged instead of CONNECT.
    package var raw: [UInt8]?

    // Publishing and subscribing.
    package var topology = MQTTLoad.Topology.pair
    /// Each target is a server of its own, and not part of a cluster.
    package var isSeparate = false
    /// The streams of each publisher, if it has several.
    ///
    /// Empty: the topic, QoS, payload and pace of the options are the one stream.
    package var streams: [PublishStream] = []
    /// The topic that publishers write to; unused with ``p2p``.
    package var topic = Self.usualTopic
    /// Messages to single clients in place of ``topic``.
    package var p2p: P2POption?
    /// The filters of `sub`; of `pub`, those of its publishers.
    ///
    /// Empty for `pubsub`: there they follow from `topology` and `topic`.
    package var subscriptions: [SubscriptionOption] = []
    /// QoS levels, each once, in the order given; the publishers (of `sub`: the subscribers) are spread over them.
    package var qualities: [UInt8] = [0]
    package var retain = false
    /// MQTT 5 only; but for the response topic, which may hold placeholders.
    package var publishProperties = Properties()
    package var responseTopic: String?
    package var topicAlias: MQTTLoad.TopicAlias?
    package var ledger = LedgerPlace.payload
    /// The options of all filters that have none of their own.
    package var subscribe = MQTTLoad.SubscriptionOptions()
    package var subscriptionChurn: SubscriptionChurnOption?
    package var reply = ReplyOption()
    /// The values of columns in texts.
    package var rows: RowTable?

    package init(kind: Kind) {
        self.kind = kind
        self.common = LoadOptions(name: kind.rawValue, port: 1883, operates: kind == .pub || kind == .pubsub)
    }
}

extension MQTTOptions {
    /// Clients that publish; all clients of `conn`; 0 for `sub`.
    package var publishers: Int {
        get { self.common.operators }
        set { self.common.operators = newValue }
    }

    package var subscribers: Int {
        get { self.common.listeners }
        set { self.common.listeners = newValue }
    }

    /// Gives client ids another beginning, unless theirs was given.
    package mutating func replaceDrawnPrefix(with prefix: String) {
        guard let drawn = self.drawnPrefix else { return }
        self.publisherID.replace(drawn, with: prefix, maxReplacements: 1)
        self.subscriberID.replace(drawn, with: prefix, maxReplacements: 1)
        self.drawnPrefix = prefix
    }

    /// Messages per write at QoS 0 in closed loop.
    package var batch: Int { self.window == 0 ? Self.largestBatch : min(self.window, Self.largestBatch) }

    package static let largestBatch = 1_024

    /// Servers that clients go to in turn.
    package var targetCount: Int {
        if case .servers(let servers) = self.target { servers.count } else { 1 }
    }

    /// The highest QoS of a message, of `sub` of a filter: what subscribers of `pubsub` ask for.
    package var highestQoS: UInt8 {
        let usual = self.qualities.max() ?? 0
        let own = self.kind == .sub ? self.subscriptions.map { $0.qos ?? usual } : self.streams.map(\.qos)
        return own.max() ?? usual
    }

    /// How often each message comes back.
    package var deliveries: Double {
        if self.subscribers == 0 { return 0 }
        return switch self.topology {
        case .fanIn, .fanOut: Double(self.subscribers)
        case .shared: 1
        // To the responder, and back.
        case .request: 2
        case .pair: max(1, Double(self.subscribers) / Double(max(1, self.publishers)))
        }
    }
}
