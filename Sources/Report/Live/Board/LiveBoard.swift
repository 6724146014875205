import Measurement

/// A running run on a screen of fixed size.
///
/// Rows that do not fit are left out by their ``BoardRank``; nothing scrolls.
package struct LiveBoard {
    /// Below these the board is two lines: the heading, and the latest second as in a progress line.
    package static let leastColumns = 80
    package static let leastRows = 10
    /// Messages that are shown at the bottom.
    package static let mostMessages = 3

    let run: LiveRun
    /// Counters and gauges so far, or of the final record.
    let totals: [Metric]
    let style: TerminalStyle
    let size: WindowSize
    private let messages: [String]

    /// - Parameters:
    ///   - run: the run as it is now.
    ///   - size: of the screen.
    ///   - style: the colours; its width is not used.
    ///   - messages: warnings so far, of which the last are shown.
    package init(_ run: LiveRun, size: WindowSize, style: TerminalStyle, messages: [String] = []) {
        self.run = run
        self.totals = run.final.map { $0.withoutStages.metrics } ?? run.levels
        self.style = style
        self.size = size
        self.messages = messages
    }

    /// Columns of titles; names in tables begin after them.
    static let titleWidth = 12
    /// Columns of one block of the board: beyond this, lines are hard to follow.
    private static let mostColumns = 108
    private static let columnGap = 4
    /// From this width on there are two columns beside each other.
    private static let leastOfTwoColumns = 160

    /// The lines from the top, at most as many as the screen has rows, each shorter than the screen is wide.
    package var lines: [String] {
        // One column stays free: erasing behind a full line would take its last character.
        let width = max(0, self.size.columns - 1)
        let lines =
            self.size.columns < Self.leastColumns || self.size.rows < Self.leastRows
            ? self.short(width) : self.whole(width)
        return lines.prefix(max(0, self.size.rows)).map { $0.truncated(to: width).text(self.style) }
    }

    private func short(_ width: Int) -> [BoardLine] {
        let errors = self.run.standing.errors.reduce(UInt64(0)) { $0 &+ $1.count }
        let line = self.run.latest.map {
            ProgressLine($0, clientsPlanned: self.run.clientsPlanned, errors: errors).fitting(width)
        }
        return [self.heading(width)] + (line.map { [BoardLine($0)] } ?? [])
    }

    private func whole(_ width: Int) -> [BoardLine] {
        let isWide = width >= Self.leastOfTwoColumns - 1
        let column = min(Self.mostColumns, isWide ? (width - Self.columnGap) / 2 : width)
        let whole = isWide ? 2 * column + Self.columnGap : column
        let messages = self.messageLines
        let height = self.size.rows - messages.count

        var top = BoardRows()
        top.add(self.heading(whole), .heading)
        top.add(self.progress(whole), .progress)
        top.add(self.verdict, hasGap: false)
        let body: [BoardLine]
        if isWide {
            let room = height - top.count - 1
            let ends = self.joined([self.inFlight(column), self.deliveries(column)], hasGaps: false)
            let left = self.joined([self.rates(column), self.latencies(column), ends])
            let machines = [self.generator(column), self.server(column)]
            let right = self.joined([self.clients(column), self.errors(column)] + machines + [self.objectives(column)])
            let place = column + Self.columnGap
            let tables = BoardRows.beside(left.fitting(room), right.fitting(room), at: place)
            let charts = self.charts(height: room - tables.count, width: column, isStacked: false).map {
                $0.fitting(room)
            }
            let drawn =
                charts.isEmpty
                ? [] : [BoardLine()] + BoardRows.beside(charts[0], charts.dropFirst().first ?? [], at: place)
            body = top.fitting(height) + [BoardLine()] + tables + drawn
        } else {
            let machines = self.joined([self.generator(column), self.server(column)], hasGaps: false)
            let ends = [self.inFlight(column), self.deliveries(column)]
            let counts = [self.clients(column)] + ends + [self.errors(column)]
            let blocks =
                [self.rates(column), self.latencies(column), self.joined(counts, hasGaps: false)]
                + [machines, self.objectives(column)]
            var all = top
            all.add(self.joined(blocks))
            for chart in self.charts(height: height - all.count, width: column, isStacked: true) { all.add(chart) }
            body = all.fitting(height)
        }
        // Messages stand at the bottom.
        let gap = messages.isEmpty ? 0 : max(0, height - body.count)
        return body + Array(repeating: BoardLine(), count: gap) + messages
    }

    private func joined(_ blocks: [BoardRows], hasGaps: Bool = true) -> BoardRows {
        blocks.reduce(into: BoardRows()) { all, block in
            all.add(block, hasGap: hasGaps)
        }
    }

    private var messageLines: [BoardLine] {
        let most = self.size.rows < 16 ? 1 : Self.mostMessages
        return self.messages.suffix(most).map { BoardLine("! \($0)", .yellow) }
    }

    // MARK: - Lines

    static func title(_ title: String) -> BoardLine {
        var line = BoardLine(title.truncated(to: self.titleWidth - 1), .bold)
        line.pad(to: self.titleWidth)
        return line
    }

    /// A line behind the title's columns.
    static func below(_ text: String, _ ink: TerminalStyle.Ink? = nil) -> BoardLine {
        var line = BoardLine()
        line.pad(to: self.titleWidth)
        line.add(text, ink)
        return line
    }

    /// Parts in as many lines as they need, the first under the title.
    static func titled(_ title: String, _ parts: [BoardLine], width: Int) -> [BoardLine] {
        guard !parts.isEmpty else { return [] }
        var lines: [BoardLine] = []
        var line = self.title(title)
        var isEmpty = true
        for part in parts where !part.isEmpty {
            if !isEmpty, line.width + 3 + part.width > width {
                lines.append(line)
                line = self.below("")
                isEmpty = true
            }
            if !isEmpty { line.add(" · ", .dim) }
            line.add(part)
            isEmpty = false
        }
        return lines + [line]
    }

    /// `  sent/s    ▁▃▅███   up to 12,034/s`: figures of the last minute; nothing where none is known.
    static func trend(_ name: String, _ values: [Double?], width: Int, _ words: (Double) -> String) -> BoardLine? {
        // A single value has no course.
        guard values.count > 1, let top = values.compactMap(\.self).max() else { return nil }
        let limit = "up to \(words(top))"
        let room = min(LiveRun.recentSeconds, width - self.titleWidth - 2 - max(14, limit.count))
        guard room >= 8 else { return nil }
        var line = BoardLine("  " + name.truncated(to: self.titleWidth - 3), .dim)
        line.pad(to: self.titleWidth)
        line.add(Blocks.sparkline(Blocks.stretched(values, to: room), to: top), .cyan)
        line.add("  \(limit)", .dim)
        return line
    }

    /// A figure of the last minute's intervals, second by second; a second without one is a gap.
    func history(_ join: (Double, Double) -> Double, _ figure: (IntervalFigures) -> Double?) -> [Double?] {
        self.history(join, self.run.recent.map(figure))
    }

    /// The same with the figures of ``LiveRun/recent``, one for each interval.
    func history(_ join: (Double, Double) -> Double, _ figures: [Double?]) -> [Double?] {
        guard let last = self.run.recent.last else { return [] }
        let first = last.second &+ (Self.cells(last) - LiveRun.recentSeconds)
        var cells = [Double?](repeating: nil, count: LiveRun.recentSeconds)
        for (interval, value) in zip(self.run.recent, figures) {
            guard let value, value.isFinite else { continue }
            let begin = max(0, min(interval.second &- first, cells.count))
            for cell in begin..<min(cells.count, begin + Self.cells(interval)) {
                cells[cell] = cells[cell].map { join($0, value) } ?? value
            }
        }
        return cells.suffix(self.secondsKnown)
    }

    /// An interval of ten seconds has ten cells, and a part of a second has one.
    private static func cells(_ interval: IntervalFigures) -> Int {
        guard interval.seconds.isFinite else { return 1 }
        return Int(max(1, min(interval.seconds.rounded(), Double(LiveRun.recentSeconds))))
    }

    /// Seconds from the oldest to the latest recent interval: a young run has no minute yet.
    var secondsKnown: Int {
        guard let first = self.run.recent.first, let last = self.run.recent.last else { return 0 }
        return max(1, min(last.second &- first.second &+ Self.cells(last), LiveRun.recentSeconds))
    }

    /// The total of the counters with this name; absent where there is none.
    func total(_ kind: MetricDefinition, where isWanted: (Labels) -> Bool = { _ in true }) -> Double? {
        self.totals.counters([kind], where: isWanted).sum { $0.value }
    }

    /// The metrics with this name in the latest interval.
    func latest(_ metric: MetricDefinition) -> [Metric] { self.run.latest?.metrics.filter { $0.isOf(metric) } ?? [] }
}
