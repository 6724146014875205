package import Measurement

extension Summary {
    /// A failed threshold first, then whether the figures can be believed, with every reason.
    var opening: [String] {
        let state = self.style.paint(self.state.uppercased(), self.ink)
        guard let failed = self.failed else { return ["\(state)  \(self.headline)"] + self.sentence + self.reasons }
        let measurement = self.isValid ? self.state : self.style.paint(self.state, self.ink)
        return ["\(self.style.paint("FAILED", .red)) \(failed) · measurement \(measurement)"]
            + self.sentence + self.thresholdRows + ["", self.headline] + self.reasons
    }

    /// Measurement and objectives side by side: neither is to be missed for the other.
    var compactOpening: [String] {
        let state = self.style.paint(self.state.uppercased(), self.ink)
        guard let objectives = self.objectives else {
            return ["\(state)  \(self.headline)"] + self.sentence + self.otherReasons
        }
        return ["\(state) · \(objectives)"] + self.sentence + [self.headline] + self.otherReasons
    }

    /// `3 of 4 objectives met`; nothing of a run that tested none.
    private var objectives: String? {
        let results = self.record.thresholds
        guard !results.isEmpty, !self.nothingConnected else { return nil }
        let met = results.count { $0.ok }
        let words = "\(met) of \(results.count) objective\(results.count == 1 ? "" : "s") met"
        return self.style.paint(words, met == results.count ? .green : .red)
    }

    /// The one sentence of the run.
    private var sentence: [String] {
        (self.record.findings?.sentence).map { self.paragraph($0, indent: 2, hanging: 2) } ?? []
    }

    /// `1 of 2 thresholds`; nothing where none failed, and of a run that tested none, as no client connected.
    var failed: String? {
        let results = self.record.thresholds
        let failed = results.count { !$0.ok }
        guard failed > 0, !self.nothingConnected else { return nil }
        return "\(failed) of \(results.count) threshold\(results.count == 1 ? "" : "s")"
    }

    /// The verdict in a word.
    var state: String { self.record.verdict?.state.rawValue ?? "unfinished" }

    private var isValid: Bool { self.record.verdict?.state == .valid }

    private var ink: TerminalStyle.Ink { self.record.verdict?.state.ink ?? .yellow }

    private var reasons: [String] { self.reasons(self.record.verdict?.reasons ?? []) }

    /// Without those that the sentence above them has word for word.
    private var otherReasons: [String] {
        let sentence = self.record.findings?.sentence ?? ""
        return self.reasons((self.record.verdict?.reasons ?? []).filter { !sentence.contains($0.text) })
    }

    private func reasons(_ reasons: [Verdict.Reason]) -> [String] {
        let segment = self.segment.map { self.paragraph($0, indent: 2, hanging: 2) } ?? []
        return segment + reasons.flatMap { self.paragraph("! \($0.text) [\($0.code)]", indent: 2, hanging: 2) }
    }

    /// Notes in addition to the figures.
    var notes: [String] {
        let notes = self.record.notes ?? []
        guard !notes.isEmpty else { return [] }
        return [self.style.paint("Notes", .bold)]
            + notes.flatMap { self.paragraph("\($0.text) [\($0.code)]", indent: 2, hanging: 2) }
    }

    /// `clamor run · fleet telemetry · 10.0 s measured of 12.1 s · started 2026-11-21 01:37:09 UTC`.
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
        return ([self.commandName] + RunTitle.words(self.record) + [time, "started \(started) UTC"]).joined(
            separator: " · "
        )
    }

    /// Nothing of a run that is whole, or merged.
    var segment: String? {
        let segment = self.record.segment
        guard segment.isPart else { return nil }
        return "segment \(segment.index) of \(segment.count): a part of the load; clamor merge adds the results of all"
    }

    package var commandName: String {
        let words = self.record.command
        let program = words.first.map { String($0.split(separator: "/").last ?? "") } ?? self.record.tool.name
        // Commands of a group have two words.
        let count = words.dropFirst().first == "xmpp" ? 2 : 1
        let subcommand = words.dropFirst().filter { !$0.hasPrefix("-") }.prefix(count)
        return ([program] + subcommand).joined(separator: " ")
    }

    /// The thresholds of a run in which all of them held.
    var thresholds: [String] {
        let count = self.record.thresholds.count
        guard count > 0 else { return [] }
        return [self.style.paint("Thresholds  all \(count) hold", .bold)] + self.thresholdRows
    }

    /// `ok` or `FAILED`, the sentence, and the figure that decided.
    var thresholdRows: [String] {
        let width = self.record.thresholds.map(\.expression.count).max() ?? 0
        return self.record.thresholds.map { result in
            let mark = result.ok ? self.style.paint("ok    ", .green) : self.style.paint("FAILED", .red)
            return "  \(mark)  \(result.expression.paddedRight(to: width))  \(result.valueText)"
        }
    }

    /// Every kind once, the most frequent first, with its example below.
    var errors: [String] {
        let errors = self.record.errors.mostFrequentFirst
        guard !errors.isEmpty else { return [] }
        var table = TextTable(["Errors", "count", "first at"])
        for error in errors {
            // The time of day, to the millisecond.
            table.add([error.words, Human.count(error.count), String(error.firstAt.prefix(23).dropFirst(11))])
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

extension Verdict.State {
    var ink: TerminalStyle.Ink {
        switch self {
        case .valid: .green
        case .generatorLimited: .yellow
        case .unreconciled, .aborted: .red
        }
    }
}

extension ThresholdResult {
    /// The measured figure in the unit of the limit, which is printed in the same sentence.
    package var valueText: String {
        guard let value = self.value else { return "no sample" }
        return switch (try? Threshold.parse(self.expression))?.unit {
        case .time: Human.duration(value)
        case .share: Human.percent(value)
        case .perSecond: Human.rate(value)
        case .plain, nil: Human.number(value)
        }
    }
}

extension ErrorRecord {
    /// The kind, with the group in a run of several.
    var words: String { [self.group, self.kind].compactMap(\.self).joined(separator: " ") }
}

extension [ErrorRecord] {
    var mostFrequentFirst: [ErrorRecord] { self.sorted { ($1.count, $0.kind) < ($0.count, $1.kind) } }
}
