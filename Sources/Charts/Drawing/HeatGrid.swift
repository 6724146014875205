/// The cells of a heat map as they are drawn: joined to columns of pixels and rows of whole pixels.
struct HeatGrid {
    static let levels = 7

    private struct Column {
        var begin: Double
        var end: Double
        /// The counts from the lowest bucket up.
        var counts: [UInt64]
    }

    private let perDecade: Int
    private var columns: [Column] = []
    /// The highest count of a cell.
    private let maximum: UInt64
    /// Buckets from 10⁻⁷ s up.
    private var lowBucket: Int
    private var highBucket: Int
    private(set) var rowHeight = 1.0

    var isEmpty: Bool { self.maximum == 0 }

    init(_ cells: HeatMap.Cells, frame: TimeFrame, canvas: Canvas, perDecade: Int, column width: Double) {
        self.perDecade = perDecade
        let buckets = perDecade * HeatMap.Cells.decades
        let join = HeatMap.Cells.perDecade / perDecade
        let span = frame.span
        let scale = LinearScale(span.begin, span.end, begin: canvas.left, end: canvas.left + canvas.plotWidth)
        var place = Int.min
        for (interval, begin) in frame.begins.enumerated() where interval < cells.intervals {
            let length = frame.length(interval)
            guard begin.isFinite, begin + length > span.begin, begin < span.end else { continue }
            let (x, end) = (scale.pixel(begin), scale.pixel(begin + length))
            var next = Column(begin: x, end: end, counts: Array(repeating: 0, count: buckets))
            for bucket in 0..<(buckets * join) {
                next.counts[bucket / join] += UInt64(cells.counts[interval * buckets * join + bucket])
            }
            let column = Int((((x + end) / 2 - canvas.left) / width).rounded(.down))
            if end - x >= width || column != place || self.columns.isEmpty {
                if end - x < width {
                    next.begin = canvas.left + Double(column) * width
                    next.end = min(next.begin + width, canvas.left + canvas.plotWidth)
                }
                self.columns.append(next)
                place = column
            } else {
                // The highest of the joined intervals: an average would hide the one that stands out.
                let last = self.columns.count - 1
                for bucket in 0..<buckets {
                    self.columns[last].counts[bucket] = max(self.columns[last].counts[bucket], next.counts[bucket])
                }
            }
        }
        self.maximum = self.columns.lazy.flatMap(\.counts).max() ?? 0
        let columns = self.columns
        let used = (0..<buckets).filter { bucket in columns.contains { $0.counts[bucket] > 0 } }
        self.lowBucket = used.first ?? Int.max
        self.highBucket = used.last ?? Int.min
    }

    /// Widens the grid to lines and objective, and makes its rows whole pixels.
    mutating func include(_ domain: (low: Double, high: Double)?, objective: Double?, height: Double) {
        let values = [domain?.low, domain?.high, objective].compactMap(\.self).filter { $0 > 0 && $0.isFinite }
        for value in values {
            let bucket = HeatMap.Cells.bucket(of: value) * self.perDecade / HeatMap.Cells.perDecade
            self.lowBucket = min(self.lowBucket, bucket)
            self.highBucket = max(self.highBucket, bucket)
        }
        if self.lowBucket > self.highBucket {
            // A millisecond to a second, of no samples.
            (self.lowBucket, self.highBucket) = (4 * self.perDecade, 7 * self.perDecade - 1)
        }
        // Half a decade at least, or the labels would have no distance.
        let missing = self.perDecade / 2 - (self.highBucket - self.lowBucket + 1)
        if missing > 0 {
            self.lowBucket = max(self.lowBucket - missing / 2 - 1, 0)
            self.highBucket += (missing + 1) / 2
        }
        self.rowHeight = max((height / Double(self.rows)).rounded(.down), 1)
    }

    private var rows: Int { self.highBucket - self.lowBucket + 1 }
    var height: Double { Double(self.rows) * self.rowHeight }
    var low: Double { self.edge(self.lowBucket) }
    var high: Double { self.edge(self.highBucket + 1) }

    /// Whether rows are empty between rows that are filled most of the time: times in steps, as those of a timer, leave
    /// out rows that are narrower than a step, which looks like a fault.
    var isStriped: Bool {
        let columns = self.columns
        let filled = (self.lowBucket...self.highBucket).map { bucket in
            columns.count { bucket < $0.counts.count && $0.counts[bucket] > 0 }
        }
        return filled.indices.dropFirst().dropLast().count { row in
            filled[row] * 10 < columns.count && min(filled[row - 1], filled[row + 1]) * 2 > columns.count
        } > 1
    }

    private func edge(_ bucket: Int) -> Double {
        let decade = HeatMap.Cells.lowestDecade + bucket / self.perDecade
        return Logarithm.pow10(decade) * Logarithm.pow10(Double(bucket % self.perDecade) / Double(self.perDecade))
    }

    /// The level from 1 to 7 by the logarithm of the count; 7 is the highest count and what comes close to it.
    func level(_ count: UInt64) -> Int {
        guard count > 0 else { return 0 }
        guard self.maximum > 1 else { return Self.levels }
        let share = Logarithm.ln(Double(count)) / Logarithm.ln(Double(self.maximum))
        return 1 + min(Int(share * Double(Self.levels) + 1e-9), Self.levels - 1)
    }

    /// Rows above the highest bucket have nothing.
    private func level(_ column: Column, _ bucket: Int) -> Int {
        bucket < column.counts.count ? self.level(column.counts[bucket]) : 0
    }

    /// The legend: the lowest and the highest count.
    var keys: [LegendKey] {
        guard self.maximum > 0 else { return [] }
        let most = TickLabels.value(Double(self.maximum), unit: .count(""))
        return [
            LegendKey(name: self.maximum > 1 ? "1 to \(most) in a cell" : "1 in a cell", classes: "", swatch: .heat)
        ]
    }

    /// One path for each level: rows are strokes as wide as a row, from left to right.
    ///
    /// They overlap by half a pixel: on a page that is scaled, edges would leave a line between them.
    func draw(on canvas: inout Canvas) {
        var paths = Array(repeating: PathText(), count: Self.levels + 1)
        for row in 0..<self.rows {
            let bucket = self.lowBucket + row
            let y = canvas.bottom - (Double(row) + 0.5) * self.rowHeight
            var place = 0
            while place < self.columns.count {
                let level = self.level(self.columns[place], bucket)
                var end = place + 1
                while end < self.columns.count, self.level(self.columns[end], bucket) == level,
                    self.columns[end].begin - self.columns[end - 1].end < 0.1
                {
                    end += 1
                }
                if level > 0 {
                    paths[level].move(self.columns[place].begin, y)
                    paths[level].line(self.columns[end - 1].end, y)
                }
                place = end
            }
        }
        let width = " stroke-width=\"\(NumberText.coordinate(self.rowHeight + 0.5))\" shape-rendering=\"crispEdges\""
        for level in 1...Self.levels { canvas.path(paths[level], class: "h\(level)", attributes: width) }
    }
}
