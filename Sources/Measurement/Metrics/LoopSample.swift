/// What one event loop recorded in one interval.
///
/// It goes from the loop to the accumulator as a value, is cleared there, and goes back for the next swap,
/// so that no count is copied and nothing is allocated once the interval's histograms exist.
package struct LoopSample: Sendable {
    /// The loop it comes from.
    package internal(set) var loop: Int
    /// By duration of the catalog and ``MetricLane``.
    package internal(set) var histograms: [Histogram]
    var lanes = 2
    /// Since the start of the run, not of the interval.
    var counters: [UInt64]
    /// What the counters gained in the measured phase up to now; nothing before it begins.
    var measured: [UInt64]?
    /// The counters as each stage began that has begun, and as the last of them ended.
    var stageMarks: [[UInt64]] = []
    var stageEnd: [UInt64]?
    /// The last value of each gauge; nothing where none was set yet.
    var gauges: [Double?]
    /// Since the start of the run, by kind.
    var errors: [String: ErrorTally]

    /// What came of a duration on this loop in the interval, measured or not: for the audit of single loops.
    package func histogram(of id: DurationID) -> Histogram {
        var all = self.histograms[id.index * self.lanes]
        for lane in 1..<self.lanes {
            let other = self.histograms[id.index * self.lanes + lane]
            if all.isEmpty { all = other } else if !other.isEmpty { all.merge(other) }
        }
        return all
    }

    /// Adds a duration that is known only off the loops.
    package mutating func record(_ id: DurationID, _ nanoseconds: Int64, lane: Int) {
        self.histograms[id.index * self.lanes + lane].record(nanoseconds)
    }

    /// What a counter holds on this loop since the start of the run.
    package func value(of id: CounterID) -> UInt64 { self.counters[id.index] }

    /// Empties the histograms and keeps their memory.
    ///
    /// Off the loop, before the sample is handed back to
    /// `LoopMeter.swap`; what a copy still holds is replaced by new memory, and of stages that have ended none is kept.
    package mutating func clear() {
        let ended = MetricLane.stage(0)..<MetricLane.stage(MetricLane.ended(self.stageMarks, self.stageEnd))
        for slot in self.histograms.indices {
            if ended.contains(slot % self.lanes) {
                self.histograms[slot] = Histogram()
            } else {
                self.histograms[slot].clear()
            }
        }
    }
}

/// How often one kind of error came.
struct ErrorTally: Hashable, Sendable {
    var count: UInt64 = 0
    /// The part of it in the measured phase.
    var measured: UInt64 = 0
    /// By stage; short where the last ones have none.
    var stages: [UInt64] = []
    /// Monotonic nanoseconds.
    var firstAt: Int64
    /// Of the first one.
    var example: String

    /// The errors of two loops; the earlier example stays.
    func merged(with other: ErrorTally) -> ErrorTally {
        var both = self.firstAt <= other.firstAt ? self : other
        both.count = self.count + other.count
        both.measured = self.measured + other.measured
        both.stages = (0..<max(self.stages.count, other.stages.count)).map { self.count(of: $0) + other.count(of: $0) }
        return both
    }

    func count(of stage: Int) -> UInt64 { stage < self.stages.count ? self.stages[stage] : 0 }
}
