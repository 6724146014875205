import Measurement

/// The latency thresholds of a run, judged interval by interval.
///
/// The time line has p50, p99 and the maximum of each series, not of several together. A threshold holds in an interval
/// if it holds in every series, and is broken if it is broken in every one. A percentile between the known ones is
/// judged by those around it. Whatever that leaves open is unknown.
struct FindingObjective {
    enum Answer {
        case holds
        case broken
        case unknown
    }

    /// A span of intervals in which the threshold was broken.
    struct Break {
        var span: Range<Int>
        var worst: Double
        /// Whether an operation without an answer is among the values, so that ``worst`` is at least so much.
        var isBound: Bool
    }

    let threshold: Threshold
    let result: ThresholdResult
    /// By interval; `nil` where it has nothing to judge.
    let answers: [Answer?]
    let values: [Double?]
    let breaks: [Break]

    /// `nil` for a threshold that is no upper limit of a latency.
    init?(_ result: ThresholdResult, _ intervals: FindingIntervals) {
        guard let threshold = try? Threshold.parse(result.expression), threshold.unit == .time,
            [.connect, .answer, .delivery, .step, .wait, .service, .other].contains(
                MetricDefinition.named(threshold.name).role
            ),
            MetricDefinition.named(threshold.name).kind == .duration, [.less, .atMost].contains(threshold.comparison)
        else { return nil }
        let isOfConnects = threshold.isOf([.connect, .reconnect])
        let labels = threshold.labels.removing(Labels.stage)
        let columns = intervals.columns(.named(threshold.name)) { series in
            series.contains(labels) && series.isWhole { labels[$0] != nil }
        }
        let stage = threshold.labels[Labels.stage]
        self.threshold = threshold
        self.result = result
        self.answers = intervals.all.indices.map { place in
            let interval = intervals.all[place]
            guard stage.map({ $0 == interval.stage }) ?? (interval.isMeasured || isOfConnects) else { return nil }
            return Self.answer(threshold, columns.filter { !$0.values[place].isNaN }, place)
        }
        let figure = Self.figure(threshold.field)
        self.values = figure.map { intervals.highest(columns, $0) } ?? intervals.all.map { _ in nil }
        let (answers, values) = (self.answers, self.values)
        let counts = intervals.sum(columns) ?? []
        // A percentile of fewer samples is their maximum: one slow message is not a break of what held in all.
        let carried = 100 / Swift.max(100 - Self.percent(threshold.field), 1)
        let isBreak: (Int) -> Bool = { answers[$0] == .broken && (!result.ok || counts[$0] >= carried) }
        self.breaks = intervals.spans(where: isBreak).map { span in
            Break(
                span: span,
                worst: span.compactMap { values[$0] }.max() ?? 0,
                isBound: columns.contains { !$0.bounds.isDisjoint(with: span) }
            )
        }
    }

    private static func figure(_ field: Threshold.Field?) -> KeyPath<Timeline.Column, [Double]>? {
        switch field {
        case .percentile(50): \.p50
        case .percentile(99): \.p99
        case .percentile(100), .max: \.max
        default: nil
        }
    }

    private static func answer(_ threshold: Threshold, _ columns: [Timeline.Column], _ place: Int) -> Answer? {
        guard !columns.isEmpty else { return nil }
        let answers = columns.map { self.answer(threshold, $0, place) }
        if answers.allSatisfy({ $0 == .holds }) { return .holds }
        return answers.allSatisfy { $0 == .broken } ? .broken : .unknown
    }

    /// NaN for a field that is no percentile.
    private static func percent(_ field: Threshold.Field?) -> Double {
        switch field {
        case .percentile(let percent): percent
        case .max: 100
        default: .nan
        }
    }

    private static func answer(_ threshold: Threshold, _ column: Timeline.Column, _ place: Int) -> Answer {
        guard column.kind == .duration else { return .unknown }
        let percent = self.percent(threshold.field)
        let known = [(50.0, column.p50[place]), (99.0, column.p99[place]), (100.0, column.max[place])]
            .filter { !$0.1.isNaN }
        // A percentile is at most the next higher one that is known, and at least the next lower one. A lower bound is
        // no upper limit.
        let isExact = !column.bounds.contains(place)
        if isExact, known.contains(where: { $0.0 >= percent && threshold.isMet(by: $0.1) }) { return .holds }
        return known.contains { $0.0 <= percent && !threshold.isMet(by: $0.1) } ? .broken : .unknown
    }

    /// The share of the measured seconds in which all latency thresholds held; `nil` if a second cannot be judged.
    ///
    /// A second in which messages waited and none was answered is not within an objective.
    static func within(
        _ objectives: [FindingObjective],
        _ intervals: FindingIntervals,
        isStalled: (Int) -> Bool
    ) -> Double? {
        let judged = objectives.filter { !$0.threshold.isOf([.connect, .reconnect]) }
        guard !judged.isEmpty else { return nil }
        var (held, all) = (0.0, 0.0)
        for (place, interval) in intervals.all.enumerated() where interval.isMeasured {
            let answers = judged.compactMap { $0.answers[place] }
            let isStalled = isStalled(place)
            guard !answers.isEmpty || isStalled else { continue }
            all += interval.length
            if isStalled || answers.contains(.broken) { continue }
            if answers.contains(.unknown) { return nil }
            held += interval.length
        }
        return all > 0 ? held / all : nil
    }
}

extension Threshold {
    fileprivate func isMet(by value: Double) -> Bool {
        self.comparison == .less ? value < self.limit : value <= self.limit
    }

    /// `delivery p99`.
    var findingName: String {
        let name = MetricDefinition.named(self.name).title
        return switch self.field {
        case .percentile(let percent): "\(name) p\(Words.decimal(percent, digits: 3))"
        case .max: "\(name) max"
        case .mean: "\(name) mean"
        case .min: "\(name) min"
        default: name
        }
    }
}
