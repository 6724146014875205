import Charts
import Measurement
import Report

extension MetricDefinition {
    /// The latencies that pages have charts of; the first of a role that a run has is its main one.
    static let charted = all(.answer) + all(.delivery) + [.connect]

    /// Whether a series is one of its own: not the middle of a flow, not a part of a connect.
    static func isWhole(_ labels: Labels) -> Bool { labels.isWhole() && labels[Labels.stage] == nil }

    var hue: Int {
        switch self.role {
        case .delivery: PageFigure.Hue.delivered
        case .connect: PageFigure.Hue.connections
        default: PageFigure.Hue.acknowledged
        }
    }

    /// A shade a QoS.
    func style(_ labels: Labels, isDashed: Bool = false) -> ChartStyle {
        let shade = labels["qos"].flatMap { Int($0) }.flatMap { (0...2).contains($0) ? $0 : nil }
        return ChartStyle(self.hue, shade: shade, isDashed: isDashed)
    }
}

extension RunPage {
    func series(_ metric: MetricDefinition) -> [Metric] {
        self.whole.metrics.filter { $0.isOf(metric) && MetricDefinition.isWhole($0.labels) }
            .sorted { $0.labels < $1.labels }
    }

    func main(_ role: MetricDefinition.Role) -> MetricDefinition? {
        MetricDefinition.charted.first { latency in
            latency.role == role && self.series(latency).contains { $0.duration != nil }
        }
    }

    /// Sums over all series of a counter; `nil` if the run has none.
    func total(_ kinds: [MetricDefinition], where isWanted: (Labels) -> Bool = { _ in true }) -> Double? {
        self.whole.metrics.counters(kinds, where: isWanted).sum { $0.value }
    }

    func rate(_ kinds: [MetricDefinition], where isWanted: (Labels) -> Bool = { _ in true }) -> Double? {
        self.whole.metrics.counters(kinds, where: isWanted).sum { $0.rate }
    }

    /// The thresholds of a metric, with what is left of them beside its name.
    func objectives(_ metrics: [MetricDefinition]) -> [Objective] {
        self.record.thresholds.compactMap { result in
            guard let threshold = try? Threshold.parse(result.expression), threshold.isOf(metrics) else { return nil }
            return Objective(threshold: threshold, result: result)
        }
    }
}

/// A threshold with its result.
struct Objective {
    var threshold: Threshold
    var result: ThresholdResult

    /// `p99 < 50ms`, `p99 < 50ms, peak`.
    var words: String {
        let expression = self.result.expression
        let rest: Substring =
            expression.firstIndex(of: "}").map { expression[expression.index(after: $0)...] }
            ?? expression.dropFirst(self.threshold.name.count)
        let labels = self.threshold.labels.all.map { SeriesName.word($0.key, $0.value) }
        return ([String(rest.drop { $0 == " " })] + labels).joined(separator: ", ")
    }

    /// `lost == 0`: with the metric in words.
    var fullWords: String { "\(MetricDefinition.named(self.threshold.name).title) \(self.words)" }

    var line: ChartObjective? {
        guard self.threshold.unit == .time else { return nil }
        return ChartObjective(self.threshold.limit, label: self.words)
    }

    /// A broken one, else the tightest.
    static func first(_ all: [Objective]) -> Objective? {
        let times = all.filter { $0.threshold.unit == .time }
        return times.first { !$0.result.ok } ?? times.min { $0.threshold.limit < $1.threshold.limit }
    }
}

/// Labels in words.
enum SeriesName {
    private static let order = ["group", "from", "stream", "stanza", "request", "qos", "leg", "receiver", "phase"]

    static func word(_ key: String, _ value: String) -> String {
        switch key {
        case "qos": "QoS \(value)"
        case "from": "from \(value)"
        case "loop": "loop \(value)"
        case _ where value == "true": key
        case _ where value == "false": "not \(key)"
        default: value
        }
    }

    /// A figure in full: `publish_ack_duration QoS 1 p99`.
    static func words(_ name: String, _ labels: Labels, _ field: Threshold.Field) -> String {
        [name, self.text(labels), field.text].filter { !$0.isEmpty }.joined(separator: " ")
    }

    /// The same in few words, for a tile: `ack QoS 1 p99`.
    static func short(_ name: String, _ labels: Labels, _ field: Threshold.Field) -> String {
        self.words(MetricDefinition.named(name).title, labels, field)
    }

    /// `sensors QoS 1`; PUBACK goes without saying.
    static func text(_ labels: Labels, without left: Set<String> = []) -> String {
        func place(_ key: String) -> Int { self.order.firstIndex(of: key) ?? self.order.count }
        let shown = labels.all.filter { label in
            !left.contains(label.key) && label.key != Labels.stage && label.value != "puback"
                && label.value != "total"
        }
        return shown.sorted { (place($0.key), $0.key) < (place($1.key), $1.key) }
            .map { self.word($0.key, $0.value) }.joined(separator: " ")
    }
}
