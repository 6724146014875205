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
        let names = self.trend.rows.filter { row in !row.values.contains { $0 ?? 0 != 0 } }.map(self.trend.title)
        return "0 in every run: \(names.joined(separator: ", "))."
    }

    private func chart(_ row: RunTrend.Row) -> String {
        let rules = row.changes.map { change in
            Curve.Rule(Double(change.level.place + 1), label: RunTrend.size(row, change.level))
        }
        let kind = self.trend.strata > 1 ? ", kind \(row.stratum + 1)" : ""
        var axis = Curve.Axis("", unit: .count(""))
        axis.ticks = self.trend.points.enumerated().map { Curve.Axis.Tick(Double($0 + 1), $1.name) }
        return PageFigure.html { width in
            Curve(
                // A narrow screen cuts the end.
                "\(row.field.text) of \(row.name) \(SeriesName.text(row.labels))\(kind)",
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
        zip(row.values, self.trend.points).enumerated().map { place, pair in
            let (value, point) = pair
            let isChange = row.changes.contains { $0.level.place == place }
            return Curve.Point(
                x: Double(place + 1),
                y: value ?? .nan,
                shape: !point.isValid ? .ring : isChange ? .diamond : .circle,
                text: "\(point.name), \(point.first.path), \(point.first.record.startWords): \(row.text(point: place))"
            )
        }
    }

    /// The medians of the valid runs between changes, with gaps at those.
    private func levels(_ row: RunTrend.Row) -> [Curve.Point] {
        let edges = [0] + row.changes.map(\.level.place) + [row.values.count]
        return zip(edges, edges.dropFirst()).flatMap { begin, end -> [Curve.Point] in
            let known = (begin..<end).compactMap { place in
                self.trend.points[place].isValid ? row.values[place] : nil
            }
            guard known.count > 1, let level = known.median else { return [] }
            return [
                Curve.Point(x: Double(begin + 1), y: level), Curve.Point(x: Double(end), y: level),
                Curve.Point(x: Double(end) + 0.5, y: .nan),
            ]
        }
    }

    var changes: PageSection? {
        guard !self.trend.changes.isEmpty else { return nil }
        var table = PageTable(
            "Changes, the latest first",
            ["figure", "from", "before", "after", "change", "probability"],
            words: 2
        )
        for (row, change) in self.trend.changes {
            let (cells, level) = (self.trend.cells(row, change), change.level)
            table.add([
                .text(self.trend.title(row)), .text(cells[3]), .text(cells[0], key: level.before),
                .text(cells[1], key: level.after),
                .text(cells[2], key: level.factor?.value ?? 0, tone: Self.tone(change)),
                .text(Words.significant(level.probability), key: level.probability),
            ])
        }
        return PageSection("changes", "Changes", html: table.html)
    }
}
