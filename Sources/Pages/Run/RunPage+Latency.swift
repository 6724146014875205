import Charts
import Measurement
import Report

extension RunPage {
    private static var figures: [(String, KeyPath<DurationReading, Double>)] {
        [("p50", \.p50), ("p90", \.p90), ("p99", \.p99), ("p99.9", \.p999), ("p99.99", \.p9999), ("max", \.max)]
    }
    /// More lines than these are not told apart; the table has all of them.
    private static let mostSeries = 4

    /// Percentile plots of answers and deliveries, and all durations of the run.
    var latency: PageSection? {
        let latencies = MetricDefinition.charted.filter { $0.role != .connect }
        let plots = latencies.compactMap(self.percentiles)
        let table = self.durations(latencies)
        guard !table.isEmpty else { return nil }
        let isBroken = self.objectives(latencies).contains { !$0.result.ok }
        let main = self.main(.answer) ?? self.main(.delivery)
        let worst = main.flatMap { latency in
            self.series(latency).compactMap(\.duration).max { $0.p99 < $1.p99 }.map { (latency, $0) }
        }
        let summary = worst.map { latency, reading in
            let cells = Self.figures.filter { ["p50", "p99", "max"].contains($0.0) }.compactMap { name, figure in
                Cell.durations(Metric(name: "", reading: .duration(reading)), [figure])[0].flatMap {
                    $0 == Words.unknown ? nil : "\(name) \($0)"
                }
            }
            return "\(latency.title) " + cells.joined(separator: ", ")
        }
        return PageSection(
            folded: "latency",
            "Latency by percentile",
            summary: summary,
            isOpen: isBroken,
            html: plots.joined() + table
        )
    }

    private func percentiles(_ latency: MetricDefinition) -> String? {
        let metrics = self.series(latency).filter { $0.duration?.histogram != nil }
            .sorted { $0.duration?.count ?? 0 > $1.duration?.count ?? 0 }.prefix(Self.mostSeries)
        guard !metrics.isEmpty else { return nil }
        var series: [PercentilePlot.Series] = []
        for metric in metrics.sorted(by: { $0.labels < $1.labels }) {
            let name = metrics.count > 1 ? SeriesName.text(metric.labels) + " " : ""
            series += Self.curve("\(name)response", latency.style(metric.labels), metric.duration?.decodedHistogram())
            let service = latency.twin.flatMap { self.whole.metric($0, metric.labels)?.duration?.decodedHistogram() }
            series += Self.curve("\(name)service", latency.style(metric.labels, isDashed: true), service)
        }
        guard !series.isEmpty else { return nil }
        let title = "\(latency.title) latency by percentile"
        let caption =
            "Solid: response time, from due"
            + (series.contains(where: \.style.isDashed) ? "; dashed: service time, from write" : "")
            + ". Grey: fewer than 10 samples lie beyond."
        return PageFigure.html(caption: caption) { width in
            PercentilePlot(
                title,
                series: series,
                objective: Objective.first(self.objectives([latency]))?.line,
                height: 180
            ).svg(width: width)
        }
    }

    static func curve(_ name: String, _ style: ChartStyle, _ histogram: Histogram?) -> [PercentilePlot.Series] {
        guard let histogram, histogram.count > 1 else { return [] }
        // Evenly over the axis, on which each nine is as wide as the last.
        var shares: [Double] = []
        var rest = 1.0
        let step = 0.933_254_3
        while rest * Double(histogram.count) > 0.5, shares.count < 250 {
            shares.append(1 - rest)
            rest *= step
        }
        shares.append(1)
        let values = histogram.percentiles(shares.map { $0 * 100 })
        let points = zip(shares, values).map { PercentilePlot.Point(share: $0, value: Double($1) / 1e9) }
        return [PercentilePlot.Series(name, style: style, count: histogram.count, points: points)]
    }

    private func durations(_ latencies: [MetricDefinition]) -> String {
        let columns = ["latency", "series", "count"] + Self.figures.map(\.0)
        var table = PageTable("Response times from due; service times from the write", columns, words: 2)
        let others = MetricDefinition.all(.wait) + MetricDefinition.all(.step)
        for kind in latencies.flatMap({ [$0] + [$0.twin].compactMap(\.self) }) + others {
            for metric in self.whole.metrics where metric.isOf(kind) {
                // At QoS 1 and 2 the answer says more, and a wait below a microsecond is none.
                if kind == .publishWrite, metric.labels["qos"] != "0" { continue }
                if kind.role == .wait, kind != .publishWrite, metric.duration?.max ?? 0 < 1e-6 { continue }
                table.add(Self.row(metric, self.broken(metric)))
            }
        }
        return table.html
    }

    private func broken(_ metric: Metric) -> Bool {
        self.objectives([.named(metric.name)]).contains { objective in
            !objective.result.ok && objective.threshold.labels[Labels.stage] == nil
                && metric.labels.contains(objective.threshold.labels)
        }
    }

    private static func row(_ metric: Metric, _ isBroken: Bool) -> [PageTable.Cell?] {
        [.text(metric.name), .text(SeriesName.text(metric.labels)), .count(metric.duration?.count)]
            + zip(self.figures, Cell.durations(metric, self.figures.map(\.1))).map { figure, text in
                guard let text, text != Words.unknown else { return nil }
                let tone: PageTone = isBroken && figure.0 == "p99" ? .bad : .plain
                return .text(text, key: metric.duration?[keyPath: figure.1], tone: tone)
            }
    }

    /// Stage by stage; nothing without stages.
    var stages: PageSection? {
        let columns = ["stage", "latency", "series", "count"] + Self.figures.dropLast(2).map(\.0) + ["max"]
        var table = PageTable("Response times of each stage", columns, words: 3)
        let wanted = Set(MetricDefinition.charted.map(\.name))
        let fields = Self.figures.dropLast(2).map(\.1) + [\DurationReading.max]
        for stage in self.record.stages {
            let own = self.record.metrics.filter {
                $0.labels[Labels.stage] == stage.name && wanted.contains($0.name) && $0.duration != nil
                    && MetricDefinition.isWhole($0.labels.removing(Labels.stage))
            }
            for metric in own.sorted(by: { ($0.name, $0.labels) < ($1.name, $1.labels) }) {
                table.add(
                    [
                        .text(stage.name), .text(metric.name), .text(SeriesName.text(metric.labels)),
                        .count(metric.duration?.count),
                    ] + PageTable.Cell.durations(metric, fields)
                )
            }
        }
        guard !table.isEmpty else { return nil }
        let names = self.record.stages.filter(\.measured).map(\.name)
        return PageSection(folded: "stages", "Stages", summary: names.joined(separator: ", "), html: table.html)
    }

    /// The phases of a connect, as dots: percentiles do not add, so nothing is stacked.
    var connects: PageSection? {
        let fields: [(String, KeyPath<DurationReading, Double>, ChartShape)] = [
            ("p50", \.p50, .circle), ("p90", \.p90, .diamond), ("p99", \.p99, .square), ("max", \.max, .triangle),
        ]
        var rows: [DotRows.Row] = []
        var table = PageTable(
            "Connect times by phase; phases are not cumulative",
            ["connect", "phase", "count"] + fields.map(\.0),
            words: 2
        )
        for kind in [MetricDefinition.connect, .reconnect] {
            let title = kind.title
            let metrics = self.whole.metrics.filter { $0.isOf(kind) && $0.duration != nil }
            for metric in metrics.sorted(by: {
                ($0.labels["group"] ?? "", $0.labels.phasePlace) < ($1.labels["group"] ?? "", $1.labels.phasePlace)
            }) {
                let texts = Cell.durations(metric, fields.map(\.1))
                let phase = metric.labels["phase"] ?? "all"
                let group = SeriesName.text(metric.labels, without: ["phase"])
                let words = [title == "reconnect" ? title : "", group, phase].filter { !$0.isEmpty }
                let dots = zip(fields.indices, texts).compactMap { place, text -> DotRows.Dot? in
                    guard let value = metric.duration?[keyPath: fields[place].1], let text, text != Words.unknown
                    else { return nil }
                    return DotRows.Dot(
                        value,
                        kind: place,
                        text: "\(words.joined(separator: " ")) \(fields[place].0) \(text)"
                    )
                }
                rows.append(DotRows.Row(words.joined(separator: " "), dots: dots))
                table.add(
                    [
                        .text([title, group].filter { !$0.isEmpty }.joined(separator: " ")), .text(phase),
                        .count(metric.duration?.count),
                    ] + PageTable.Cell.durations(metric, fields.map(\.1))
                )
            }
        }
        guard !rows.isEmpty else { return nil }
        let kinds = fields.enumerated().map { place, field in
            DotRows.Kind(field.0, style: ChartStyle(PageFigure.Hue.connections), shape: field.2)
        }
        let shown = Array(rows.prefix(24))
        let chart = PageFigure.html { width in
            DotRows("connect phases", unit: .duration, scaling: .log, kinds: kinds, rows: shown).svg(width: width)
        }
        let total = self.series(.connect).compactMap(\.duration).max { $0.max < $1.max }
        let hasFailed = self.planned(isUp: false) || self.record.command.dropFirst().first == "conn"
        return PageSection(
            folded: "connects",
            "Connects",
            summary: total.map { "slowest \(Cell.duration($0, \.max))" },
            isOpen: hasFailed,
            html: chart + PageFigure.folded("Table of connect times", html: table.html)
        )
    }

    /// Whether some planned clients never came up.
    private func planned(isUp: Bool) -> Bool {
        guard let findings = self.record.findings, let planned = findings.clientsPlanned, let up = findings.clientsUp
        else { return false }
        return (up >= planned) == isUp
    }
}
