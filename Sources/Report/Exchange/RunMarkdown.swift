package import Measurement

/// A run for the summary page of a build server.
package enum RunMarkdown {
    package static func text(_ record: RunRecord) -> String {
        let summary = Summary(record)
        let hasFailed = summary.hasFailed
        let isGood = !hasFailed && record.verdict?.state == .valid
        let mark = isGood ? "✅" : hasFailed || record.verdict?.state == .aborted ? "❌" : "⚠️"
        let outcome = [summary.state, summary.objectives].compactMap(\.self).joined(separator: " · ")
        var text = "### \(mark) \(MarkdownTable.escaped(summary.commandName)): \(outcome)\n\n"
        for words in [summary.headline, record.load, ServerOutcome(record).text] {
            if let words { text += MarkdownTable.escaped(words) + "\n\n" }
        }
        if let segment = summary.segment { text += "\(segment)\n\n" }
        for reason in record.verdict?.reasons ?? [] {
            text += "> \(MarkdownTable.escaped(reason.text)) \\[\(MarkdownTable.escaped(reason.code))\\]\n>\n"
        }
        if !(record.verdict?.reasons ?? []).isEmpty { text += "\n" }
        let objectives = self.objectives(record)
        if !objectives.isEmpty { text += objectives.text + "\n" }
        for losses in record.lossTexts { text += MarkdownTable.escaped(losses) + "\n\n" }
        for table in [self.durations(record), self.rates(record), self.errors(record)] where !table.isEmpty {
            text += table.text + "\n"
        }
        return text
    }

    /// The head of a run's page.
    package static func head(_ title: String, _ paragraphs: [String?], _ figures: [[String]]) -> String {
        var table = MarkdownTable(["figure", "value"])
        for figure in figures { table.add(figure) }
        let parts = paragraphs.compactMap { $0.map(MarkdownTable.escaped) } + (table.isEmpty ? [] : [table.text])
        return (["### \(MarkdownTable.escaped(title))"] + parts).joined(separator: "\n\n")
    }

    private static func objectives(_ record: RunRecord) -> MarkdownTable {
        var table = MarkdownTable(["objective", "measured", ""])
        for result in record.thresholds {
            let word = result.ok ? result.state.word : "**\(result.state.word)**"
            let measured = ([result.valueText] + [result.remedy].compactMap(\.self)).joined(separator: ": ")
            table.add([MarkdownTable.code(result.expression), MarkdownTable.escaped(measured), word], raw: true)
        }
        return table
    }

    private static func durations(_ record: RunRecord) -> MarkdownTable {
        var table = MarkdownTable(["latency", "count", "p50", "p90", "p99", "p99.9", "max"])
        for metric in record.metrics {
            guard let reading = metric.duration, metric.definition?.isMain == true, metric.labels.isWhole(),
                metric.labels["stage"] == nil
            else { continue }
            let figures = Cell.durations(metric, [\.p50, \.p90, \.p99, \.p999, \.max])
            table.add([self.title(metric), Words.count(reading.count)] + figures.map { $0 ?? Words.unknown })
        }
        return table
    }

    private static func rates(_ record: RunRecord) -> MarkdownTable {
        var table = MarkdownTable(["throughput", "rate", "in all"])
        for metric in record.metrics {
            guard let reading = metric.counter, let rate = reading.rate, reading.value > 0,
                MetricDefinition.named(metric.name).direction == .up, !metric.name.hasPrefix("decode_"),
                metric.labels["stage"] == nil
            else { continue }
            table.add([self.title(metric), Words.rate(rate), Words.number(reading.value)])
        }
        return table
    }

    private static func errors(_ record: RunRecord) -> MarkdownTable {
        var table = MarkdownTable(["error", "count"])
        for error in record.errors.mostFrequentFirst { table.add([error.words, Words.count(error.count)]) }
        return table
    }

    private static func title(_ metric: Metric) -> String {
        ([metric.name] + metric.labels.all.map { "\($0.key)=\($0.value)" }).joined(separator: " ")
    }
}
