import Ledger
import LoadEngine
import LoopContext
import Measurement
import NIOCore
import NIOEmbedded
import RunResult
import Testing
import VirtualServers
import Workloads

/// A whole run of one shard against a server's core, on a clock that the test moves.
///
/// Connect, load, drain, and the books after it: no socket, no thread, and the same every time.
class VirtualRun<Load: Workload, Server: VirtualServer> {
    let loop: EmbeddedEventLoop
    let network: VirtualNetwork<Server>
    let workload: Load
    let plan: LoadPlan
    let shard: Shard<Load.Work>
    let work: Load.Work
    private let heard: Heard
    private var accumulator: RunAccumulator
    private(set) var deliveries: DeliveryMonitor
    /// Where publishers and receivers were when receivers came and went.
    private(set) var marks: [PresenceMark] = []
    private var second = 0
    private var nextSample = NIODeadline.distantPast
    private var plans: [(time: TimeAmount, body: () -> Void)] = []
    /// When operation 0 was due.
    private(set) var origin = NIODeadline.distantPast
    /// When the plan wanted the first connect begun.
    private(set) var began = NIODeadline.distantPast
    private(set) var all: [Metric] = []
    private(set) var result: Load.Result
    /// A client was still open after the time for closing, and was aborted.
    private(set) var wasAborted = false

    private final class Heard { var events: [ShardEvent] = [] }

    /// The clock of a new run: a time in front of it, so that "one second ago" exists.
    static func makeLoop() -> EmbeddedEventLoop {
        let loop = EmbeddedEventLoop()
        loop.advanceTime(to: .uptimeNanoseconds(1_000_000_000_000))
        return loop
    }

    init(_ workload: Load, plan: LoadPlan, network: VirtualNetwork<Server>) {
        self.loop = network.loop
        self.network = network
        self.workload = workload
        self.plan = plan
        self.accumulator = RunAccumulator(catalog: workload.catalog)
        self.deliveries = DeliveryMonitor([workload])
        let heard = Heard()
        self.heard = heard
        self.shard = Shard(context: LoopContext(eventLoop: network.loop, tick: .exact), plan: plan, index: 0, of: 1) {
            heard.events.append($0)
        }
        self.work = workload.makeWork(on: self.shard, connector: network)
        self.shard.work = self.work
        self.result = workload.result(of: self.work)
    }

    /// Of this clock: a file that does not import NIOEmbedded sees the real one at `loop.now`.
    var now: NIODeadline { self.loop.now }

    /// Of the load, warm-up and all stages.
    var length: TimeAmount { self.plan.warmup + (self.plan.measure ?? .zero) }

    /// Runs it from the first connect to the last FIN; `during` is called every `step` of the load, and of the drain.
    func perform(step: TimeAmount = .milliseconds(100), during: (VirtualRun) -> Void = { _ in }) {
        self.began = self.loop.now
        self.shard.startConnecting(at: self.began)
        if self.plan.endsWithConnects {
            self.startLoad(at: self.began)
            self.pass(.seconds(120), step: .milliseconds(1)) { run in
                during(run)
                return run.isSettled
            }
            self.shard.endLoad(at: self.loop.now)
        } else {
            self.pass(.seconds(120), step: .milliseconds(1)) { $0.isSettled }
            self.startLoad(at: self.loop.now + .milliseconds(20))
            let end = self.origin + self.length
            self.pass(self.length + .seconds(1), step: step) { run in
                during(run)
                return run.loop.now > end || run.plan.limit != nil && run.isSpent
            }
            if self.shard.phase == .loading { self.shard.endLoad(at: self.loop.now) }
        }
        self.pass(self.plan.drain, step: step) { run in
            during(run)
            run.releaseOperators()
            return run.hasEnded { if case .operatorsFinished = $0 { true } else { false } }
        }
        self.shard.endDrain()
        // Messages under way to the listeners arrive before they go, and a quiet server proves that it has no more.
        if self.plan.listeners > 0 { self.pass(.milliseconds(1_500), step: step) { _ in false } }
        self.shard.finishListeners()
        self.pass(self.plan.closeGrace, step: step) { run in
            run.hasEnded { if case .finished = $0 { true } else { false } }
        }
        if self.shard.phase != .finished {
            self.wasAborted = true
            self.shard.abort()
        }
        #expect(self.shard.phase == .finished)
        self.sample()
        self.all = self.accumulator.metrics(measuredSeconds: 1) + self.accumulator.stageMetrics(seconds: nil)
        self.result = self.workload.result(of: self.work)
    }

    /// Has something done so long after the load began; to be said before ``perform(step:during:)``.
    func at(_ time: TimeAmount, _ body: @escaping () -> Void) { self.plans.append((time, body)) }

    private func startLoad(at origin: NIODeadline) {
        self.origin = origin
        for plan in self.plans { self.loop.assumeIsolated().scheduleTask(deadline: origin + plan.time, plan.body) }
        self.shard.startLoad(at: origin)
    }

    private var isSettled: Bool { self.hasEnded { if case .settled = $0 { true } else { false } } }
    private var isSpent: Bool { self.hasEnded { if case .spent = $0 { true } else { false } } }

    private func hasEnded(_ isEvent: (ShardEvent) -> Bool) -> Bool { self.heard.events.contains(where: isEvent) }

    /// Operators that receive as well leave when everything has come, as a run lets them.
    private func releaseOperators() {
        let facts = self.shard.facts
        guard self.workload.completion == .balance, self.plan.operatorsListen, facts.isQuiet, facts.balance.isComplete
        else { return }
        self.shard.releaseOperators()
    }

    /// Lets time pass until `isOver`, at most so long.
    private func pass(_ time: TimeAmount, step: TimeAmount, until isOver: (VirtualRun) -> Bool) {
        let end = self.loop.now + time
        while self.loop.now < end, !isOver(self) {
            self.loop.advanceTime(by: min(step, end - self.loop.now))
            if self.loop.now >= self.nextSample { self.sample() }
        }
    }

    private func sample() {
        self.nextSample = self.loop.now + .seconds(1)
        let sample: LoadSample = self.work.takeSample()
        self.marks += sample.presence
        var groups = [GroupSample(samples: [sample])]
        self.deliveries.settle(&groups)
        _ = self.accumulator.add(second: self.second, phase: "measure", samples: groups[0].samples.map { $0.metrics })
        self.second += 1
    }

    // MARK: What came of it

    var errors: [ErrorRecord] { self.accumulator.errors }
    /// Of messages to share groups.
    var shared: LedgerExport { self.deliveries.shares }

    /// As the record of the run has them.
    var slowest: [SlowMessage] {
        SlowMessage.slowest(
            self.accumulator.slowest(besides: self.deliveries.slow),
            of: [SlowMessage.Group(nil, self.workload)],
            since: self.began
        ) ?? []
    }

    /// Seconds since the first connect was due.
    func seconds(_ time: NIODeadline) -> Double { Double((time - self.began).nanoseconds) / 1e9 }

    /// The answered operations of a duration.
    func histogram(_ name: String, _ labels: Labels = [:]) -> Histogram { self.values(name, labels).answered }

    func values(_ name: String, _ labels: Labels = [:]) -> DurationValues {
        let source = self.accumulator.source(measuredSeconds: 1)
        for reading in source.readings(of: name, stage: labels[Labels.stage]) where reading.labels == labels {
            if case .duration(let values) = reading.value { return values }
        }
        return DurationValues()
    }

    /// The count of each error, by its kind.
    var errorCounts: [String: Int] {
        self.errors.reduce(into: [:]) { $0[$1.kind, default: 0] += Int($1.count) }
    }

    func count(_ name: String, _ labels: Labels = [:]) -> Int {
        Int(self.all.first { $0.name == name && $0.labels == labels }?.counter?.value ?? 0)
    }
}

extension Histogram {
    /// Holds exactly these durations, in nanoseconds.
    init(of durations: some Sequence<Int64>) {
        self.init()
        for duration in durations { self.record(duration) }
    }
}

private func buckets(_ histogram: Histogram) -> [Int64: UInt64] {
    var buckets: [Int64: UInt64] = [:]
    histogram.forEachBucket { buckets[$0] = $1 }
    return buckets
}

/// Expects the measured durations to be the planned ones, as exactly as a histogram holds them.
func expectSame(_ measured: Histogram, _ planned: Histogram, sourceLocation: SourceLocation = #_sourceLocation) {
    #expect(measured.count == planned.count, sourceLocation: sourceLocation)
    #expect(measured.min == planned.min, sourceLocation: sourceLocation)
    #expect(measured.max == planned.max, sourceLocation: sourceLocation)
    #expect(buckets(measured) == buckets(planned), sourceLocation: sourceLocation)
}
