package import Measurement

extension Summary {
    /// Measurement and objectives side by side: neither is to be missed for the other.
    ///
    /// Reasons that the sentence has word for word are left out.
    var opening: [String] {
        let words = self.record.findings?.sentence ?? ""
        let reasons = (self.record.verdict?.reasons ?? []).filter { reason in
            // The code of a silent server is in the exit status.
            !words.contains(reason.code == Verdict.Reason.silentCode ? reason.text : reason.line)
        }
        func paragraph(_ text: String) -> [String] { self.paragraph(text, indent: 2, hanging: 2) }
        let sentence = self.line("Outcome", [ServerOutcome(self.record).text])
        let rest = (self.segment.map(paragraph) ?? []) + reasons.flatMap { paragraph("! \($0.line)") }
        let state = self.style.paint(self.state.uppercased(), self.record.verdict?.state.ink ?? .yellow)
        guard let objectives = self.objectives else { return ["\(state)  \(self.headline)"] + sentence + rest }
        let met = self.style.paint(objectives, self.hasFailed ? .red : .green)
        return ["\(state) · \(met)"] + sentence + [self.headline] + rest
    }

    /// `3 of 4 objectives met`; nothing of a run that tested none, such as one in which no client connected.
    var objectives: String? {
        let results = self.record.thresholds
        guard !results.isEmpty, !self.nothingConnected else { return nil }
        return "\(results.count { $0.ok }) of \(results.count) objective\(results.count == 1 ? "" : "s") met"
    }

    /// Whether an objective that was tested failed.
    var hasFailed: Bool { !self.nothingConnected && self.record.thresholds.contains { !$0.ok } }
    var state: String { self.record.verdict?.state.rawValue ?? "unfinished" }

    /// Notes in addition to the figures.
    var notes: [String] {
        let notes = self.record.notes ?? []
        guard !notes.isEmpty else { return [] }
        return [self.style.paint("Notes", .bold)]
            + notes.flatMap { self.paragraph($0.line, indent: 2, hanging: 2) }
    }

    /// `clamor run · fleet telemetry · 10.0 s measured of 12.1 s · started 2026-11-21 01:37:09 UTC`.
    var headline: String {
        let measured = Words.duration(self.measuredSeconds) + " measured"
        let length = self.record.durationSeconds.map(Words.duration)
        let time =
            switch (self.measuredSeconds > 0, length) {
            case (true, .some(let length)): "\(measured) of \(length)"
            case (true, .none): measured
            case (false, .some(let length)): length
            case (false, .none): "length unknown"
            }
        let started = self.record.startedAt.prefix(19).replacing("T", with: " ")
        return ([self.commandName] + RunTitle.words(self.record) + [time, "started \(started) UTC"]).joined(
            separator: " · "
        )
    }

    /// The length of the measured phase, which rates belong to.
    var measuredSeconds: Double { self.record.stages.reduce(0) { $1.measured ? $0 + $1.durationSeconds : $0 } }

    /// The part of a run's count that was in the measured phase, by its rate; `nil` where that is all of it.
    func measuredPart(_ value: Double?, _ rate: Double?) -> Double? {
        guard let value, let rate, case let seconds = self.measuredSeconds, seconds > 0 else { return nil }
        let part = (rate * seconds).rounded()
        return part < value - max(1, value / 50) ? part : nil
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

    /// The compact text lists only failed objectives where there are more than these.
    private static let mostObjectives = 6

    var objectiveSection: [String] {
        let results = self.record.thresholds
        guard !results.isEmpty else { return [] }
        let isShort = self.detail == .compact && results.count > Self.mostObjectives
        let share = self.record.findings?.withinObjective.map {
            "  \(Words.percent($0)) of the seconds met the latency objectives"
        }
        return [self.style.paint("Objectives", .bold) + (share ?? "")] + self.objectiveRows { !isShort || !$0.ok }
    }

    /// `met`, `FAILED` or `undecided`, the sentence, and the figure that decided.
    private func objectiveRows(where isShown: (ThresholdResult) -> Bool) -> [String] {
        let results = self.record.thresholds
        let width = results.map(\.expression.count).max() ?? 0
        let marks = max(6, results.map(\.state.word.count).max() ?? 0)
        return results.filter(isShown).flatMap { result in
            let mark = self.style.paint(result.state.word.paddedRight(to: marks), result.state.ink)
            let row = "  \(mark)  \(result.expression.paddedRight(to: width))  \(result.valueText)"
            return [row] + (result.remedy.map { self.paragraph($0, indent: marks + 4) } ?? [])
        }
    }

    /// Every kind once, the most frequent first, with its example below.
    var errors: [String] {
        let errors = self.record.errors.mostFrequentFirst
        guard !errors.isEmpty else { return [] }
        var table = TextTable(["Errors", "count", "first at"])
        for error in errors {
            // The time of day, to the millisecond.
            table.add([error.words, Words.count(error.count), String(error.firstAt.prefix(23).dropFirst(11))])
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

    /// Whether the run never had a connection: then every figure is zero and shows nothing of the server.
    var nothingConnected: Bool { self.record.hasNeverConnected }

    /// Where to look first, if no client of the run or of a group had a connection.
    var hint: [String] {
        let title = self.style.paint("Hint", .bold) + "  "
        guard !self.nothingConnected else { return [title + self.record.connectionHint] }
        return (self.record.groups ?? []).compactMap { group in
            let part = self.record.part(group.name)
            return part.hasNeverConnected ? "\(title)\(group.name): \(part.connectionHint)" : nil
        }
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
    /// The measured figure in the unit of the limit, which is printed in the same sentence; both ends of one that is not
    /// known exactly.
    package var valueText: String {
        guard let value = self.value else { return "no sample" }
        let unit = (try? Threshold.parse(self.expression))?.unit
        func text(_ value: Double) -> String {
            switch unit {
            case .time: Words.duration(value)
            case .share: Words.percent(value)
            case .perSecond: Words.rate(value)
            case .perHour: "\(Words.number(value))/h"
            case .timePerHour: "\(Words.duration(value))/h"
            case .plain, nil: Words.number(value)
            }
        }
        guard self.isBound else { return text(value) }
        return self.high.map { "\(text(value)) to \(text($0))" } ?? Words.atLeast(text(value))
    }

    /// The means to decide it; `nil` if it is decided, or if nothing but an answer would.
    package var remedy: String? {
        guard self.state == .undecided, let low = self.value, let high = self.high,
            (try? Threshold.parse(self.expression))?.isOf([.deliveryLost, .retainedLost]) == true
        else { return nil }
        return "\(Words.number(high - low)) outstanding when the drain ended; give it more time"
    }
}

extension FindingPoint {
    /// The value of one that is a time.
    package var text: String { Words.atLeast(Words.duration(self.value), if: self.bound == true) }
}

extension ThresholdResult.State {
    package var word: String {
        switch self {
        case .met: "met"
        case .broken: "FAILED"
        case .undecided: "undecided"
        }
    }

    var ink: TerminalStyle.Ink {
        switch self {
        case .met: .green
        case .broken: .red
        case .undecided: .yellow
        }
    }
}

extension ErrorRecord {
    /// The kind, with the group in a run of several.
    var words: String { [self.group, self.kind].compactMap(\.self).joined(separator: " ") }
}

extension [ErrorRecord] {
    package var mostFrequentFirst: [ErrorRecord] { self.sorted { ($1.count, $0.kind) < ($0.count, $1.kind) } }
}
