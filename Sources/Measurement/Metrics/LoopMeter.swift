import DataEncodings

/// The recorder of the clients of one event loop.
///
/// It belongs to that loop: it is not `Sendable`, and has no locks and no atomics. Once a second ``swap(_:)`` hands out
/// the recorded values, and makes sure that the histograms are not shared. The tables are raw memory, because
/// exclusivity and uniqueness checks of an array in a class cost as much as the record itself. The recording API is
/// public because the compiler does not inline a `package` function into other modules.
public final class LoopMeter {
    @usableFromInline let histograms: UnsafeMutablePointer<Histogram>
    @usableFromInline let counters: UnsafeMutablePointer<UInt64>
    @usableFromInline let gauges: UnsafeMutablePointer<Double?>
    @usableFromInline let lanes: Int
    /// The lane of metrics that cover the whole run, in raw memory too.
    @usableFromInline let present: UnsafeMutablePointer<Int>
    /// By kind: the duration that a message has to exceed to be among the slowest.
    @usableFromInline let slowFloors: UnsafeMutablePointer<Int64>
    /// By kind: the slowest messages of the measured phase.
    private let slow: UnsafeMutablePointer<SlowHeap>
    private var hasNewSlow = false
    private let stages: [MetricStage]
    private let loop: Int
    private let slots: Int
    private let counterCount: Int
    private let gaugeCount: Int
    private var errors: [String: ErrorTally] = [:]
    private var rare: [Series: ErrorTally] = [:]
    /// Operations without an answer, by place among ``histograms``: few durations have any.
    ///
    /// None is recorded on the way of an answered message.
    private var unanswered: [Int: Unanswered] = [:]
    /// Connections by the version of TLS that they negotiated.
    private var tlsVersions: [String: UInt64] = [:]
    private var atBegin: [UInt64]?
    private var atEnd: [UInt64]?
    /// The counters at the start of each stage that has begun.
    private var stageMarks: [[UInt64]] = []
    /// The counters at the end of the last stage.
    private var stageEnd: [UInt64]?

    package init(catalog: MetricCatalog, loop: Int) {
        self.loop = loop
        self.stages = catalog.stages
        self.lanes = catalog.lanes
        self.present = .allocate(capacity: 1)
        self.present.initialize(to: MetricLane.measured)
        self.slots = catalog.durations.count * catalog.lanes
        self.counterCount = catalog.counters.count
        self.gaugeCount = catalog.gauges.count
        self.histograms = .allocate(capacity: self.slots)
        self.histograms.initialize(repeating: Histogram(), count: self.slots)
        self.counters = .allocate(capacity: self.counterCount)
        self.counters.initialize(repeating: 0, count: self.counterCount)
        self.gauges = .allocate(capacity: self.gaugeCount)
        self.gauges.initialize(repeating: nil, count: self.gaugeCount)
        let kinds = SlowKind.allCases.count
        self.slowFloors = .allocate(capacity: kinds)
        self.slowFloors.initialize(repeating: .min, count: kinds)
        self.slow = .allocate(capacity: kinds)
        // Each has memory of its own.
        for kind in 0..<kinds { (self.slow + kind).initialize(to: SlowHeap()) }
    }

    deinit {
        self.histograms.deinitialize(count: self.slots)
        self.histograms.deallocate()
        self.counters.deallocate()
        self.gauges.deallocate()
        self.present.deallocate()
        self.slowFloors.deallocate()
        self.slow.deinitialize(count: SlowKind.allCases.count)
        self.slow.deallocate()
    }

    /// Records a duration that occurred `count` times.
    ///
    /// `measured`: whether the operation was due in the measured phase; otherwise it appears only in the timeline. A
    /// metric of the whole run ignores it.
    @inlinable public func record(_ id: DurationID, _ nanoseconds: Int64, count: UInt64 = 1, measured: Bool = true) {
        self.record(id, nanoseconds, count: count, lane: measured ? 0 : 1)
    }

    /// Records a duration of an operation that was due in this lane.
    ///
    /// `lane`: a value of ``MetricLane``; a metric of the whole run ignores it.
    @inlinable public func record(_ id: DurationID, _ nanoseconds: Int64, count: UInt64 = 1, lane: Int) {
        let lane = id.isWholeRun ? self.present.pointee : lane
        self.histograms[id.index &* self.lanes &+ lane].recordUnshared(nanoseconds, count: count)
    }

    /// Records operations that failed, or that had no answer until the end of the drain, at their age.
    ///
    /// `lane`: a value of ``MetricLane``, of the due time; a metric of the whole run ignores it.
    package func recordUnanswered(_ id: DurationID, _ age: Int64, count: UInt64 = 1, lane: Int, as end: UnansweredEnd) {
        guard count > 0 else { return }
        let lane = id.isWholeRun ? self.present.pointee : lane
        self.unanswered[id.index * self.lanes + lane, default: Unanswered()]
            .record(max(0, age), count: count, as: end)
    }

    /// Adds to a counter, in nanoseconds if its unit is seconds.
    @inlinable public func add(_ id: CounterID, _ amount: UInt64 = 1) { self.counters[id.index] &+= amount }

    /// Sets a gauge, which keeps its value until it is set again.
    @inlinable public func set(_ id: GaugeID, _ value: Double) { self.gauges[id.index] = value }

    /// Whether a message that took so long is among the slowest so far, if it was due in the measured phase.
    @inlinable public func isSlow(_ kind: SlowKind, _ nanoseconds: Int64) -> Bool {
        nanoseconds > self.slowFloors[kind.rawValue]
    }

    /// Keeps a message that is among the slowest, unless its lane is left out of the totals.
    package func keepSlow(_ entry: SlowEntry, lane: Int) {
        guard self.stages.counts(lane: lane, wholeRun: entry.metric.isWholeRun) else { return }
        let kind = entry.kind.rawValue
        self.slow[kind].add(entry)
        self.slowFloors[kind] = self.slow[kind].floor
        self.hasNewSlow = true
    }

    /// Counts a connection by the version of TLS that it negotiated.
    package func count(tlsVersion: String) { self.tlsVersions[tlsVersion, default: 0] += 1 }

    /// Counts an error.
    ///
    /// - `kind`: the kind of the error; there are few kinds.
    /// - `at`: monotonic nanoseconds.
    /// - `example`: one line about this error; called only for the first error of its kind on this loop.
    package func error(_ kind: String, at: Int64, count: UInt64 = 1, example: () -> String) {
        self.errors[kind, default: ErrorTally(firstAt: at, example: OneLine.of(example()))]
            .add(count, measured: self.isMeasured, stage: self.stage)
    }

    /// Counts a rare event: its metric is in no catalog, and absent until the first one.
    package func count(_ metric: MetricDefinition, _ labels: Labels = [:]) {
        self.rare[Series(name: metric.name, labels: labels), default: ErrorTally()]
            .add(1, measured: self.isMeasured, stage: self.stage)
    }

    private var isMeasured: Bool {
        self.stage.map { self.stages[$0].measured } ?? (self.atBegin != nil && self.atEnd == nil)
    }

    /// A counter's value on this loop since the start of the run.
    package func value(of id: CounterID) -> UInt64 { self.counters[id.index] }

    /// Begins the measured phase, from which rates are computed.
    package func beginMeasured() {
        self.atBegin = self.counterValues()
        self.atEnd = nil
    }

    /// Ends the measured phase.
    package func endMeasured() {
        guard self.atBegin != nil else { return }
        self.atEnd = self.counterValues()
    }

    /// Begins the next stage; `nil` ends the last one.
    package func begin(stage: Int?) {
        if stage == nil { self.stageEnd = self.counterValues() } else { self.stageMarks.append(self.counterValues()) }
        self.present.pointee = stage.map(MetricLane.stage) ?? MetricLane.measured
    }

    /// The current stage.
    private var stage: Int? { self.present.pointee < 2 ? nil : self.present.pointee - 2 }

    /// The increase of the counters in the measured phase; nil before it begins.
    private func gains(_ counters: [UInt64]) -> [UInt64]? {
        guard !self.stages.isEmpty else {
            return self.atBegin.map { begin in zip(self.atEnd ?? counters, begin).map { $0 - $1 } }
        }
        guard !self.stageMarks.isEmpty else { return nil }
        var gains = counters.map { _ in UInt64(0) }
        for (stage, mark) in self.stageMarks.enumerated() where self.stages[stage].measured {
            let end = stage + 1 < self.stageMarks.count ? self.stageMarks[stage + 1] : self.stageEnd ?? counters
            for index in gains.indices { gains[index] += end[index] - mark[index] }
        }
        return gains
    }

    /// Hands out the values recorded since the last swap.
    ///
    /// `recycled`: a sample that was handed out earlier and then cleared; its memory is reused.
    package func swap(_ recycled: consuming LoopSample? = nil) -> LoopSample {
        var sample =
            recycled
            ?? LoopSample(loop: self.loop, histograms: [], counters: [], measured: nil, gauges: [], errors: [:])
        sample.loop = self.loop
        sample.lanes = self.lanes
        if sample.histograms.count != self.slots {
            sample.histograms = Array(repeating: Histogram(), count: self.slots)
        }
        sample.histograms.withUnsafeMutableBufferPointer { theirs in
            for slot in 0..<self.slots {
                // A histogram that was not cleared would be counted twice.
                if !theirs[slot].isEmpty { theirs[slot] = Histogram() }
                if self.histograms[slot].isEmpty { continue }
                self.histograms[slot].handOn()
                Swift.swap(&theirs[slot], &self.histograms[slot])
            }
        }
        self.releaseEnded()
        sample.unanswered = self.unanswered
        self.unanswered = [:]
        sample.counters = self.counterValues()
        sample.measured = self.gains(sample.counters)
        sample.stageMarks = self.stageMarks
        sample.stageEnd = self.stageEnd
        sample.gauges = Array(UnsafeBufferPointer(start: self.gauges, count: self.gaugeCount))
        sample.errors = self.errors
        if !self.rare.isEmpty { sample.rare = self.rare }
        sample.tlsVersions = self.tlsVersions
        sample.slow = self.takeSlow()
        return sample
    }

    /// A copy of the slowest messages; nil if they are those of the last sample.
    private func takeSlow() -> [SlowEntry]? {
        guard self.hasNewSlow else { return nil }
        self.hasNewSlow = false
        var all: [SlowEntry] = []
        for kind in SlowKind.allCases { all += self.slow[kind.rawValue].entries }
        return all
    }

    /// An ended stage soon records nothing, so its memory is freed.
    private func releaseEnded() {
        let ended = MetricLane.ended(self.stageMarks, self.stageEnd)
        for first in stride(from: 0, to: self.slots, by: self.lanes) {
            for stage in 0..<ended { self.histograms[first + MetricLane.stage(stage)].release() }
        }
    }

    private func counterValues() -> [UInt64] {
        Array(UnsafeBufferPointer(start: self.counters, count: self.counterCount))
    }
}

extension ErrorTally {
    fileprivate mutating func add(_ count: UInt64, measured: Bool, stage: Int?) {
        self.count += count
        if measured { self.measured += count }
        guard let stage else { return }
        while self.stages.count <= stage { self.stages.append(0) }
        self.stages[stage] += count
    }
}
