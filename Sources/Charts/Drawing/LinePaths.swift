/// Reduces the points of a line to the lowest and highest of each pixel column, and keeps gaps.
///
/// An extreme of one interval keeps its exact place; no value is averaged.
struct LinePaths {
    struct Point: Hashable {
        var x: Double
        /// Absent in a gap.
        var y: Double?
    }

    /// The pieces between gaps, each with one point or more.
    private(set) var pieces: [[(x: Double, y: Double)]] = []
    private var piece: [(x: Double, y: Double)] = []

    /// - Parameters:
    ///   - points: in the order of x, in pixels.
    ///   - left: where the first column begins.
    init(_ points: some Sequence<Point>, left: Double) {
        var column: [(x: Double, y: Double)] = []
        var place = Int.min
        // A gap narrower than a column ends the line after the column, or nothing of it would be seen.
        var hasGap = false
        for point in points {
            let next = Int((min(max(point.x - left, -1e6), 1e6)).rounded(.down))
            if next != place {
                self.take(column, hasGap: hasGap)
                column.removeAll(keepingCapacity: true)
                hasGap = false
                place = next
            }
            if let y = point.y { column.append((point.x, y)) } else { hasGap = true }
        }
        self.take(column, hasGap: hasGap)
        self.cut()
    }

    private mutating func take(_ column: [(x: Double, y: Double)], hasGap: Bool) {
        if column.count <= 2 {
            self.piece += column
        } else if let low = column.indices.min(by: { column[$0].y < column[$1].y }),
            let high = column.indices.max(by: { column[$0].y < column[$1].y })
        {
            self.piece.append(column[min(low, high)])
            if low != high { self.piece.append(column[max(low, high)]) }
        }
        if hasGap { self.cut() }
    }

    private mutating func cut() {
        if !self.piece.isEmpty { self.pieces.append(self.piece) }
        self.piece = []
    }

    /// `pointWidth` is the length of the dash that stands for a point between two gaps.
    func path(pointWidth: Double, within span: ClosedRange<Double>) -> PathText {
        var path = PathText()
        for piece in self.pieces {
            guard let first = piece.first else { continue }
            if piece.count == 1 {
                let half = max(pointWidth, 1.5) / 2
                path.move(max(first.x - half, span.lowerBound), first.y)
                path.line(min(first.x + half, span.upperBound), first.y)
            } else {
                path.move(first.x, first.y)
                for point in piece.dropFirst() { path.line(point.x, point.y) }
            }
        }
        return path
    }
}
