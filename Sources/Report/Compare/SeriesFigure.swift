package import Measurement

/// A figure of runs: a field of a series.
package protocol SeriesFigure: Sendable {
    var name: String { get }
    var labels: Labels { get }
    var field: Threshold.Field { get }
    var unit: String? { get }
}

extension SeriesFigure {
    /// `publish_ack_duration{leg=puback,qos=1}`.
    package var title: String { self.labels.isEmpty ? self.name : "\(self.name){\(self.labels.words)}" }

    /// The title with the field: `publish_ack_duration{leg=puback,qos=1} p99`.
    package var fullTitle: String { "\(self.title) \(self.field.text)" }

    /// A value of it for people; `≥` before one that is only known to be at least so much.
    package func text(_ value: Double?, isBound: Bool = false) -> String {
        value.map { Words.atLeast(self.field.text($0, unit: self.unit), if: isBound) } ?? Words.unknown
    }
}

extension Labels {
    /// `leg=puback,qos=1`.
    var words: String { self.all.map { "\($0.key)=\($0.value)" }.joined(separator: ",") }
}

extension Threshold.Field {
    package func text(_ value: Double, unit: String?) -> String {
        if self == .rate { return unit == "bytes" ? Words.bytes(value) + "/s" : Words.rate(value) }
        return switch unit {
        case "seconds": Words.duration(value)
        case "bytes": Words.bytes(value)
        default: Words.number(value)
        }
    }
}
