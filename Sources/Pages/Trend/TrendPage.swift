import Charts
import Measurement
package import Report

/// Runs along their dates, a figure a row.
package struct TrendPage {
    let trend: RunTrend

    package init(_ trend: RunTrend) { self.trend = trend }

    package func text() throws -> String {
        let trend = self.trend
        let titles = RunTitle.words(trend.points.map(\.first))
        let title = titles.isEmpty ? Words.count(trend.runs, "run") : titles.joined(separator: " ")
        var page = PageLayout(title: title, kind: "clamor trend", heading: title)
        let starts = [trend.points.first, trend.points.last].compactMap { $0?.first.record.startWords }
        page.facts = [Words.count(trend.runs, "run"), starts.joined(separator: " to ")]
        page.badges = self.badges
        page.lead = PageLead(
            text: "\(trend.headline).",
            tone: trend.hasFailed ? .bad : trend.isShort ? .warn : .good,
            evidence: trend.changes.isEmpty ? nil : (href: "#changes", text: "changes")
        )
        page.remarks = trend.notes.map { PageRemark(text: $0, code: nil) }
        page.sections = [self.figures, self.changes].compactMap(\.self)
        page.footer = [
            "Made by clamor from the results of the runs. A change is a run from which on a figure has another level, found by"
                + " the E-divisive method. Each level has three valid runs at least. Of histories without a change at most"
                + " \(Words.percent(RunTrend.falseAlarms)) show one in some figure by chance."
        ]
        return try page.text()
    }

    private var badges: [PageBadge] {
        let (count, left) = (self.trend.changes.count, self.trend.leftOut)
        return [
            PageBadge(
                label: "Trend",
                state: self.trend.state.lowercased(),
                tone: self.trend.hasFailed ? .bad : count == 0 ? .plain : .good
            ),
            PageBadge(
                label: "Measurements",
                state: left == 0
                    ? "all \(self.trend.runs) valid" : "\(self.trend.runs - left) of \(self.trend.runs) valid",
                tone: left == 0 ? .good : .warn
            ),
        ]
    }

    static func tone(_ change: RunTrend.Change) -> PageTone {
        change.isUndone ? .plain : change.isWorse ? .bad : .good
    }

    /// The rows without the counts of errors and losses that no run has.
    var rowsThatVary: [RunTrend.Row] { self.trend.rows.filter { row in row.values.contains { $0 ?? 0 != 0 } } }
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
