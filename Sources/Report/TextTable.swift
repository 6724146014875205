/// Rows under aligned columns: the first column to the left, all others to the right.
struct TextTable {
    private var rows: [[String?]] = []

    init(_ header: [String]) { self.rows = [header] }

    var isEmpty: Bool { self.rows.count < 2 }

    /// A cell without a value is not known: it is printed as a dash.
    mutating func add(_ cells: [String?]) { self.rows.append(cells) }

    /// The lines, the header first and standing out by two columns, none with trailing blanks.
    ///
    /// Columns in which no row below the header has a known value are left out.
    func lines() -> [String] {
        let columns = self.rows.map(\.count).max() ?? 0
        let used = (0..<columns).filter { column in
            column == 0 || self.rows.dropFirst().contains { column < $0.count && $0[column]?.isEmpty == false }
        }
        let rows = self.rows.enumerated().map { number, row in
            row.enumerated().map { column, cell in
                (number > 0 && column == 0 ? "  " : "") + (cell ?? Human.unknown)
            }
        }
        let widths = used.map { column in rows.map { column < $0.count ? $0[column].count : 0 }.max() ?? 0 }
        return rows.map { row in
            zip(used, widths).map { column, width in
                let cell = column < row.count ? row[column] : ""
                return column == 0 ? cell.paddedRight(to: width) : cell.paddedLeft(to: width)
            }.joined(separator: "  ").trimmedAtEnd
        }
    }
}

extension String {
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
