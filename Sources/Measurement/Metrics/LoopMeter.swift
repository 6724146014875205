/// Where the clients of one event loop record.
///
/// It belongs to that loop: not `Sendable`, no locks, no atomics. Once a second `swap` hands out what was
/// recorded. The tables are raw memory, because exclusivity and uniqueness checks of an array in a class cost
/// as much as the record itself; nobody shares its histograms, which ``swap(_:)`` sees to. Public, as is what it
/// records with, because the compiler inlines a `package` function into no other module.
public final class LoopMeter {
    @usableFromInline let histograms: UnsafeMutablePointer<Histogram>
    @usableFromInline let counters: UnsafeMutablePointer<UInt64>
    @usableFromInline let gauges: UnsafeMutablePointer<Double?>
    @usableFromInline let lanes: Int
    /// The lane of metrics that cover the whole run; raw memory, as the rest.
    @usableFromInline let present: UnsafeMutablePointer<Int>
    private let stages: [MetricStage]
    private let loop: Int
    private let slots: Int
    private let counterCount: Int
    private let gaugeCount: Int
    private var errors: [String: ErrorTally] = [:]
    private var atBegin: [UInt64]?
    private var atEnd: [UInt64]?
    /// The counters as each stage began that has begun.
    private var stageMarks: [[UInt64]] = []
    /// The same as the last of them ended.
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
    }

    deinit {
        self.histograms.deinitialize(count: self.slots)
        self.histograms.deallocate()
        self.counters.deallocate()
        self.gauges.deallocate()
        self.present.deallocate()
    }

    /// Records a duration that was seen `count` times.
    ///
    /// `measured`: whether the operation was due in the measured phase. What was not appears in the
    ///   time line only. A metric of the whole run ignores it.
    @inlinable public func record(_ id: DurationID, _ nanoseconds: Int64, count: UInt64 = 1, measured: Bool = true) {
        self.record(id, nanoseconds, count: count, lane: measured ? 0 : 1)
    }

    /// Records a duration of an operation that was due in the part of the run that the lane stands for.
    ///
    /// `lane`: of ``MetricLane``; a metric of the whole run ignores it.
    @inlinable public func record(_ id: DurationID, _ nanoseconds: Int64, count: UInt64 = 1, lane: Int) {
        let lane = id.isWholeRun ? self.present.pointee : lane
        self.histograms[id.index &* self.lanes &+ lane].recordUnshared(nanoseconds, count: count)
    }

    /// Adds to a counter; nanoseconds where its unit is seconds.
    @inlinable public func add(_ id: CounterID, _ amount: UInt64 = 1) {
        self.counters[id.index] &+= amount
    }

    /// Sets a gauge, which keeps the value until it is set again.
    @inlinable public func set(_ id: GaugeID, _ value: Double) {
        self.gauges[id.index] = value
    }

    /// Counts an error.
    ///
    /// - `kind`: A word of the taxonomy; there are few of them.
    /// - `at`: Monotonic nanoseconds.
    /// - `example`: One line about this one; asked for only when it is the first of its kind on this loop.
    package func error(_ kind: String, at: Int64, count: UInt64 = 1, example: () -> String) {
        let stage = self.stage
        let isMeasured = stage.map { self.stages[$0].measured } ?? (self.atBegin != nil && self.atEnd == nil)
        self.errors[kind, default: ErrorTally(firstAt: at, example: example())]
            .add(count, measured: isMeasured, stage: stage)
    }

    /// What a counter holds on this loop since the start of the run.
    package func value(of id: CounterID) -> UInt64 { self.counters[id.index] }

    /// The measured phase begins: rates count from here.
    package func beginMeasured() {
        self.atBegin = self.counterValues()
        self.atEnd = nil
    }

    /// The measured phase ends: rates count up to here.
    package func endMeasured() {
        guard self.atBegin != nil else { return }
        self.atEnd = self.counterValues()
    }

    /// A stage begins, the next in their order; `nil`: the last one ends.
    package func begin(stage: Int?) {
        if stage == nil { self.stageEnd = self.counterValues() } else { self.stageMarks.append(self.counterValues()) }
        self.present.pointee = stage.map(MetricLane.stage) ?? MetricLane.measured
    }

    /// The one that goes on.
    private var stage: Int? { self.present.pointee < 2 ? nil : self.present.pointee - 2 }

    /// What the counters gained in the measured phase; nothing before it begins.
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

    /// Hands out what was recorded since the last swap.
    ///
    /// `recycled`: a sample handed out earlier and cleared since; its memory is used again.
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
                // One that was not cleared would be counted twice.
                if !theirs[slot].isEmpty { theirs[slot] = Histogram() }
                if self.histograms[slot].isEmpty { continue }
                self.histograms[slot].handOn()
                Swift.swap(&theirs[slot], &self.histograms[slot])
            }
        }
        self.releaseEnded()
        sample.counters = self.counterValues()
        sample.measured = self.gains(sample.counters)
        sample.stageMarks = self.stageMarks
        sample.stageEnd = self.stageEnd
        sample.gauges = Array(UnsafeBufferPointer(start: self.gauges, count: self.gaugeCount))
        sample.errors = self.errors
        return sample
    }

    /// Of a stage that has ended little comes, and soon nothing: its memory is not kept for it.
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
