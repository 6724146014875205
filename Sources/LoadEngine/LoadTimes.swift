package import NIOCore

extension LoadPlan {
    /// A part of the load with metrics of its own.
    ///
    /// Stages follow each other from the beginning of the load to its end.
    package struct Stage: Hashable, Sendable {
        /// The time since the load began.
        package var start: TimeAmount
        package var end: TimeAmount
        /// A warm-up is not.
        package var isMeasured: Bool

        package init(start: TimeAmount, end: TimeAmount, isMeasured: Bool = true) {
            self.start = start
            self.end = end
            self.isMeasured = isMeasured
        }
    }
}

/// Which part of the load an operation belongs to, by when it was due.
///
/// A few words to copy; good for as long as the shard that it is of.
package struct LoadTimes: Sendable {
    package let measured: Range<NIODeadline>
    private let stages: Unmanaged<StageTimes>?

    package init(measured: Range<NIODeadline>) {
        self.measured = measured
        self.stages = nil
    }

    init(measured: Range<NIODeadline>, stages: StageTimes?) {
        self.measured = measured
        self.stages = stages.map(Unmanaged.passUnretained)
    }

    /// The lane of what was due then.
    ///
    /// 2 for the first stage, 3 for the second...; without stages 0 for what belongs to the measured phase. 1 is for what
    /// belongs to nothing.
    package func lane(_ due: NIODeadline) -> Int {
        guard let stages = self.stages else { return self.measured.contains(due) ? 0 : 1 }
        return stages._withUnsafeGuaranteedRef { $0.lane(due) }
    }
}

/// When the stages of a load began, or will.
final class StageTimes: Sendable {
    private let starts: [NIODeadline]
    /// The end is read and written on the shard's loop, as all of this.
    private nonisolated(unsafe) var end: NIODeadline

    /// `nil` without stages.
    init?(_ plan: LoadPlan, origin: NIODeadline) {
        guard !plan.stages.isEmpty else { return nil }
        self.starts = plan.stages.map { origin + $0.start }
        self.end = plan.stages.last.map { origin + $0.end } ?? origin
    }

    /// The load ends early: operations due later, and results of the drain, belong to no stage.
    func end(at end: NIODeadline) { self.end = min(self.end, end) }

    func lane(_ due: NIODeadline) -> Int {
        guard due < self.end else { return 1 }
        // There are few, and what is recorded now is mostly of the last ones.
        var stage = self.starts.count
        while stage > 0, due < self.starts[stage - 1] { stage -= 1 }
        return 1 + stage
    }
}

// The stages of a shard's load.
extension Shard {
    /// The times of the load; the workload keeps a copy where it records.
    package var times: LoadTimes { LoadTimes(measured: self.measured, stages: self.stageTimes) }

    /// Notifies the workload of every stage that has begun by `now`.
    ///
    /// - Returns: when the next one begins.
    func beginStages(_ now: NIODeadline) -> NIODeadline? {
        while self.nextStage < self.plan.stages.count {
            let start = self.origin + self.plan.stages[self.nextStage].start
            guard start <= now else { return start }
            // Operations due before the stage belong to the previous stage.
            self.becomeDue(before: start)
            self.work?.begins(stage: self.nextStage)
            self.nextStage += 1
        }
        return nil
    }

    /// The load has ended, and with it its last stage.
    func endStages(_ end: NIODeadline) {
        guard !self.plan.stages.isEmpty else { return }
        _ = self.beginStages(end - .nanoseconds(1))
        self.becomeDue(before: end)
        self.stageTimes?.end(at: end)
        if self.nextStage > 0 { self.work?.begins(stage: nil) }
        self.nextStage = self.plan.stages.count
    }
}
