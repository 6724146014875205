import EmbeddedBroker
import Ledger
import LoadEngine
import LoopContext
import MQTT
import MQTTCodec
import Measurement
import NIOCore
import NIOEmbedded
import Testing
import Workloads

/// A whole run of one shard against the broker core, on a clock that moves when it is told.
///
/// Connect, load, drain, and the books behind it: no socket, no thread, and the same every time.
final class VirtualRun {
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
        var reconnects = 0
        var reconnectPeriod = TimeAmount.milliseconds(20)
        var latency = TimeAmount.zero
        var ackTimeout = TimeAmount.seconds(30)
        /// In the place of the rate.
        var pace: LoadPlan.Pace?
        /// In closed loop.
        var think = TimeAmount.zero
        var seed: UInt64 = 1
        /// How long a commit takes, by its number; without it nothing is kept.
        var commits: (@Sendable (Int) -> VirtualStore.Commit)?
        /// Sessions go on over connections.
        var isPersistent = false
        var topicAlias: MQTTLoad.TopicAlias?
        var warmup = TimeAmount.zero
        /// In place of warm-up and duration.
        var stages: [(name: String, length: TimeAmount, isMeasured: Bool)] = []
        /// The store hangs, so that the run has to be broken off.
        var hangs = false
    }

    let loop = EmbeddedEventLoop()
    let setup: Setup
    let load: MQTTLoad
    let network: VirtualNetwork
    let shard: Shard<MQTTShardWork>
    let work: MQTTShardWork
    let store: VirtualStore?
    private let metrics: MQTTMetrics
    private let shareDurations: [DurationID]
    private var events: [ShardEvent] = []
    private var accumulator: RunAccumulator
    private var shares = ShareGroupLedger()
    private var second = 0
    /// When operation 0 was due.
    private(set) var origin = NIODeadline.distantPast
    /// Of the load, warm-up and all stages.
    let length: TimeAmount
    private(set) var all: [Metric] = []
    private(set) var result: MQTTResult

    init(_ setup: Setup) throws {
        self.setup = setup
        self.loop.advanceTime(to: .uptimeNanoseconds(1_000_000_000_000))
        let keeps = setup.commits != nil
        func session() -> SessionOptions {
            SessionOptions(
                version: .v5,
                cleanStart: !setup.isPersistent,
                keepAlive: 300,
                sessionExpiry: setup.isPersistent ? 3_600 : nil,
                window: setup.window,
                ackTimeout: setup.ackTimeout,
                defersReleases: keeps,
                defersCompletions: keeps,
                acknowledgesMessages: keeps ? .byOwner : .atOnce
            )
        }
        var load = MQTTLoad.small(
            setup.topology,
            publishers: setup.publishers,
            subscribers: setup.subscribers,
            qualities: setup.qualities,
            session: session()
        )
        let pace = setup.pace ?? .open(.rate(perSecond: setup.rate))
        load.isOpenLoop = pace != .closed
        load.reconnects = setup.reconnects
        load.reconnectPeriod = setup.reconnectPeriod
        load.seed = setup.seed
        load.keepsFlows = keeps
        load.topicAlias = setup.topicAlias
        if setup.topology == .request { load.responseTopic = Template(parsing: "answers/%c") }
        load.stages = setup.stages.map { MetricStage($0.name, measured: $0.isMeasured) }
        self.load = load
        self.metrics = MQTTMetrics(for: load, loops: 1)
        self.shareDurations = MQTTWorkload(load, metrics: self.metrics).shareDurations
        self.accumulator = RunAccumulator(catalog: self.metrics.catalog)
        self.network = VirtualNetwork(
            try FaultPlan.parse(line: setup.faults),
            loop: self.loop,
            latency: setup.latency
        )
        var plan = LoadPlan(
            operators: setup.publishers,
            listeners: setup.subscribers,
            pace: pace,
            warmup: setup.warmup,
            measure: setup.duration,
            drain: setup.drain
        )
        plan.think = setup.think
        if !setup.stages.isEmpty {
            var start = TimeAmount.zero
            for stage in setup.stages {
                plan.stages.append(.init(start: start, end: start + stage.length, isMeasured: stage.isMeasured))
                start = start + stage.length
            }
            plan.measure = start
        }
        self.length = plan.warmup + (plan.measure ?? .zero)
        plan.operatorsListen = setup.topology == .request
        let context = LoopContext(eventLoop: self.loop, tick: .exact)
        let heard = Heard()
        self.shard = Shard(context: context, plan: plan, index: 0, of: 1) { heard.events.append($0) }
        self.store = setup.commits.map { [loop] in VirtualStore(loop, $0) }
        if let store = self.store {
            self.network.oracle.onStep = { client, step in
                store.hears(String(decoding: load.values(of: client).clientID, as: UTF8.self), step)
            }
        }
        self.work = MQTTShardWork(
            load,
            metrics: self.metrics,
            shard: self.shard,
            connector: self.network,
            store: self.store.map { KeptFlows(store: $0) }
        )
        self.shard.work = self.work
        self.result = self.work.takeResult()
        self.heard = heard
    }

    private final class Heard { var events: [ShardEvent] = [] }
    private let heard: Heard

    /// Runs it from the first connect to the last FIN; `during` is called every `step` of the load, and of the drain.
    func perform(step: TimeAmount = .milliseconds(100), during: (VirtualRun) -> Void = { _ in }) {
        self.shard.startConnecting(at: self.loop.now)
        self.pass(.seconds(5), step: .milliseconds(1)) { $0.isSettled }
        self.origin = self.loop.now + .milliseconds(20)
        self.shard.startLoad(at: self.origin)
        let end = self.origin + self.length
        self.pass(self.length + .seconds(1), step: step) { run in
            during(run)
            return run.loop.now > end
        }
        self.pass(self.setup.drain, step: step) { run in
            during(run)
            return run.hasEnded { if case .operatorsFinished = $0 { true } else { false } }
        }
        self.shard.endDrain()
        // Whatever is still under way to the listeners arrives before they go.
        self.pass(.seconds(1), step: step) { _ in false }
        self.shard.finishListeners()
        self.pass(.seconds(2), step: step) { run in run.hasEnded { if case .finished = $0 { true } else { false } } }
        if self.setup.hangs {
            #expect(self.shard.phase != .finished)
            self.shard.abort()
        }
        #expect(self.shard.phase == .finished)
        self.sample()
        self.all = self.accumulator.metrics(measuredSeconds: 1) + self.accumulator.stageMetrics(seconds: nil)
        self.result = self.work.takeResult()
    }

    private var isSettled: Bool { self.hasEnded { if case .settled = $0 { true } else { false } } }

    private func hasEnded(_ isEvent: (ShardEvent) -> Bool) -> Bool { self.heard.events.contains(where: isEvent) }

    /// Lets time pass until `isOver`, at most so long.
    private func pass(_ time: TimeAmount, step: TimeAmount, until isOver: (VirtualRun) -> Bool) {
        let end = self.loop.now + time
        while self.loop.now < end, !isOver(self) {
            self.loop.advanceTime(by: step)
            if self.loop.now >= self.nextSample { self.sample() }
        }
    }

    private var nextSample = NIODeadline.distantPast

    private func sample() {
        self.nextSample = self.loop.now + .seconds(1)
        var samples = [self.work.takeSample()]
        self.shares.settle(&samples, durations: self.shareDurations)
        _ = self.accumulator.add(second: self.second, phase: "measure", samples: samples.map(\.metrics))
        self.second += 1
    }

    // MARK: What came of it

    var errors: [ErrorRecord] { self.accumulator.errors }

    func histogram(_ name: String, _ labels: Labels) -> Histogram {
        self.all.first { $0.name == name && $0.labels == labels }?.duration?.decodedHistogram() ?? Histogram()
    }

    func counter(_ name: String, _ qos: QoS) -> UInt64 {
        let metric = self.all.first { $0.name == name && $0.labels == ["qos": "\(qos.rawValue)"] }
        return UInt64(metric?.counter?.value ?? 0)
    }

    var reconciliation: Reconciliation {
        let ledger = self.load.topology == .shared ? self.shares.export() : self.result.ledger
        return Reconciliation(ledgers: [ledger], fates: self.result.fates, feeds: self.load.feeds([self.result]))
    }

    func row(_ qos: QoS) -> WireOracle.Row {
        let row = self.reconciliation.rows.first { $0.qos == qos.rawValue }
        return WireOracle.Row(
            expected: Int(row?.expected ?? 0),
            received: Int(row?.received ?? 0),
            lost: Int(row?.lost ?? 0),
            duplicated: Int(row?.duplicated ?? 0),
            reordered: Int(row?.reordered ?? 0)
        )
    }

    /// The same, as the wire saw it.
    func oracleRow(_ qos: QoS) -> WireOracle.Row { self.network.oracle.row(qos.rawValue, self.subscriptions) }

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
            }
            let row = self.row(qos)
            books.expected = UInt64(row.expected)
            books.received = UInt64(row.received)
            books.lost = UInt64(row.lost)
            return books.imbalances
        }
    }
}
