import Charts
import Measurement
package import Report

/// Runs along their dates, a figure a row.
package struct TrendPage {
    let trend: RunTrend

    /// Any number of finished runs in any order.
    package init(_ runs: [ComparedRun]) { self.trend = RunTrend(runs) }

    package func text() throws -> String {
        let titles = RunTitle.words(self.trend.runs)
        let title = titles.isEmpty ? "\(self.trend.runs.count) runs" : titles.joined(separator: " ")
        var page = PageLayout(title: title, kind: "clamor report", heading: title)
        page.facts = self.facts
        page.badges = self.badges
        page.lead = self.lead
        page.remarks = self.trend.differences.map { PageRemark(text: $0.text, code: $0.kind.rawValue) }
        page.tiles = self.tiles
        page.sections = [self.figures, self.changes, self.values, self.runTable].compactMap(\.self)
        page.footer = [
            "Made by clamor from the result directories. A change point is a run from which on a figure has another level."
                + " It needs three valid runs before and after it. No value of up to five runs before lies among those of up"
                + " to five runs after. Their medians differ by more than twice the wider of the two ranges."
        ]
        return try page.text()
    }

    private var facts: [String] {
        guard let first = self.trend.runs.first, let last = self.trend.runs.last else { return [] }
        return [
            "\(self.trend.runs.count) runs", "\(first.record.startWords) to \(last.record.startWords)",
        ]
    }

    /// All change points, the latest first.
    var all: [(row: RunTrend.Row, change: LevelChange)] {
        self.trend.rows.flatMap { row in row.changes.map { (row, $0) } }.sorted { $0.1.run > $1.1.run }
    }

    private var badges: [PageBadge] {
        let count = self.trend.runs.count
        let changes = self.all.count
        let isWorse = self.all.contains { Self.tone($0.row, $0.change) == .bad }
        return [
            PageBadge(
                label: "Trend",
                state: changes == 0 ? "no change point" : changes == 1 ? "1 change point" : "\(changes) change points",
                tone: changes == 0 ? .plain : isWorse ? .bad : .good
            ),
            PageBadge(
                label: "Measurements",
                state: self.valid == count ? "all \(count) valid" : "\(self.valid) of \(count) valid",
                tone: self.valid == count ? .good : .warn
            ),
        ]
    }

    private var valid: Int { self.trend.runs.count { $0.record.verdict?.state == .valid } }

    /// Too few valid runs for a change point: whether the level changed is not known.
    private var isShort: Bool { self.valid < 2 * LevelChange.fewestRuns }

    private var lead: PageLead {
        let count = self.trend.runs.count
        guard let latest = self.all.first(where: { Self.tone($0.row, $0.change) == .bad }) ?? self.all.first else {
            let words =
                self.isShort
                ? "\(self.valid) valid runs show no trend: a change point needs \(LevelChange.fewestRuns) before it and after it."
                : "No figure changed by more than the usual difference between neighbouring runs, over \(count) runs."
            let isLike = self.trend.differences.isEmpty
            return PageLead(text: words, tone: self.isShort ? .warn : isLike ? .good : .plain)
        }
        let rest = self.all.count - 1
        let more = rest == 0 ? "" : rest == 1 ? "; one further change point" : "; \(rest) further change points"
        return PageLead(
            text: "\(latest.row.words) \(self.words(latest.row, latest.change))\(more).",
            tone: Self.tone(latest.row, latest.change),
            evidence: (href: "#changes", text: "change points")
        )
    }

    /// Such as `rose by 25 % with run 5 (2026-11-25 17:05 UTC, results/5): 4 ms → 5 ms`.
    func words(_ row: RunTrend.Row, _ change: LevelChange) -> String {
        let verb = change.after > change.before ? "rose" : "fell"
        let size = change.change.map { " by \(Words.percent(abs($0)))" } ?? ""
        let run = self.trend.runs[change.run]
        return "\(verb)\(size) with run \(change.run + 1) (\(run.record.startWords), \(run.path)):"
            + " \(row.text(change.before)) → \(row.text(change.after))"
    }

    static func tone(_ row: RunTrend.Row, _ change: LevelChange) -> PageTone {
        switch row.direction {
        case .none: .warn
        case .up: change.after < change.before ? .bad : .good
        case .down: change.after > change.before ? .bad : .good
        }
    }

    private var tiles: [PageTile] {
        self.rowsThatVary.prefix(6).map { row in
            let last = row.values.lastIndex { $0 != nil }
            var tile = PageTile(
                SeriesName.short(row.name, row.labels, row.field),
                value: last.map { row.text(run: $0) } ?? Words.unknown
            )
            if let change = row.changes.last {
                let size = change.change.map(ComparedFigure.percent) ?? row.text(change.after)
                tile.notes = [.init("\(size) with run \(change.run + 1)", tone: Self.tone(row, change))]
                tile.tone = Self.tone(row, change) == .bad ? .bad : .plain
            } else {
                tile.notes = [self.isShort ? .init("too few valid runs", tone: .warn) : .init("level unchanged")]
            }
            tile.spark = Sparkline(
                "\(row.words) of each run",
                style: row.style,
                values: row.values.map { $0 ?? .nan },
                worst: row.direction == .up ? .lowest : row.direction == .down ? .highest : .none
            ).svg(width: 130, height: 30)
            return tile
        }
    }

    /// The rows without the counts of errors and losses that no run has.
    var rowsThatVary: [RunTrend.Row] {
        self.trend.rows.filter { row in row.values.contains { $0 ?? 0 != 0 } }
    }
}

extension RunTrend.Row {
    /// The hue of its quantity.
    var style: ChartStyle {
        if let latency = MetricDefinition.charted.first(where: { $0.name == self.name }) {
            return latency.style(self.labels)
        }
        let shade = self.labels["qos"].flatMap { Int($0) }
        return switch self.name {
        case MetricDefinition.errors.name, MetricDefinition.deliveryLost.name: ChartStyle(PageFigure.Hue.errors)
        case MetricDefinition.received.name: ChartStyle(PageFigure.Hue.delivered, shade: shade)
        default: ChartStyle(PageFigure.Hue.acknowledged, shade: shade)
        }
    }

    var chartUnit: ChartUnit {
        switch (self.unit, self.field) {
        case ("seconds", .rate): .count("1/s")
        case ("seconds", _): .duration
        case ("bytes", .rate): .bytes
        case ("bytes", _): .bytes
        case (_, .rate): .count("1/s")
        default: .count("")
        }
    }
}

extension RunRecord {
    /// `2026-11-25 17:05 UTC`.
    var startWords: String { "\(self.startedAt.prefix(16).replacing("T", with: " ")) UTC" }
}
