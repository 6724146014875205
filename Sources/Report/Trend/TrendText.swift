import Measurement

/// A trend for a terminal: the answer, then each change.
package struct TrendText {
    private let trend: RunTrend
    private let style: TerminalStyle

    package init(_ trend: RunTrend, style: TerminalStyle = TerminalStyle()) {
        self.trend = trend
        self.style = style
    }

    package var text: String {
        let ink: TerminalStyle.Ink = self.trend.hasFailed ? .red : self.trend.isShort ? .yellow : .green
        var lines = ["\(self.style.paint(self.trend.state, ink))  \(self.trend.headline)"]
        lines += self.trend.notes.map { "  ! \($0)" }
        var table = TextTable(["Changes, the latest first", "before", "after", "", "from"])
        for (row, change) in self.trend.changes { table.add([self.trend.title(row)] + self.trend.cells(row, change)) }
        if !table.isEmpty { lines += [""] + table.lines() }
        return lines.joined(separator: "\n") + "\n"
    }
}

extension RunTrend {
    /// `WORSE`, `BETTER`, `NO CHANGE` or `TOO FEW RUNS`.
    package var state: String {
        if self.hasFailed { return "WORSE" }
        if self.latest != nil { return "BETTER" }
        return self.isShort ? "TOO FEW RUNS" : "NO CHANGE"
    }

    /// The latest change that was asked for and lasts: for the worse, if there is one.
    private var latest: (row: Row, change: Change)? {
        self.worse.first ?? self.changes.first { $0.change.isInside && !$0.change.isUndone && !$0.change.isWorse }
    }

    package var headline: String {
        let since = self.since.map { " since \($0)" } ?? ""
        let figures = Words.count(self.rows.count, "figure")
        if let latest = self.latest {
            let count = self.hasFailed ? Set(self.worse.map { self.title($0.row) }).count : 0
            let words = "\(self.title(latest.row)): \(self.words(latest.row, latest.change))"
            return count > 1 ? "\(words); \(count) of \(figures) are worse\(since)" : words
        }
        guard !self.isShort else {
            let points = Words.count(self.mostPoints, "valid point")
            return "\(points): a change of one of \(figures) shows from \(self.fewestPoints) on"
        }
        return "\(figures) over \(Words.count(self.runs, "run")), no change of level\(since)"
    }

    /// Facts that the reader has to know before the changes.
    package var notes: [String] {
        var notes: [String] = []
        if self.copies > 0 { notes.append("\(Words.count(self.copies, "run")) left out: there twice") }
        if self.leftOut > 0 { notes.append("\(Words.count(self.leftOut, "run")) left out: not valid") }
        if self.strata > 1 {
            notes.append("\(self.strata) kinds of runs, of which none is held against another")
            notes += self.differences.map(\.text)
        }
        return notes
    }

    /// The title of a figure, with the number of its stratum where there are several.
    package func title(_ row: Row) -> String {
        self.strata > 1 ? "\(row.fullTitle), kind \(row.stratum + 1)" : row.fullTitle
    }

    /// Such as `4.9 × slower since 3f2a (2026-11-25 17:05 UTC): 1.2 ms to 5.9 ms`.
    package func words(_ row: Row, _ change: Change) -> String {
        let cells = self.cells(row, change)
        return "\(cells[2]) since \(cells[3]): \(cells[0]) to \(cells[1])"
    }

    /// Before, after, the size with a word, and the run.
    package func cells(_ row: Row, _ change: Change) -> [String] {
        let point = self.points[change.level.place]
        let start = point.first.record.startWords
        return [
            row.text(change.level.before), row.text(change.level.after), Self.size(row, change.level),
            start.contains(point.name) ? start : "\(point.name) (\(start))",
        ]
    }

    /// `4.9 × slower`, `12 % higher`, with a factor from one and a half on.
    package static func size(_ row: Row, _ change: LevelChange) -> String {
        let isUp = change.after > change.before
        let isTime = MetricDefinition.named(row.name).kind == .duration
        let word = isTime ? (isUp ? "slower" : "faster") : isUp ? "higher" : "lower"
        guard let factor = change.factor?.value else { return word }
        let size = max(factor, 1 / factor)
        return "\(size >= 1.5 ? "\(Words.significant(size)) ×" : Words.percent(abs(factor - 1))) \(word)"
    }
}

extension RunRecord {
    /// `2026-11-25 17:05 UTC`.
    package var startWords: String { "\(self.startedAt.prefix(16).replacing("T", with: " ")) UTC" }
}

/// A trend for the summary of a job.
package enum TrendMarkdown {
    package static func text(_ trend: RunTrend) -> String {
        let mark = trend.hasFailed ? "❌" : trend.isShort ? "⚪" : "✅"
        var text =
            "### \(mark) clamor trend: \(trend.state.lowercased())\n\n\(MarkdownTable.escaped(trend.headline))\n\n"
        for note in trend.notes { text += "> \(MarkdownTable.escaped(note))\n>\n" }
        var table = MarkdownTable(["figure", "before", "after", "change", "from"])
        for (row, change) in trend.changes {
            table.add(
                [MarkdownTable.code(trend.title(row))] + trend.cells(row, change).map(MarkdownTable.escaped),
                raw: true
            )
        }
        return table.isEmpty ? text : "\(text)\n\(table.text)\n"
    }
}

extension JUnitXML {
    /// A test case for each figure, skipped where there are too few runs.
    package init(_ trend: RunTrend) {
        let cases = trend.rows.map { row in
            let words = row.changes.map { trend.words(row, $0) }.joined(separator: "\n")
            let isBroken = row.changes.contains { $0.isWorse && $0.isInside && !$0.isUndone }
            return Case(
                group: row.name,
                name: trend.title(row),
                outcome: isBroken ? .failed(words) : trend.isShort ? .skipped(trend.headline) : .passed,
                output: isBroken || words.isEmpty ? nil : words
            )
        }
        self.init(suite: "clamor trend", cases: cases)
    }
}

extension RunTrend.Row {
    package func encode(to encoder: any Encoder) throws {
        var members = encoder.container(keyedBy: Member.self)
        try members.encode(self.name, forKey: .name)
        try members.encode(self.labels, forKey: .labels)
        try members.encode(self.field.text, forKey: .field)
        try members.encodeIfPresent(self.unit, forKey: .unit)
        try members.encode(self.direction, forKey: .better)
        try members.encode(self.stratum, forKey: .stratum)
        try members.encode(self.values, forKey: .values)
        try members.encode(self.changes, forKey: .changes)
    }

    private enum Member: String, CodingKey {
        case name, labels, field, unit, better, stratum, values, changes
    }
}

/// A trend as programs read it.
package enum TrendFiles {
    package static let schema = "clamor.trend/1"

    private struct Document: Encodable {
        struct Run: Encodable {
            let directory: String
            let startedAt: String
            let name: String
            let stratum: Int
            let isValid: Bool
        }

        let schema = TrendFiles.schema
        let ok: Bool
        let state: String
        let since: String?
        let leftOut: Int
        let notes: [String]
        let runs: [Run]
        let figures: [RunTrend.Row]
    }

    /// `clamor trend --json`; `place` of a change is that of a run in `runs`, counted from 0.
    package static func json(_ trend: RunTrend) throws(ResultError) -> String {
        let runs = trend.points.map { point in
            Document.Run(
                directory: point.first.path,
                startedAt: point.first.record.startedAt,
                name: point.name,
                stratum: point.stratum,
                isValid: point.isValid
            )
        }
        let document = Document(
            ok: !trend.hasFailed,
            state: trend.state.lowercased(),
            since: trend.since,
            leftOut: trend.leftOut,
            notes: trend.notes,
            runs: runs,
            figures: trend.rows
        )
        return try PrettyJSON.text(document, path: "trend", isSnakeCase: true)
    }

    /// The valid runs of the latest kind as Apache Otava reads them: `time`, `commit`, and a column for each figure.
    package static func otava(_ trend: RunTrend) -> String {
        guard let kind = trend.points.last(where: \.isValid)?.stratum else { return "" }
        let rows = trend.rows.filter { $0.stratum == kind }
        var lines = [CSV.row(["time", "commit"] + rows.map(\.fullTitle))]
        for (place, point) in trend.points.enumerated() where point.stratum == kind && point.isValid {
            let values = rows.map { row in row.values[place].map { "\($0)" } ?? "" }
            lines.append(CSV.row([point.first.record.startedAt, point.name] + values))
        }
        return lines.joined()
    }
}
