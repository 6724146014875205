import Ledger
package import LoadEngine
import LoopContext
import MQTT
import MQTTCodec
package import Measurement
package import NIOCore
import SASL
package import Transport

/// The MQTT clients of one event loop: they connect, publish, subscribe and come back when told to, and write down
/// what each of them saw.
///
/// Confined to its loop. A client is a row of the slab here, its session, its tally of 64 bytes, and its connection
/// while it has one.
package final class MQTTShardWork: LoopWork, MQTTConnectionObserver {
    package typealias Sample = LoadSample

    enum Stage: UInt8 {
        case idle
        case connecting
        case up
        /// Between two connections.
        case waiting
        /// Told by the plan to leave; its connection is not closed yet.
        case leaving
        /// Left by plan, until its way back begins.
        case away
        /// Everything that was to come has come; the peer still has to say so.
        case flushing
        case finishing
        case finished
    }

    struct Client {
        /// Its channel owns it; it is let go of before the channel does, see ``MQTTConnectionObserver/ended(_:_:now:)``.
        unowned(unsafe) var connection: MQTTConnection?
        var stage = Stage.idle
        /// Of what it publishes.
        var qos = QoS.atMostOnce
        var timer: TimerID
        var timerAt = NIODeadline.distantFuture
        var attempts: Int32 = 0
        var reconnects: Int32 = 0
        /// When the connect was begun, and when the layers below MQTT were up; of one that leaves: when it began to.
        var begun = NIODeadline.distantPast
        var tcpUp = NIODeadline.distantPast
        var subscribeSent = NIODeadline.distantPast
        /// The next message's sequence.
        var sequence: UInt64 = 0
        /// The first sequence of this connection: what QoS 0 confirms at its end.
        var connectionFirst: UInt64 = 0
        /// Messages in the channel of which the kernel has not taken the first byte, and their size.
        var unsent: Int32 = 0
        var lastSize: Int32 = 0
        /// Where they end in the connection's stream: acknowledgements may follow them.
        var batchEnd: UInt64 = 0
        /// Those that a closing connection never sent: the last ones.
        var lost: Int32 = 0
        /// Sequences of unknown fate; most clients have none.
        var unknown = SequenceRanges()
        /// Publishes acknowledged or confirmed.
        var known: UInt64 = 0
        var subscription: Int32 = -1
        /// A SUBACK granted what it asked for: from then on the run holds its subscription.
        var hasSubscribed = false
        /// Counted among the live ones.
        var isLive = false
        /// The server knows its topic by an alias, on this connection.
        var hasAlias = false
    }

    let load: MQTTLoad
    let metrics: MQTTMetrics
    let context: LoopContext
    /// Kept alive, by the handle that made it, until its loop has ended.
    unowned(unsafe) let shard: Shard<MQTTShardWork>
    /// Those of the shard.
    let places: ShardClients
    let meter: LoopMeter
    let connector: any ClientConnector
    let clients: UnsafeMutableBufferPointer<Client>
    let sessions: UnsafeMutablePointer<MQTTSession>
    let tallies: UnsafeMutableBufferPointer<ClientTally>
    // Behind pointers, since exclusivity checks of a class's property cost as much as a message.
    let writer: UnsafeMutablePointer<MessageWriter>
    let ledger: UnsafeMutablePointer<SubscriberLedger>
    /// By QoS: what is recorded of a publish.
    let publishes: UnsafeMutablePointer<MQTTMetrics.Publish>
    /// By QoS: what is recorded of a message that came.
    let arrivals: UnsafeMutablePointer<MQTTMetrics.Arrival>
    /// Messages of one write at most, by their size.
    let largestBatch: Int
    /// The same at QoS 0, as the load has it.
    let messagesPerWrite: Int
    var unsentSizes = UnsentSizes()
    /// Of SCRAM: many clients, few salts.
    let keys = SCRAMKeyCache()
    var members: ShareMembers
    var books = PerQoS(repeating: PublishBook())
    var probe: DecodeProbe
    var received = DeliveryBalance()
    /// The run that `sub` alone follows.
    var followedRun: UInt32?
    /// Of the client whose read is being decoded.
    var roomBeforeRead = 0
    /// The parts of the load, as they were when the last read began.
    var times = LoadTimes(measured: .distantFuture..<(.distantFuture))
    /// Told of the first SUBACK of each subscription, if publishers may have begun already: every shard has to note
    /// how far its publishers are, see ``noteEarly(_:)``.
    package var subscriptionBegan: ((_ subscription: UInt32) -> Void)?
    var earlySubscriptions: [EarlySubscription] = []
    /// Of a segment that shares its ledger with others.
    var joint: JointResult?
    /// Of those whose turn is not over: few of many clients.
    var turns: [Int: SubscriptionTurn] = [:]
    var timerOwner: TimerOwner?
    private var sampler: LoopSampler
    /// Connections that are up, counted here; the shard counts too, and they have to agree.
    var live = 0
    /// Where clients keep their flows; it hears their connections then, in place of this.
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
        self.places = shard.clients
        self.meter = LoopMeter(catalog: metrics.catalog, loop: shard.clients.loop)
        self.connector = connector
        let count = shard.clients.count
        self.clients = .allocate(capacity: count)
        self.sessions = .allocate(capacity: max(1, count))
        self.tallies = .allocate(capacity: count)
        self.tallies.initialize(repeating: ClientTally())
        self.writer = .allocate(capacity: 1)
        self.writer.initialize(to: MessageWriter(load))
        let publishers = load.publishers > 0 ? UInt32(load.publishers) : nil
        self.ledger = .allocate(capacity: 1)
        self.ledger.initialize(to: SubscriberLedger(publishers: publishers))
        self.publishes = metrics.makePublishTable()
        self.arrivals = metrics.makeArrivalTable()
        let most = load.isOpenLoop ? Self.largestJoined : load.batch
        self.largestBatch = max(1, Self.largestWrite / max(1, load.payload.largest))
        self.messagesPerWrite = min(most, self.largestBatch)
        self.members = ShareMembers(publishers: publishers)
        self.probe = DecodeProbe(clients: count, of: .mqtt(load.version))
        self.sampler = LoopSampler(loop: shard.clients.loop, now: shard.context.now)
        let owner = shard.context.timers.addOwner { [unowned self] _, place in self.timerFired(Int(place)) }
        self.timerOwner = owner
        for place in 0..<count {
            let options = shard.clients.isOperator(place) ? load.publisherSession : load.subscriberSession
            (self.sessions + place).initialize(to: MQTTSession(options))
            let timer = shard.context.timers.register(owner, tag: Int32(place))
            (self.clients.baseAddress.map { $0 + place })?.initialize(to: Client(timer: timer))
            if shard.clients.isOperator(place) {
                self.clients[place].qos = load.qos(ofPublisher: shard.clients.number(at: place))
            }
        }
        if load.joint != nil { self.joint = JointResult(publishers: shard.clients.operators) }
        self.addSubscriptions()
        if let store, let ids = metrics.store { self.store = StoreGate(store, ids, work: self) }
    }

    deinit {
        self.clients.deinitialize()
        self.clients.deallocate()
        self.sessions.deinitialize(count: self.clients.count)
        self.sessions.deallocate()
        self.tallies.deallocate()
        self.writer.deinitialize(count: 1)
        self.writer.deallocate()
        self.ledger.deinitialize(count: 1)
        self.ledger.deallocate()
        self.publishes.deallocate()
        self.arrivals.deallocate()
    }

    func number(_ place: Int) -> Int { self.places.number(at: place) }

    /// Whether the client publishes at QoS 1 or 2, and so waits for acknowledgements.
    func awaitsAnswers(_ place: Int) -> Bool { self.clients[place].qos != .atMostOnce }

    func addSubscriptions() {
        let listeners =
            self.load.topology == .request ? 0..<self.places.operators : self.places.operators..<self.places.count
        self.ledger.pointee.reserve(subscriptions: listeners.count, streams: listeners.count)
        for place in listeners {
            guard let number = self.load.subscription(of: self.number(place)) else { continue }
            let index =
                self.load.topology == .shared
                ? self.members.addMember(group: UInt32(number)) : self.ledger.pointee.addSubscription(UInt32(number))
            self.clients[place].subscription = Int32(index)
        }
    }

    package func woke(late: TimeAmount) {
        self.meter.record(self.metrics.traffic.loopLag[self.places.loop], late.nanoseconds)
    }

    package func measuring(_ begins: Bool) {
        begins ? self.meter.beginMeasured() : self.meter.endMeasured()
    }

    package func begins(stage: Int?) { self.meter.begin(stage: stage) }

    package func loadEnded() {}

    /// Nanoseconds since 1970.
    func time(_ now: NIODeadline) -> Int64 { Int64(now.uptimeNanoseconds) &+ self.load.realtimeOffset }

    package func takeSample() -> LoadSample {
        let now = self.context.refresh()
        var sample = self.sampler.take(
            self.meter,
            self.metrics.traffic,
            live: self.live,
            planned: self.shard.live,
            now: now
        )
        sample.share = self.members.swap()
        self.look(now)
        sample.probe = self.probe.take()
        return sample
    }

    package func recycle(_ sample: LoopSample) { self.sampler.recycle(sample) }
}
