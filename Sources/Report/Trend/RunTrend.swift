package import Measurement

/// The usual figures of runs in the order of their starts, and where their levels changed.
package struct RunTrend: Sendable {
    package struct Row: SeriesFigure {
        package var name: String
        package var labels: Labels
        package var field: Threshold.Field
        package var unit: String?
        package var direction: MetricDefinition.Direction
        /// One for each run; absent where a run lacks the figure.
        package var values: [Double?]
        /// The runs whose value is only known to be at least so much.
        package var bounds: Set<Int>
        /// The changes in the order of the runs.
        package var changes: [LevelChange]

        /// The value of a run for people.
        package func text(run: Int) -> String { self.text(self.values[run], isBound: self.bounds.contains(run)) }
    }

    /// The runs in the order of their starts.
    package let runs: [ComparedRun]
    package let rows: [Row]
    /// Where the runs differ in more than the server; the first run is the measure.
    package let differences: [Comparability.Difference]

    package init(_ runs: [ComparedRun]) {
        let runs = runs.sorted { ($0.record.startedAt, $0.path) < ($1.record.startedAt, $1.path) }
        self.runs = runs
        self.differences = Comparability.differences(runs)
        let sides = Sides(runs, [])
        let limits = Comparison.usual(sides)
        self.rows = limits.flatMap { limit in
            sides.all.filter { limit.chooses($0.name, $0.labels) }.sorted { $0.labels < $1.labels }
                .compactMap { Self.row($0, limit, sides, runs) }
        }
    }

    private static func row(_ series: Series, _ limit: RegressionLimit, _ sides: Sides, _ runs: [ComparedRun]) -> Row? {
        let field = limit.field ?? sides.plainField(series)
        let isMishap = MetricDefinition.named(series.name).isMishap
        guard isMishap || sides.fields(series).contains(field) else { return nil }
        let values = runs.indices.map { sides.value(series, field, run: $0) }
        guard values.count(where: { $0?.isFinite == true }) > 1 else { return nil }
        // A run that measured the generator, or only a part of its load, says nothing of the server's level.
        let levels = zip(values, runs).map { $1.record.verdict?.state == .valid ? $0 : nil }
        return Row(
            name: series.name,
            labels: series.labels,
            field: field,
            unit: sides.unit(series),
            direction: MetricDefinition.named(series.name).direction,
            values: values,
            bounds: Set(runs.indices.filter { sides.isBound(series, field, run: $0) }),
            changes: LevelChange.all(in: levels)
        )
    }
}

/// A run with which a figure went to another level.
///
/// The rule, for a figure without known noise: three valid runs at least before and after; no value of the up to five
/// runs before lies among the up to five after; and the medians of the two lie further apart than twice the wider
/// spread of the two. Of ten runs that only chance moves, about one series in 700 has such a run. Of the runs between two changes only those count. Two runs never make a change, nor does a
/// single run that stands out.
package struct LevelChange: Hashable, Sendable {
    package static let fewestRuns = 3
    static let mostRuns = 5
    static let spreads = 2.0

    /// The first run of the new level.
    package var run: Int
    /// The medians.
    package var before: Double
    package var after: Double

    /// AFTER by BEFORE less 1; absent if that was 0.
    package var change: Double? { self.before == 0 ? nil : self.after / self.before - 1 }

    package static func all(in values: [Double?]) -> [LevelChange] {
        let known = values.indices.filter { values[$0]?.isFinite == true }
        var found: [LevelChange] = []
        var parts = [0..<known.count]
        while let part = parts.popLast() {
            let numbers = known[part].compactMap { values[$0] }
            guard let (cut, before, after) = self.strongest(numbers) else { continue }
            found.append(LevelChange(run: known[part.lowerBound + cut], before: before, after: after))
            parts += [part.lowerBound..<(part.lowerBound + cut), (part.lowerBound + cut)..<part.upperBound]
        }
        return found.sorted { $0.run < $1.run }
    }

    /// The cut at which the levels are the furthest apart, measured in spreads.
    private static func strongest(_ values: [Double]) -> (cut: Int, before: Double, after: Double)? {
        var best: (cut: Int, before: Double, after: Double, strength: Double)?
        guard values.count >= 2 * self.fewestRuns else { return nil }
        for cut in self.fewestRuns...(values.count - self.fewestRuns) {
            let before = values[max(cut - self.mostRuns, 0)..<cut].sorted()
            let after = values[cut..<min(cut + self.mostRuns, values.count)].sorted()
            guard let lowBefore = before.first, let highBefore = before.last, let lowAfter = after.first,
                let highAfter = after.last, highBefore < lowAfter || highAfter < lowBefore
            else { continue }
            let (old, new) = (before.median ?? 0, after.median ?? 0)
            let spread = max(highBefore - lowBefore, highAfter - lowAfter)
            let shift = abs(new - old)
            guard shift > self.spreads * spread else { continue }
            let strength = spread > 0 ? shift / spread : .infinity
            if strength > best?.strength ?? 0 { best = (cut, old, new, strength) }
        }
        return best.map { ($0.cut, $0.before, $0.after) }
    }
}
