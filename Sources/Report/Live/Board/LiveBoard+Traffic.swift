import Measurement

// Rates and latencies.
extension LiveBoard {
    /// Columns of one figure, its gap before it.
    private static let figureWidth = 9
    /// The column at which the first figure begins.
    private static let nameWidth = 22
    /// A sparkline is at least as wide as the words above it.
    private static let leastSparkline = 15
    private static let mostChartRows = 14
    /// More latencies than these are joined by group.
    private static let mostLatencies = 8

    // MARK: - Rates

    private static var rateColumns: [(title: String, field: KeyPath<IntervalFigures.Rates, Double?>)] {
        [("offered", \.offered), ("sent", \.sent), ("acked", \.acked), ("received", \.received)]
    }

    /// Planned and actual operations per second of the latest interval that is long enough.
    func rates(_ width: Int) -> BoardRows {
        guard let latest = self.run.recent.last(where: \.hasRates) else { return BoardRows() }
        let fields = Self.rateColumns.filter { column in
            self.run.recent.contains { $0.total(column.field) != nil }
        }
        guard !fields.isEmpty else { return BoardRows() }
        let target = self.run.course.stretches.isEmpty ? [] : ["target"]
        let columns = target + fields.map(\.title)
        let place = Self.nameWidth + Self.figureWidth * columns.count
        let room = min(LiveRun.recentSeconds, width - place - 2 - Self.figureWidth)
        let main = self.mainRate
        let all = self.history(+) { $0.total(main.field) }

        var rows = BoardRows()
        var header = Self.header("Per second", columns)
        if room >= Self.leastSparkline {
            header = Self.heading(header, "\(main.title), last \(min(room, self.secondsKnown)) s", width, at: place)
        }
        rows.add(header, .header)
        func add(_ name: String, _ figures: [Double?], _ values: [Double?], _ rank: BoardRank) {
            var line = BoardLine("  " + name.truncated(to: Self.nameWidth - 3))
            for (column, figure) in figures.enumerated() {
                let end = Self.nameWidth + Self.figureWidth * (column + 1)
                let text = figure.map { Words.number($0.rounded()) } ?? ""
                line.add(text, endingAt: end, rank == .total ? .bold : nil)
            }
            if room >= Self.leastSparkline {
                Self.add(Blocks.stretched(values, to: room), to: &line, at: place, width) {
                    Words.number($0.rounded())
                }
            }
            rows.add(line, rank)
        }
        let single = latest.rates.count == 1 ? latest.rates.first : nil
        add(
            single.map(Self.name) ?? "all",
            target.map { _ in self.run.plannedRate } + fields.map { latest.total($0.field) },
            all,
            .total
        )
        let named = self.run.recent.map { figures in
            Dictionary(figures.rates.map { ($0.name, $0[keyPath: main.field]) }) { first, _ in first }
        }
        // More rows than the screen has are never shown.
        for row in latest.rates.prefix(self.size.rows) where single == nil {
            let values = self.history(+, named.map { $0[row.name] ?? nil })
            add(Self.name(row), target.map { _ in nil } + fields.map { row[keyPath: $0.field] }, values, .rates)
        }
        let trend = Self.trend("\(main.title)/s", all, width: width) { Words.rate($0.rounded()) }
        if room < Self.leastSparkline, let trend { rows.add(trend, .trend) }
        return rows
    }

    private struct Chart {
        var title: String
        var values: [Double?]
        var words: (Double) -> String
    }

    /// Charts of the rate and of the slowest latency, for rows that are left over.
    ///
    /// Each has a gap above it and a title; they are above each other where `isStacked`.
    func charts(height: Int, width: Int, isStacked: Bool) -> [BoardRows] {
        let main = self.mainRate
        let rates = self.history(+) { $0.total(main.field) }
        var charts = [Chart(title: "\(main.title)/s", values: rates) { Words.number($0.rounded()) }]
        let shown = MetricDefinition.latencies.indices.last { place in
            MetricDefinition.latencies[place].isMainLatency
                && self.run.recent.contains { $0.latencies.contains { $0.place == place } }
        }
        if let shown {
            let metric = MetricDefinition.latencies[shown]
            let readings = self.run.recent.map { $0.slowest(metric) }
            let values = self.history(max, readings.map { $0?.p99 })
            let words = Self.words(readings.compactMap(\.self))
            charts.append(Chart(title: "\(metric.word ?? "") p99", values: values, words: words))
        }
        charts.removeAll { chart in chart.values.allSatisfy { $0 == nil } }
        let height = isStacked ? height / max(1, charts.count) : height
        let rows = min(Self.mostChartRows, height - 2)
        // From four rows on there is something to see.
        return rows < 4 ? [] : charts.map { Self.rows($0, rows, width) }
    }

    private static func rows(_ chart: Chart, _ height: Int, _ width: Int) -> BoardRows {
        let top = chart.values.compactMap(\.self).max() ?? 0
        var block = BoardRows()
        var header = BoardLine(chart.title, .bold)
        header.pad(to: self.titleWidth)
        header.add("\(chart.title.count >= self.titleWidth ? "  " : "")last \(chart.values.count) s", .dim)
        block.add(header, .chart)
        let columns = Blocks.stretched(chart.values, to: width - self.titleWidth)
        for (row, text) in Blocks.chart(columns, to: top, rows: height).enumerated() {
            var line = BoardLine()
            let scale = row == 0 ? chart.words(top) : row == height - 1 ? "0" : ""
            line.add(scale.truncated(to: self.titleWidth - 2), endingAt: self.titleWidth - 2, .dim)
            line.add(" │", .dim)
            line.add(text, .cyan)
            block.add(line, .chart)
        }
        return block
    }

    /// Sent operations; of receivers alone, received messages.
    private var mainRate: (title: String, field: KeyPath<IntervalFigures.Rates, Double?>) {
        let isSending = self.run.recent.contains { $0.total(\.sent) != nil }
        if isSending { return ("sent", \.sent) }
        return ("received", \.received)
    }

    private static func name(_ rates: IntervalFigures.Rates) -> String {
        rates.name.group ?? rates.name.stanza ?? rates.name.qos.map { "QoS \($0)" } ?? "all"
    }

    // MARK: - Latencies

    /// A row: the readings under one title and name.
    private struct Lane: Hashable {
        /// In ``MetricDefinition/latencies``.
        var place: Int
        var name: String
    }

    /// Percentiles of the latest interval, with the p99 of the last minute.
    func latencies(_ width: Int) -> BoardRows {
        let naming = self.naming
        let named = self.run.recent.map { figures in
            Dictionary(grouping: figures.latencies) { Lane(place: $0.place, name: naming($0.labels)) }
        }
        var lanes = Set(named.flatMap(\.keys)).sorted { ($0.place, $0.name) < ($1.place, $1.name) }
        // Connects are the latency of the connect phase, and of a run of connects alone.
        let others = lanes.filter { MetricDefinition.latencies[$0.place] != .connect }
        if !others.isEmpty { lanes = others }
        lanes = Array(lanes.prefix(self.size.rows))
        guard !lanes.isEmpty else { return BoardRows() }
        let columns = ["p50", "p99", "max"]
        let place = Self.nameWidth + Self.figureWidth * columns.count
        let room = min(LiveRun.recentSeconds, width - place - 2 - Self.figureWidth)

        var rows = BoardRows()
        let seconds = min(room, self.secondsKnown)
        rows.add(Self.heading(Self.header("Latency", columns), "p99, last \(seconds) s", width, at: place), .header)
        var last: Int?
        for lane in lanes {
            let isFirst = lane.place != last
            var line = BoardLine(isFirst ? "  \(MetricDefinition.latencies[lane.place].word ?? "")" : "")
            line.pad(to: Self.titleWidth)
            line.add(lane.name.truncated(to: Self.nameWidth - Self.titleWidth - 1))
            let readings = (named.last?[lane] ?? []).map(\.reading)
            for (column, field) in [\DurationReading.p50, \.p99, \.max].enumerated() {
                let end = Self.nameWidth + Self.figureWidth * (column + 1)
                line.add(Self.text(readings, field), endingAt: end, field == \.p99 ? .bold : nil)
            }
            // In the order of the intervals.
            let highest = named.map { $0[lane]?.map(\.reading).max { $0.p99 < $1.p99 } }
            let values = self.history(max, highest.map { $0?.p99 })
            let words = Self.words(highest.compactMap(\.self))
            Self.add(Blocks.stretched(values, to: room), to: &line, at: place, width, words)
            rows.add(line, isFirst ? .latency : .latencies)
            last = lane.place
        }
        return rows
    }

    /// Names of rows: each series has its own, unless that would be too many.
    private var naming: (Labels) -> String {
        let all = self.run.recent.flatMap(\.latencies)
        if all.contains(where: { $0.labels[Labels.group] != nil }) {
            return { $0[Labels.group].map(Labels.firstGroup(of:)) ?? "" }
        }
        let series = Set(all.map { Series(name: MetricDefinition.latencies[$0.place].name, labels: $0.labels) })
        if series.count > Self.mostLatencies { return { $0["qos"].map { "QoS \($0)" } ?? $0["stanza"] ?? "" } }
        return { $0.operationKinds.joined(separator: " ") }
    }

    /// A percentile of several series together is at most the highest of theirs; their maximum is the highest.
    ///
    /// If the figure of one is a lower bound, that of all has no upper limit: a percentile is at least the lowest.
    private static func text(_ readings: [DurationReading], _ field: KeyPath<DurationReading, Double>) -> String {
        let sorted = readings.sorted { $0[keyPath: field] < $1[keyPath: field] }
        guard let lowest = sorted.first, let highest = sorted.last else { return Words.unknown }
        let isBound = readings.contains { $0.isBound(field) }
        guard readings.count > 1 else { return self.narrow(Cell.duration(highest, field)) }
        let known = field == \.max ? highest : lowest
        guard !isBound else { return self.narrow(Words.atLeast(Words.duration(known[keyPath: field]))) }
        guard field != \.max else { return self.narrow(Cell.duration(highest, field)) }
        return "≤" + Cell.duration(highest, field)
    }

    /// The text of the highest p99 of these readings.
    private static func words(_ readings: [DurationReading]) -> (Double) -> String {
        { value in
            let isBound = readings.contains { $0.p99 == value && $0.isBound(\.p99) }
            return self.narrow(Words.atLeast(Words.duration(value), if: isBound))
        }
    }

    /// Columns of figures have no room for the blank behind a sign.
    private static func narrow(_ text: String) -> String { text.replacing("≥ ", with: "≥") }

    // MARK: - Tables

    private static func header(_ title: String, _ columns: [String]) -> BoardLine {
        var line = self.title(title)
        for (column, name) in columns.enumerated() {
            line.add(name, endingAt: self.nameWidth + self.figureWidth * (column + 1), .dim)
        }
        return line
    }

    /// The header with the words above the sparklines.
    private static func heading(_ line: BoardLine, _ words: String, _ width: Int, at place: Int) -> BoardLine {
        var line = line
        line.pad(to: place + 2)
        line.add(words, .dim)
        line.add("up to", endingAt: min(width, place + 2 + LiveRun.recentSeconds + self.figureWidth), .dim)
        return line
    }

    /// A sparkline from 0 to its highest value, which follows it.
    private static func add(
        _ values: [Double?],
        to line: inout BoardLine,
        at place: Int,
        _ width: Int,
        _ words: (Double) -> String
    ) {
        guard let top = values.compactMap(\.self).max() else { return }
        line.pad(to: place + 2)
        line.add(Blocks.sparkline(values, to: top), .cyan)
        line.add(words(top), endingAt: min(width, place + 2 + LiveRun.recentSeconds + self.figureWidth), .dim)
    }
}
