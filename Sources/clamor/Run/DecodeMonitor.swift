import CPosix
import Measurement
import Report
import RunControl
import RunResult
import Workloads

/// Adds up, writes and shows the measurements of the lanes, off the event loops.
actor DecodeMonitor {
    private let thresholds: [Threshold]
    private let screen: ProgressScreen
    private var writer: RunWriter
    private var record: RunRecord
    private var results: [DecodeLaneResult] = []
    private var audit = GeneratorAudit(isOpenLoop: false)
    private var memory = GaugeLevel()
    private var lastCPU = CPUSample.read()
    private let began = clamor_monotonic_nanoseconds()
    private var writeError: ResultError?
    /// The threshold that ended the run.
    private(set) var brokenThreshold: String?

    init(thresholds: [Threshold], writer: sending RunWriter, record: RunRecord, screen: ProgressScreen) {
        self.thresholds = thresholds
        self.writer = writer
        self.record = record
        self.screen = screen
    }

    func begin(_ lane: DecodeLane) { self.results.append(DecodeLaneResult(lane)) }

    /// Adds an interval of the current lane; `false` if a threshold ends the run.
    func add(_ interval: DecodeInterval) -> Bool {
        guard !self.results.isEmpty, interval.wall > 0 else { return true }
        let now = clamor_monotonic_nanoseconds()
        let began = max(0, Double(now - self.began - interval.wall) / 1e9)
        var row = self.results[self.results.count - 1].add(interval, began: began)
        if let bytes = ProcessFacts.read(countingDescriptors: false).residentBytes {
            self.memory.add(Double(bytes))
            row.metrics.append(Metric(.generatorMemory, reading: .gauge(GaugeReading(value: Double(bytes)))))
        }
        self.judge(interval)
        self.write(row)
        if interval.measured > 0 { self.screen.show(ProgressLine(row, clientsPlanned: nil, errors: 0)) }
        self.record.metrics = self.metrics
        self.brokenThreshold = self.thresholds.first { $0.aborts && $0.isBroken(in: self.record) }?.expression
        return self.brokenThreshold == nil
    }

    private func judge(_ interval: DecodeInterval) {
        let cpu = CPUSample.read()
        let steal = cpu.flatMap { now in self.lastCPU.flatMap { now.stealShare(since: $0) } }
        self.lastCPU = cpu
        self.audit.second([], stealShare: steal, length: interval.wall)
    }

    private func write(_ interval: TimelineInterval) {
        guard self.writeError == nil else { return }
        do throws(ResultError) {
            try self.writer.append(interval) { self.record }
        } catch {
            self.writeError = error
            self.screen.warn("\(error)")
        }
    }

    private var metrics: [Metric] {
        var metrics = self.results.flatMap(\.metrics)
        if let memory = self.memory.reading { metrics.append(Metric(.generatorMemory, reading: .gauge(memory))) }
        return metrics
    }

    // MARK: - The end

    func finish(_ end: DecodeEnd) -> RunRecord {
        self.record.metrics = self.metrics
        self.record.durationSeconds = Double(clamor_monotonic_nanoseconds() - self.began) / 1e9
        self.record.stages = self.results.compactMap { result in
            result.start.map {
                StageRecord(
                    name: result.lane.name,
                    start: $0,
                    durationSeconds: Double(result.measured) / 1e9,
                    measured: true
                )
            }
        }
        self.record.generator.cpuSeconds = ProcessFacts.read(countingDescriptors: false).cpuNanoseconds
            .map { Double($0) / 1e9 }
        self.record.generator.peakMemoryBytes = self.memory.reading?.max.map { UInt64($0) }
        self.record.generator.hostSteal = self.audit.stealShare
        // Lanes in memory never wait: while their thread did not run, another process did.
        let shares = self.results.filter { $0.lane.path == .memory }.compactMap { result in
            result.cpuShare.map { LaneShare(lane: result.lane.name, share: $0, words: Words.percent($0)) }
        }
        self.record.judge(end, by: self.thresholds, broken: self.brokenThreshold, self.audit, shares: shares)
        return self.record
    }

    /// Writes the results and moves the directory to its final name.
    func save(_ record: RunRecord) throws(ResultError) -> String { try self.writer.finish(record) }
}
