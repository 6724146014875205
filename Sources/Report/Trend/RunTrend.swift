package import Measurement

/// The followed figures of runs in the order of their starts, and where their levels changed.
///
/// Runs with another plan, server or kind of host are another stratum: no level is held against that of another one.
package struct RunTrend: Sendable {
    /// The share of histories without a change in which some figure is said to have one.
    package static let falseAlarms = 0.02
    /// The key of a tag whose runs are one point: `--tag commit=3f2a`.
    static let joined = "commit="

    /// A run, or all runs of a commit.
    package struct Point: Sendable {
        package fileprivate(set) var runs: [ComparedRun]
        package let stratum: Int
        /// The commit, another title of its own, or the start.
        package fileprivate(set) var name = ""

        package var first: ComparedRun { self.runs[0] }
        /// Runs that measured the generator, or only a part of their load, say nothing of the server's level.
        fileprivate var counted: [ComparedRun] { self.runs.filter { $0.record.verdict?.state == .valid } }
        package var isValid: Bool { !self.counted.isEmpty }
    }

    package struct Change: Encodable, Sendable {
        package let level: LevelChange
        package let isWorse: Bool
        /// Whether it is one that was asked for.
        package let isInside: Bool
        /// Whether a later change took the figure back, nearer to the old level than to this one.
        package let isUndone: Bool
    }

    package struct Row: SeriesFigure, Encodable {
        package let name: String
        package let labels: Labels
        package let field: Threshold.Field
        package let unit: String?
        package let direction: MetricDefinition.Direction
        package let stratum: Int
        /// One for each point; absent where it lacks the figure or is of another stratum.
        package let values: [Double?]
        /// The points whose value is only known to be at least so much.
        package let bounds: Set<Int>
        /// In the order of the points.
        package fileprivate(set) var changes: [Change] = []

        /// The value of a point for people.
        package func text(point: Int) -> String { self.text(self.values[point], isBound: self.bounds.contains(point)) }
    }

    package let points: [Point]
    package private(set) var rows: [Row]
    /// The kinds of plan, server and host.
    package let strata: Int
    /// Where the strata differ; the first run is the measure.
    package let differences: [Comparability.Difference]
    /// The tag or date from which on the gate looks, as it was asked for; `nil`: the gate looks at all runs.
    package let since: String?
    /// Runs that are in the list a second time, and count once.
    package let copies: Int
    /// The fewest valid points of a stratum with which a change of one figure can show, among so many figures.
    package private(set) var fewestPoints = 0
    private let firstInside: Int

    /// Puts runs in order, joins those of a commit, and finds the changes.
    ///
    /// - Parameters:
    ///   - runs: at least one, in any order.
    ///   - since: a tag or its value, or a date such as 2026-11-01.
    /// - Throws: no run has that tag, or none began on that date or later.
    package init(_ runs: [ComparedRun], since: String? = nil) throws(ResultError) {
        let sorted = runs.sorted { ($0.record.startedAt, $0.path) < ($1.record.startedAt, $1.path) }
        var known: Set<String> = []
        let runs = sorted.filter { known.insert("\($0.record.startedAt) \(PlanIdentity($0.record).hash)").inserted }
        self.copies = sorted.count - runs.count
        var strata: [[String?]: Int] = [:]
        var joined: [String: Int] = [:]
        var points: [Point] = []
        for run in runs {
            // The products of servers without their versions.
            let (host, servers) = (run.record.host, run.record.servers ?? [])
            let kind =
                [PlanIdentity(run.record).hash, host.cpuModel, host.cores.map(String.init)] + servers.map(\.product)
            let stratum = strata[kind, default: strata.count]
            strata[kind] = stratum
            let commit = RunTitle.words(run.record).last { $0.hasPrefix(Self.joined) }
            let key = commit.map { "\(stratum) \($0)" }
            if let place = key.flatMap({ joined[$0] }) {
                points[place].runs.append(run)
            } else {
                if let key { joined[key] = points.count }
                points.append(Point(runs: [run], stratum: stratum))
            }
        }
        for (place, name) in Self.names(points).enumerated() { points[place].name = name }
        self.points = points
        self.strata = strata.count
        self.differences = Comparability.differences(runs).filter { $0.kind != .verdict }
        self.since = since
        self.firstInside = try Self.place(since, points)
        self.rows = (0..<strata.count).flatMap { Self.rows($0, points) }
        self.find()
    }

    private static func place(_ since: String?, _ points: [Point]) throws(ResultError) -> Int {
        guard let since else { return 0 }
        let tagged = points.firstIndex { point in
            point.runs.contains { run in
                RunTitle.words(run.record).contains { $0 == since || $0.hasSuffix("=\(since)") }
            }
        }
        let isDate = since.wholeMatch(of: /[0-9]{4}-[0-9]{2}(-[0-9]{2}(T.*)?)?/) != nil
        let dated = isDate ? points.firstIndex { $0.first.record.startedAt >= since } : nil
        guard let place = tagged ?? dated else {
            let reason = isDate ? "no run began then or later" : "no run has that tag; give one of them, or a date"
            throw ResultError(path: "--since \(since)", reason: reason)
        }
        return place
    }

    private static func names(_ points: [Point]) -> [String] {
        let shared = Set(RunTitle.words(points.map(\.first)))
        let starts = points.map { $0.first.record.startedAt.dropFirst(5) }
        let isDaily = Set(starts.map { $0.prefix(5) }).count == starts.count
        return zip(points, starts).map { point, start in
            // The key of a tag is the same everywhere.
            let own = RunTitle.words(point.first.record).last { !shared.contains($0) }
            let value = own?.split(separator: "=", maxSplits: 1).last
            return String(value?.prefix(12) ?? start.prefix(isDaily ? 5 : 11)).replacing("T", with: " ")
        }
    }

    private static func rows(_ stratum: Int, _ points: [Point]) -> [Row] {
        let own = points.filter { $0.stratum == stratum }.flatMap(\.runs)
        let sides = Sides(own, [])
        var places: [Range<Int>?] = []
        var next = 0
        for point in points {
            guard point.stratum == stratum else {
                places.append(nil)
                continue
            }
            places.append(next..<(next + point.runs.count))
            next += point.runs.count
        }
        // A run that is not valid may have few values, and no percentiles: it does not take them from the others.
        let valid = own.filter { $0.record.verdict?.state == .valid }
        let followed = Sides(valid.isEmpty ? own : valid, [])
        return Comparison.usual(followed).flatMap { limit in
            followed.all.filter { series in
                guard limit.chooses(series.name, series.labels) else { return false }
                let isMishap = MetricDefinition.named(series.name).isMishap
                return isMishap || followed.fields(series).contains(limit.field ?? followed.plainField(series))
            }.sorted { $0.labels < $1.labels }.compactMap { self.row($0, limit, sides, stratum, places) }
        }
    }

    /// `places`: the runs of each point among those of the stratum.
    private static func row(
        _ series: Series,
        _ limit: RegressionLimit,
        _ sides: Sides,
        _ stratum: Int,
        _ places: [Range<Int>?]
    ) -> Row? {
        let field = limit.field ?? sides.plainField(series)
        let definition = MetricDefinition.named(series.name)
        let values = places.map { runs -> Double? in
            guard let runs else { return nil }
            let valid = runs.filter { sides.base[$0].record.verdict?.state == .valid }
            let known = (valid.isEmpty ? Array(runs) : valid).compactMap { sides.value(series, field, run: $0) }
                .filter(\.isFinite)
            return known.isEmpty ? nil : known.reduce(0, +) / Double(known.count)
        }
        guard values.count(where: { $0 != nil }) > 1 else { return nil }
        let bounds = places.indices.filter { place in
            places[place]?.contains { sides.isBound(series, field, run: $0) } == true
        }
        return Row(
            name: series.name,
            labels: series.labels,
            field: field,
            unit: sides.unit(series),
            direction: definition.direction,
            stratum: stratum,
            values: values,
            bounds: Set(bounds)
        )
    }

    /// Finds the changes of all figures together: which chance counts depends on how many figures there are.
    private mutating func find() {
        func search(_ row: Row) -> LevelSearch {
            LevelSearch(zip(row.values, self.points).map { $1.isValid ? $0 : nil })
        }
        // One at a time: a search has the distances of all values.
        let chances = self.rows.map { row -> Double? in
            let found = search(row)
            return found.canChange ? found.probability : nil
        }
        let possible = chances.compactMap(\.self)
        let level = FalseDiscovery.level(possible, rate: Self.falseAlarms)
        let single = Self.falseAlarms / Double(max(1, self.rows.count))
        self.fewestPoints = RankTest.fewest(within: single)
        for (place, chance) in chances.enumerated() where chance ?? 1 <= level {
            let changes = search(self.rows[place]).changes(within: level, then: single).filter { $0.isLarge }
            self.rows[place].changes = changes.map { change in
                Change(
                    level: change,
                    isWorse: (change.after > change.before) == (self.rows[place].direction == .down),
                    isInside: change.place >= self.firstInside,
                    isUndone: changes.contains { later in
                        later.place > change.place
                            && abs(later.after - change.before) < abs(later.after - change.after)
                    }
                )
            }
        }
    }
}

// The parts of the answers of a trend.
extension RunTrend {
    /// All changes with their rows, the latest first.
    package var changes: [(row: Row, change: Change)] {
        self.rows.flatMap { row in row.changes.map { (row, $0) } }.sorted { $0.1.level.place > $1.1.level.place }
    }

    /// Those for the worse that were asked for, and that last.
    package var worse: [(row: Row, change: Change)] {
        self.changes.filter { $0.change.isWorse && $0.change.isInside && !$0.change.isUndone }
    }

    package var hasFailed: Bool { !self.worse.isEmpty }
    package var runs: Int { self.points.reduce(0) { $0 + $1.runs.count } }
    /// Runs that count for no level.
    package var leftOut: Int { self.points.reduce(0) { $0 + $1.runs.count - $1.counted.count } }

    /// The valid points of the stratum that has the most.
    package var mostPoints: Int {
        let counts = (0..<self.strata).map { stratum in
            self.points.count { $0.stratum == stratum && $0.isValid }
        }
        return counts.max() ?? 0
    }

    /// Whether no change of one figure alone could show.
    package var isShort: Bool { self.mostPoints < self.fewestPoints }
}
