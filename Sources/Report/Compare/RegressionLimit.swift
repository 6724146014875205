package import Measurement

/// The allowed regression of a metric: `publish_ack_duration{qos=1} p99 10%`.
///
///     limit := name [ "{" label "=" value { "," label "=" value } "}" ] [ field ] percent
///
/// Each series that the labels select is judged separately. Without `phase` the total is judged, without `leg` all but
/// the half-way leg, without `stage` the whole run.
package struct RegressionLimit: Hashable, Sendable {
    package let expression: String
    package let name: String
    package let labels: Labels
    package let field: Threshold.Field?
    /// 0.1 is 10 %.
    package let share: Double

    package init(_ text: String) throws(ThresholdError) {
        let words = text.split(separator: " ")
        guard words.count > 1, let last = words.last, last.hasSuffix("%"),
            let percent = Double(last.dropLast()), percent >= 0, percent.isFinite, percent < 10_000
        else {
            throw ThresholdError(text, "ends in no percentage; write it like 'publish_ack_duration{qos=1} p99 10%'")
        }
        let subject = try Threshold.parseSubject(words.dropLast().joined(separator: " "))
        self.expression = words.joined(separator: " ")
        self.name = subject.name
        self.labels = subject.labels
        self.field = subject.field
        self.share = percent / 100
        if let problem = Self.problem(subject.name, subject.field) { throw ThresholdError(text, problem) }
    }

    private static func problem(_ name: String, _ field: Threshold.Field?) -> String? {
        let isDuration = MetricDefinition.named(name).kind == .duration
        return switch field {
        case .max?: "the maximum does not show a change; use p99.9"
        case .slope?: "a slope is judged by a threshold; judge the mean or p99"
        case .min?: "the minimum does not show a change; use p50"
        case .count? where isDuration: "more of them are not worse; judge the rate of what is counted, as publish_acked"
        case .rate? where isDuration: "a duration has no rate; judge the rate of what is counted, as publish_acked"
        default: nil
        }
    }

    init(_ name: String, _ field: Threshold.Field?, _ share: Double) {
        self.expression = ([name, field.map(\.text)].compactMap(\.self) + ["\(Int(bounded: share * 100))%"]).joined(
            separator: " "
        )
        self.name = name
        self.labels = [:]
        self.field = field
        self.share = share
    }

    /// Whether it judges that series; `phase` and `leg` as in a threshold.
    package func chooses(_ name: String, _ labels: Labels) -> Bool {
        guard name == self.name, labels.contains(self.labels) else { return false }
        // A stage's own figures are in those of the run already.
        guard labels["stage"] == self.labels["stage"] else { return false }
        // Their sum has no labels; one kind is judged where it is named.
        if self.isOf(.errors), self.labels.isEmpty { return labels.isEmpty }
        if self.labels["phase"] == nil, let phase = labels["phase"], phase != "total" { return false }
        return self.labels["leg"] != nil || labels["leg"] != "pubrec"
    }

    /// The default limits: costs and counts, which vary the least, then latency and throughput.
    static let usual = [MetricDefinition.Limit.mean, .count, .latency, .rate].flatMap { limit in
        MetricDefinition.all.filter { $0.limit == limit && ![.connect, .decoder].contains($0.role) }
    }.flatMap(Self.limits)

    /// The default limits of runs that have no metric of ``usual``.
    static let usualOfConnects = [.connect, .errors].flatMap(Self.limits)

    static let usualOfBenchmarks = MetricDefinition.all(.decoder).flatMap(Self.limits)

    private static func limits(of metric: MetricDefinition) -> [RegressionLimit] {
        let limits: [(Threshold.Field, Double)] =
            switch metric.limit {
            case .latency?: [(.percentile(50), 0.05), (.percentile(99), 0.1)]
            case .rate?: [(.rate, 0.05)]
            case .mean?: [(.mean, 0.05)]
            case .count?: [(.count, 0)]
            case nil: []
            }
        return limits.map { RegressionLimit(metric.name, $0, $1) }
    }
}

extension RegressionLimit: MetricNamed {}

extension Threshold.Field {
    /// The text form: `p99.9`.
    package var text: String {
        switch self {
        case .count: "count"
        case .rate: "rate"
        case .min: "min"
        case .mean: "mean"
        case .max: "max"
        case .slope: "slope"
        case .percentile(let percent): "p\(Words.plain(percent))"
        }
    }
}
