import Charts
import Measurement
import Report

extension TrendPage {
    /// A chart a figure, all along the same runs.
    var figures: PageSection? {
        let rows = self.rowsThatVary
        guard !rows.isEmpty else { return nil }
        let quiet = self.trend.rows.count - rows.count
        let note = quiet == 0 ? "" : "<p class=\"small\">\(escapedMarkup(self.quietWords))</p>\n"
        return PageSection(
            "figures",
            "Figures along the runs",
            html: rows.map(self.chart).joined() + note
                + "<p class=\"small\">Dashed: the level, as the median between change points. A ring is a run that is not"
                + " valid and counts for no level.</p>\n"
        )
    }

    private var quietWords: String {
        let names = self.trend.rows.filter { row in !row.values.contains { $0 ?? 0 != 0 } }.map(\.words)
        return "0 in every run: \(names.joined(separator: ", "))."
    }

    private func chart(_ row: RunTrend.Row) -> String {
        let rules = row.changes.map { change in
            Curve.Rule(
                Double(change.run + 1),
                label: change.change.map(ComparedFigure.percent)
                    ?? "\(row.text(change.before)) → \(row.text(change.after))"
            )
        }
        var axis = Curve.Axis("", unit: .count(""))
        axis.ticks = self.labels.enumerated().map { Curve.Axis.Tick(Double($0 + 1), $1) }
        return PageFigure.html { width in
            Curve(
                // A narrow screen cuts the end.
                "\(row.field.text) of \(row.name) \(SeriesName.text(row.labels))",
                x: axis,
                y: .init("", unit: row.chartUnit),
                series: [
                    .init("", style: row.style, points: self.points(row)),
                    .init(
                        "",
                        style: ChartStyle(PageFigure.Hue.offered, isDashed: true),
                        points: self.levels(row),
                        hasPoints: false
                    ),
                ],
                rules: rules,
                height: 84
            ).svg(width: width)
        }
    }

    private func points(_ row: RunTrend.Row) -> [Curve.Point] {
        zip(row.values, self.trend.runs).enumerated().map { place, pair in
            let (value, run) = pair
            let isValid = run.record.verdict?.state == .valid
            let isChange = row.changes.contains { $0.run == place }
            return Curve.Point(
                x: Double(place + 1),
                y: value ?? .nan,
                shape: !isValid ? .ring : isChange ? .diamond : .circle,
                text: "run \(place + 1), \(run.path), \(run.record.startWords): \(row.text(run: place))"
            )
        }
    }

    /// The medians of the valid runs between change points, with gaps at those.
    private func levels(_ row: RunTrend.Row) -> [Curve.Point] {
        let edges = [0] + row.changes.map(\.run) + [row.values.count]
        return zip(edges, edges.dropFirst()).flatMap { begin, end -> [Curve.Point] in
            let known = (begin..<end).compactMap { place in
                self.trend.runs[place].record.verdict?.state == .valid ? row.values[place] : nil
            }
            guard known.count > 1, let level = known.median else { return [] }
            return [
                Curve.Point(x: Double(begin + 1), y: level), Curve.Point(x: Double(end), y: level),
                Curve.Point(x: Double(end) + 0.5, y: .nan),
            ]
        }
    }

    /// A text for each run: the last of its own titles, such as a commit, else its date; with the time if days repeat.
    private var labels: [String] {
        let shared = Set(RunTitle.words(self.trend.runs))
        let starts = self.trend.runs.map { $0.record.startedAt.dropFirst(5) }
        let isDaily = Set(starts.map { $0.prefix(5) }).count == starts.count
        return zip(self.trend.runs, starts).map { run, start in
            // The key of a tag is the same everywhere.
            let own = RunTitle.words(run.record).last { !shared.contains($0) }?.split(separator: "=", maxSplits: 1).last
            return String(own?.prefix(12) ?? start.prefix(isDaily ? 5 : 11)).replacing("T", with: " ")
        }
    }

    var changes: PageSection? {
        let all = self.all
        guard !all.isEmpty else { return nil }
        var table = PageTable(
            "Change points, the latest first",
            ["figure", "run", "directory", "started", "before", "after", "change"],
            words: 1
        )
        for (row, change) in all {
            let run = self.trend.runs[change.run]
            table.add([
                .text(row.words), .text(String(change.run + 1), key: Double(change.run + 1)), .text(run.path),
                .text(run.record.startWords), .text(row.text(change.before), key: change.before),
                .text(row.text(change.after), key: change.after),
                change.change.map { .text(ComparedFigure.percent($0), key: $0, tone: Self.tone(row, change)) },
            ])
        }
        return PageSection("changes", "Change points", html: table.html)
    }

    /// Every figure of every run.
    var values: PageSection? {
        guard !self.trend.rows.isEmpty else { return nil }
        var table = PageTable("Figures of each run", ["run"] + self.trend.rows.map(\.words))
        for place in self.trend.runs.indices {
            table.add(
                [.text(String(place + 1), key: Double(place + 1))]
                    + self.trend.rows.map { row in row.values[place].map { .text(row.text(run: place), key: $0) } }
            )
        }
        return PageSection(folded: "values", "Figures of each run", html: table.html)
    }

    var runTable: PageSection {
        var table = PageTable(
            "Runs, by their starts",
            ["run", "directory", "started", "titles", "measurement", "server", "clamor"],
            words: 7,
            isSortable: false
        )
        for (place, run) in self.trend.runs.enumerated() {
            let state = run.record.verdict?.state
            let titles = RunTitle.words(run.record)
            let targets = run.record.targets
            table.add([
                .text(String(place + 1)), .text(run.path), .text(run.record.startWords),
                titles.isEmpty ? nil : .text(titles.joined(separator: ", ")),
                .text(state?.rawValue ?? "unfinished", tone: state == .valid ? .plain : .warn),
                targets.isEmpty ? nil : .text(targets.joined(separator: ", ")), .text(run.record.tool.version),
            ])
        }
        return PageSection(folded: "runs", "Runs", summary: "\(self.trend.runs.count)", html: table.html)
    }
}
