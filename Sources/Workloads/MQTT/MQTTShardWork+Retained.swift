package import Ledger
import LoadEngine
import LoopContext
import MQTT
import MQTTCodec
import Measurement
import NIOCore
import Synchronization

/// The metrics of stored copies that a group's SUBSCRIBE packets ask for.
package struct RetainedMetrics: Sendable {
    let first: DurationID
    let last: DurationID
    let stale: CounterID

    init(_ catalog: inout MetricCatalog) {
        self.first = catalog.duration(.retained, ["which": "first"], wholeRun: true)
        self.last = catalog.duration(.retained, ["which": "last"], wholeRun: true)
        self.stale = catalog.counter(.retainedStale)
    }
}

/// The ends of the stored copies that one loop's clients were owed.
package struct RetainedAccount: Sendable {
    /// Copies that were owed, and of them those that came.
    var expected: UInt64 = 0
    var received: UInt64 = 0
    /// Those that did not come although the client's server answered a probe, and the others.
    var proved: UInt64 = 0
    var outstanding: UInt64 = 0
    var flow = RetainedFlow()
    /// The copies that came to each client that missed some.
    package var shorts: Set<Int> = []
    /// There were more topics than are followed.
    package var hasMoreTopics = false

    package init() {}

    static let settled: [MetricDefinition] = [.retainedExpected, .retainedLost, .retainedOutstanding]

    /// The metrics that are settled at the end, over all loops; `isQuiet`: the server had stopped sending.
    static func metrics(_ all: [RetainedAccount], isQuiet: Bool) -> [Metric] {
        func sum(_ count: KeyPath<RetainedAccount, UInt64>) -> Double {
            all.reduce(0) { $0 + Double($1[keyPath: count]) }
        }
        let proved = sum(\.proved)
        let values = [sum(\.expected), isQuiet ? proved : 0, sum(\.outstanding) + (isQuiet ? 0 : proved)]
        let counts = zip(self.settled, values).map { kind, value in
            Metric(kind, reading: .counter(CounterReading(value: value, rate: nil)))
        }
        let seconds = RetainedFlow.seconds(all.map(\.flow))
        guard seconds >= 0.1 else { return counts }
        let rate = Double(all.reduce(0) { $0 + $1.received }) / seconds
        return counts + [Metric(.retainedRate, reading: .gauge(GaugeReading(value: rate)))]
    }
}

/// The time in which copies were under way: before each copy, since the SUBSCRIBE or the client's copy before it.
struct RetainedFlow {
    /// Nanoseconds of the first spans and their last end, and the later spans in their order.
    private var ended: Int64 = 0
    private var last = Int64.min
    private var spans: [(start: Int64, end: Int64)] = []
    private static let most = 1_024

    mutating func add(from start: NIODeadline, to end: NIODeadline) {
        var start = max(self.last, Int64(start.uptimeNanoseconds))
        while let last = self.spans.last, last.end >= start {
            start = min(start, last.start)
            self.spans.removeLast()
        }
        self.spans.append((start, Int64(end.uptimeNanoseconds)))
        guard self.spans.count == Self.most else { return }
        self.ended += self.spans.prefix(Self.most / 2).reduce(0) { $0 + $1.end - $1.start }
        self.last = self.spans[Self.most / 2 - 1].end
        self.spans.removeFirst(Self.most / 2)
    }

    /// The length of the spans of all loops together.
    static func seconds(_ all: [RetainedFlow]) -> Double {
        var joint = RetainedFlow()
        for span in all.flatMap(\.spans).sorted(by: { $0.end < $1.end }) {
            joint.add(from: .uptimeNanoseconds(UInt64(span.start)), to: .uptimeNanoseconds(UInt64(span.end)))
        }
        // Of those that were added up only the longest sum is known to be no overlap.
        let ended = joint.ended + (all.map(\.ended).max() ?? 0)
        return Double(joint.spans.reduce(ended) { $0 + $1.end - $1.start }) / 1e9
    }
}

/// A client between its SUBSCRIBE and the last copy that it awaits.
struct OpenVisit {
    var visit: RetainedVisit
    let sent: NIODeadline
    var latest: NIODeadline
}

/// The state of a group's loop for what the run retains.
struct RetainedBooks {
    var visits: [Int: OpenVisit] = [:]
    /// Visits that still await a copy.
    var awaiting = 0
    /// Copies that are owed to the open visits, and of them those that need not come any more.
    var (owed, settled): (Int64, Int64) = (0, 0)
    var account = RetainedAccount()
    /// The name of the topic in hand, in reused memory.
    var topic: [UInt8] = []
}

// A publisher's part: what the server has stored.
extension MQTTShardWork {
    /// The number of the topic in a writer's hands; its readers are found outside of the lock.
    private func number(ofTopic name: [UInt8], _ hub: DeliveryHub) -> Int? {
        let server = self.deliveries.groups[self.group].domain
        if let known = hub.retained.withLock({ $0.number(name, server: server) }) { return known }
        let readers = self.deliveries.readers(ofRetained: name[...], group: self.group)
        let number = hub.retained.withLock { $0.add(name, server: server, readers: readers) }
        if number == nil { self.retained.account.hasMoreTopics = true }
        return number
    }

    /// A message of a stream that retains is in the write.
    func noteRetainedWrite(_ place: Int, _ stream: Int) {
        guard self.retains[stream], let hub = self.hub else { return }
        let (writer, qos) = (self.writers + stream, self.qos(place, stream: stream))
        guard let number = self.number(ofTopic: writer.pointee.topic, hub) else { return }
        let sender = UInt64(self.group) << 40 | UInt64(self.number(place)) << 2 | UInt64(qos.rawValue)
        let isClear = writer.pointee.payloadSize == 0
        hub.retained.withLock { $0.wrote(number, by: sender, isClear: isClear, isAwaited: qos != .atMostOnce) }
    }

    /// A message has come to its end; its topic is made again.
    func noteRetained(_ place: Int, _ flight: Flight, _ qos: QoS, isAcknowledged: Bool, now: NIODeadline) {
        guard self.followsRetained, self.retains[flight.stream], let hub = self.hub else { return }
        _ = self.begin(place, stream: flight.stream, qos: qos, number: flight.number, now: now)
        let writer = self.writers + flight.stream
        let publisher = self.ledgerNumber(ofRow: flight.row)
        let value = RetainedTopics.Value(publisher: publisher, sequence: flight.sequence)
        guard let number = self.number(ofTopic: writer.pointee.topic, hub) else { return }
        let isClear = writer.pointee.payloadSize == 0
        hub.retained.withLock { $0.ended(number, value, isClear: isClear, isAcknowledged: isAcknowledged) }
    }
}

// A subscriber's part: what it is owed.
extension MQTTShardWork {
    enum RetainedEnd {
        /// The server answered a probe behind the last copy.
        case proved
        /// The run's own end, or a server that fell silent.
        case open
        /// The connection ended otherwise: nothing more was owed, unless the server had stopped sending before.
        case excused
    }

    /// SUBSCRIBE is about to be written; `isNew`: the server has no session of the client.
    func awaitRetained(_ place: Int, isNew: Bool, now: NIODeadline) {
        guard self.metrics.retained != nil, let hub = self.hub else { return }
        self.endRetained(place, .excused, now: now)
        let client = self.load.filtersVary ? UInt32(self.number(place)) : FilterIndex.Entry.everyClient
        let reader = DeliveryPlan.reader(group: self.group, client: client)
        let visit = hub.retained.withLock { $0.visit(of: reader, isNew: isNew) }
        guard !visit.isEmpty else { return }
        self.retained.owed += Int64(visit.expected)
        self.retained.visits[place] = OpenVisit(visit: visit, sent: now, latest: now)
        if visit.awaited > 0 { self.retained.awaiting += 1 }
    }

    /// A message arrived while some client awaits copies, or a copy that may be stale.
    func retainedArrived(_ place: Int, _ view: PublishView, now: NIODeadline) {
        guard let id = self.metrics.retained, var open = self.retained.visits.removeValue(forKey: place) else { return }
        let (awaited, received) = (open.visit.awaited, open.visit.received)
        if view.retain || awaited > 0 {
            if self.arrived(view, at: &open.visit, now: now).contains(.stale) { self.meter.add(id.stale) }
            if view.retain { self.latest.pointee.arrival = now }
        }
        if open.visit.received > received {
            let age = (now - open.sent).nanoseconds
            if received == 0 { self.meter.record(id.first, age) }
            self.longest = max(self.longest, age)
            self.retained.account.flow.add(from: open.latest, to: now)
            open.latest = now
            self.retained.account.received += 1
        }
        self.retained.settled += Int64(awaited - open.visit.awaited)
        self.retained.visits[place] = open
        guard awaited > 0, open.visit.awaited == 0 else { return }
        self.retained.awaiting -= 1
        self.recordLast(open)
        // Only a copy of a topic that was cleared can still be a stale one.
        if !open.visit.hasCleared { self.endRetained(place, .excused, now: now) }
    }

    private func arrived(_ view: PublishView, at visit: inout RetainedVisit, now: NIODeadline) -> RetainedVisit.Arrival
    {
        self.retained.topic.removeAll(keepingCapacity: true)
        self.retained.topic.append(contentsOf: view.topic)
        let (name, server) = (self.retained.topic, self.deliveries.groups[self.group].domain)
        guard let number = self.hub?.retained.withLock({ $0.number(name, server: server) }) else { return [] }
        let header = self.header(of: view, now: now)
        // A short header has but the last digits of the number.
        let value = header.flatMap {
            $0.isShort ? nil : RetainedTopics.Value(publisher: $0.publisher, sequence: $0.sequence)
        }
        let isForeign = header.map { $0.run != self.load.run } ?? false
        return visit.arrived(number, value, isForeign: isForeign, isCopy: view.retain)
    }

    private func recordLast(_ open: OpenVisit) {
        guard let metrics = self.metrics.retained, open.visit.received > 0 else { return }
        self.meter.record(metrics.last, (open.latest - open.sent).nanoseconds)
    }

    /// The client's visit is over: what has not come is lost, outstanding or excused.
    func endRetained(_ place: Int, _ end: RetainedEnd, now: NIODeadline) {
        guard let id = self.metrics.retained, let open = self.retained.visits.removeValue(forKey: place) else { return }
        let (awaited, visit) = (open.visit.awaited, open.visit)
        if awaited > 0 { self.retained.awaiting -= 1 }
        let age = (min(now, self.shard.drainEnded ?? now) - open.sent).nanoseconds
        let isQuiet = age - (open.latest - open.sent).nanoseconds >= DeliveryEnd.patience(longest: self.longest)
        let isExcused = awaited == 0 || end == .excused && !isQuiet
        let missing = isExcused ? 0 : self.hub?.retained.withLock { visit.missing($0) } ?? 0
        self.retained.owed -= Int64(visit.expected)
        self.retained.settled -= Int64(visit.expected - awaited)
        self.retained.account.expected += UInt64(visit.received + missing)
        guard missing > 0 else { return awaited == 0 ? () : self.recordLast(open) }
        let isProved = end == .proved && isQuiet
        self.retained.account.proved += isProved ? UInt64(missing) : 0
        self.retained.account.outstanding += isProved ? 0 : UInt64(missing)
        self.retained.account.shorts.insert(visit.received)
        for metric in visit.received == 0 ? [id.first, id.last] : [id.last] {
            self.meter.recordUnanswered(metric, age, lane: MetricLane.measured, as: .outstanding)
        }
    }
}

extension MQTTLoad.Stream {
    /// Whether the run can tell which value of a topic is the last one.
    func isRetentionFollowed(in load: MQTTLoad) -> Bool {
        self.retain && self.p2p == nil && self.topicAlias == nil && !self.topic.variesByTime && load.targets == 1
            && self.properties.messageExpiryInterval == nil && load.bond != .ledger
            && self.qualities.contains { $0 != .atMostOnce }
    }
}

extension MQTTLoad {
    /// Filters that match what the load retains and the run does not follow, the wills of its clients among it.
    fileprivate var unfollowedRetention: [String] {
        let streams = self.publishes ? self.streams.filter { $0.retain && !$0.isRetentionFollowed(in: self) } : []
        let will = self.will.flatMap { $0.retain ? $0.topic.filterOfAllClients : nil }
        return streams.map(\.filterOfAllClients) + [will].compactMap(\.self)
    }
}

extension DeliveryPlan {
    /// Whether a group's clients may get copies of what the run retains.
    func getsRetained(_ group: Int) -> Bool {
        let load = self.groups[group].load
        guard load.subscribes, load.topology != .request, load.marksStoredCopies, load.targets == 1,
            !load.subscribesEach || load.filters.count < 2
        else { return false }
        let room = (load.subscriberSession.maximumPacketSize ?? .max) - Self.largestHead
        let heard = self.streams(heardBy: group).map { (self.groups[$0.group].load, $0.stream) }
        let others = self.groups.flatMap(\.load.unfollowedRetention)
        return heard.contains { load, stream in load.streams[stream].isRetentionFollowed(in: load) }
            && heard.allSatisfy { load, stream in
                let stream = load.streams[stream]
                return !stream.retain
                    || stream.payload.largest <= room
                        && !others.contains { MQTTLoad.overlap($0, stream.topic.filterOfAllClients) }
            }
    }

    /// A client that gets stored copies, or all of its group.
    package static func reader(group: Int, client: UInt32) -> RetainedTopics.Reader {
        UInt64(group) << 32 | UInt64(client)
    }

    /// The readers that get a stored copy of a topic with a SUBSCRIBE, each with whether only a new subscription does (MQTT 5.0
    /// §3.8.3.1); members of share groups get none.
    package func readers(ofRetained topic: ArraySlice<UInt8>, group: Int) -> [RetainedTopics.Reader: Bool] {
        var readers: [RetainedTopics.Reader: Bool] = [:]
        self.index.candidates(of: topic) { entry in
            let own = Int(entry.group)
            let load = self.groups[own].load
            let isEvery = entry.client == FilterIndex.Entry.everyClient
            guard self.groups[own].domain == self.groups[group].domain, load.topology != .request,
                !entry.isP2P, let client = isEvery ? load.subscribingClients.first : Int(entry.client)
            else { return }
            let subscription = load.subscriptions(of: client)[Int(entry.filter)]
            guard Self.matches(subscription.filter, topic), !subscription.filter.hasPrefix("$share/"),
                subscription.retainHandling != .doNotSend, !(subscription.noLocal && own == group)
            else { return }
            let reader = Self.reader(group: own, client: entry.client)
            readers[reader] = (readers[reader] ?? true) && subscription.retainHandling == .sendIfNew
        }
        return readers
    }
}
