/// A stretch of a run whose metrics stand by themselves too, under the label ``Labels/stage``.
///
/// A duration is of the stage in which its operation was due, a connect of the one in which it ended; what is counted, of
/// the one in which it happened.
package struct MetricStage: Hashable, Sendable {
    package var name: String
    /// Whether it enters the totals of the run; a warm-up does not.
    package var measured: Bool

    package init(_ name: String, measured: Bool = true) {
        self.name = name
        self.measured = measured
    }
}

/// Where a duration is recorded, apart from the others of its metric.
package enum MetricLane {
    /// What counts: of the measured phase, where the run has no stages; of the whole run, where that has no stage.
    @inlinable package static var measured: Int { 0 }
    /// What appears in the time line alone.
    @inlinable package static var unmeasured: Int { 1 }
    package static func stage(_ index: Int) -> Int { 2 + index }

    /// How many stages have ended; `marks` and `end` are the counters as each began, and as the last one ended.
    static func ended(_ marks: [[UInt64]], _ end: [UInt64]?) -> Int {
        end == nil ? max(0, marks.count - 1) : marks.count
    }

    /// Lanes that enter the total of a metric, and those that the time line has beside it.
    struct Ways: Sendable {
        let counting: [Int]
        let others: [Int]
    }
}

extension MetricCatalog {
    /// Histograms of each duration on each loop; those that nothing is recorded into own no memory.
    var lanes: Int { 2 + self.stages.count }

    func lanes(wholeRun: Bool) -> MetricLane.Ways {
        let stages = self.stages.enumerated().map { (MetricLane.stage($0), wholeRun || $1.measured) }
        let lanes = [(MetricLane.measured, true), (MetricLane.unmeasured, wholeRun)] + stages
        return MetricLane.Ways(counting: lanes.filter(\.1).map(\.0), others: lanes.filter { !$0.1 }.map(\.0))
    }
}

extension Labels {
    /// The label of a metric that says which stage of a run it is of; without it a metric is of the whole run.
    package static let stage = "stage"
}

extension Threshold {
    /// Names of what is settled when everything has stopped, and is of no stage.
    private static let settled: Set = [
        "delivery_expected", "delivery_lost", "delivery_gaps", "delivery_duplicated", "delivery_reordered",
        "requests_lost", "decode_time",
    ]

    /// The same sentence about the whole run.
    var withoutStage: Threshold {
        var copy = self
        copy.labels = self.labels.removing(Labels.stage)
        return copy
    }

    /// What is wrong with the stage that it names, if it names one.
    func stageProblem(in catalog: MetricCatalog) -> ThresholdError? {
        guard let stage = self.labels[Labels.stage] else { return nil }
        let names = catalog.stages.map(\.name)
        guard names.contains(stage) else {
            let words = names.isEmpty ? "this run has no stages" : "the stages are \(names.joined(separator: ", "))"
            return ThresholdError(self.expression, "there is no stage '\(stage)'; \(words)")
        }
        if Self.settled.contains(self.name) || catalog.gauges.contains(where: { $0.name == self.name }) {
            return ThresholdError(self.expression, "\(self.name) is known of the whole run only; leave stage= out")
        }
        return nil
    }
}
