import Measurement

/// One row of `timeline.csv`, read back.
struct TimelineRow {
    enum Reading {
        case duration(min: Double, max: Double)
        case counter(value: Double, rate: Double?)
        case gauge(Double)
    }

    var second: Int
    var phase: String
    var series: Series
    var unit: String?
    var reading: Reading
}

extension TimelineRow {
    private static let width = 2 + MetricsCSV.columns.count

    /// The rows that were written completely; the header and invalid lines are skipped.
    static func read(_ text: String) -> [TimelineRow] {
        text.wholeLines.compactMap { CSV.cells(of: $0).flatMap(TimelineRow.init(cells:)) }
    }

    private init?(cells: [String]) {
        guard cells.count == Self.width, let second = Int(cells[0]) else { return nil }
        func cell(_ name: String) -> String {
            MetricsCSV.columns.firstIndex(of: name).map { cells[$0 + 2] } ?? ""
        }
        func number(_ name: String) -> Double? { Double(cell(name)) }
        guard let labels = Labels(parsing: cell("labels")) else { return nil }
        switch cell("type") {
        case "duration":
            guard let min = number("min"), let max = number("max") else { return nil }
            self.reading = .duration(min: min, max: max)
        case "counter":
            guard let value = number("value") else { return nil }
            self.reading = .counter(value: value, rate: number("rate"))
        case "gauge":
            guard let value = number("value") else { return nil }
            self.reading = .gauge(value)
        default: return nil
        }
        self.second = second
        self.phase = cells[1]
        self.series = Series(name: cell("name"), labels: labels)
        self.unit = cell("unit").isEmpty ? nil : cell("unit")
    }
}
