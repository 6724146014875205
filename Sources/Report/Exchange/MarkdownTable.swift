/// A table as GitHub and its like show it; the first column to the left, all others to the right.
struct MarkdownTable {
    private var lines: [String]

    init(_ header: [String]) {
        let marks = header.indices.map { $0 == 0 ? ":--" : "--:" }
        self.lines = [Self.row(header.map(Self.escaped)), Self.row(marks)]
    }

    /// `cells` are Markdown already where they are `raw`.
    mutating func add(_ cells: [String], raw: Bool = false) {
        self.lines.append(Self.row(raw ? cells : cells.map(Self.escaped)))
    }

    var isEmpty: Bool { self.lines.count < 3 }
    var text: String { self.lines.joined(separator: "\n") + "\n" }
    private static func row(_ cells: [String]) -> String { "| " + cells.joined(separator: " | ") + " |" }

    /// Text that means itself: no mark-up, no HTML, no further cell or line.
    static func escaped(_ text: String) -> String {
        var escaped = ""
        for character in text {
            switch character {
            case "|", "*", "_", "`", "\\", "[", "]", "#", "~": escaped += "\\\(character)"
            case "<": escaped += "&lt;"
            case ">": escaped += "&gt;"
            case "&": escaped += "&amp;"
            case _ where character.isNewline: escaped += " "
            default: escaped.append(character)
            }
        }
        return escaped
    }

    /// A piece of code in a cell.
    static func code(_ text: String) -> String {
        // Within a code span only the bar ends a cell; a backtick would end the span.
        let line = String(text.map { $0.isNewline ? " " : $0 == "`" ? "'" : $0 })
        return "`" + line.replacing("|", with: "\\|") + "`"
    }
}
