package import Ledger
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
    /// The receivers of the client's messages, if it has one topic.
    var audience: UInt32 = 0
    /// The index of its receiver in the loop's ledger, and of its first membership of a share group.
    var receiver: Int32 = -1
    var member: Int32 = -1
    /// Connections on which its subscriptions were in effect.
    var visits: UInt32 = 0
    /// Its subscriptions are in effect, or its session keeps them.
    var hasSubscribed = false
    /// The server has resumed its session: it may send messages again (MQTT 5.0 §4.4).
    var hasResumed = false
    /// Its connection is gone.
    var isAway = false
    /// Its last connection ended since the server did not answer.
    var isSilent = false
    /// The server answered the probe behind its last message to the client.
    var isProved = false
    /// When the connection ended.
    var leftAt = NIODeadline.distantPast
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
    /// The publishers and receivers of the whole run, and the place of these clients' group.
    let deliveries: DeliveryPlan
    let group: Int
    let hub: DeliveryHub?
    // Pointers, since exclusivity checks of a class's property cost as much as a message.
    /// One writer for each stream.
    let writers: UnsafeMutablePointer<MessageWriter>
    /// The clock of time stamps minus the loop's clock, in nanoseconds; the writers have it too.
    let clock: UnsafeMutablePointer<Int64>
    /// The loop's last message at a subscription, and the last of a publisher.
    let latest: UnsafeMutablePointer<(arrival: NIODeadline, publish: NIODeadline)>
    let ledger: UnsafeMutablePointer<SubscriberLedger>
    let audiences: UnsafeMutablePointer<AudienceTable>
    /// The rows of a load with several audiences per publisher, and the exceptions of every load.
    let published: UnsafeMutablePointer<PublisherLedger>
    package let hasManyAudiences: Bool
    /// The metrics of a publish, by stream and QoS.
    let publishes: UnsafeMutablePointer<MQTTMetrics.Publish>
    /// The metrics of an arrival, by QoS.
    let arrivals: UnsafeMutablePointer<MQTTMetrics.Arrival>
    /// The metrics of a delivery, by stream of the run and QoS of the publisher.
    let durations: UnsafeMutablePointer<MQTTMetrics.Delivery>
    /// Messages per write at most, given their size.
    let largestBatch: Int
    /// Messages per write at QoS 0, from the load.
    let messagesPerWrite: Int
    /// SCRAM's keys: there are many clients, but few salts.
    let keys = SCRAMKeyCache()
    var members: ShareMembers
    var books = PerQoS(repeating: MessageBook())
    var received = DeliveryBalance()
    /// The run that `sub` alone follows.
    var followedRun: UInt32?
    var reader: HeaderReader
    /// Clients that got a message without the user property that it was sent with.
    var stripped: Set<Int> = []
    /// The rare facts about messages, by row; the row of a publisher with one audience is its place.
    package var exceptions: [Int: PublishExceptions] {
        _read { yield self.published.pointee.exceptions }
        _modify { yield &self.published.pointee.exceptions }
    }
    /// Audiences of topics that change from message to message: two caches for each server, of messages with the header in
    /// payload or property.
    var topics: [[[UInt8]: UInt32]]
    /// The share group filters of clients that have other filters too; `nil` where they differ per client.
    var shareFilters: [ShareFilter]?
    var ownShareFilters: [Int: [ShareFilter]] = [:]
    /// Receivers that were granted a lower QoS than they asked for.
    var granted: [UInt32: UInt8] = [:]
    /// Alive members of each share group that this loop's publishers feed.
    var alive: [UInt32: ShareLife] = [:]
    /// Marks since the last sample.
    var marks: [PresenceMark] = []
    /// Unsent messages of clients with several audiences.
    var tails: [Int: [WrittenMessage]] = [:]
    var written: [WrittenMessage] = []
    /// The client whose messages are in ``written``, and the stream of the current one.
    var writing = -1
    var current = 0
    /// Copies of messages with unknown fate, of publishers with several audiences.
    var uncertain: Int64 = 0
    /// When the first leaving subscriber was probed, and the longest delivery in nanoseconds.
    var probed: NIODeadline?
    var longest: Int64 = 0
    /// The part of a segment that shares its ledger with others.
    var joint: JointResult?
    let (marksStoredCopies, subscribesEach, subscribeInterval): (Bool, Bool, TimeAmount?)
    /// Clients whose SUBSCRIBE packets follow one another, and those that wait for UNSUBACK.
    var sequences: [Int: SubscribeSequence] = [:]
    var unsubscribing: [Int: (id: PacketID, sent: NIODeadline)] = [:]
    /// The streams whose retained values are followed, and whether there is one.
    let retains: [Bool]
    let followsRetained: Bool
    var retained = RetainedBooks()
    var replies = ReplyBook()
    /// Whether clients of the run reply, so that a payload may be a reply.
    let hearsReplies: Bool
    /// Clients with a churn in flight: few of many.
    var turns: [Int: SubscriptionTurn] = [:]
    /// Churns that were not begun, until their age is known: the first and the last due time, and how many.
    var missedTurns: [(begin: NIODeadline, due: NIODeadline, count: UInt64)] = []

    package init(_ workload: MQTTWorkload, shard: Shard<MQTTShardWork>, connector: any ClientConnector) {
        let (load, metrics) = (workload.load, workload.metrics)
        let (deliveries, group) = (workload.plan, workload.group)
        self.load = load
        self.deliveries = deliveries
        self.group = group
        self.hub = workload.hub
        let isRead = workload.hub != nil && deliveries.groups.indices.contains { deliveries.getsRetained($0) }
        (self.marksStoredCopies, self.subscribesEach) = (load.marksStoredCopies, load.subscribesEach)
        self.subscribeInterval = load.subscribeInterval
        self.retains = load.streams.map { isRead && load.publishes && $0.isRetentionFollowed(in: load) }
        self.followsRetained = self.retains.contains(true)
        self.hearsReplies = workload.hub != nil && deliveries.groups.contains { $0.load.reply != nil }
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
            if places.isOperator(place) {
                // Of several streams the highest: it decides whether the client awaits answers.
                let number = places.number(at: place)
                own.qos =
                    load.streams.indices.map { load.qos(ofPublisher: number, stream: $0) }.max() ?? .atMostOnce
            }
            return own
        }
        let count = places.count
        self.sessions = .allocate(capacity: max(1, count))
        self.clock = .make(load.realtimeOffset)
        self.latest = .make((.distantPast, .distantPast))
        self.writers = .allocate(capacity: load.streams.count)
        for stream in load.streams.indices {
            (self.writers + stream).initialize(
                to: MessageWriter(load, stream: stream, group: group, deliveries: deliveries, clock: self.clock)
            )
        }
        let publishers = deliveries.publishers > 0 ? UInt32(deliveries.publishers) : nil
        self.ledger = .make(SubscriberLedger(publishers: publishers))
        self.audiences = .make(AudienceTable())
        self.published = .make(PublisherLedger())
        self.hasManyAudiences = load.publishes && !deliveries.hasFixedAudiences(group: group)
        self.topics = Array(repeating: [:], count: 2 * max(1, load.servers))
        self.publishes = MQTTMetrics.table(metrics.publishByQoS)
        self.arrivals = MQTTMetrics.table(metrics.arrivalByQoS)
        self.durations = MQTTMetrics.table(metrics.deliveries)
        let most = load.isOpenLoop ? Self.largestJoined : load.batch
        self.largestBatch = Self.largestBatch(of: load)
        self.messagesPerWrite = min(most, self.largestBatch)
        self.members = ShareMembers(publishers: publishers)
        self.reader = HeaderReader(deliveries)
        for place in 0..<count {
            let options = places.isOperator(place) ? load.publisherSession : load.subscriberSession
            (self.sessions + place).initialize(to: MQTTSession(options))
        }
        self.registerTimers()
        if load.bond == .ledger { self.joint = JointResult() }
        self.addReceivers()
        self.addPublishers()
    }

    deinit {
        self.sessions.destroy(self.slab.clients.count)
        self.writers.destroy(self.load.streams.count)
        self.clock.destroy()
        self.latest.destroy()
        self.audiences.destroy()
        self.published.destroy()
        self.ledger.destroy()
        self.publishes.deallocate()
        self.arrivals.deallocate()
        self.durations.deallocate()
    }

    /// The writer of the only stream, or of the first one.
    var writer: UnsafeMutablePointer<MessageWriter> { self.writers }

    /// Whether the client publishes at QoS 1 or 2, and so awaits acknowledgements.
    func awaitsAnswers(_ place: Int) -> Bool { self.clients[place].own.qos != .atMostOnce }

    /// Corrects the clock of time stamps, which another host's clock drifts from.
    package func correct(clock offset: Int64) { self.clock.pointee = offset }
    package func observe(_ now: NIODeadline) {}

    package func complete(_ sample: inout LoadSample) {
        sample.share = self.members.swap()
        swap(&sample.presence, &self.marks)
    }
}
