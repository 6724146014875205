import Glibc
package import Measurement

/// The spread of each figure over runs of the same build.
package struct RunSpread: Sendable {
    package struct Figure: SeriesFigure, Hashable {
        package var name: String
        package var labels: Labels
        package var field: Threshold.Field
        package var unit: String?
        /// The geometric mean of the runs.
        package var mean: Double
        package var low: Double
        package var high: Double
        /// The standard deviation of the logarithms between runs: 0.05 is 5 %.
        package var deviation: Double
        /// Whether `compare` judges it by default.
        package var isUsual: Bool
    }

    package let runs: Int
    package let figures: [Figure]

    /// The spread of two or more runs; `nil` for fewer.
    package init?(_ runs: [ComparedRun]) {
        guard runs.count > 1 else { return nil }
        self.runs = runs.count
        let sides = Sides(runs, [])
        let usual = RegressionLimit.usual + RegressionLimit.usualOfConnects
        self.figures = sides.all.flatMap { series in
            sides.fields(series).compactMap { field in
                guard field != .count, MetricDefinition.named(series.name).direction != .none else { return nil }
                let values = runs.indices.compactMap { sides.value(series, field, run: $0) }.filter { $0 > 0 }
                guard values.count == runs.count else { return nil }
                var moments = Moments()
                for value in values { moments.add(log(value)) }
                return Figure(
                    name: series.name,
                    labels: series.labels,
                    field: field,
                    unit: sides.unit(series),
                    mean: exp(moments.mean),
                    low: values.min() ?? 0,
                    high: values.max() ?? 0,
                    deviation: moments.variance.squareRoot(),
                    isUsual: usual.contains { $0.field == field && $0.chooses(series.name, series.labels) }
                )
            }
        }.sorted { ($0.name, $0.labels, $0.field.text) < ($1.name, $1.labels, $1.field.text) }
    }

    /// Those that are usually judged, for a terminal.
    package var text: String {
        var table = TextTable(["Between \(Comparison.runs(self.runs))", "mean", "deviation", "lowest", "highest"])
        for figure in self.figures where figure.isUsual {
            table.add([
                figure.fullTitle, figure.text(figure.mean), Words.percent(figure.deviation),
                figure.text(figure.low), figure.text(figure.high),
            ])
        }
        return table.isEmpty ? "" : table.lines().joined(separator: "\n") + "\n"
    }
}

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
