/// The values that one event loop recorded in one interval.
///
/// It moves from the loop to the accumulator as a value, is cleared there, and returns for the next swap. So no count
/// is copied, and nothing is allocated after the histograms of the first interval.
package struct LoopSample: Sendable {
    /// The number of its loop.
    package internal(set) var loop: Int
    /// By duration of the catalog and ``MetricLane``.
    package internal(set) var histograms: [Histogram]
    /// By place among ``histograms``: operations without an answer.
    var unanswered: [Int: Unanswered] = [:]
    var lanes = 2
    /// Since the start of the run, not of the interval.
    var counters: [UInt64]
    /// The increase of the counters in the measured phase so far; nil before it begins.
    var measured: [UInt64]?
    /// The counters at the start of each stage that has begun, and at the end of the last one.
    var stageMarks: [[UInt64]] = []
    var stageEnd: [UInt64]?
    /// The last value of each gauge; nil if it was not set.
    var gauges: [Double?]
    /// Since the start of the run, by kind.
    var errors: [String: ErrorTally]
    /// Events since the start of the run that are too rare for a slot of their own.
    var rare: [Series: ErrorTally] = [:]
    /// Connections since the start of the run, by the version of TLS.
    var tlsVersions: [String: UInt64] = [:]
    /// The slowest messages since the start of the run; nil if they are those of the loop's last sample.
    var slow: [SlowEntry]?

    /// A duration's values on this loop in the interval, measured or not, for the audit of single loops.
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

    /// Empties the histograms and keeps their memory.
    ///
    /// Call this off the loop, before the sample is passed back to `LoopMeter.swap`. Memory that a copy shares is
    /// replaced, and the memory of ended stages is freed.
    package mutating func clear() {
        self.unanswered = [:]
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

/// The number of errors of one kind, or of other rare events.
struct ErrorTally: Hashable, Sendable {
    var count: UInt64 = 0
    /// The number of them in the measured phase.
    var measured: UInt64 = 0
    /// By stage; shorter if the last stages have none.
    var stages: [UInt64] = []
    /// Monotonic nanoseconds.
    var firstAt: Int64 = 0
    /// An example, from the first error.
    var example = ""

    /// The sum of the errors of two loops; the earlier example is kept.
    func merged(with other: ErrorTally) -> ErrorTally {
        var both = self.firstAt <= other.firstAt ? self : other
        both.count = self.count + other.count
        both.measured = self.measured + other.measured
        both.stages = (0..<max(self.stages.count, other.stages.count)).map { self.count(of: $0) + other.count(of: $0) }
        return both
    }

    func count(of stage: Int) -> UInt64 { stage < self.stages.count ? self.stages[stage] : 0 }
}
