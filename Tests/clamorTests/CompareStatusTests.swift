import Foundation
import Measurement
import Report
import TestSupport
import Testing

@Suite("The exit status of clamor compare")
struct CompareStatusTests {
    // Runs of each side; errors in each run of NEW.
    typealias Row = (runs: Int, errors: UInt64, arguments: [String], status: Int32, state: String)

    static let rows: [Row] = [
        (1, 40, [], 0, "INDICATIVE"),
        (1, 40, ["--strict"], 99, "WORSE"),
        (1, 0, [], 0, "INDICATIVE"),
        (1, 0, ["--strict"], 0, "INDICATIVE"),
        (3, 40, [], 99, "WORSE"),
        (3, 40, ["--strict"], 99, "WORSE"),
        (3, 0, [], 0, "NO DIFFERENCE"),
    ]

    @Test("is 99 after a regression, but 0 for one run a side without --strict", arguments: rows)
    func statuses(_ row: Row) async throws {
        let folder = try ScratchFolder()
        for number in 0..<row.runs {
            try Self.write(errors: 0, number, to: folder.path("base/\(number)"))
            try Self.write(errors: row.errors, number, to: folder.path("new/\(number)"))
        }
        let ending = try await ClamorBinary.run(["compare", folder.path("base"), folder.path("new")] + row.arguments)
        #expect(ending.status == row.status, "\(ending.output)\(ending.errors)")
        #expect(ending.output.hasPrefix("\(row.state)  "), "\(ending.output)")
        #expect(ending.errorLines.count == (row.status == 0 ? 0 : 1))
        #expect(ending.errorLines.allSatisfy { $0.hasPrefix("clamor: regression: errors count ") })
    }

    /// A result directory of a run of 10 s; `number` makes it another run.
    private static func write(errors: UInt64, _ number: Int, to directory: String) throws {
        var record = RunRecord(
            command: ["clamor", "pub"],
            tool: ToolRecord(name: "clamor", version: "0.1.0"),
            host: HostFacts(),
            plan: ["clients": 1],
            startedAt: "2026-11-21T01:37:0\(number).000000Z"
        )
        record.verdict = .valid
        record.durationSeconds = 10
        record.stages = [StageRecord(name: "measure", start: 0, durationSeconds: 10, measured: true)]
        let acked = CounterReading(value: 1000 + Double(number), rate: 100 + Double(number) / 10)
        record.metrics = [Metric(name: "publish_acked", labels: ["qos": "1"], reading: .counter(acked))]
        if errors > 0 {
            record.errors = [
                ErrorRecord(kind: "timeout", count: errors + UInt64(number), firstAt: record.startedAt, example: "")
            ]
        }
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        try RunJSON.text(record).write(toFile: "\(directory)/run.json", atomically: false, encoding: .utf8)
    }
}
