import Charts
import Measurement
import Report

extension RunPage {
    /// Groups and streams, one row each with its course.
    var groups: PageSection? {
        var table = PageTable(
            "Groups and streams; the lines show the course, the circle the worst second",
            [
                "series", "role", "offered/s", "acked/s", "delivered/s", "p50", "p99", "max", "rate over time",
                "p99 over time",
            ],
            words: 2
        )
        for (latency, rate, hue) in [
            (MetricDefinition.all(.answer), Counters.acknowledged, PageFigure.Hue.acknowledged),
            (MetricDefinition.all(.delivery), Counters.delivered, PageFigure.Hue.delivered),
        ] {
            for kind in latency {
                for metric in self.series(kind) { table.add(self.row(kind, metric, rate, hue)) }
            }
        }
        let groups = self.record.groups ?? []
        guard !table.isEmpty, table.count > 1 || groups.count > 1 else { return nil }
        let summary = groups.isEmpty ? nil : groups.map(\.name).joined(separator: ", ")
        let isAbnormal = groups.contains { $0.up ?? $0.clients < $0.clients }
        return PageSection(
            folded: "groups",
            "Groups and streams",
            summary: summary,
            isOpen: isAbnormal,
            html: self.groupFacts + table.html
        )
    }

    private func row(
        _ kind: MetricDefinition,
        _ metric: Metric,
        _ counters: [MetricDefinition],
        _ hue: Int
    ) -> [PageTable.Cell?] {
        // The counters of this series; a delivery's sender is no label of what was received.
        let wanted = metric.labels.removing("leg").removing("from").removing("receiver").removing("request")
        func rate(_ kinds: [MetricDefinition]) -> Double? {
            self.rate(kinds) { $0.contains(wanted) && $0[Labels.stage] == nil }
        }
        let isAnswer = kind.role == .answer
        let course = self.course.rate(counters) { $0.contains(wanted) }
        let column = self.course.columns([kind]) { $0 == metric.labels }.first
        let name = SeriesName.text(metric.labels)
        return [
            .text(name.isEmpty ? "all" : name), .text(kind.title),
            isAnswer ? .figure(rate(Counters.offered), Words.number) : nil,
            isAnswer ? .figure(rate(Counters.acknowledged), Words.number) : nil,
            isAnswer ? nil : .figure(rate(Counters.delivered), Words.number),
        ]
            + PageTable.Cell.durations(metric, [\.p50, \.p99, \.max])
            + [
                course.flatMap { self.spark("\(name) rate", hue, $0, .lowest, width: 72) }.map { .markup($0) },
                column.flatMap { self.spark("\(name) p99", kind.hue, $0.p99, .highest, width: 72) }.map {
                    .markup($0)
                },
            ]
    }

    private var groupFacts: String {
        let groups = self.record.groups ?? []
        guard !groups.isEmpty else { return "" }
        var table = PageTable("Groups", ["group", "protocol", "clients", "up"], words: 2)
        for group in groups {
            let isDown = group.up.map { $0 < group.clients } ?? false
            table.add([
                .text(group.name), .text(group.protocolName), .figure(Double(group.clients), Words.number),
                group.up.map { .text(Words.count(UInt64(max($0, 0))), key: Double($0), tone: isDown ? .bad : .plain) },
            ])
        }
        return table.html
    }

    /// The segments of a merged run, the outlier named.
    var segmentTable: PageSection? {
        guard self.segments.count > 1 else { return nil }
        var table = PageTable(
            "Each segment of the merged run",
            ["segment", "verdict", "messages/s", "p99", "busiest loop", "rate over time", "p99 over time"],
            words: 2
        )
        var worst: [(name: String, value: Double)] = []
        for segment in self.segments {
            let page = RunPage(segment.record, timeline: segment.timeline)
            let latency = page.main(.answer) ?? page.main(.delivery) ?? page.main(.connect)
            let reading = latency.flatMap { page.series($0).compactMap(\.duration).max { $0.p99 < $1.p99 } }
            if let reading { worst.append((segment.name, reading.p99)) }
            let counters = page.total(Counters.acknowledged) ?? 0 > 0 ? Counters.acknowledged : Counters.delivered
            let columns = latency.map { page.course.columns([$0], where: MetricDefinition.isWhole) } ?? []
            table.add([
                .text(segment.name), .text(segment.record.verdict?.state.rawValue ?? "unfinished"),
                .figure(page.rate(counters), Words.number),
                reading.map { .text(Cell.duration($0, \.p99), key: $0.p99) },
                .figure(segment.record.generator.loopCPUShares?.max(), Words.percent),
                page.course.rate(counters).flatMap {
                    page.spark("\(segment.name) rate", PageFigure.Hue.acknowledged, $0, .lowest)
                }.map { .markup($0) },
                page.course.highest(columns, \.p99).flatMap {
                    page.spark("\(segment.name) p99", PageFigure.Hue.acknowledged, $0, .highest)
                }.map { .markup($0) },
            ])
        }
        let outlier = Self.outlier(worst)
        return PageSection(
            folded: "segments",
            "Segments",
            summary: outlier.map { "outlier: \($0), p99 over twice the median" } ?? "no outlier",
            tone: outlier == nil ? .plain : .warn,
            isOpen: true,
            html: table.html
        )
    }

    /// The one whose value is over twice the median of all.
    private static func outlier(_ values: [(name: String, value: Double)]) -> String? {
        let sorted = values.map(\.value).sorted()
        guard sorted.count > 2, let highest = values.max(by: { $0.value < $1.value }) else { return nil }
        return highest.value > 2 * sorted[sorted.count / 2] ? highest.name : nil
    }

    /// How a client's share is spread, and the worst where it is uneven.
    var clients: PageSection? {
        let fields: [(String, KeyPath<ClientGroup, ClientSpread?>, Bool)] = [
            ("sent", \.sent, false), ("acked", \.acked, false), ("received", \.received, false),
            ("longest ack", \.longestAckSeconds, true), ("connect time", \.connectSeconds, true),
        ]
        var table = PageTable(
            "Figures of single clients",
            ["clients", "figure", "count", "least", "p5", "p50", "p95", "most", "Jain's index"],
            words: 2
        )
        var rows: [Bool: [DotRows.Row]] = [:]
        var uneven: [String] = []
        for (role, group) in self.record.clients.sorted(by: { $0.key < $1.key }) {
            for (title, field, isDuration) in fields {
                guard let spread = group[keyPath: field], spread.max > 0 else { continue }
                let text = isDuration ? Words.duration : Words.number
                let values = [(0.0, spread.min), (5, spread.p5), (50, spread.p50), (95, spread.p95), (100, spread.max)]
                let cells = values.map { percent, value -> PageTable.Cell? in
                    percent == 0 || percent == 100 || Cell.isCarried(percent, by: UInt64(clamping: spread.clients))
                        ? .text(text(value), key: value) : nil
                }
                table.add(
                    [.text(role), .text(title), .figure(Double(spread.clients), Words.number)] + cells
                        + [.figure(spread.jain) { Words.fixed($0, digits: 3) }]
                )
                let isUneven = !isDuration && spread.jain ?? 1 < 0.9
                if isUneven {
                    let names = spread.worst.map { "\($0.id) \(text($0.value))" }.joined(separator: ", ")
                    uneven.append("\(role), least \(title): \(names)")
                }
                // Of equals a chart says nothing.
                guard spread.clients > 1, spread.max > spread.min else { continue }
                let dots = zip(values.indices, values).map { DotRows.Dot($1.1, kind: $0, text: text($1.1)) }
                rows[isDuration, default: []].append(DotRows.Row("\(role), \(title)", dots: dots))
            }
        }
        guard !table.isEmpty else { return nil }
        let shapes: [(String, ChartShape)] = [
            ("least", .triangle), ("p5", .ring), ("p50", .circle), ("p95", .ring), ("most", .square),
        ]
        let kinds = shapes.map { DotRows.Kind($0.0, style: ChartStyle(PageFigure.Hue.connections), shape: $0.1) }
        var html = uneven.map { "<p>\(escapedMarkup($0))</p>\n" }.joined()
        for isDuration in [false, true] {
            guard let rows = rows[isDuration] else { continue }
            let name = isDuration ? "durations by client" : "messages by client"
            let unit = isDuration ? ChartUnit.duration : .count("messages")
            html += PageFigure.html { width in
                DotRows(name, unit: unit, scaling: isDuration ? .log : .linear, kinds: kinds, rows: rows).svg(
                    width: width
                )
            }
        }
        return PageSection(
            folded: "clients",
            "Clients",
            summary: uneven.isEmpty ? "evenly served" : "unevenly served",
            tone: uneven.isEmpty ? .plain : .warn,
            isOpen: !uneven.isEmpty,
            html: html + table.html
        )
    }
}
