import Measurement

/// Figures as block characters.
enum Blocks {
    private static let heights: [Character] = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"]

    /// One character for each value, from 0 to `top`; a blank for a value that is not known.
    static func sparkline(_ values: some Sequence<Double?>, to top: Double) -> String {
        String(values.map { $0.map { self.height($0, of: top) } ?? " " })
    }

    /// The block of a value; the lowest one for zero.
    static func height(_ value: Double, of top: Double) -> Character {
        self.heights[max(0, self.eighths(value, of: top, in: 1) - 1)]
    }

    /// The values over `width` columns, each as wide as the others; the last ones where there are more than columns.
    ///
    /// The course of a young run is as wide as that of an old one.
    static func stretched(_ values: [Double?], to width: Int) -> [Double?] {
        let values = Array(values.suffix(max(0, width)))
        return values.isEmpty ? [] : (0..<width).map { values[$0 * values.count / width] }
    }

    /// Rows of a column chart, the highest first.
    static func chart(_ values: [Double?], to top: Double, rows: Int) -> [String] {
        let filled = values.map { value in
            // A value above zero is seen.
            value.map { max($0 > 0 ? 1 : 0, self.eighths($0, of: top, in: rows)) }
        }
        return (0..<max(0, rows)).reversed().map { row in
            String(
                filled.map { eighths in
                    guard let eighths else { return " " }
                    let own = min(8, eighths - row * 8)
                    // The ground is drawn where a value is known.
                    return own > 0 ? self.heights[own - 1] : row == 0 ? self.heights[0] : " "
                }
            )
        }
    }

    private static func eighths(_ value: Double, of top: Double, in rows: Int) -> Int {
        guard top > 0, value > 0, value.isFinite || value == .infinity else { return 0 }
        let share = min(1, value / top)
        return share.isFinite ? Int(bounded: (share * Double(rows * 8)).rounded()) : rows * 8
    }

    /// The filled and the empty part of a bar.
    static func bar(_ share: Double, width: Int) -> (filled: String, empty: String) {
        let share = share.isFinite ? min(1, max(0, share)) : 0
        let filled = Int(bounded: (share * Double(width)).rounded(.down))
        return (String(repeating: "█", count: filled), String(repeating: "░", count: max(0, width - filled)))
    }
}
