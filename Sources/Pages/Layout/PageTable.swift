import Charts
import Measurement
import Report

/// A table of a page, sortable with the script.
package struct PageTable {
    package struct Cell {
        /// Markup.
        var html: String
        /// The order of the column's rows; absent for texts.
        var key: Double?
        var tone = PageTone.plain

        /// `key`: for the order of rows, if that is not by the text.
        package static func text(_ text: String, key: Double? = nil, tone: PageTone = .plain) -> Cell {
            Cell(html: escapedMarkup(text), key: key, tone: tone)
        }

        package static func markup(_ html: String, key: Double? = nil) -> Cell { Cell(html: html, key: key) }

        /// A figure; unknown is a dash.
        package static func figure(_ value: Double?, _ text: (Double) -> String) -> Cell? {
            value.map { Cell(html: escapedMarkup(text($0)), key: $0) }
        }

        package static func count(_ value: UInt64?) -> Cell? {
            value.map { Cell(html: Words.count($0), key: Double($0)) }
        }

        /// Figures of a duration; one of too few samples is a dash.
        static func durations(_ metric: Metric, _ fields: [KeyPath<DurationReading, Double>]) -> [Cell?] {
            zip(fields, Report.Cell.durations(metric, fields)).map { field, text in
                text.flatMap { $0 == Words.unknown ? nil : .text($0, key: metric.duration?[keyPath: field]) }
            }
        }
    }

    private let caption: String
    private let columns: [String]
    /// The first columns, which hold words.
    private let words: Int
    private let isSortable: Bool
    private var rows: [[Cell?]] = []

    /// `words`: the number of columns at the left with words; the others hold figures.
    package init(_ caption: String, _ columns: [String], words: Int = 1, isSortable: Bool = true) {
        self.caption = caption
        self.columns = columns
        self.words = words
        self.isSortable = isSortable
    }

    package var isEmpty: Bool { self.rows.isEmpty }
    package var count: Int { self.rows.count }

    /// A cell without a value is not known: it is a dash.
    package mutating func add(_ cells: [Cell?]) { self.rows.append(cells) }

    /// The table, without the columns in which no value is known; nothing without a row.
    package var html: String {
        guard !self.isEmpty else { return "" }
        let used = self.columns.indices.filter { column in
            column == 0 || self.rows.contains { column < $0.count && $0[column] != nil }
        }
        // Names without a value say nothing.
        guard used.count > 1 || self.columns.count == 1 else { return "" }
        let caption = escapedMarkup(self.caption)
        let sortable = self.isSortable && self.rows.count > 1 ? " class=\"sortable\"" : ""
        var html =
            "<div class=\"scroll\" role=\"group\" tabindex=\"0\" aria-label=\"\(caption)\"><table\(sortable)>"
            + "<caption>\(caption)</caption><thead><tr>"
        for column in used {
            let words = column < self.words ? " class=\"words\"" : ""
            html += "<th scope=\"col\"\(words)>\(escapedMarkup(self.columns[column]))</th>"
        }
        html += "</tr></thead><tbody>\n"
        for row in self.rows {
            html += "<tr>"
            for column in used { html += self.cell(column < row.count ? row[column] : nil, column) }
            html += "</tr>\n"
        }
        return html + "</tbody></table></div>\n"
    }

    /// A longer text is broken into lines.
    private static let longest = 36

    private func cell(_ cell: Cell?, _ column: Int) -> String {
        var classes: [String] = []
        if cell?.html.utf8.count ?? 0 > Self.longest, cell?.html.first != "<" { classes.append("long") }
        if column < self.words { classes.append("words") }
        if let tone = cell?.tone, tone != .plain { classes.append(tone.rawValue) }
        var attributes = classes.isEmpty ? "" : " class=\"\(classes.joined(separator: " "))\""
        if self.isSortable, let key = cell?.key { attributes += " data-v=\"\(PageData.number(key, digits: 15))\"" }
        let html = cell?.html ?? Words.unknown
        return column == 0 ? "<th scope=\"row\"\(attributes)>\(html)</th>" : "<td\(attributes)>\(html)</td>"
    }
}
