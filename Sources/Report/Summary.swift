package import Measurement

/// The final text of a run: what a person wants to know, the verdict first.
///
/// Made from the run record alone, so that it can be had again at any time.
package struct Summary {
    let record: RunRecord
    let style: TerminalStyle
    let files: String?

    /// - Parameters:
    ///   - record: the whole of `run.json`.
    ///   - files: the directory that the results are in; nothing where none were kept.
    ///   - style: colours and width. At least 60 columns are used, and 100 at most.
    package init(_ record: RunRecord, files: String? = nil, style: TerminalStyle = TerminalStyle()) {
        self.record = record
        self.files = files
        self.style = style
    }

    /// At most 100 columns: longer lines are hard to read, and tables were laid out for it.
    var width: Int { min(max(self.style.width, 60), 100) }

    /// All of it, with a line break at the end.
    package var text: String {
        var lines = self.verdict
        let sections = [
            self.connect, self.publish, self.acknowledgements, self.blocked, self.requests, self.delivery,
            self.endToEnd, self.decoder, self.fairness, self.errors, self.thresholds, self.books, self.generator,
            self.whereFilesAre,
        ]
        for section in sections where !section.isEmpty {
            lines.append("")
            lines += section
        }
        return lines.joined(separator: "\n") + "\n"
    }

    /// A table under its header, which is painted; nothing where there is no row.
    func section(_ table: TextTable) -> [String] {
        guard !table.isEmpty else { return [] }
        var lines = table.lines()
        lines[0] = self.style.paint(lines[0], .bold)
        return lines
    }

    /// A paragraph, its later lines indented below the first.
    func paragraph(_ text: String, indent: Int, hanging: Int = 0) -> [String] {
        let inner = text.wrapped(at: self.width - indent - hanging)
        return inner.enumerated().map { number, line in
            String(repeating: " ", count: number == 0 ? indent : indent + hanging) + line
        }
    }
}
