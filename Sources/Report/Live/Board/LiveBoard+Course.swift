import Measurement

// Heading, course and verdict.
extension LiveBoard {
    private static let mostBarColumns = 60

    /// Command, name and target, with the time since the start at the right.
    func heading(_ width: Int) -> BoardLine {
        let elapsed = "elapsed \(Self.clock(self.run.elapsed))"
        var line = BoardLine(Summary(self.run.first).commandName, .bold)
        let targets = self.run.first.targets
        let servers =
            targets.prefix(2).joined(separator: ", ") + (targets.count > 2 ? " and \(targets.count - 2) more" : "")
        for word in RunTitle.words(self.run.first) + (servers.isEmpty ? [] : [servers]) {
            line.add(" · ", .dim)
            line.add(word)
        }
        line = line.truncated(to: max(0, width - elapsed.count - 2))
        line.add(elapsed, endingAt: width, .dim)
        return line
    }

    /// The phase or stage, a bar where its end is planned, and the time.
    func progress(_ width: Int) -> BoardLine {
        guard let latest = self.run.latest else { return Self.title("start") }
        if self.run.final != nil {
            return Self.title("ended").adding(BoardLine("after \(Self.clock(self.run.elapsed))"))
        }
        if latest.phase == "drain" { return self.drain }
        guard let place = self.run.place, let begin = self.run.loadBegin else {
            let up = self.run.recent.last?.clientsUp
            let words = [up.map(Words.number), "of \(Words.number(Double(self.run.clientsPlanned))) clients up"]
            let share = ratio(up, Double(self.run.clientsPlanned)) ?? 0
            return Self.bar(latest.phase, share, [], words.compactMap(\.self).joined(separator: " "), width)
        }
        let passed = self.run.elapsed - begin
        let stages = self.run.course.stages
        let number = stages.count > 1 ? "stage \(place.number + 1) of \(stages.count)" : nil
        guard let left = place.left, let all = self.run.course.seconds, all > 0 else {
            let parts = [number, Self.clock(passed), "until a limit or Ctrl-C ends it"]
            return Self.title(place.stage.name).adding(BoardLine(parts.compactMap(\.self).joined(separator: " · ")))
        }
        var marks: [Double] = []
        for stage in stages.dropLast() { marks.append((marks.last ?? 0) + (stage.seconds ?? 0) / all) }
        let times = ["\(Self.clock(passed)) of \(Self.clock(all))", "\(Self.clock(left)) left"]
        return Self.bar(
            place.stage.name,
            passed / all,
            marks,
            ([number].compactMap(\.self) + times).joined(separator: " · "),
            width
        )
    }

    /// The words say what is awaited, and the longest time for it.
    private var drain: BoardLine {
        let passed = self.run.stages.last.map { Self.clock($0.durationSeconds) } ?? ""
        let most = self.run.course.drainSeconds
        let awaited =
            self.outstanding.map { "waits for \(Words.counted($0, "outstanding message"))" }
            ?? "waits for what is under way"
        return Self.title("drain").adding(
            BoardLine(awaited + (most > 0 ? " · \(passed) of at most \(Self.clock(most))" : " · \(passed)"))
        )
    }

    /// `measure     ███████│███░░░░░░  words`; `marks` are shares of the bar at which a stage ends.
    private static func bar(
        _ name: String,
        _ share: Double,
        _ marks: [Double],
        _ words: String,
        _ width: Int
    ) -> BoardLine {
        var line = self.title(name)
        let room = min(self.mostBarColumns, width - self.titleWidth - words.count - 2)
        let bar = Blocks.bar(share, width: max(0, room))
        let places = Set(marks.filter { $0 > 0 && $0 < 1 }.map { Int($0 * Double(max(0, room))) })
        for (place, block) in (bar.filled + bar.empty).enumerated() {
            let isFilled = place < bar.filled.count
            line.add(
                places.contains(place) ? "│" : String(block),
                places.contains(place) ? .bold : isFilled ? .green : .dim
            )
        }
        line.add("  \(words)")
        return line
    }

    /// `0:42`, `1:02:03`.
    static func clock(_ seconds: Double) -> String {
        guard seconds.isFinite else { return Words.unknown }
        let whole = UInt64(bounded: seconds.rounded())
        func two(_ value: UInt64) -> String { (value < 10 ? "0" : "") + String(value) }
        let (hours, minutes) = (whole / 3600, whole / 60 % 60)
        return (hours > 0 ? "\(hours):\(two(minutes))" : "\(minutes)") + ":\(two(whole % 60))"
    }

    // MARK: - Verdict

    /// Measurement and objectives so far, and the first reason.
    var verdict: BoardRows {
        let verdict = self.run.final?.verdict ?? self.run.standing.verdict
        var line = Self.title("Verdict")
        let sign = verdict.state == .valid ? "✓" : verdict.state.ink == .yellow ? "!" : "✗"
        line.add("\(sign) \(verdict.state.rawValue)", verdict.state.ink)
        if self.run.final == nil { line.add(" so far") }
        let results = self.objectiveResults
        let tested = results.filter { $0.value != nil }
        if !results.isEmpty {
            line.add(" · ", .dim)
            let met = tested.count { $0.ok }
            line.add(
                "\(met) of \(results.count) objective\(results.count == 1 ? "" : "s") met",
                met < tested.count ? .red : met == results.count ? .green : nil
            )
            if tested.count < results.count { line.add(", \(results.count - tested.count) open", .dim) }
        }
        var rows = BoardRows()
        rows.add(line, .verdict)
        if let reason = verdict.reasons.first {
            let more = verdict.reasons.count > 1 ? " (and \(verdict.reasons.count - 1) more)" : ""
            rows.add(Self.below("! \(reason.text)\(more)", verdict.state.ink), .reason)
        }
        return rows
    }

    /// The planned objectives, with their results so far.
    private var objectiveResults: [ThresholdResult] {
        if let final = self.run.final { return final.thresholds }
        let known = self.run.standing.thresholds
        let open = self.run.first.thresholds.filter { plan in !known.contains { $0.expression == plan.expression } }
        return known + open.map { ThresholdResult(expression: $0.expression, ok: false, value: nil) }
    }

    /// A row for each objective; those that are not met first.
    func objectives(_ width: Int) -> BoardRows {
        var rows = BoardRows()
        let results =
            self.objectiveResults.filter { $0.value != nil && !$0.ok }
            + self.objectiveResults.filter { $0.value == nil || $0.ok }
        let value = results.map { $0.value == nil ? 1 : $0.valueText.count }.max() ?? 0
        let expression = min(results.map(\.expression.count).max() ?? 0, width - Self.titleWidth - value - 4)
        for (number, result) in results.enumerated() {
            var line = number == 0 ? Self.title("Objectives") : Self.below("")
            switch (result.value, result.ok) {
            case (nil, _): line.add("… ", .dim)
            case (_, true): line.add("✓ ", .green)
            case (_, false): line.add(result.state == .undecided ? "? " : "✗ ", result.state.ink)
            }
            line.add(result.expression.truncated(to: expression).paddedRight(to: expression))
            line.add(
                "  " + (result.value == nil ? "…" : result.valueText).paddedLeft(to: value),
                result.value != nil && !result.ok ? result.state.ink : nil
            )
            rows.add(line, result.value != nil && !result.ok ? .brokenObjective : .objective)
        }
        return rows
    }
}
