import Foundation
import Measurement
import Report
import Testing

@Suite struct RunTrendTests {
    /// Runs a day apart, each with its plan, tags and state.
    private static func run(
        _ day: Int,
        slower: Double = 1,
        tags: [String] = [],
        cpu: String = "A",
        state: Verdict.State = .valid,
        _ synthetic: inout SyntheticRuns
    ) -> ComparedRun {
        var record = synthetic.run("runs/\(day)", slower: slower).record
        let date = (day - 1) % 28 + 1
        record.startedAt = "2026-\(10 + (day - 1) / 28)-\(date < 10 ? "0" : "")\(date)T03:00:00Z"
        record.plan["tags"] = .array(tags.map { .string($0) })
        record.host.cpuModel = cpu
        if state != .valid { record.verdict?.add(state, Verdict.Reason(code: "schedule-lag", text: "a loop was busy")) }
        return ComparedRun(path: "runs/\(day)", record: record)
    }

    private static func days(_ count: Int = 24, stepAt day: Int? = nil, _ factor: Double = 1.5) -> [ComparedRun] {
        var synthetic = SyntheticRuns(seed: 11)
        (synthetic.seconds, synthetic.rate) = (5, 500)
        return (1...count).map { self.run($0, slower: $0 < day ?? .max ? 1 : factor, &synthetic) }
    }

    @Test("runs are in the order of their starts, and the followed figures begin with costs and counts")
    func order() throws {
        let trend = try RunTrend(Self.days(14).reversed())
        #expect(trend.points.map(\.first.path) == (1...14).map { "runs/\($0)" })
        #expect(
            trend.rows.map(\.fullTitle) == [
                "errors count", "publish_ack_duration{leg=puback,qos=1} p50",
                "publish_ack_duration{leg=puback,qos=1} p99", "publish_acked{qos=1} rate",
            ]
        )
        #expect(trend.state == "NO CHANGE" && trend.strata == 1 && !trend.hasFailed)
    }

    @Test("a change names the run, the factor and the direction, in text, Markdown, JUnit and JSON")
    func answers() throws {
        let trend = try RunTrend(Self.days(stepAt: 13))
        #expect(trend.hasFailed && trend.state == "WORSE")
        let worse = Set(trend.worse.map { $0.row.field.text })
        #expect(worse == ["p50", "p99", "rate"])
        #expect(trend.worse.allSatisfy { $0.change.level.place == 12 })
        let text = TrendText(trend).text
        #expect(text.hasPrefix("WORSE  "))
        #expect(text.contains(" slower since 2026-10-13 03:00 UTC: ") || text.contains(" lower since 2026-10-13"))
        #expect(TrendMarkdown.text(trend).hasPrefix("### ❌ clamor trend: worse\n"))
        let junit = JUnitXML(trend).text
        #expect(junit.contains("tests=\"4\" failures=\"3\""))
        let json = try TrendFiles.json(trend)
        for part in ["\"schema\" : \"clamor.trend/1\"", "\"ok\" : false", "\"is_worse\" : true", "\"place\" : 12"] {
            #expect(json.contains(part), "\(part)")
        }
    }

    @Test("a gate looks at changes from a tag or a date on", arguments: ["2026-10-14", "commit=v2", "v2"])
    func since(_ since: String) throws {
        var synthetic = SyntheticRuns(seed: 12)
        (synthetic.seconds, synthetic.rate) = (5, 500)
        let runs = (1...30).map {
            Self.run($0, slower: $0 < 10 ? 1 : 1.5, tags: ["commit=v\($0 == 14 ? "2" : "0.\($0)")"], &synthetic)
        }
        #expect(try RunTrend(runs).hasFailed)
        let trend = try RunTrend(runs, since: since)
        #expect(!trend.hasFailed && !trend.changes.isEmpty && trend.state == "NO CHANGE")
        let error = #expect(throws: ResultError.self) { try RunTrend(runs, since: "v3") }
        #expect(error?.reason == "no run has that tag; give one of them, or a date")
        let late = #expect(throws: ResultError.self) { try RunTrend(runs, since: "2062-01-01") }
        #expect(late?.reason == "no run began then or later")
    }

    @Test("runs of one commit are one point, the mean of its valid runs")
    func joined() throws {
        var synthetic = SyntheticRuns(seed: 13)
        (synthetic.seconds, synthetic.rate) = (5, 500)
        let runs = (1...12).map {
            Self.run($0, tags: ["commit=\(($0 - 1) / 3)"], state: $0 % 3 == 0 ? .generatorLimited : .valid, &synthetic)
        }
        let trend = try RunTrend(runs)
        #expect(trend.points.map(\.name) == ["0", "1", "2", "3"])
        #expect(trend.points.map(\.runs.count) == [3, 3, 3, 3])
        #expect(trend.runs == 12 && trend.leftOut == 4 && trend.isShort)
        // A figure that could not be judged has not passed.
        #expect(JUnitXML(trend).text.contains("failures=\"0\" errors=\"0\" skipped=\"\(trend.rows.count)\""))
        let rate = try #require(trend.rows.first { $0.field == .rate })
        let own = runs.prefix(2).compactMap { $0.record.metrics.compactMap(\.counter?.rate).first }
        #expect(abs((rate.values[0] ?? 0) - (own[0] + own[1]) / 2) < 1e-9)
        #expect(trend.headline == "4 valid points: a change of one of 4 figures shows from 11 on")
    }

    @Test("a slower host is another kind of run, and no change of the server")
    func strata() throws {
        var synthetic = SyntheticRuns(seed: 14)
        (synthetic.seconds, synthetic.rate) = (5, 500)
        let runs = (1...40).map { day in
            Self.run(day, slower: day < 20 ? 1 : 2, cpu: day < 20 ? "A" : "B", &synthetic)
        }
        let trend = try RunTrend(runs)
        #expect(trend.strata == 2 && trend.changes.isEmpty)
        #expect(trend.notes.contains { $0.hasPrefix("the CPU differs: A in runs/1, B in ") })
        #expect(trend.title(trend.rows[0]).hasSuffix(", kind 1"))
        let csv = TrendFiles.otava(trend).split(separator: "\n")
        #expect(csv[0].hasPrefix("time,commit,errors count,"))
        #expect(csv.count == 22)
    }

    @Test("a history holds what a trend needs, in a small file for each run")
    func history() throws {
        let folder = try TemporaryFolder()
        let runs = Self.days(stepAt: 13)
        let history = "\(folder.path)/deep/history"
        for run in runs + [runs[23]] { try HistoryFile.add(run.record, to: history) }
        let names = try FileManager.default.contentsOfDirectory(atPath: history).sorted()
        #expect(names.count == 24 && names[0].hasPrefix("20261001T030000Z-"))
        // 20 MB in a year of nights.
        for name in names { #expect(try Data(contentsOf: URL(filePath: "\(history)/\(name)")).count < 54_000) }
        let kept = try RunTrend(ComparedRun.readTrend([history]).runs)
        let whole = try RunTrend(runs + [runs[23]])
        #expect(kept.copies == 0 && whole.copies == 1 && whole.notes == ["1 run left out: there twice"])
        #expect(TrendFiles.otava(kept) == TrendFiles.otava(whole))
        #expect(kept.changes.map(\.change.level) == whole.changes.map(\.change.level))
        #expect(throws: ResultError.self) { try HistoryFile.add(runs[0].record, to: "/dev/null/history") }
        try "{".write(toFile: "\(history)/damaged.run.json", atomically: false, encoding: .utf8)
        let rest = try ComparedRun.readTrend([history])
        #expect(rest.runs.count == 24 && rest.leftOut.count == 1)
        #expect(rest.leftOut[0].hasPrefix("\(history)/damaged.run.json is left out: not JSON"))
    }

    @Test("a change that was mended fails no gate, and the level before it is what counts")
    func undone() throws {
        var synthetic = SyntheticRuns(seed: 15)
        (synthetic.seconds, synthetic.rate) = (5, 500)
        let runs = (1...45).map { Self.run($0, slower: (16...30).contains($0) ? 2 : 1, &synthetic) }
        let trend = try RunTrend(runs)
        let slower = try #require(trend.changes.first { $0.row.field == .percentile(50) && $0.change.isWorse })
        #expect(slower.change.isUndone && slower.change.level.place == 15)
        #expect(!trend.hasFailed && trend.state == "BETTER")
        #expect(try RunTrend(Array(runs.prefix(30))).hasFailed)
    }

    @Test("a run that is not valid takes no figure from the others, however few values it has")
    func aborted() throws {
        var runs = Self.days(stepAt: 13)
        var synthetic = SyntheticRuns(seed: 16)
        (synthetic.seconds, synthetic.rate) = (5, 2)
        runs[5] = Self.run(6, state: .aborted, &synthetic)
        let trend = try RunTrend(runs)
        #expect(trend.hasFailed && trend.leftOut == 1)
        #expect(trend.rows.contains { $0.field == .percentile(99) })
    }

    @Test("titles of a file cannot write to the terminal")
    func controls() throws {
        var synthetic = SyntheticRuns(seed: 17)
        (synthetic.seconds, synthetic.rate) = (5, 500)
        let runs = (1...24).map { day in
            Self.run(day, tags: ["build=\u{1B}[2J\(day)"], cpu: day < 20 ? "A" : "\u{1B}[2J", &synthetic)
        }
        let trend = try RunTrend(runs)
        for text in [TrendText(trend).text, TrendMarkdown.text(trend), TrendFiles.otava(trend)] {
            #expect(!text.contains("\u{1B}"))
        }
    }

    @Test("searches for capacity and runs that did not end are left out, unless nothing else is there")
    func leftOut() throws {
        let folder = try TemporaryFolder()
        for name in ["run", "search", "killed.partial", "killed.partial.1", "a.partial-load"] {
            try FileManager.default.createDirectory(
                atPath: "\(folder.path)/\(name)",
                withIntermediateDirectories: false
            )
        }
        try folder.write(try RunJSON.text(Samples.pubsub), to: "run/run.json")
        try folder.write(try RunJSON.text(Samples.pubsub), to: "a.partial-load/run.json")
        try folder.write("{}", to: "search/capacity.json")
        var begun = Samples.pubsub
        begun.verdict = nil
        try folder.write(try RunJSON.text(begun), to: "killed.partial/run.json")
        func paths(_ names: String...) -> [String] { names.map { "\(folder.path)/\($0)" } }
        let given = paths("search", "killed.partial", "run", "killed.partial.1", "a.partial-load")
        let trend = try ComparedRun.readTrend(given)
        #expect(trend.runs.map(\.path).sorted() == paths("a.partial-load", "run"))
        #expect(
            trend.leftOut == [
                "\(given[0]) is left out: a search for capacity has no trend",
                "\(given[1]) is left out: its run did not end", "\(given[3]) is left out: its run did not end",
            ]
        )
        let error = #expect(throws: ResultError.self) { try ComparedRun.readTrend(paths("search", "killed.partial")) }
        let reason = "has no finished run, nor has another of the directories"
        #expect(error?.description == "\(given[0]): \(reason)")
        // Anything else may be a wrong path.
        #expect(throws: ResultError.self) { try ComparedRun.readTrend(paths("run", "absent")) }
    }
}
