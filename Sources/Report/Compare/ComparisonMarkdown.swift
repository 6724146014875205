/// A comparison for a pull request.
package enum ComparisonMarkdown {
    package static func text(_ comparison: Comparison) -> String {
        let mark =
            if comparison.hasFailed { "❌" } else if comparison.judged.isEmpty { "⚪" } else {
                comparison.isIndicative || comparison.isUndecided ? "⚠️" : "✅"
            }
        var text = "### \(mark) clamor compare: \(comparison.state.lowercased())\n\n"
        text += MarkdownTable.escaped(comparison.headline) + "\n\n"
        for note in comparison.notes { text += "> \(MarkdownTable.escaped(note))\n>\n" }
        if !comparison.notes.isEmpty { text += "\n" }
        if !comparison.judged.isEmpty { text += self.table(comparison.judged, comparison, showsLimit: true) + "\n" }
        let others = comparison.figures.filter { $0.gate == nil }
        let different = others.filter { $0.finding != .same }
        if !different.isEmpty {
            text += "<details><summary>Not judged, but different: \(different.count)</summary>\n\n"
            text += self.table(different, comparison, showsLimit: false) + "\n</details>\n\n"
        }
        if let rest = Comparison.rest(others.count - different.count) { text += rest + "\n" }
        return text
    }

    private static func table(_ figures: [ComparedFigure], _ comparison: Comparison, showsLimit: Bool) -> String {
        let limit = showsLimit ? ["limit"] : []
        var table = MarkdownTable(["figure", "base", "new", "change", comparison.intervalTitle] + limit + ["finding"])
        for figure in figures {
            let name = MarkdownTable.code(figure.fullTitle)
            let fails = figure.gate?.isBroken == true && comparison.hasFailed
            let limits = figure.limitText.map { [$0] } ?? limit
            let finding = figure.findingText(hasFailed: comparison.hasFailed)
            let words = fails ? "**\(finding)**" : finding
            table.add([name] + figure.texts.map(MarkdownTable.escaped) + limits + [words], raw: true)
        }
        return table.text
    }
}
