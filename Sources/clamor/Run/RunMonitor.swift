import CPosix
import LoadEngine
import Measurement
import NIOCore
import Report
import Workloads

/// Takes what the loops measured each second, off the loops: adds it up, writes it down, shows it, and judges the
/// generator.
actor RunMonitor: RunObserver {
    typealias Work = MQTTShardWork

    private let options: RunOptions
    private let thresholds: [Threshold]
    private let metrics: MQTTMetrics
    private let shared: Bool
    private let hasLedger: Bool
    private let hasSubscribers: Bool
    /// A whole interval of the drain brought no message.
    private var isQuiet = false
    private var accumulator: RunAccumulator
    private var shares = ShareGroupLedger()
    private var audit: GeneratorAudit
    private var writer: RunWriter
    private let screen: ProgressScreen
    private var record: RunRecord
    private var handles: [ShardHandle<MQTTShardWork>] = []
    private var lastOffered: [UInt64] = []
    private var lastLate: [UInt64] = []
    private var lastCPU: CPUSample?
    private var measuredSeconds = 0.0
    private var decode = (whole: 0.0, measured: 0.0)
    /// What was timed so far, and bytes that came before anything was.
    private var walked = (nanoseconds: 0.0, bytes: 0.0)
    private var unscaledBytes: UInt64 = 0
    private var loopShares: [[Double]] = []
    private var steal: [Double] = []
    private var memory = MemoryLevel()
    private var connectsBegun = 0
    private var lastConnectBegun = NIODeadline.distantPast
    private(set) var writeError: ResultError?
    private(set) var brokenThreshold: String?

    init(
        options: RunOptions,
        thresholds: [Threshold],
        metrics: MQTTMetrics,
        load: MQTTLoad,
        writer: sending RunWriter,
        record: RunRecord,
        screen: ProgressScreen
    ) {
        self.options = options
        self.thresholds = thresholds
        self.metrics = metrics
        self.shared = load.topology == .shared
        // `sub` alone ends by the clock: what others still publish is not awaited.
        self.hasLedger = load.hasLedger || load.publishers == 0
        self.hasSubscribers = load.subscribers > 0
        self.accumulator = RunAccumulator(catalog: metrics.catalog, realtimeOffset: load.realtimeOffset)
        self.audit = GeneratorAudit(isOpenLoop: options.isOpenLoop)
        self.writer = writer
        self.record = record
        self.screen = screen
        self.lastCPU = CPUSample.read()
    }

    func watch(_ handles: [ShardHandle<MQTTShardWork>]) {
        self.handles = handles
        self.lastOffered = Array(repeating: 0, count: handles.count)
        self.lastLate = self.lastOffered
        self.loopShares = Array(repeating: [], count: handles.count)
    }

    func interval(
        second: Int,
        phase: RunPhase,
        span: TimeAmount,
        samples: [MQTTSample],
        facts: [ShardFacts]
    ) async -> StopReason? {
        let seconds = Double(max(0, span.nanoseconds)) / 1e9
        self.shares.merge(samples.map(\.share))
        var interval = self.accumulator.add(
            second: second,
            phase: phase.rawValue,
            seconds: seconds,
            samples: samples.map(\.metrics)
        )
        self.recycle(samples)
        self.addDecodeTime(samples, phase: phase, seconds: seconds, to: &interval)
        if let bytes = ProcessFacts.read(countingDescriptors: false).residentBytes {
            self.memory.add(Double(bytes))
            interval.metrics.append(MemoryLevel.metric(GaugeReading(value: Double(bytes))))
        }
        if phase == .measure { self.measuredSeconds += seconds }
        if phase == .drain, seconds > 0.5, interval.total("received") == 0 { self.isQuiet = true }
        self.connectsBegun = facts.reduce(0) { $0 + $1.connectsBegun }
        self.lastConnectBegun = facts.map(\.lastConnectBegun).max() ?? .distantPast
        self.judge(interval, samples, facts, phase: phase, span: span)
        self.write(interval)
        self.screen.show(
            ProgressLine(
                interval,
                clientsPlanned: self.options.publishers + self.options.subscribers,
                errors: self.accumulator.errors.reduce(0) { $0 + $1.count }
            )
        )
        return self.brokenAbort() ? .thresholdBroken : nil
    }

    func isComplete(_ balance: DeliveryBalance) -> Bool {
        // Without a ledger nobody knows what is still to come: then a second without any is awaited.
        guard self.hasLedger else { return !self.hasSubscribers || self.isQuiet }
        guard self.shared else { return balance.isComplete }
        // Members of a share group do not know what the others got; their merged ledger does.
        let distinct = (0...2).reduce(UInt64(0)) { $0 + self.shares.counts[UInt8($1)].distinct }
        return balance.uncertain == 0 && Int64(distinct) >= balance.expected
    }

    private func recycle(_ samples: [MQTTSample]) {
        for (handle, sample) in zip(self.handles, samples) {
            var emptied = sample.metrics
            emptied.clear()
            let recycled = emptied
            handle.tell { $0.work?.recycle(recycled) }
        }
    }

    /// Times a decoder on the reads of one client of each loop, and scales by the loop's bytes.
    private func addDecodeTime(
        _ samples: [MQTTSample],
        phase: RunPhase,
        seconds: Double,
        to interval: inout TimelineInterval
    ) {
        for sample in samples {
            guard let probe = sample.probe else { continue }
            let (nanoseconds, bytes) = probe.measure()
            self.walked.nanoseconds += Double(nanoseconds)
            self.walked.bytes += Double(bytes)
        }
        guard self.walked.bytes > 0 else {
            self.unscaledBytes += samples.reduce(0) { $0 + $1.decodeBytes }
            return
        }
        // Seconds in which the chosen client read nothing count by what was measured before.
        let decoded = Double(samples.reduce(0) { $0 + $1.decodeBytes } + self.unscaledBytes)
        self.unscaledBytes = 0
        let gained = self.walked.nanoseconds / self.walked.bytes * decoded / 1e9
        guard gained > 0 else { return }
        self.decode.whole += gained
        if phase == .measure { self.decode.measured += gained }
        interval.metrics.append(Self.decodeTime(gained, rate: seconds > 0 ? gained / seconds : nil))
    }

    private static func decodeTime(_ value: Double, rate: Double?) -> Metric {
        Metric(
            name: "decode_time",
            labels: ["protocol": "mqtt"],
            unit: "seconds",
            reading: .counter(CounterReading(value: value, rate: rate))
        )
    }

    /// Asks whether the generator kept up in this second.
    private func judge(
        _ interval: TimelineInterval,
        _ samples: [MQTTSample],
        _ facts: [ShardFacts],
        phase: RunPhase,
        span: TimeAmount
    ) {
        let cpu = CPUSample.read()
        let steal = cpu.flatMap { now in self.lastCPU.flatMap { now.stealShare(since: $0) } }
        self.lastCPU = cpu
        let lag = interval.worst("schedule_lag")
        let ack = interval.worst("publish_ack_duration")
        var loops: [GeneratorAudit.LoopSecond] = []
        for (index, sample) in samples.enumerated() where index < facts.count && index < self.handles.count {
            let share = sample.span > .zero ? Double(sample.cpu) / Double(sample.span.nanoseconds) : 0
            let fact = facts[index]
            loops.append(
                GeneratorAudit.LoopSecond(
                    scheduleLagP99: lag,
                    ackP99: ack,
                    offered: fact.offered - self.lastOffered[index],
                    unsent: fact.late - self.lastLate[index],
                    cpuShare: share,
                    waitingShare: fact.workWaited ? 1 : 0
                )
            )
            self.lastOffered[index] = fact.offered
            self.lastLate[index] = fact.late
            if phase == .measure { self.loopShares[index].append(share) }
        }
        guard phase != .connect else { return }
        if let steal { self.steal.append(steal) }
        // What was given up in the drain counts too, but a drain is not a second of load.
        let length = phase == .drain ? 0 : span.nanoseconds
        self.audit.second(loops, stealShare: steal, length: length)
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

    /// The record so far, for a look at a run that goes on, or was killed.
    private func current() -> RunRecord {
        var record = self.record
        record.metrics = self.allMetrics()
        record.errors = self.accumulator.errors
        return record
    }

    private func brokenAbort() -> Bool {
        let source = self.accumulator.source(measuredSeconds: self.measuredSeconds)
        for threshold in self.thresholds where threshold.aborts {
            if threshold.isBroken(in: source) {
                self.brokenThreshold = threshold.expression
                return true
            }
        }
        return false
    }

    private func allMetrics() -> [Metric] {
        let seconds = self.measuredSeconds > 0 ? self.measuredSeconds : nil
        var metrics = self.accumulator.metrics(measuredSeconds: seconds)
        if self.decode.whole > 0 {
            metrics.append(Self.decodeTime(self.decode.whole, rate: seconds.map { self.decode.measured / $0 }))
        }
        if let memory = self.memory.reading { metrics.append(MemoryLevel.metric(memory)) }
        return metrics
    }

    // MARK: - The end

    /// Everything that was measured, with the exact length of the measured phase.
    func finish(_ ending: RunEnding) -> RunRecord {
        let outcome = ending.outcome
        if let measured = outcome.measured {
            self.measuredSeconds = Double((measured.upperBound - measured.lowerBound).nanoseconds) / 1e9
        }
        if let rate = self.options.connectRate, self.connectsBegun > 0 {
            let elapsed = self.lastConnectBegun - outcome.began
            self.audit.connects(rate: rate, begun: UInt64(self.connectsBegun), elapsed: elapsed.nanoseconds)
        }
        self.record.errors = self.accumulator.errors
        func count(_ kind: String) -> UInt64 { self.record.errors.first { $0.kind == kind }?.count ?? 0 }
        self.audit.exhausted(ports: count("ports"), descriptors: count("descriptors"))
        self.record.metrics = self.allMetrics()
        self.record.durationSeconds = Double((outcome.ended - outcome.began).nanoseconds) / 1e9
        self.record.generator = self.generator()
        var ending = ending
        ending.brokenThreshold = self.brokenThreshold
        ending.complete(&self.record, shares: self.shares.export(), audit: self.audit)
        return self.record
    }

    private func generator() -> GeneratorRecord {
        var generator = GeneratorRecord()
        generator.eventLoops = self.handles.count
        generator.cpuSeconds = ProcessFacts.read(countingDescriptors: false).cpuNanoseconds.map { Double($0) / 1e9 }
        let shares = self.loopShares.compactMap { $0.isEmpty ? nil : $0.reduce(0, +) / Double($0.count) }
        generator.loopCPUShares = shares.isEmpty ? nil : shares
        generator.peakMemoryBytes = self.memory.reading?.max.map { UInt64($0) }
        generator.hostSteal = self.steal.isEmpty ? nil : self.steal.reduce(0, +) / Double(self.steal.count)
        return generator
    }

    /// Writes the results and gives the directory its name.
    func save(_ record: RunRecord, clients: [ClientRow]?) throws(ResultError) -> String {
        try self.writer.finish(record, clients: clients)
    }
}

/// The process' resident memory, once a second.
struct MemoryLevel {
    private var last = 0.0
    private var lowest = Double.infinity
    private var highest = 0.0
    private var sum = 0.0
    private var count = 0.0

    mutating func add(_ bytes: Double) {
        self.last = bytes
        self.lowest = min(self.lowest, bytes)
        self.highest = max(self.highest, bytes)
        self.sum += bytes
        self.count += 1
    }

    var reading: GaugeReading? {
        guard self.count > 0 else { return nil }
        return GaugeReading(value: self.last, min: self.lowest, mean: self.sum / self.count, max: self.highest)
    }

    static func metric(_ reading: GaugeReading) -> Metric {
        Metric(name: "generator_memory_bytes", unit: "bytes", reading: .gauge(reading))
    }
}

extension TimelineInterval {
    /// What a counter gained over all its labels.
    fileprivate func total(_ name: String) -> Double {
        self.metrics.filter { $0.name == name }.reduce(0) { $0 + ($1.counter?.value ?? 0) }
    }

    /// The highest p99 of a duration in this interval over all its labels, nanoseconds.
    fileprivate func worst(_ name: String) -> Int64? {
        self.metrics.filter { $0.name == name }.compactMap { $0.duration?.p99 }.max().map { Int64($0 * 1e9) }
    }
}

extension RunOptions {
    /// Whether operations have due times of their own.
    var isOpenLoop: Bool { self.pacing != .closedLoop && (self.kind == .pub || self.kind == .pubsub) }
}
