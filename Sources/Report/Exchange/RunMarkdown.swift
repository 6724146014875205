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
        text += MarkdownTable.escaped(summary.headline) + "\n\n"
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
            guard let reading = metric.duration, PercentileDistribution.isMain(metric), metric.labels["stage"] == nil
            else { continue }
            let figures = Cell.durations(metric, [\.p50, \.p90, \.p99, \.p999, \.max])
            table.add([self.title(metric), Human.count(reading.count)] + figures.map { $0 ?? Human.unknown })
        }
        return table
    }

    private static func rates(_ record: RunRecord) -> MarkdownTable {
        var table = MarkdownTable(["throughput", "rate", "in all"])
        for metric in record.metrics {
            guard let reading = metric.counter, let rate = reading.rate, reading.value > 0,
                MetricDirection.of(metric.name) == .up, !metric.name.hasPrefix("decode_"), metric.labels["stage"] == nil
            else { continue }
            table.add([self.title(metric), Human.rate(rate), Human.number(reading.value)])
        }
        return table
    }

    private static func errors(_ record: RunRecord) -> MarkdownTable {
        var table = MarkdownTable(["error", "count"])
        for error in record.errors.sorted(by: { ($1.count, $0.kind) < ($0.count, $1.kind) }) {
            let name = [error.group, error.kind].compactMap(\.self).joined(separator: " ")
            table.add([name, Human.count(error.count)])
        }
        return table
    }

    private static func title(_ metric: Metric) -> String {
        ([metric.name] + metric.labels.all.map { "\($0.key)=\($0.value)" }).joined(separator: " ")
    }
}
