/// Comma-separated text as RFC 4180 has it, with a line feed at the end of a row.
package enum CSV {
    /// A row with its line feed.
    package static func row(_ cells: some Sequence<String>) -> String {
        var row = ""
        for (place, cell) in cells.enumerated() {
            if place > 0 { row += "," }
            row += self.quoted(cell)
        }
        return row + "\n"
    }

    /// Quotes a cell where it must be: at a comma, a quote or a line break.
    package static func quoted(_ cell: String) -> String {
        guard cell.utf8.contains(where: { $0 == 0x2C || $0 == 0x22 || $0 == 0x0A || $0 == 0x0D }) else { return cell }
        var quoted = "\""
        for scalar in cell.unicodeScalars {
            if scalar == "\"" { quoted.unicodeScalars.append("\"") }
            quoted.unicodeScalars.append(scalar)
        }
        return quoted + "\""
    }

    /// The cells of one line, given without its line feed; `nil` where a quote is left open.
    package static func cells(of line: Substring) -> [String]? {
        var cells: [String] = []
        var cell = String.UnicodeScalarView()
        var isQuoted = false
        var afterQuote = false
        for scalar in line.unicodeScalars {
            switch scalar {
            case "\"" where isQuoted:
                isQuoted = false
                afterQuote = true
            case "\"":
                // A doubled quote is a literal quote.
                if afterQuote { cell.append("\"") }
                isQuoted = true
                afterQuote = false
            case "," where !isQuoted:
                cells.append(String(cell))
                cell.removeAll(keepingCapacity: true)
                afterQuote = false
            default:
                cell.append(scalar)
            }
        }
        cells.append(String(cell))
        return isQuoted ? nil : cells
    }
}
