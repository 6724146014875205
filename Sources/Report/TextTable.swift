import Measurement

/// Rows under aligned columns: the first column to the left, all others to the right.
struct TextTable {
    private var rows: [[String?]]
    private let figures: [KeyPath<DurationReading, Double>]

    init(_ header: [String]) {
        self.rows = [header]
        self.figures = []
    }

    /// A table of durations: their titles, counts and these figures.
    init(_ title: String, _ figures: [KeyPath<DurationReading, Double>]) {
        self.rows = [[title, "count"] + figures.map(Cell.name)]
        self.figures = figures
    }

    var isEmpty: Bool { self.rows.count < 2 }

    /// A cell without a value is not known: it is printed as a dash.
    mutating func add(_ cells: [String?]) { self.rows.append(cells) }

    /// A row of a table of durations.
    mutating func add(_ title: String, _ metric: Metric) {
        self.add([title, Cell.count(metric.duration?.count)] + Cell.durations(metric, self.figures))
    }

    /// The lines, the header first and standing out by two columns, none with trailing blanks.
    ///
    /// Columns in which no row below the header has a known value are left out.
    func lines() -> [String] {
        let columns = self.rows.map(\.count).max() ?? 0
        let used = (0..<columns).filter { column in
            column == 0 || self.rows.dropFirst().contains { column < $0.count && $0[column]?.isEmpty == false }
        }
        // Each cell with its width, which is counted by character once.
        let rows = self.rows.enumerated().map { number, row in
            used.map { column -> (text: String, width: Int) in
                guard column < row.count else { return ("", 0) }
                let text = (number > 0 && column == 0 ? "  " : "") + (row[column] ?? Words.unknown)
                return (text, text.width)
            }
        }
        let widths = used.indices.map { column in rows.reduce(0) { max($0, $1[column].width) } }
        return rows.map { row in
            var line = ""
            for (column, cell) in row.enumerated() {
                let padding = String(repeating: " ", count: widths[column] - cell.width)
                line += (column == 0 ? "" : "  ") + (column == 0 ? cell.text + padding : padding + cell.text)
            }
            return line.trimmedAtEnd
        }
    }
}

extension String {
    /// How many characters, which are bytes in ASCII.
    fileprivate var width: Int { self.utf8.allSatisfy { $0 < 0x80 } ? self.utf8.count : self.count }

    var trimmedAtEnd: String {
        guard let last = self.utf8.lastIndex(where: { $0 != UInt8(ascii: " ") }) else { return "" }
        return String(self[..<self.utf8.index(after: last)])
    }

    /// Breaks the text between words into lines of at most `width`; a longer word gets its own line.
    func wrapped(at width: Int) -> [String] {
        var lines: [String] = []
        var line = ""
        for word in self.split(separator: " ", omittingEmptySubsequences: true) {
            if !line.isEmpty, line.count + 1 + word.count > width {
                lines.append(line)
                line = ""
            }
            line += line.isEmpty ? String(word) : " " + word
        }
        if !line.isEmpty || lines.isEmpty { lines.append(line) }
        return lines
    }

    /// At most `width` characters, the last an ellipsis where some are missing.
    func truncated(to width: Int) -> String {
        guard self.count > width else { return self }
        guard width > 1 else { return String(self.prefix(max(0, width))) }
        return self.prefix(width - 1) + "…"
    }
}
