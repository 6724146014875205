package import Measurement

/// `metrics.csv` and `timeline.csv`: one metric a row, what is unknown an empty cell.
package enum MetricsCSV {
    package static let columns = [
        "name", "labels", "type", "unit", "value", "rate", "count", "min", "mean", "stddev", "p50", "p90", "p95", "p99",
        "p999", "p9999", "max", "answered", "failed", "outstanding", "bounds",
    ]
    /// So many of them are in the files of `clamor.run/1`.
    static let firstColumns = 17

    /// The whole of `metrics.csv`.
    package static func text(_ metrics: [Metric]) -> String {
        metrics.reduce(into: CSV.row(self.columns)) { $0 += CSV.row(self.cells($1)) }
    }

    package static let timelineHeader = CSV.row(["second", "phase"] + columns)

    /// Whether a text begins like `timeline.csv`.
    static func isTimeline(_ text: String) -> Bool {
        text.hasPrefix(self.timelineHeader)
            || text.hasPrefix(CSV.row(["second", "phase"] + self.columns.prefix(self.firstColumns)))
    }

    /// The rows of one interval of `timeline.csv`.
    package static func rows(_ interval: TimelineInterval) -> String {
        let front = [String(interval.second), interval.phase]
        return interval.metrics.reduce(into: "") { $0 += CSV.row(front + self.cells($1)) }
    }

    /// The cells under ``columns``.
    static func cells(_ metric: Metric) -> [String] {
        var cells = [metric.name, metric.labels.description, metric.type, metric.unit ?? ""]
        switch metric.reading {
        case .duration(let reading):
            cells += ["", "", String(reading.count)]
            cells += [
                reading.min, reading.mean, reading.stddev, reading.p50, reading.p90, reading.p95, reading.p99,
                reading.p999, reading.p9999, reading.max,
            ].map(PlainNumber.seconds)
            cells += [reading.answered, reading.unanswered?.failed ?? 0, reading.unanswered?.outstanding ?? 0].map {
                String($0)
            }
            cells.append(reading.bounds.joined(separator: " "))
        case .counter(let reading):
            cells += [PlainNumber.text(reading.value), reading.rate.map(PlainNumber.text) ?? ""]
            cells += Array(repeating: "", count: 15)
        case .gauge(let reading):
            cells += [PlainNumber.text(reading.value), "", ""]
            cells += [reading.min, reading.mean, nil, reading.median].map { $0.map(PlainNumber.text) ?? "" }
            cells += Array(repeating: "", count: 5)
            cells.append(reading.max.map(PlainNumber.text) ?? "")
            cells += Array(repeating: "", count: 4)
        }
        return cells
    }
}
