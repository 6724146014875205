import EmbeddedBroker
import FaultInjection
import FaultLines
import Ledger
import LoadEngine
import LoopContext
import MQTT
import MQTTCodec
import Measurement
import RunResult
import NIOCore
import Synchronization
import TestSupport
import Testing
import VirtualServers
import Workloads

/// A run that the engine leads itself, in one or several segments, against one broker core on a virtual clock.
///
/// Each segment has its own shards, its own ledger and its own time line, as a process of its own has.
final class VirtualSegments {
    struct Setup {
        var faults = ""
        var topology = MQTTLoad.Topology.pair
        var publishers = 4
        var subscribers = 4
        var qualities: [QoS] = [.atLeastOnce]
        var rate = 100.0
        var duration = TimeAmount.seconds(2)
        var warmup = TimeAmount.zero
        var stages: [(name: String, length: TimeAmount, isMeasured: Bool)] = []
        var departures = DeparturePlan()
        var segments = 1
        /// Event loops of each segment.
        var shards = 2
        /// How much later than the one before a segment begins its load.
        var lateness = TimeAmount.zero
        var isPersistent = false
        var latency = TimeAmount.microseconds(400)
    }

    private struct Segment {
        let shards: [Shard<MQTTShardWork>]
        let workload: MQTTWorkload
        let observer: Observer
        let run: LoadRun<Observer>
    }

    let setup: Setup
    let time = VirtualTime()
    let network: VirtualNetwork<VirtualBroker>
    private(set) var load: MQTTLoad
    private var segments: [Segment] = []
    private(set) var outcomes: [RunOutcome] = []

    init(_ setup: Setup) throws {
        self.setup = setup
        self.network = VirtualNetwork(
            VirtualBroker(try FaultPlan.parse(line: setup.faults), loop: self.time.loop),
            loop: self.time.loop,
            latency: setup.latency
        )
        self.load = Self.load(setup)
        // A parent begins the load of all segments when the last one is ready.
        let gate = Gate(count: setup.segments)
        for index in 0..<setup.segments { self.segments.append(self.segment(index, gate)) }
    }

    private static func load(_ setup: Setup) -> MQTTLoad {
        let session = SessionOptions(
            version: .v5,
            cleanStart: !setup.isPersistent,
            keepAlive: 300,
            sessionExpiry: setup.isPersistent ? 3_600 : nil,
            window: 16,
            ackTimeout: .seconds(30)
        )
        var load = MQTTLoad.small(
            setup.topology,
            publishers: setup.publishers,
            subscribers: setup.subscribers,
            qualities: setup.qualities,
            session: session
        )
        load.isOpenLoop = true
        load.reconnects = 1_000
        load.backoff.from = 20_000_000
        load.stages = setup.stages.map { MetricStage($0.name, measured: $0.isMeasured) }
        if setup.departures.churn != nil { load.departures.insert(.churn) }
        if setup.departures.storms.contains(where: { $0.until == nil }) { load.departures.insert(.storm) }
        if setup.departures.storms.contains(where: { $0.until != nil }) { load.departures.insert(.offline) }
        if !setup.departures.attendances.isEmpty { load.departures.insert(.inactive) }
        // A pair stays in its segment, unless a publisher has several and the segments do not divide the publishers.
        let spans =
            setup.topology != .pair
            || setup.subscribers > setup.publishers && setup.publishers % setup.segments != 0
        if setup.segments > 1, spans { load.bond = .ledger }
        return load
    }

    private static func plan(_ setup: Setup, segment: Int) -> LoadPlan {
        var plan = LoadPlan(
            operators: setup.publishers,
            listeners: setup.subscribers,
            pace: .open(.rate(perSecond: setup.rate)),
            warmup: setup.warmup,
            measure: setup.duration,
            drain: .seconds(2)
        )
        var start = TimeAmount.zero
        for stage in setup.stages {
            plan.stages.append(.init(start: start, end: start + stage.length, isMeasured: stage.isMeasured))
            start = start + stage.length
        }
        if !setup.stages.isEmpty { plan.measure = start }
        plan.departures = setup.departures
        if setup.segments > 1 { plan.segment = PlanSegment(index: segment, of: setup.segments) }
        return plan
    }

    private func segment(_ index: Int, _ gate: Gate) -> Segment {
        let setup = self.setup
        let plan = Self.plan(setup, segment: index)
        let metrics = MQTTMetrics(for: self.load, loops: setup.shards)
        let workload = MQTTWorkload(self.load, metrics: metrics)
        let (stream, continuation) = AsyncStream.makeStream(of: RunEvent.self)
        let shards = (0..<setup.shards).map { loop in
            let shard = Shard<MQTTShardWork>(
                context: LoopContext(eventLoop: self.time.loop, tick: .exact),
                plan: plan,
                index: loop,
                of: setup.shards
            ) { continuation.yield(.shard($0)) }
            shard.work = workload.makeWork(on: shard, connector: self.network)
            return shard
        }
        let handles = shards.map { ShardHandle($0) }
        workload.prepare(handles, plan: plan)
        let time = self.time
        let awaitOthers: @Sendable () -> Void = {
            gate.isReady { continuation.yield(.begin(at: time.now + .milliseconds(30) + setup.lateness * index)) }
        }
        let observer = Observer(workload)
        let run = LoadRun(
            groups: [LoadGroup(plan: plan, shards: handles, reconnects: self.load.comesBack)],
            events: (stream, continuation),
            awaitOthers: setup.segments > 1 ? awaitOthers : nil,
            clock: time,
            observer: observer
        )
        return Segment(shards: shards, workload: workload, observer: observer, run: run)
    }

    func perform() throws {
        self.outcomes = try self.time.run(
            self.segments.map { segment in { @Sendable [run = segment.run] in await run.perform() } }
        )
        let results = self.segments.map { segment in
            segment.shards.compactMap { $0.work.map { segment.workload.result(of: $0) } }
        }
        let deliveries = zip(self.segments, results).map { segment, results in
            RunDelivery(
                segment.workload.plan,
                results,
                shares: segment.observer.deliveries.shares,
                longestShared: segment.observer.longestShared,
                presence: segment.observer.deliveries.presence,
                realtimeOffset: self.load.realtimeOffset
            )
        }
        let accounts = deliveries.map(\.account)
        self.books = self.segments.indices.map { index in
            let segment = self.segments[index]
            return segment.workload.account(
                results[index],
                delivery: deliveries[index],
                record: segment.observer.record
            ).books
        }
        self.metrics = self.segments.flatMap { $0.observer.metrics }
        let parts = accounts.compactMap(\.segment)
        self.reconciliation =
            parts.count == self.segments.count
            ? Reconciliation(joining: parts)
            : self.whole(Array(results.joined()))
        self.unreconciled = accounts.flatMap(\.unreconciled)
    }

    /// The ledger of segments that exchange no messages.
    private func whole(_ results: [MQTTResult]) -> Reconciliation {
        var terms = ReconciliationTerms()
        terms.use(self.segments[0].workload.plan.places)
        for result in results { terms.end += result.end }
        terms.end.longest = self.segments.map(\.observer.longestShared).reduce(terms.end.longest, max)
        let began = results.reduce(into: Set<UInt32>()) { $0.formUnion($1.began) }
        terms.neverBegan = results.reduce(into: Set<UInt32>()) { $0.formUnion($1.receivers) }.subtracting(began)
        return Reconciliation(
            arrivals: results.map(\.ledger) + self.segments.map(\.observer.deliveries.shares),
            published: results.map(\.published),
            terms: terms
        )
    }

    // MARK: What came of it

    private(set) var metrics: [Metric] = []
    /// Of each segment.
    private(set) var books: [[Books]] = []
    private(set) var reconciliation = Reconciliation(ledgers: [], fates: nil, feeds: [])
    private(set) var unreconciled: [Verdict.Reason] = []

    /// Samples of a duration over all segments.
    func samples(_ name: String, _ labels: Labels = [:]) -> UInt64 {
        self.metrics.filter { $0.name == name && $0.labels == labels }.reduce(0) { $0 + ($1.duration?.count ?? 0) }
    }

    /// A counter over all segments.
    func count(_ name: String, _ labels: Labels = [:]) -> Int {
        self.metrics.filter { $0.name == name && $0.labels == labels }.reduce(0) { $0 + Int($1.counter?.value ?? 0) }
    }

    var expected: UInt64 { self.reconciliation.rows.reduce(0) { $0 + ($1.expected ?? 0) } }
    var lost: UInt64 { self.reconciliation.rows.reduce(0) { $0 + ($1.lost ?? 0) } }
    var received: UInt64 { self.reconciliation.rows.reduce(0) { $0 + $1.received } }

    /// Opens when all have come.
    private final class Gate: Sendable {
        private struct State {
            var missing: Int
            var waiting: [@Sendable () -> Void] = []
        }

        private let state: Mutex<State>

        init(count: Int) { self.state = Mutex(State(missing: count)) }

        func isReady(_ body: @escaping @Sendable () -> Void) {
            let ready = self.state.withLock { state -> [@Sendable () -> Void] in
                state.missing -= 1
                state.waiting.append(body)
                return state.missing == 0 ? state.waiting : []
            }
            for body in ready { body() }
        }
    }

    /// Adds the seconds up, as the monitor of a run does.
    private final class Observer: RunObserver {
        private struct State {
            var accumulator: RunAccumulator
            var deliveries: DeliveryMonitor
        }

        private let state: Mutex<State>
        private let completion: DeliveryCompletion

        init(_ workload: MQTTWorkload) {
            self.state = Mutex(
                State(
                    accumulator: RunAccumulator(catalog: workload.catalog),
                    deliveries: DeliveryMonitor([workload])
                )
            )
            self.completion = workload.completion
        }

        var deliveries: DeliveryMonitor { self.state.withLock { $0.deliveries } }
        var longestShared: Int64 { self.deliveries.slow.map(\.entry.duration).max() ?? 0 }
        var metrics: [Metric] {
            self.state.withLock {
                $0.accumulator.metrics(measuredSeconds: nil) + $0.accumulator.stageMetrics(seconds: nil)
            }
        }
        var record: RunRecord {
            var record = RunRecord(
                command: [],
                tool: ToolRecord(name: "clamor", version: ""),
                host: HostFacts(),
                plan: [:],
                startedAt: ""
            )
            record.metrics = self.metrics
            return record
        }

        func interval(
            second: Int,
            phase: RunPhase,
            span: TimeAmount,
            groups: consuming [GroupSample<LoadSample>]
        ) async -> StopReason? {
            var groups = groups
            self.state.withLock { state in
                state.deliveries.settle(&groups)
                let samples = groups[0].samples.map(\.metrics)
                _ = state.accumulator.add(second: second, phase: phase.rawValue, samples: samples)
            }
            return nil
        }

        func isComplete(_ balance: DeliveryBalance, of group: Int, quiet: TimeAmount) async -> Bool {
            switch self.completion {
            case .balance: self.deliveries.withShares(balance).isComplete
            // Messages of other segments are not known here, so the drain takes its whole time.
            case .joint, .silence: false
            case .nothing: true
            }
        }
    }
}
