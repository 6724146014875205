/// How important a row of the board is: where the screen is too low, the last cases go first.
enum BoardRank: Int, Comparable, CaseIterable, Sendable {
    case heading
    case progress
    case total
    case verdict
    /// The first row of each latency.
    case latency
    case clients
    case deliveries
    case errors
    case header
    case generator
    case server
    case brokenObjective
    case latencies
    case rates
    case objective
    case gap
    case reason
    case example
    case serverSeries
    case trend
    case loop
    case chart

    static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

/// Rows of the board with their ranks.
struct BoardRows: Sendable {
    private(set) var rows: [(line: BoardLine, rank: BoardRank)] = []

    var count: Int { self.rows.count }
    mutating func add(_ line: BoardLine, _ rank: BoardRank) { self.rows.append((line, rank)) }

    /// Adds lines, of which the first has a rank of its own.
    mutating func add(_ lines: [BoardLine], _ first: BoardRank, then rank: BoardRank) {
        for (number, line) in lines.enumerated() { self.add(line, number == 0 ? first : rank) }
    }

    /// Adds a block, with a gap before it unless it is the first.
    mutating func add(_ block: BoardRows, hasGap: Bool = true) {
        guard !block.rows.isEmpty else { return }
        if hasGap, !self.rows.isEmpty { self.add(BoardLine(), .gap) }
        self.rows += block.rows
    }

    /// The rows that fit, in their order: of the least important the last go first.
    func fitting(_ height: Int) -> [BoardLine] {
        let byRank = self.rows.indices.sorted { (self.rows[$0].rank, $0) < (self.rows[$1].rank, $1) }
        return byRank.prefix(max(0, height)).sorted().map { self.rows[$0].line }
    }

    static func beside(_ left: [BoardLine], _ right: [BoardLine], at column: Int) -> [BoardLine] {
        (0..<max(left.count, right.count)).map { row in
            var line = row < left.count ? left[row] : BoardLine()
            guard row < right.count, !right[row].isEmpty else { return line }
            line.pad(to: column)
            return line.adding(right[row])
        }
    }
}
