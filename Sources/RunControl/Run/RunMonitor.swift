import CPosix
import Coordination
import HostFit
import Ledger
import LoadEngine
import Measurement
import NIOCore
import Report
import RunResult
import Workloads

/// Adds up, writes and shows the measurements of each second, and audits the generator; runs off the event loops.
actor RunMonitor: RunObserver {
    typealias Sample = LoadSample

    private let thresholds: [Threshold]
    private var groups: [GroupMonitor]
    private var deliveries: DeliveryMonitor
    private var accumulator: RunAccumulator
    private var audit: GeneratorAudit
    private var writer: RunWriter
    private let screen: ProgressScreen
    /// `nil` in a segment, whose parent shows the run.
    private let view: LiveView?
    /// The process that follows this one, if there is one.
    private let leader: (any RunLeader)?
    private let watch: ServerMonitor?
    /// Seconds of the measured phase of a run that ends once an objective cannot be met any more.
    private let decidesWithin: Double?
    /// Levels and counts of the watched servers.
    private var observed = MetricTotals()
    private var slopes = SlopeMeter()
    private var record: RunRecord
    /// `nil` where the host is not what carries the run.
    private var host: HostLoad?
    private var quota = QuotaWatch()
    /// Second 0.
    private var began: NIODeadline?
    private var measuredSeconds = 0.0
    private var loopShares: [[Double]] = []
    private var memory = GaugeLevel()
    private var writeError: ResultError?
    /// The last interval of the drain, which gets the deliveries that did not come.
    private var held: TimelineInterval?
    private var brokenThreshold: String?

    init(
        _ groups: [GroupFacts],
        thresholds: [Threshold],
        writer: sending RunWriter,
        record: RunRecord,
        screen: ProgressScreen,
        view: LiveView?,
        leader: (any RunLeader)? = nil,
        watch: ServerMonitor? = nil,
        decidesWithin: Double? = nil,
        observesHost: Bool = true
    ) {
        self.host = observesHost ? HostLoad(HostLoad.Look(time: clamor_monotonic_nanoseconds())) : nil
        self.thresholds = thresholds
        self.groups = groups.map { GroupMonitor($0) }
        self.deliveries = DeliveryMonitor(groups.map(\.load))
        self.accumulator = RunAccumulator(
            groups: groups.map { GroupCatalog($0.name, $0.load.catalog) },
            realtimeOffset: groups.first?.load.realtimeOffset ?? 0
        )
        self.audit = GeneratorAudit(isOpenLoop: groups.contains(where: \.isOpenLoop))
        self.writer = writer
        self.record = record
        self.screen = screen
        self.view = view
        self.leader = leader
        self.watch = watch
        self.decidesWithin = decidesWithin
    }

    /// By group and shard: take back the memory of a sample.
    func watch(_ recyclers: [[@Sendable (LoopSample) -> Void]]) {
        for (group, recyclers) in recyclers.enumerated() { self.groups[group].watch(recyclers) }
        self.loopShares = Array(repeating: [], count: recyclers.first?.count ?? 0)
    }

    func begins(at time: NIODeadline) { self.began = time }

    func interval(
        second: Int,
        phase: RunPhase,
        span: TimeAmount,
        groups: consuming [GroupSample<LoadSample>]
    ) async -> StopReason? {
        var samples = groups
        self.deliveries.settle(&samples)
        let seconds = Double(max(0, span.nanoseconds)) / 1e9
        var interval = self.accumulator.add(
            second: second,
            phase: phase.rawValue,
            seconds: seconds,
            groups: samples.map { $0.samples.map(\.metrics) }
        )
        for (group, sample) in samples.enumerated() {
            self.groups[group].note(sample, interval, phase: phase)
            let (time, warning) = self.groups[group].decodeTime(sample.samples, phase: phase, seconds: seconds)
            if let warning { self.screen.warn(warning) }
            if let time { interval.metrics.append(time) }
        }
        if let bytes = ProcessFacts.read(countingDescriptors: false).residentBytes {
            self.memory.add(Double(bytes))
            interval.metrics.append(Metric(.generatorMemory, reading: .gauge(GaugeReading(value: Double(bytes)))))
        }
        interval.metrics += self.host?.take(HostLoad.Look(time: clamor_monotonic_nanoseconds())) ?? []
        if let watch = self.watch {
            let observed = await watch.look()
            self.observed.add(observed, isMeasured: phase == .measure)
            interval.metrics += observed
        }
        let throttled = self.quota.take()
        if phase == .measure {
            self.slopes.add(interval.metrics, seconds: seconds)
            self.measuredSeconds += seconds
            if let throttled { self.audit.throttled(throttled, of: span.nanoseconds) }
        }
        if phase == .measure || phase == .warmup {
            for group in self.groups.indices { self.groups[group].second(interval) }
        }
        self.judge(interval, samples, phase: phase, span: span)
        if let held = self.held.take() { self.write(held) }
        if phase == .drain { self.held = interval } else { self.write(interval) }
        self.show(interval, samples)
        return self.brokenAbort() ? .thresholdBroken : nil
    }

    private func show(_ interval: TimelineInterval, _ samples: [GroupSample<LoadSample>]) {
        self.leader?.tell(.interval(interval))
        guard let view = self.view else { return }
        var standing = LiveStanding(errors: self.accumulator.errors)
        standing.verdict.add(.generatorLimited, self.audit.reasons)
        let source = self.source
        standing.thresholds = self.thresholds.map { $0.evaluate(in: source) }.filter { $0.value != nil }
        let balance = self.deliveries.withShares(
            samples.flatMap(\.facts).reduce(into: DeliveryBalance()) { $0 += $1.balance }
        )
        if balance.expected > 0, self.record.ledger.on {
            standing.expected = UInt64(balance.expected)
            standing.delivered = UInt64(clamping: balance.received)
        }
        view.add(interval, standing)
    }

    func isComplete(_ balance: DeliveryBalance, of group: Int, quiet: TimeAmount) -> Bool {
        // The groups that exchange messages have one way to know; a group that neither sends nor receives has none.
        let exchange = self.groups.indices.filter {
            self.groups[$0].facts.exchange == self.groups[group].facts.exchange
        }
        let members = self.groups[group].facts.exchange == nil ? [group] : exchange
        let sum = self.groups[group].facts.exchange == nil ? balance : self.deliveries.withShares(balance)
        if let first = members.first(where: { self.groups[$0].facts.load.completion == .joint }),
            let part = self.groups[first].part(of: sum)
        {
            self.leader?.tell(.balance(part, group: group))
        }
        let isExcused = self.groups[group].facts.exchange != nil && self.deliveries.mayBeExcused(sum)
        return members.allSatisfy { self.groups[$0].isComplete(sum, isExcused: isExcused, quiet: quiet) }
    }

    /// All messages for the group have arrived in all segments.
    func everythingCame(to group: Int) {
        guard self.groups.indices.contains(group) else { return }
        let exchange = self.groups[group].facts.exchange
        for place in self.groups.indices
        where place == group || exchange != nil && self.groups[place].facts.exchange == exchange {
            self.groups[place].everythingCame()
        }
    }

    /// A threshold was broken on the whole, of which this process has a part.
    func broke(_ threshold: String) { self.brokenThreshold = threshold }

    /// Checks whether the generator kept up in this second.
    private func judge(
        _ interval: TimelineInterval,
        _ samples: [GroupSample<LoadSample>],
        phase: RunPhase,
        span: TimeAmount
    ) {
        var loops: [GeneratorAudit.LoopSecond] = []
        for (group, sample) in samples.enumerated() {
            loops += self.groups[group].loopSeconds(sample, interval, amongOthers: samples.count > 1)
        }
        if phase == .measure, self.host != nil, let first = samples.first {
            // All groups share the same threads.
            for (index, sample) in first.samples.enumerated() where index < self.loopShares.count {
                self.loopShares[index].append(sample.cpuShare)
            }
        }
        guard phase != .connect else { return }
        // Operations given up in the drain count too, but a drain is not a second of load.
        let length = phase == .drain ? 0 : span.nanoseconds
        let threads = interval.metrics.lazy.filter { $0.isOf(.serverThreadCPU) }.compactMap(\.gauge?.value)
        let host = interval.metrics.first { $0.isOf(.hostCPUIdle) }?.gauge.map {
            (idle: $0.value, serverThread: threads.max() ?? 0)
        }
        self.audit.second(loops, stealShare: self.host?.steal, host: host, length: length)
    }

    /// The run is over.
    func end(without absent: [AbsentValues]) {
        guard let last = self.held.take()?.adding(absent) else { return }
        self.write(last)
    }

    private func write(_ interval: TimelineInterval) {
        guard self.writeError == nil else { return }
        do throws(ResultError) {
            try self.writer.append(interval) { self.current() }
        } catch {
            self.writeError = error
            self.screen.warn("\(error)")
        }
    }

    /// The record so far, for readers during the run or after it was killed.
    private func current() -> RunRecord {
        var record = self.record
        record.metrics = self.allMetrics() + self.accumulator.stageMetrics(seconds: nil)
        record.errors = self.accumulator.errors
        record.slowest = self.slowest
        record.tlsVersions = self.accumulator.tlsVersions
        return record
    }

    private var slowest: [SlowMessage]? {
        guard let began = self.began else { return nil }
        return SlowMessage.slowest(
            self.accumulator.slowest(besides: self.deliveries.slow),
            of: self.groups.map { SlowMessage.Group($0.facts.name, $0.facts.load) },
            since: began
        )
    }

    private func brokenAbort() -> Bool {
        guard self.measuredSeconds > Threshold.abortsAfter else { return false }
        let source = self.source
        let share = self.decidesWithin.map { min(1, self.measuredSeconds / $0) }
        let broken = self.thresholds.first { threshold in
            threshold.aborts && threshold.isBroken(in: source)
                || share.map { threshold.isDecided(in: source, share: $0) } ?? false
        }
        if let broken { self.brokenThreshold = broken.expression }
        return broken != nil
    }

    /// Adds what the watched servers had behind the last interval.
    func add(_ last: [Metric]) { self.observed.add(last, isMeasured: false) }

    /// The run so far, as thresholds read it.
    private var source: RunSource {
        RunSource(
            load: self.accumulator.source(measuredSeconds: self.measuredSeconds),
            observed: self.observed.metrics(measuredSeconds: self.measuredSeconds)
        )
    }

    private func allMetrics() -> [Metric] {
        let seconds = self.measuredSeconds > 0 ? self.measuredSeconds : nil
        var metrics = self.accumulator.metrics(measuredSeconds: seconds)
        metrics += self.groups.compactMap { $0.decodeTime(measuredSeconds: seconds) }
        if let memory = self.memory.reading { metrics.append(Metric(.generatorMemory, reading: .gauge(memory))) }
        metrics += (self.host?.metrics ?? []) + self.observed.metrics(measuredSeconds: seconds)
        return self.slopes.adding(to: metrics)
    }

    // MARK: - The end

    /// All measurements, with the exact lengths of the measured phase and of the stages.
    ///
    /// `cpuBeside` is CPU of this process that was not the run's, in nanoseconds.
    func finish(_ outcome: RunOutcome, _ terms: RunTerms, cpuBeside: Int64) -> RunSamples {
        if let seconds = terms.measuredSeconds(outcome) { self.measuredSeconds = seconds }
        var samples = RunSamples()
        samples.metrics = self.allMetrics()
        samples.stageMetrics = self.accumulator.stageMetrics(seconds: terms.stageSeconds(outcome))
        samples.errors = self.accumulator.errors
        samples.slowest = self.slowest
        samples.tlsVersions = self.accumulator.tlsVersions
        samples.generator = self.generator(without: cpuBeside)
        samples.audit = self.audit
        samples.groups = self.groups.map(\.samples)
        samples.shares = self.deliveries.shares
        samples.longestShared = self.deliveries.slow.map(\.entry.duration).max() ?? 0
        samples.presence = self.deliveries.presence
        samples.brokenThreshold = self.brokenThreshold
        return samples
    }

    /// The run's own resources, without `cpuBeside`.
    private func generator(without cpuBeside: Int64) -> GeneratorRecord {
        var generator = self.record.generator
        // Where the host carries no run, the process has others beside this one.
        generator.cpuSeconds = self.host.flatMap { _ in ProcessFacts.read(countingDescriptors: false).cpuNanoseconds }
            .map { Double(Int64($0) - cpuBeside) / 1e9 }
        let shares = self.loopShares.compactMap { $0.isEmpty ? nil : $0.reduce(0, +) / Double($0.count) }
        generator.loopCPUShares = shares.isEmpty ? nil : shares
        generator.peakMemoryBytes = self.memory.reading?.max.map { UInt64($0) }
        return generator
    }

    /// The findings in the record and the time line; without a readable time line what the record shows alone.
    func findings(of record: RunRecord) -> FindingsRecord? {
        do throws(ResultError) {
            return record.findings(in: try self.writer.wholeTimeline())
        } catch {
            if self.writeError == nil { self.screen.warn("the result has no time line to explain it: \(error)") }
            return record.findings(in: Timeline())
        }
    }

    /// Writes the results and moves the directory to its final name.
    func save(_ run: FinishedRun) throws(ResultError) -> String {
        try self.writer.finish(run.record, clients: run.rows, ledger: run.ledger)
    }
}
