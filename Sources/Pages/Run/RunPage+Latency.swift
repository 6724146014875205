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
        let latencies = RunLatency.all.filter { $0.role != .connect && $0.name != "sm_ack_duration" }
        let plots = latencies.compactMap(self.percentiles)
        let table = self.durations(latencies)
        guard !table.isEmpty else { return nil }
        let names = latencies.map(\.name)
        let isBroken = self.objectives(names).contains { !$0.result.ok }
        let main = self.main(.answer) ?? self.main(.delivery)
        let worst = main.flatMap { latency in
            self.series(latency.name).compactMap(\.duration).max { $0.p99 < $1.p99 }.map { (latency, $0) }
        }
        let summary = worst.map { latency, reading in
            let cells = Self.figures.filter { ["p50", "p99", "max"].contains($0.0) }.compactMap { name, figure in
                Cell.durations(Metric(name: "", reading: .duration(reading)), [figure])[0].flatMap {
                    $0 == Human.unknown ? nil : "\(name) \($0)"
                }
            }
            return "\(latency.words) " + cells.joined(separator: ", ")
        }
        return PageSection(
            folded: "latency",
            "Latency by percentile",
            summary: summary,
            isOpen: isBroken,
            html: plots.joined() + table
        )
    }

    private func percentiles(_ latency: RunLatency) -> String? {
        let metrics = self.series(latency.name).filter { $0.duration?.histogram != nil }
            .sorted { $0.duration?.count ?? 0 > $1.duration?.count ?? 0 }.prefix(Self.mostSeries)
        guard !metrics.isEmpty else { return nil }
        var series: [PercentilePlot.Series] = []
        for metric in metrics.sorted(by: { $0.labels < $1.labels }) {
            let name = metrics.count > 1 ? SeriesName.text(metric.labels) + " " : ""
            series += Self.curve("\(name)response", latency.style(metric.labels), metric)
            let service = latency.service.flatMap { self.whole.metric($0, metric.labels) }
            series += Self.curve("\(name)service", latency.style(metric.labels, isDashed: true), service)
        }
        guard !series.isEmpty else { return nil }
        let title = "\(latency.words) latency by percentile"
        let caption =
            "Solid: response time, from due"
            + (series.contains(where: \.style.isDashed) ? "; dashed: service time, from write" : "")
            + ". Grey: fewer than 10 samples lie beyond."
        return PageFigure.html(caption: caption) { width in
            PercentilePlot(
                title,
                series: series,
                objective: Objective.first(self.objectives([latency.name]))?.line,
                height: 180
            ).svg(width: width)
        }
    }

    private static func curve(_ name: String, _ style: ChartStyle, _ metric: Metric?) -> [PercentilePlot.Series] {
        self.curve(name, style, metric?.duration?.decodedHistogram())
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

    private func durations(_ latencies: [RunLatency]) -> String {
        let columns = ["latency", "series", "count"] + Self.figures.map(\.0)
        var table = PageTable("Response times from due; service times from the write", columns, words: 2)
        let others = ["publish_write_duration", "publish_blocked_duration", "stanza_blocked_duration"]
        let requests = [
            "subscribe_duration", "sm_ack_duration", "muc_join_duration", "presence_setup_duration",
            "subscription_churn_duration", "store_commit_duration",
        ]
        for name in latencies.flatMap({ [$0.name] + [$0.service].compactMap(\.self) }) + others + requests {
            for metric in self.whole.metrics where metric.name == name {
                // At QoS 1 and 2 the answer says more, and a wait below a microsecond is none.
                if name == "publish_write_duration", metric.labels["qos"] != "0" { continue }
                if others.dropFirst().contains(name), metric.duration?.max ?? 0 < 1e-6 { continue }
                table.add(Self.row(metric, self.broken(metric)))
            }
        }
        return table.html
    }

    private func broken(_ metric: Metric) -> Bool {
        self.objectives([metric.name]).contains { objective in
            !objective.result.ok && objective.threshold.labels[Labels.stage] == nil
                && metric.labels.contains(objective.threshold.labels)
        }
    }

    private static func row(_ metric: Metric, _ isBroken: Bool) -> [PageTable.Cell?] {
        [.text(metric.name), .text(SeriesName.text(metric.labels)), .count(metric.duration?.count)]
            + zip(self.figures, Cell.durations(metric, self.figures.map(\.1))).map { figure, text in
                guard let text, text != Human.unknown else { return nil }
                let tone: PageTone = isBroken && figure.0 == "p99" ? .bad : .plain
                return .text(text, key: metric.duration?[keyPath: figure.1], tone: tone)
            }
    }

    /// Stage by stage; nothing without stages.
    var stages: PageSection? {
        let columns = ["stage", "latency", "series", "count"] + Self.figures.dropLast(2).map(\.0) + ["max"]
        var table = PageTable("Response times of each stage", columns, words: 3)
        let wanted = Set(RunLatency.all.map(\.name))
        let fields = Self.figures.dropLast(2).map(\.1) + [\DurationReading.max]
        for stage in self.record.stages {
            let own = self.record.metrics.filter {
                $0.labels[Labels.stage] == stage.name && wanted.contains($0.name) && $0.duration != nil
                    && RunLatency.isWhole($0.labels.removing(Labels.stage))
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
        let order = ["dns", "tcp", "tls", "websocket", "stream", "register", "sasl", "bind", "session", "total"]
        let fields: [(String, KeyPath<DurationReading, Double>, ChartShape)] = [
            ("p50", \.p50, .circle), ("p90", \.p90, .diamond), ("p99", \.p99, .square), ("max", \.max, .triangle),
        ]
        var rows: [DotRows.Row] = []
        var table = PageTable(
            "Connect times by phase; phases are not cumulative",
            ["connect", "phase", "count"] + fields.map(\.0),
            words: 2
        )
        for (name, title) in [("connect_duration", "connect"), ("reconnect_duration", "reconnect")] {
            let metrics = self.whole.metrics.filter { $0.name == name && $0.duration != nil }
            func place(_ metric: Metric) -> Int { order.firstIndex(of: metric.labels["phase"] ?? "") ?? order.count }
            for metric in metrics.sorted(by: {
                ($0.labels["group"] ?? "", place($0)) < ($1.labels["group"] ?? "", place($1))
            }) {
                let texts = Cell.durations(metric, fields.map(\.1))
                let phase = metric.labels["phase"] ?? "all"
                let group = SeriesName.text(metric.labels, without: ["phase"])
                let words = [title == "reconnect" ? title : "", group, phase].filter { !$0.isEmpty }
                let dots = zip(fields.indices, texts).compactMap { place, text -> DotRows.Dot? in
                    guard let value = metric.duration?[keyPath: fields[place].1], let text, text != Human.unknown
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
        let total = self.series("connect_duration").compactMap(\.duration).max { $0.max < $1.max }
        let hasFailed = self.planned(isUp: false) || self.record.command.dropFirst().first == "conn"
        return PageSection(
            folded: "connects",
            "Connects",
            summary: total.map { "slowest \(Human.duration($0.max))" },
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
