import Glibc
package import Measurement

/// The spread of each figure over runs of the same build.
package struct RunSpread: Sendable {
    package struct Figure: Hashable, Sendable {
        package var name: String
        package var labels: Labels
        package var field: Threshold.Field
        package var unit: String?
        /// Geometric, of the runs.
        package var mean: Double
        package var low: Double
        package var high: Double
        /// Of the logarithms, between runs: 0.05 is 5 %.
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
                guard field != .count, MetricDirection.of(series.name) != .none else { return nil }
                let values = runs.indices.compactMap { sides.value(series, field, run: $0) }.filter { $0 > 0 }
                guard values.count == runs.count else { return nil }
                let isUsual = usual.contains { $0.field == field && $0.chooses(series.name, series.labels) }
                return Figure(series, field, sides.unit(series), values, isUsual)
            }
        }.sorted { ($0.name, $0.labels, $0.field.text) < ($1.name, $1.labels, $1.field.text) }
    }

    /// The same as the noise of a host.
    package func noise(_ host: HostFacts) -> NoiseFloor {
        let figures = self.figures.map {
            NoiseFloor.Figure(name: $0.name, labels: $0.labels, field: $0.field.text, deviation: $0.deviation)
        }
        return NoiseFloor(host: host, runs: self.runs, figures: figures)
    }

    /// Those that are usually judged, for a terminal.
    package var text: String {
        var table = TextTable(["Between \(Comparison.runs(self.runs))", "mean", "deviation", "lowest", "highest"])
        for figure in self.figures where figure.isUsual {
            table.add([
                "\(figure.title) \(figure.field.text)", figure.text(figure.mean), Human.percent(figure.deviation),
                figure.text(figure.low), figure.text(figure.high),
            ])
        }
        return table.isEmpty ? "" : table.lines().joined(separator: "\n") + "\n"
    }
}

extension RunSpread.Figure {
    fileprivate init(
        _ series: Series,
        _ field: Threshold.Field,
        _ unit: String?,
        _ values: [Double],
        _ isUsual: Bool
    ) {
        var moments = Moments()
        for value in values { moments.add(log(value)) }
        self.init(
            name: series.name,
            labels: series.labels,
            field: field,
            unit: unit,
            mean: exp(moments.mean),
            low: values.min() ?? 0,
            high: values.max() ?? 0,
            deviation: moments.variance.squareRoot(),
            isUsual: isUsual
        )
    }

    package var title: String { self.labels.isEmpty ? self.name : "\(self.name){\(self.labels.words)}" }

    fileprivate func text(_ value: Double) -> String { self.field.text(value, unit: self.unit) }
}

extension Labels {
    /// `leg=puback,qos=1`.
    var words: String { self.all.map { "\($0.key)=\($0.value)" }.joined(separator: ",") }
}

extension Threshold.Field {
    /// A value of it for people.
    package func text(_ value: Double, unit: String?) -> String {
        if self == .rate { return unit == "bytes" ? Human.bytes(value) + "/s" : Human.rate(value) }
        return switch unit {
        case "seconds": Human.duration(value)
        case "bytes": Human.bytes(value)
        default: Human.number(value)
        }
    }
}
