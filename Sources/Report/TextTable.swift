/// Rows under aligned columns: the first column to the left, all others to the right.
struct TextTable {
    private var rows: [[String]] = []

    init(_ header: [String]) { self.rows = [header] }

    var isEmpty: Bool { self.rows.count < 2 }

    mutating func add(_ cells: [String]) { self.rows.append(cells) }

    /// The lines, the header first, none with trailing blanks.
    ///
    /// Columns in which no row below the header says anything are left out.
    func lines() -> [String] {
        let columns = self.rows.map(\.count).max() ?? 0
        let used = (0..<columns).filter { column in
            column == 0 || self.rows.dropFirst().contains { column < $0.count && $0[column].saysSomething }
        }
        let widths = used.map { column in
            self.rows.map { column < $0.count ? $0[column].count : 0 }.max() ?? 0
        }
        return self.rows.enumerated().map { number, row in
            var line = ""
            for (column, width) in zip(used, widths) {
                let cell = column < row.count ? row[column] : ""
                // The header stands out by two columns.
                let indent = number == 0 ? 0 : 2
                let padding = String(repeating: " ", count: width - cell.count)
                line += column == 0 ? String(repeating: " ", count: indent) + cell + padding : "  " + padding + cell
                if column == 0, number == 0 { line += "  " }
            }
            return line.trimmedAtEnd
        }
    }
}

extension String {
    fileprivate var saysSomething: Bool { !self.isEmpty && self != Human.unknown }

    var trimmedAtEnd: String {
        guard let last = self.lastIndex(where: { $0 != " " }) else { return "" }
        return String(self[...last])
    }

    /// Broken between words into lines of at most `width`; a longer word keeps a line of its own.
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
