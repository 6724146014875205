package import Measurement

/// The final text of a run for a person, the verdict first.
///
/// Made from the run record alone, so that it can be had again at any time.
package struct Summary {
    package enum Detail: String, Sendable, CaseIterable {
        /// Verdict, objectives, the one sentence and the main figures.
        case compact
        case full
    }

    /// The record without the metrics of single stages.
    let record: RunRecord
    let stageMetrics: [Metric]
    let style: TerminalStyle
    let files: String?
    let page: String?
    let detail: Detail

    /// - Parameters:
    ///   - record: the whole of `run.json`.
    ///   - detail: the choice of figures.
    ///   - files: the directory that the results are in; nothing where none were kept.
    ///   - page: the name of the page in that directory; nothing where there is none.
    ///   - style: colours and width. At least 60 columns are used, and 100 at most.
    package init(
        _ record: RunRecord,
        detail: Detail = .compact,
        files: String? = nil,
        page: String? = nil,
        style: TerminalStyle = TerminalStyle()
    ) {
        self.stageMetrics = record.metrics.filter { $0.labels[Labels.stage] != nil }
        self.record = self.stageMetrics.isEmpty ? record : record.withoutStages
        self.files = files
        self.page = page
        self.style = style
        self.detail = detail
    }

    /// At most 100 columns: longer lines are hard to read, and tables were laid out for it.
    var width: Int { min(max(self.style.width, 60), 100) }

    /// All of it, with a line break at the end.
    package var text: String {
        var lines = self.opening
        for section in self.sections where !section.isEmpty {
            lines.append("")
            lines += section
        }
        return lines.joined(separator: "\n") + "\n"
    }

    private var sections: [[String]] {
        guard !self.nothingConnected else { return [self.errors, self.hint, self.whereFilesAre] }
        // Decoders have rates and no server.
        let figures =
            self.record.isOfDecoders
            ? [self.loadLine, self.decoderBenchmark, self.objectiveSection, self.generatorLine]
            : self.lines + [self.hint, self.objectiveSection]
        let others = [self.errors, self.fairness, self.decoder, self.books] + self.everything
        return [self.notes] + figures + (self.detail == .full ? others : []) + [self.whereFilesAre]
    }

    private var whereFilesAre: [String] {
        guard let files = self.files else { return [] }
        let names = [self.page, "run.json metrics.csv timeline.csv latency.hlog"].compactMap(\.self)
        let others = [self.page.map { "page: \($0)" }, "all figures: --summary full"].compactMap(\.self)
        let isWhole = self.detail == .full || self.nothingConnected || self.record.isOfDecoders
        let words = isWhole ? names.joined(separator: " ") : others.joined(separator: " · ")
        return [self.style.paint("Files", .bold) + "  \(files.hasSuffix("/") ? files : files + "/")  \(words)"]
    }

    /// Parts side by side, indented below a title; nothing without any.
    func paragraph(_ title: String, _ parts: [String]) -> [String] {
        guard !parts.isEmpty else { return [] }
        return [self.style.paint(title, .bold)] + self.paragraph(parts.joined(separator: " · "), indent: 2)
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
