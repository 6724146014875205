/// A part of a run whose metrics are also reported separately, with the label ``Labels/stage``.
///
/// A duration belongs to the stage in which its operation was due. A connect belongs to the stage in which it ended, and
/// a count to the one in which it occurred.
package struct MetricStage: Hashable, Sendable {
    package var name: String
    /// Whether it enters the totals of the run; a warm-up does not.
    package var measured: Bool

    package init(_ name: String, measured: Bool = true) {
        self.name = name
        self.measured = measured
    }
}

/// A separate series of a duration metric.
package enum MetricLane {
    /// Values that count and belong to no stage: of the measured phase, or of the whole run for metrics that cover it.
    @inlinable package static var measured: Int { 0 }
    /// Metrics that appear only in the time line.
    @inlinable package static var unmeasured: Int { 1 }
    package static func stage(_ index: Int) -> Int { 2 + index }

    /// The number of ended stages; `marks` and `end` are the counters at each start and at the last end.
    static func ended(_ marks: [[UInt64]], _ end: [UInt64]?) -> Int {
        end == nil ? max(0, marks.count - 1) : marks.count
    }

    /// Lanes that enter the total of a metric, and lanes that only the timeline shows.
    struct Ways: Sendable {
        let counting: [Int]
        let others: [Int]
    }
}

extension [MetricStage] {
    /// Whether the values of a lane enter the totals of a metric.
    func counts(lane: Int, wholeRun: Bool) -> Bool {
        if wholeRun || lane == MetricLane.measured { return true }
        let stage = lane - MetricLane.stage(0)
        return self.indices.contains(stage) && self[stage].measured
    }
}

extension MetricCatalog {
    /// Whether the values of a lane enter the totals of a metric.
    package func counts(lane: Int, in id: DurationID) -> Bool {
        self.stages.counts(lane: lane, wholeRun: id.isWholeRun)
    }

    /// Histograms of each duration on each loop; unused ones have no memory.
    var lanes: Int { 2 + self.stages.count }

    func lanes(wholeRun: Bool) -> MetricLane.Ways {
        let stages = self.stages.enumerated().map { (MetricLane.stage($0), wholeRun || $1.measured) }
        let lanes = [(MetricLane.measured, true), (MetricLane.unmeasured, wholeRun)] + stages
        return MetricLane.Ways(counting: lanes.filter(\.1).map(\.0), others: lanes.filter { !$0.1 }.map(\.0))
    }
}

extension Labels {
    /// The label with a metric's stage; a metric without it is of the whole run.
    package static let stage = "stage"
}

extension Threshold {
    /// Names of metrics that are settled after everything has stopped, and so belong to no stage.
    package static let settled = Set([errorRate] + MetricDefinition.all.filter(\.isSettled).map(\.name))

    /// The same condition for the whole run.
    var withoutStage: Threshold {
        var copy = self
        copy.labels = self.labels.removing(Labels.stage)
        return copy
    }

    /// The error in the threshold's stage label, if any.
    func stageProblem(in catalog: MetricCatalog) -> ThresholdError? {
        guard let stage = self.labels[Labels.stage] else { return nil }
        let names = catalog.stages.map(\.name)
        guard names.contains(stage) else {
            let words = names.isEmpty ? "this run has no stages" : "the stages are \(names.joined(separator: ", "))"
            return ThresholdError(self.expression, "there is no stage '\(stage)'; \(words)")
        }
        if Self.settled.contains(self.name) || catalog.gauges.contains(where: { $0.name == self.name }) {
            return ThresholdError(self.expression, "\(self.name) exists only for the whole run; omit stage=")
        }
        return nil
    }
}
