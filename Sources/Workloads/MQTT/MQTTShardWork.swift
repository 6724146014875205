import Ledger
package import LoadEngine
package import LoopContext
package import MQTT
import MQTTCodec
import Measurement
package import NIOCore
import SASL
package import Transport

/// State that only MQTT clients have.
package struct MQTTClientState {
    /// QoS of the client's publishes.
    var qos = QoS.atMostOnce
    /// Times when the layers below MQTT were up, and when SUBSCRIBE was sent.
    var tcpUp = NIODeadline.distantPast
    var subscribeSent = NIODeadline.distantPast
    /// Stream offset after the unsent messages; acknowledgements may follow them.
    var batchEnd: UInt64 = 0
    /// Acknowledged or confirmed publishes.
    var known: UInt64 = 0
    var subscription: Int32 = -1
    /// A SUBACK granted the client's request; from then on the run counts its subscription.
    var hasSubscribed = false
    /// The server knows the client's topic by an alias on this connection.
    var hasAlias = false
}

/// The MQTT clients of one event loop: the packets they send, and the records of the server's answers.
///
/// Confined to its loop. A client consists of a row of the slab, its session, its tally of 64 bytes, and its connection
/// if it has one.
package final class MQTTShardWork: ClientLife, MQTTConnectionObserver {
    package typealias Sample = LoadSample

    package let load: MQTTLoad
    package let metrics: MQTTMetrics
    package let context: LoopContext
    /// The handle that made the shard keeps it alive until its loop has ended.
    package unowned(unsafe) let shard: Shard<MQTTShardWork>
    package let connector: any ClientConnector
    package let slab: ClientSlab<MQTTConnection, MQTTClientState>
    let sessions: UnsafeMutablePointer<MQTTSession>
    // Pointers, since exclusivity checks of a class's property cost as much as a message.
    let writer: UnsafeMutablePointer<MessageWriter>
    let ledger: UnsafeMutablePointer<SubscriberLedger>
    /// By QoS: the metrics of a publish.
    let publishes: UnsafeMutablePointer<MQTTMetrics.Publish>
    /// By QoS: the metrics of an arrival.
    let arrivals: UnsafeMutablePointer<MQTTMetrics.Arrival>
    /// Messages per write at most, given their size.
    let largestBatch: Int
    /// Messages per write at QoS 0, from the load.
    let messagesPerWrite: Int
    /// For SCRAM: there are many clients, but few salts.
    let keys = SCRAMKeyCache()
    var members: ShareMembers
    var books = PerQoS(repeating: PublishBook())
    var received = DeliveryBalance()
    /// The run that `sub` alone follows.
    var followedRun: UInt32?
    /// Called at the first SUBACK of each subscription if publishers may have begun.
    ///
    /// Every shard then records its publishers' progress, see ``noteEarly(_:)``.
    package var subscriptionBegan: ((_ subscription: UInt32) -> Void)?
    var earlySubscriptions: [EarlySubscription] = []
    /// For a segment that shares its ledger with others.
    var joint: JointResult?
    /// Clients with a churn in flight: few of many.
    var turns: [Int: SubscriptionTurn] = [:]
    /// Set if clients store their flows.
    var store: StoreGate?

    package init(
        _ load: MQTTLoad,
        metrics: MQTTMetrics,
        shard: Shard<MQTTShardWork>,
        connector: any ClientConnector,
        store: KeptFlows? = nil
    ) {
        self.load = load
        self.metrics = metrics
        self.context = shard.context
        self.shard = shard
        self.connector = connector
        let places = shard.clients
        self.slab = ClientSlab(
            places,
            catalog: metrics.catalog,
            decoding: .mqtt(load.version),
            now: shard.context.now
        ) { place in
            var own = MQTTClientState()
            if places.isOperator(place) { own.qos = load.qos(ofPublisher: places.number(at: place)) }
            return own
        }
        let count = places.count
        self.sessions = .allocate(capacity: max(1, count))
        self.writer = .allocate(capacity: 1)
        self.writer.initialize(to: MessageWriter(load))
        let publishers = load.publishers > 0 ? UInt32(load.publishers) : nil
        self.ledger = .allocate(capacity: 1)
        self.ledger.initialize(to: SubscriberLedger(publishers: publishers))
        self.publishes = metrics.makePublishTable()
        self.arrivals = metrics.makeArrivalTable()
        let most = load.isOpenLoop ? Self.largestJoined : load.batch
        self.largestBatch = Self.largestBatch(of: load)
        self.messagesPerWrite = min(most, self.largestBatch)
        self.members = ShareMembers(publishers: publishers)
        for place in 0..<count {
            let options = places.isOperator(place) ? load.publisherSession : load.subscriberSession
            (self.sessions + place).initialize(to: MQTTSession(options))
        }
        self.registerTimers()
        if load.joint != nil { self.joint = JointResult(publishers: places.operators) }
        self.addSubscriptions()
        if let store, let ids = metrics.store { self.store = StoreGate(store, ids, work: self) }
    }

    deinit {
        self.sessions.deinitialize(count: self.slab.clients.count)
        self.sessions.deallocate()
        self.writer.deinitialize(count: 1)
        self.writer.deallocate()
        self.ledger.deinitialize(count: 1)
        self.ledger.deallocate()
        self.publishes.deallocate()
        self.arrivals.deallocate()
    }

    /// Whether the client publishes at QoS 1 or 2, and so awaits acknowledgements.
    func awaitsAnswers(_ place: Int) -> Bool { self.clients[place].own.qos != .atMostOnce }

    func addSubscriptions() {
        let listeners =
            self.load.topology == .request ? 0..<self.places.operators : self.places.operators..<self.places.count
        self.ledger.pointee.reserve(subscriptions: listeners.count, streams: listeners.count)
        for place in listeners {
            guard let number = self.load.subscription(of: self.number(place)) else { continue }
            let index =
                self.load.topology == .shared
                ? self.members.addMember(group: UInt32(number)) : self.ledger.pointee.addSubscription(UInt32(number))
            self.clients[place].own.subscription = Int32(index)
        }
    }

    package func observe(_ now: NIODeadline) { self.noteProgress(now) }

    package func complete(_ sample: inout LoadSample) { sample.share = self.members.swap() }
}
