import Charts
import Measurement
import Report

extension ComparePage {
    /// More plots than these do not fit on two screens; the tables have all figures.
    private static let mostPlots = 4

    /// The percentiles of both sides over each other.
    var percentiles: PageSection? {
        var seen: Set<String> = []
        let durations = self.ordered.filter { $0.unit == "seconds" && seen.insert($0.title).inserted }
        let plots = durations.prefix(Self.mostPlots).compactMap(self.plot)
        guard !plots.isEmpty else { return nil }
        return PageSection("percentiles", "Percentiles", html: plots.joined())
    }

    private func plot(_ figure: ComparedFigure) -> String? {
        let sides = self.comparison.histograms(figure)
        let hue = MetricDefinition.charted.first { $0.name == figure.name }?.hue ?? PageFigure.Hue.acknowledged
        let shade = figure.labels["qos"].flatMap { Int($0) }
        let series =
            RunPage.curve("base", ChartStyle(hue, shade: shade, isDashed: true), sides.base)
            + RunPage.curve("new", ChartStyle(hue, shade: shade), sides.new)
        guard !series.isEmpty else { return nil }
        let name = [figure.name, SeriesName.text(figure.labels)].filter { !$0.isEmpty }.joined(separator: " ")
        return PageFigure.html(
            caption: "All runs of a side together. Dashed: base; solid: new. Grey: fewer than 10 samples lie beyond."
        ) { width in
            PercentilePlot(name, series: series, height: 180).svg(width: width)
        }
    }

    func table(_ caption: String, _ figures: [ComparedFigure], hasLimit: Bool) -> String {
        let columns = ["figure", "base", "new", "change", self.comparison.intervalTitle, "limit", "finding"]
        var table = PageTable(caption, columns)
        for figure in figures {
            let limit = figure.limitText.map { PageTable.Cell.text($0, key: figure.gate?.limit) }
            table.add([
                .text(figure.words),
                figure.base.map { .text(figure.baseText, key: $0) },
                figure.new.map { .text(figure.newText, key: $0) },
                figure.change.map { .text(figure.changeText, key: $0) },
                figure.interval.map { .text(figure.intervalText, key: $0.lowerBound) },
                hasLimit ? limit : nil,
                .text(figure.findingText(hasFailed: self.comparison.hasFailed), tone: self.tone(figure)),
            ])
        }
        return table.html
    }

    /// Figures that were not judged: differences first, then the others.
    var others: PageSection? {
        let others = self.comparison.figures.filter { $0.gate == nil }
        let different = others.filter { $0.finding != .same }
            .sorted { abs($0.change ?? .infinity) > abs($1.change ?? .infinity) }
        let same = others.filter { $0.finding == .same }
        guard !others.isEmpty else { return nil }
        let html =
            self.table("Not judged, but different", different, hasLimit: false)
            + PageFigure.folded(
                "Without a difference: \(same.count)",
                html: self.table("Not judged, and not different", same, hasLimit: false)
            )
        return PageSection(
            folded: "others",
            "Not judged",
            summary: "\(different.count) different of \(others.count)",
            html: html
        )
    }

    var runTable: PageSection {
        var table = PageTable(
            "Runs of both sides",
            ["side", "directory", "started", "measurement", "server", "clamor"],
            words: 6,
            isSortable: false
        )
        for (side, runs) in [("base", self.comparison.base), ("new", self.comparison.new)] {
            for run in runs {
                let state = run.record.verdict?.state
                let targets = run.record.targets + (run.record.servers ?? []).words
                table.add([
                    .text(side), .text(run.path), .text(run.record.startWords),
                    .text(state?.rawValue ?? "unfinished", tone: state == .valid ? .plain : .warn),
                    targets.isEmpty ? nil : .text(targets.joined(separator: ", ")), .text(run.record.tool.version),
                ])
            }
        }
        return PageSection(
            folded: "runs",
            "Runs",
            summary: "\(self.comparison.base.count) of base, \(self.comparison.new.count) of new",
            html: table.html
        )
    }
}
