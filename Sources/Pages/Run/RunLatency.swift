import Charts
import Measurement
import Report

/// A kind of latency that pages show, and the metrics that it is made of.
struct RunLatency {
    enum Role {
        /// From due to the answer.
        case answer
        /// From due to the receiver.
        case delivery
        case connect
    }

    var name: String
    var role: Role
    /// In a heading.
    var words: String
    /// The same from the write.
    var service: String?

    /// The first of a role that a run has is its main latency.
    static let all = [
        RunLatency(name: "publish_ack_duration", role: .answer, words: "ack", service: "publish_service_duration"),
        RunLatency(name: "iq_duration", role: .answer, words: "iq", service: "iq_service_duration"),
        RunLatency(name: "sm_ack_duration", role: .answer, words: "stream ack", service: nil),
        RunLatency(name: "delivery_duration", role: .delivery, words: "delivery", service: "message_duration"),
        RunLatency(name: "request_duration", role: .delivery, words: "request", service: nil),
        RunLatency(name: "muc_fanout_duration", role: .delivery, words: "room", service: nil),
        RunLatency(name: "presence_fanout_duration", role: .delivery, words: "presence", service: nil),
        RunLatency(name: "connect_duration", role: .connect, words: "connect", service: nil),
    ]

    /// Whether a series is one of its own: not the middle of a flow, not a part of a connect.
    static func isWhole(_ labels: Labels) -> Bool {
        labels["leg"] != "pubrec" && (labels["phase"] ?? "total") == "total" && labels[Labels.stage] == nil
    }

    var hue: Int {
        switch self.role {
        case .answer: PageFigure.Hue.acknowledged
        case .delivery: PageFigure.Hue.delivered
        case .connect: PageFigure.Hue.connections
        }
    }

    /// A shade a QoS.
    func style(_ labels: Labels, isDashed: Bool = false) -> ChartStyle {
        let shade = labels["qos"].flatMap { Int($0) }.flatMap { (0...2).contains($0) ? $0 : nil }
        return ChartStyle(self.hue, shade: shade, isDashed: isDashed)
    }
}

extension RunPage {
    /// The series of a metric, of the whole run.
    func series(_ name: String) -> [Metric] {
        self.whole.metrics.filter { $0.name == name && RunLatency.isWhole($0.labels) }
            .sorted { $0.labels < $1.labels }
    }

    func main(_ role: RunLatency.Role) -> RunLatency? {
        RunLatency.all.first { latency in
            latency.role == role && self.series(latency.name).contains { $0.duration != nil }
        }
    }

    /// Sums over all series of a counter; `nil` if the run has none.
    func total(_ names: [String], where isWanted: (Labels) -> Bool = { _ in true }) -> Double? {
        let values = self.whole.metrics.filter { names.contains($0.name) && isWanted($0.labels) }
            .compactMap { $0.counter?.value }
        return values.isEmpty ? nil : values.reduce(0, +)
    }

    func rate(_ names: [String], where isWanted: (Labels) -> Bool = { _ in true }) -> Double? {
        let values = self.whole.metrics.filter { names.contains($0.name) && isWanted($0.labels) }
            .compactMap { $0.counter?.rate }
        return values.isEmpty ? nil : values.reduce(0, +)
    }

    /// The thresholds of a metric, with what is left of them beside its name.
    func objectives(_ names: [String]) -> [Objective] {
        self.record.thresholds.compactMap { result in
            guard let threshold = try? Threshold.parse(result.expression), names.contains(threshold.name)
            else { return nil }
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

    /// As a line of a chart of durations.
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
        let latency = RunLatency.all.first { $0.name == name }
        return self.words(latency?.words ?? name.replacing("_", with: " "), labels, field)
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
