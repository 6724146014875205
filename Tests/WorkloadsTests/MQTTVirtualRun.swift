import EmbeddedBroker
import FaultInjection
import FaultLines
import Ledger
import LoadEngine
import MQTT
import MQTTCodec
import Measurement
import NIOCore
import NIOEmbedded
import VirtualServers
import Workloads

/// A virtual run of MQTT clients against the broker core.
final class MQTTVirtualRun: VirtualRun<MQTTWorkload, VirtualBroker> {
    struct Setup {
        var faults = ""
        var publishers = 1
        var subscribers = 1
        var topology = MQTTLoad.Topology.pair
        var qualities: [QoS] = [.atLeastOnce]
        var rate = 100.0
        var duration = TimeAmount.seconds(10)
        var drain = TimeAmount.seconds(2)
        var window = 16
        /// Seconds.
        var keepAlive: UInt16 = 300
        var reconnects = 0
        var reconnectPeriod = TimeAmount.milliseconds(20)
        /// Of several waits.
        var longestPeriod: TimeAmount?
        var jitter = 0.0
        var latency = TimeAmount.zero
        var ackTimeout = TimeAmount.seconds(30)
        /// Overrides the rate.
        var pace: LoadPlan.Pace?
        var limit: UInt64?
        /// Overrides topic, payload, QoS levels and pace.
        var streams: [(stream: MQTTLoad.Stream, rate: Double)] = []
        var hasLedger = true
        /// In closed loop.
        var think = TimeAmount.zero
        var seed: UInt64 = 1
        /// Sessions go on over connections.
        var isPersistent = false
        var topicAlias: MQTTLoad.TopicAlias?
        var departures = DeparturePlan()
        /// Changes of subscriptions, a second.
        var turns: Double?
        var warmup = TimeAmount.zero
        /// In place of warm-up and duration.
        var stages: [(name: String, length: TimeAmount, isMeasured: Bool)] = []
    }

    let setup: Setup
    let load: MQTTLoad

    init(_ setup: Setup) throws {
        self.setup = setup
        func session() -> SessionOptions {
            SessionOptions(
                version: .v5,
                cleanStart: !setup.isPersistent,
                keepAlive: setup.keepAlive,
                sessionExpiry: setup.isPersistent ? 3_600 : nil,
                window: setup.window,
                ackTimeout: setup.ackTimeout
            )
        }
        var load = MQTTLoad.small(
            setup.topology,
            publishers: setup.publishers,
            subscribers: setup.subscribers,
            qualities: setup.qualities,
            session: session()
        )
        var pace = setup.pace ?? .open(.rate(perSecond: setup.rate))
        if !setup.streams.isEmpty {
            load.streams = setup.streams.map(\.stream)
            pace = .streams(setup.streams.map { .rate(perSecond: $0.rate) })
        }
        load.hasLedger = setup.hasLedger
        load.isOpenLoop = pace != .closed
        load.reconnects = setup.reconnects
        load.backoff.from = setup.reconnectPeriod.nanoseconds
        load.backoff.to = setup.longestPeriod?.nanoseconds
        load.backoff.jitter = setup.jitter
        load.seed = setup.seed
        load.stream.topicAlias = setup.topicAlias
        if setup.topology == .request { load.stream.responseTopic = Template(parsing: "answers/%c") }
        load.stages = setup.stages.map { MetricStage($0.name, measured: $0.isMeasured) }
        if !setup.departures.storms.isEmpty { load.departures.insert(.storm) }
        if let cycle = setup.departures.cycle {
            load.departures.insert(.cycle)
            load.dueWhileAway = cycle.due
        }
        if setup.turns != nil { load.subscriptionChurn = Template(parsing: "changing/%c") }
        self.load = load
        let loop = Self.makeLoop()
        let network = VirtualNetwork(
            VirtualBroker(try FaultPlan.parse(line: setup.faults), loop: loop),
            loop: loop,
            latency: setup.latency
        )
        var plan = LoadPlan(
            operators: setup.publishers,
            listeners: setup.subscribers,
            pace: pace,
            limit: setup.limit,
            warmup: setup.warmup,
            measure: setup.duration,
            drain: setup.drain
        )
        plan.think = setup.think
        plan.turns = setup.turns
        plan.departures = setup.departures
        if !setup.stages.isEmpty {
            var start = TimeAmount.zero
            for stage in setup.stages {
                plan.stages.append(.init(start: start, end: start + stage.length, isMeasured: stage.isMeasured))
                start = start + stage.length
            }
            plan.measure = start
        }
        plan.operatorsListen = setup.topology == .request
        let workload = MQTTWorkload(load, metrics: MQTTMetrics(for: load, loops: 1), hub: DeliveryHub())
        super.init(workload, plan: plan, network: network)
        workload.prepare([ShardHandle(self.shard)], plan: plan)
    }

    // MARK: What came of it

    func counter(_ name: String, _ qos: QoS) -> UInt64 { UInt64(self.count(name, ["qos": "\(qos.rawValue)"])) }

    var delivery: RunDelivery {
        RunDelivery(
            self.workload.plan,
            [self.result],
            shares: self.shared,
            presence: self.deliveries.presence
        )
    }

    /// The receivers of each message.
    var copies: Int {
        let topic = self.load.topic.filter(ofClient: self.load.values(of: 0))
        return self.workload.plan.members(group: 0, client: 0, topic: Array(topic.utf8)[...]).count
    }

    var reconciliation: Reconciliation {
        let delivery = self.delivery
        return delivery.reconciliation ?? Reconciliation(arrivals: [], published: nil)
    }

    /// What was sent to a subscription and did not come, excused or not.
    func missing(_ qos: QoS) -> UInt64 {
        self.reconciliation.rows.first { $0.qos == qos.rawValue }?.missing ?? 0
    }

    /// Deliveries whose publish was not answered when the drain ended, and that did not come.
    func outstanding(_ qos: QoS) -> UInt64 {
        self.reconciliation.rows.first { $0.qos == qos.rawValue }?.outstanding ?? 0
    }

    /// Without what is outstanding: the wire has no answer to it, and the oracle knows only answers.
    func row(_ qos: QoS) -> WireOracle.Row {
        let row = self.reconciliation.rows.first { $0.qos == qos.rawValue }
        return WireOracle.Row(
            expected: Int((row?.expected ?? 0) - (row?.outstanding ?? 0)),
            received: Int(row?.received ?? 0),
            lost: Int(row?.lost ?? 0),
            duplicated: Int(row?.duplicated ?? 0),
            reordered: Int(row?.reordered ?? 0)
        )
    }

    /// The same, as the wire saw it.
    func oracleRow(_ qos: QoS) -> WireOracle.Row { self.oracleSums(qos).row }
    func oracleSums(_ qos: QoS) -> WireOracle.Sums {
        var sums = self.network.oracle.sums(qos.rawValue, self.subscriptions)
        // Several that answer keep no order between them.
        if self.setup.topology == .request, self.setup.subscribers > 1 { sums.row.reordered = 0 }
        return sums
    }

    /// As the topology makes them.
    var subscriptions: [WireOracle.Subscription] {
        let first = self.setup.publishers
        let clients = (0..<self.setup.subscribers).map { first + $0 }
        let publishers = UInt32(self.setup.publishers)
        switch self.setup.topology {
        case .shared: return [(clients, { _ in true })]
        case .request: return (0..<first).map { own in ([own], { $0 == UInt32(own) }) }
        case .fanIn, .fanOut: return clients.map { ([$0], { _ in true }) }
        case .pair: return clients.map { client in ([client], { $0 == UInt32(client - first) % publishers }) }
        }
    }

    /// The sentences of the books that do not hold.
    var imbalances: [String] {
        self.setup.qualities.flatMap { qos in
            var books = Books(qos: Int(qos.rawValue))
            guard let part = self.result.books[qos] else { return ["no book"] }
            books.offered = self.counter("publish_offered", qos)
            books.sent = self.counter("publish_sent", qos)
            books.notSent = self.counter("publish_not_sent", qos)
            if qos == .atMostOnce {
                books.confirmed = self.counter("publish_confirmed", qos)
                books.unconfirmed = part.unconfirmed
            } else {
                books.acked = self.counter("publish_acked", qos)
                books.inFlight = part.inFlight
                books.timedOut = part.timedOut
                books.failed = part.failed
                books.outstanding = (books.notSent ?? 0) + part.inFlight
            }
            let row = self.row(qos)
            books.deliveryOutstanding = self.outstanding(qos)
            books.expected = UInt64(row.expected) + self.outstanding(qos)
            books.received = UInt64(row.received)
            books.lost = UInt64(row.lost)
            return books.imbalances
        }
    }
}
