import Ledger
import LoadEngine
import LoopContext
import MQTT
import MQTTCodec
package import Measurement
package import NIOCore
import Synchronization

extension MQTTLoad {
    /// Clients that answer the messages of the run that they receive, at any version of MQTT and at QoS 0.
    package struct Reply: Sendable {
        /// Only messages to topics that match; `nil`: all.
        package var filter: Template?
        /// `nil`: to the sender alone, as in `ROOT/p2p/CLIENTID`; a response topic of the message comes first.
        package var topic: Template?
        package var after: TimeAmount
        /// The share by which the delay is longer or shorter at most.
        package var jitter: Double
        /// The share of messages that are answered.
        package var probability: Double

        package init(
            filter: Template?,
            topic: Template?,
            after: TimeAmount = .zero,
            jitter: Double = 0,
            probability: Double = 1
        ) {
            (self.filter, self.topic) = (filter, topic)
            (self.after, self.jitter, self.probability) = (after, jitter, probability)
        }
    }
}

package struct ReplyMetrics: Sendable {
    /// Of clients that ask.
    package let duration: DurationID?
    package let received: CounterID
    package let overheard: CounterID
    /// Of clients that answer.
    package let answers: (sent: CounterID, withheld: CounterID, notSent: CounterID)?

    init(_ load: MQTTLoad, _ catalog: inout MetricCatalog) {
        self.duration = load.publishes ? catalog.duration(.reply) : nil
        self.received = catalog.counter(.repliesReceived, ["for": "asker"])
        self.overheard = catalog.counter(.repliesReceived, ["for": "other"])
        self.answers = load.reply.map { _ in
            (catalog.counter(.repliesSent), catalog.counter(.repliesWithheld), catalog.counter(.repliesNotSent))
        }
    }
}

/// The replies that clients of a group are owed by all others.
package struct OwedReplies: Sendable {
    /// By the lane of the message: how many, and when the latest of the messages was due, CLOCK_REALTIME in nanoseconds.
    package var lanes: [Int: (count: UInt64, lastDue: Int64)] = [:]

    mutating func add(lane: Int, due: Int64) {
        let own = self.lanes[lane] ?? (0, due)
        self.lanes[lane] = (own.count + 1, max(own.lastDue, due))
    }
}

/// The replies of one loop's clients, on their way out and in.
struct ReplyBook {
    struct Pending: TimedEntry, Sendable {
        let at: NIODeadline
        let order: UInt64
        let place: Int32
        let header: PayloadHeader
        let topic: [UInt8]

        func isBefore(_ other: Pending) -> Bool { (self.at, self.order) < (other.at, other.order) }
    }

    var pending = TimeHeap<Pending>()
    var timer: TimerID?
    /// Promised to senders by this loop's clients, and those of them that cannot be sent any more.
    var promised: UInt64 = 0
    var notSent: UInt64 = 0
    /// Those that arrived at clients of this loop that had asked, by lane.
    var arrived: [Int: UInt64] = [:]

    /// Replies of which the run awaits the end, less those that have come.
    var balance: (expected: Int64, received: Int64) {
        (Int64(self.promised - self.notSent), Int64(self.arrived.values.reduce(0, +)))
    }
    /// Each client's filter and topic, once it has needed them.
    var texts: [Int: (filter: String?, topic: [UInt8])] = [:]
}

// Clients that reply, and those that await replies.
extension MQTTShardWork {
    /// A message of the run has come for the first time: if the client answers it, the reply is due after its delay.
    func promiseReply(_ place: Int, _ reply: MQTTLoad.Reply, _ header: PayloadHeader, _ view: PublishView) {
        guard let metrics = self.metrics.replies?.answers, let asker = self.deliveries.sender(header.publisher),
            let topic = self.replyTopic(place, reply, asker, view)
        else { return }
        let mixed = UInt64(header.publisher) &* 0xD134_2543_DE82_EF95 &+ header.sequence &* 0x9E37_79B9_7F4A_7C15
        let seed = SplitMix64.mix(self.load.seed &+ mixed &+ UInt64(self.number(place)))
        guard SplitMix64.jitter(0.5, share: 1, seed: seed) < reply.probability else {
            return self.meter.add(metrics.withheld)
        }
        let delay = SplitMix64.jitter(Double(reply.after.nanoseconds), share: reply.jitter, seed: ~seed)
        let lane = self.lane(of: header)
        self.hub?.replies.withLock { $0[asker.group, default: OwedReplies()].add(lane: lane, due: header.due) }
        self.replies.promised += 1
        self.replies.pending.insert(
            ReplyBook.Pending(
                at: self.context.now + .nanoseconds(Int64(bounded: delay)),
                order: self.replies.promised,
                place: Int32(place),
                header: header,
                topic: topic
            )
        )
        self.awaitReplies()
    }

    private func awaitReplies() {
        guard let next = self.replies.pending.first else { return }
        if self.replies.timer == nil {
            let owner = self.context.timers.addOwner { [unowned self] _, _ in self.sendReplies() }
            self.replies.timer = self.context.timers.register(owner)
        }
        if let timer = self.replies.timer { self.context.timers.schedule(timer, at: next.at) }
    }

    private func sendReplies() {
        let now = self.context.refresh()
        while let next = self.replies.pending.first, next.at <= now {
            _ = self.replies.pending.removeFirst()
            self.send(next)
        }
        self.awaitReplies()
    }

    private func send(_ reply: ReplyBook.Pending) {
        guard let metrics = self.metrics.replies?.answers else { return }
        let place = Int(reply.place)
        guard let link = self.clients[place].connection, [.up, .flushing].contains(self.clients[place].stage) else {
            self.replies.notSent += 1
            return self.meter.add(metrics.notSent)
        }
        let frame = PublishFrame(
            topic: reply.topic.count,
            payload: PayloadHeader.size,
            qos: .atMostOnce,
            version: self.load.version
        )
        link.append(messages: 1, bytes: frame.count) { memory in
            guard let base = memory.baseAddress else { return 0 }
            reply.topic.withUnsafeBytes { frame.write(dup: false, retain: false, topic: $0, id: 0, to: base) }
            reply.header.writeReply(to: base + frame.payloadOffset)
            return frame.count
        }
        self.meter.add(self.metrics.traffic.payloadSent, UInt64(PayloadHeader.size))
        self.meter.add(metrics.sent)
        _ = link.flush()
    }

    /// Where the client's reply goes; `nil` for a message that it does not answer.
    private func replyTopic(
        _ place: Int,
        _ reply: MQTTLoad.Reply,
        _ asker: (group: Int, client: Int),
        _ view: PublishView
    ) -> [UInt8]? {
        if self.replies.texts[place] == nil {
            let values = self.load.values(of: self.number(place))
            var random = SplitMix64(seed: self.load.seed)
            let topic = reply.topic?.rendered(values, random: &random) ?? []
            self.replies.texts[place] = (reply.filter?.filter(ofClient: values), topic)
        }
        guard let texts = self.replies.texts[place] else { return nil }
        let topic = Array(view.topic)
        if let filter = texts.filter, !DeliveryPlan.matches(filter, topic[...]) { return nil }
        if let request = view.request { return Array(request.responseTopic) }
        if reply.topic != nil { return texts.topic }
        guard let root = topic.firstRange(of: Array("/p2p/".utf8)) else { return nil }
        let group = self.deliveries.groups[asker.group]
        let id = group.load.values(of: asker.client).clientID
        return P2PTopic.topic(root: Array(topic[..<root.lowerBound]), clientID: Array(id))
    }

    /// A reply has come: to the client that asked, or to another one that hears its topic.
    func replyArrived(_ place: Int, _ reply: PayloadHeader, now: NIODeadline) {
        guard let metrics = self.metrics.replies else { return }
        let asker = reply.run == self.load.run ? self.deliveries.sender(reply.publisher) : nil
        guard let asker, asker == (self.group, self.number(place)) else { return self.meter.add(metrics.overheard) }
        self.meter.add(metrics.received)
        self.latest.pointee.arrival = now
        // After the end of the drain it changes no end.
        if let end = self.shard.drainEnded, now > end { return }
        let lane = self.lane(of: reply)
        self.replies.arrived[lane, default: 0] += 1
        let due = reply.due &- self.clock.pointee
        guard let id = metrics.duration else { return }
        self.meter.record(id, Int64(now.uptimeNanoseconds) &- due, lane: lane)
    }
}

extension MQTTWorkload {
    /// Replies that were promised to the group's clients, and had not come when the drain ended.
    func outstandingReplies(
        _ results: [MQTTResult],
        _ delivery: RunDelivery?
    ) -> (metrics: [Metric], absent: [AbsentValues]) {
        guard self.metrics.replies?.duration != nil, let hub = self.hub else { return ([], []) }
        let owed = hub.replies.withLock { $0[self.group] } ?? OwedReplies()
        let ended = (delivery?.end.ended).map { $0 &+ self.load.realtimeOffset }
        var (all, absent) = (UInt64(0), [AbsentValues]())
        for (lane, own) in owed.lanes {
            let missing = own.count - min(own.count, results.reduce(0) { $0 + ($1.repliesArrived[lane] ?? 0) })
            guard missing > 0 else { continue }
            all += missing
            let place = lane - MetricLane.stage(0)
            let stage = self.load.stages.indices.contains(place) ? self.load.stages[place] : nil
            let isMeasured = stage?.measured ?? (lane == MetricLane.measured)
            var values = AbsentValues(labels: [:], stage: stage?.name, isMeasured: isMeasured)
            values.metric = .reply
            values.values.record(max(0, (ended ?? own.lastDue) &- own.lastDue), count: missing, as: .outstanding)
            absent.append(values)
        }
        let reading = CounterReading(value: Double(all), rate: nil)
        return ([Metric(.repliesOutstanding, labels: [:], reading: .counter(reading))], absent)
    }
}
