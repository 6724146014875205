import Measurement

extension Summary {
    /// Whether to believe the rest, with every reason.
    var verdict: [String] {
        let segment = self.segment.map { self.paragraph($0, indent: 2, hanging: 2) } ?? []
        guard let verdict = self.record.verdict else {
            return [self.style.paint("UNFINISHED", .yellow) + "  " + self.headline] + segment
        }
        let ink: TerminalStyle.Ink =
            switch verdict.state {
            case .valid: .green
            case .generatorLimited: .yellow
            case .unreconciled, .aborted: .red
            }
        let state = verdict.state.rawValue.uppercased()
        return [self.style.paint(state, ink) + "  " + self.headline] + segment
            + verdict.reasons.flatMap { self.paragraph("! \($0.text) [\($0.code)]", indent: 2, hanging: 2) }
    }

    /// What is to be known beside the figures.
    var notes: [String] {
        let notes = self.record.notes ?? []
        guard !notes.isEmpty else { return [] }
        return [self.style.paint("Notes", .bold)]
            + notes.flatMap { self.paragraph("\($0.text) [\($0.code)]", indent: 2, hanging: 2) }
    }

    /// `clamor pub · 10.0 s measured of 12.1 s · started 2026-11-21 01:37:09 UTC`.
    var headline: String {
        let measured = self.record.stages.filter(\.measured).map(\.durationSeconds).reduce(0, +)
        let length = self.record.durationSeconds.map(Human.duration)
        let time =
            switch (measured > 0, length) {
            case (true, .some(let length)): "\(Human.duration(measured)) measured of \(length)"
            case (true, .none): "\(Human.duration(measured)) measured"
            case (false, .some(let length)): length
            case (false, .none): "length unknown"
            }
        let started = self.record.startedAt.prefix(19).replacing("T", with: " ")
        return [self.commandName, time, "started \(started) UTC"].joined(separator: " · ")
    }

    /// Nothing of a run that is whole, or merged.
    var segment: String? {
        let segment = self.record.segment
        guard segment.run != nil, segment.merged == nil else { return nil }
        return "segment \(segment.index) of \(segment.count): a part of the load; clamor merge adds the results of all"
    }

    var commandName: String {
        let words = self.record.command
        let program = words.first.map { String($0.split(separator: "/").last ?? "") } ?? self.record.tool.name
        // Commands of a group have two words.
        let count = words.dropFirst().first == "xmpp" ? 2 : 1
        let subcommand = words.dropFirst().filter { !$0.hasPrefix("-") }.prefix(count)
        return ([program] + subcommand).joined(separator: " ")
    }

    /// `ok` or `FAILED`, the sentence, and the figure that decided.
    var thresholds: [String] {
        let results = self.record.thresholds
        guard !results.isEmpty else { return [] }
        let failed = results.count { !$0.ok }
        let title =
            failed == 0 ? "Thresholds  all \(results.count) hold" : "Thresholds  \(failed) of \(results.count) failed"
        let width = results.map(\.expression.count).max() ?? 0
        return [self.style.paint(title, .bold)]
            + results.map { result in
                let mark = result.ok ? self.style.paint("ok    ", .green) : self.style.paint("FAILED", .red)
                return "  \(mark)  \(result.expression.paddedRight(to: width))  \(result.valueText)"
            }
    }

    /// Every kind once, the most frequent first, with its example below.
    var errors: [String] {
        let errors = self.record.errors.sorted { ($1.count, $0.kind) < ($0.count, $1.kind) }
        guard !errors.isEmpty else { return [] }
        var table = TextTable(["Errors", "count", "first at"])
        for error in errors {
            // The time of day, to the millisecond.
            table.add([error.kind, Human.count(error.count), String(error.firstAt.prefix(23).dropFirst(11))])
        }
        let rows = self.section(table)
        var lines = [rows[0]]
        for (row, error) in zip(rows.dropFirst(), errors) {
            lines.append(row)
            if !error.example.isEmpty {
                lines.append("    " + self.style.paint("e.g. \(error.example)".truncated(to: self.width - 4), .dim))
            }
        }
        return lines
    }
}

extension ThresholdResult {
    /// The measured figure in the manner of the limit that stands in the sentence.
    var valueText: String {
        guard let value = self.value else { return "no sample" }
        return switch (try? Threshold.parse(self.expression))?.unit {
        case .time: Human.duration(value)
        case .share: Human.percent(value)
        case .perSecond: Human.rate(value)
        case .plain, nil: Human.number(value)
        }
    }
}
