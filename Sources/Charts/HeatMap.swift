/// The distribution of a duration over time: the darker a cell, the more samples.
package struct HeatMap: Sendable {
    /// Counts by interval and duration.
    package struct Cells: Sendable {
        /// Twenty to the decade, from 100 ns on.
        static let perDecade = 20
        static let lowestDecade = -7
        static let decades = 11

        let intervals: Int
        private(set) var counts: [UInt32]

        package init(intervals: Int) {
            self.intervals = max(intervals, 0)
            self.counts = Array(repeating: 0, count: self.intervals * Self.perDecade * Self.decades)
        }

        /// Counts `count` samples of about `seconds` in an interval of the frame.
        package mutating func add(_ seconds: Double, count: UInt64, interval: Int) {
            guard interval >= 0, interval < self.intervals, count > 0, !seconds.isNaN else { return }
            let buckets = Self.perDecade * Self.decades
            let place = interval * buckets + Self.bucket(of: seconds)
            self.counts[place] = UInt32(clamping: UInt64(self.counts[place]) &+ min(count, UInt64(UInt32.max)))
        }

        static func bucket(of seconds: Double) -> Int {
            guard seconds > 0 else { return 0 }
            guard seconds.isFinite else { return Self.perDecade * Self.decades - 1 }
            let place = (Logarithm.log10(seconds) - Double(Self.lowestDecade)) * Double(Self.perDecade)
            // A bucket holds its lower edge; rounding of the logarithm must not move it one down.
            return Int(min(max((place + 1e-9).rounded(.down), 0), Double(Self.perDecade * Self.decades - 1)))
        }
    }

    package var name: String
    package var frame: TimeFrame
    package var cells: Cells
    /// Such as p50 and p99, in seconds.
    package var lines: [TimePanel.Series]
    package var objective: ChartObjective?
    /// The height of the plot, in CSS pixels, about: rows are whole pixels.
    package var height: Double
    package var hasTimeLabels: Bool

    package init(
        _ name: String,
        frame: TimeFrame,
        cells: Cells,
        lines: [TimePanel.Series] = [],
        objective: ChartObjective? = nil,
        height: Double = 180,
        hasTimeLabels: Bool = true
    ) {
        self.name = name
        self.frame = frame
        self.cells = cells
        self.lines = lines
        self.objective = objective
        self.height = height
        self.hasTimeLabels = hasTimeLabels
    }

    /// The chart as an `svg` element, `width` CSS pixels wide with its labels.
    package func svg(width: Double) -> String {
        // A finer picture if it stays small; pixels and buckets are joined until it does.
        let fitting = [(20, 1.0), (10, 1.0), (10, 2.0), (5, 2.0), (5, 4.0)]
        var text = ""
        for (perDecade, columnWidth) in fitting {
            text = self.svg(width: width, perDecade: perDecade, columnWidth: columnWidth) ?? ""
            if !text.isEmpty, text.utf8.count <= self.budget { break }
        }
        return text
    }

    /// Bytes of a heat map, lines and labels included.
    package var budget = 60_000

    /// Nothing where the finest rows are too low, or have stripes.
    private func svg(width: Double, perDecade: Int, columnWidth: Double) -> String? {
        var canvas = Canvas(width: width, plotHeight: self.height)
        let lineDomain = ValueScale.domain(
            self.lines.lazy.flatMap(\.values),
            scaling: .log,
            objective: self.objective?.value,
            hasMargin: false
        )
        var grid = HeatGrid(self.cells, frame: self.frame, canvas: canvas, perDecade: perDecade, column: columnWidth)
        grid.include(lineDomain, objective: self.objective?.value, height: canvas.plotHeight)
        if perDecade == HeatMap.Cells.perDecade, grid.rowHeight < 3 || grid.isStriped { return nil }
        canvas.plotHeight = grid.height
        let keys =
            grid.keys
            + self.lines.enumerated().map { place, line in
                LegendKey(name: line.name, classes: line.style.classes, swatch: .line, series: place)
            }
        canvas.header(self.name, unit: "", keys: keys)
        canvas.lanes(self.frame)

        let time = canvas.timeScale(self.frame)
        let y = ValueScale(grid.low, grid.high, scaling: .log, bottom: canvas.bottom, top: canvas.top)
        let ticks = y.ticks(Canvas.tickCount(canvas.plotHeight, distance: 20))
        let isEmpty = grid.isEmpty && lineDomain == nil
        if !isEmpty { canvas.yAxis(y, ticks: ticks, labels: y.labels(ticks, unit: .duration)) }
        canvas.beginPlot()
        canvas.bands(self.frame, scale: time)
        grid.draw(on: &canvas)
        for (place, line) in self.lines.enumerated() {
            let path = canvas.linePath(line.values, frame: self.frame, scale: time, yScale: y)
            canvas.path(path, class: "line \(line.style.classes)", attributes: " data-series=\"\(place)\"")
        }
        canvas.markRules(self.frame, scale: time)
        canvas.endPlot()
        if let objective { canvas.objective(objective, scale: y) }
        if isEmpty { canvas.empty() }
        canvas.timeAxis(time, isLabelled: self.hasTimeLabels)
        canvas.bandNames(self.frame, scale: time)
        canvas.markHeads(self.frame, scale: time)
        return canvas.svg(
            kind: "heat",
            label: TimePanel.label(self.name, unit: "", series: self.lines.map(\.name), frame: self.frame),
            attributes: Canvas.domains(time: self.frame, y: y)
        )
    }
}
