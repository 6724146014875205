import Foundation
import Measurement
import Report
import Testing

@Suite struct RunTrendTests {
    @Test(
        "A change point needs three runs before and after, further apart than twice their spread",
        arguments: [
            ([10, 10.1, 9.9, 13, 13.1, 12.9], [3]),
            ([10, 10.1, 9.9, 10, 10.2, 13, 13.1, 12.9, 13, 13], [5]),
            ([13, 13.1, 12.9, 10, 10.1, 9.9], [3]),
            ([5, 5, 5, 5, 5, 9, 9, 9, 9, 9, 5, 5, 5], [5, 10]),
            // A level of fewer runs than are looked at is no level of its own.
            ([5, 5, 5, 9, 9, 9, 5, 5, 5], []),
            ([0, 0, 0, 7, 7, 7], [3]),
            // Two runs, and a few more, are no trend.
            ([1, 100], []), ([1, 1, 100, 100], []), ([1, 1, 100, 100, 100], []),
            // One run that stands out.
            ([10, 10.1, 9.9, 50, 10, 10.1, 9.9], []),
            // A steady climb has no level to leave.
            ([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12], []),
            // Apart, but by less than the spread of either side.
            ([10, 11, 12, 13, 14, 15], []),
            ([4, 4, 4, 4, 4, 4, 4], []), ([], []),
        ] as [([Double], [Int])]
    )
    func rule(_ values: [Double], _ runs: [Int]) {
        #expect(LevelChange.all(in: values).map(\.run) == runs)
    }

    @Test("A run without the figure is passed over, and counts for no side")
    func gaps() {
        let values: [Double?] = [10, nil, 10.1, 9.9, nil, 13, .nan, 13.1, 12.9]
        let changes = LevelChange.all(in: values)
        #expect(changes.map(\.run) == [5])
        #expect(changes.map(\.before) == [10] && changes.map(\.after) == [13])
        #expect(LevelChange.all(in: [10, nil, 10.1, nil, 13, 13.1, 12.9]).isEmpty)
    }

    @Test("Of 1,000 figures that only chance moves over ten runs, less than one in a hundred is marked")
    func falseAlarms() {
        var random = SyntheticRuns(seed: 7)
        let marked = (0..<1000).count { _ in
            !LevelChange.all(in: (0..<10).map { _ in 100 + random.normal() }).isEmpty
        }
        #expect(marked < 10)
    }

    @Test("A level that moves by ten deviations is found nine times of ten")
    func detection() {
        var random = SyntheticRuns(seed: 8)
        let found = (0..<200).count { _ in
            let values = (0..<10).map { ($0 < 5 ? 100 : 110) + random.normal() }
            return LevelChange.all(in: values).map(\.run) == [5]
        }
        #expect(found >= 180)
    }

    @Test("Runs are in the order of their starts")
    func order() {
        var synthetic = SyntheticRuns(seed: 9)
        let runs = ["b", "a", "c"].enumerated().map { place, path in
            var record = synthetic.run(path).record
            record.startedAt = "2026-11-0\(3 - place)T00:00:00Z"
            return ComparedRun(path: path, record: record)
        }
        let trend = RunTrend(runs)
        #expect(trend.runs.map(\.path) == ["c", "a", "b"])
        #expect(trend.rows.map { "\($0.name) \($0.field.text)" }.contains("publish_ack_duration p50"))
        #expect(trend.rows.allSatisfy { $0.values.count == 3 })
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
