import Foundation
import Measurement
import Report
import TestSupport
import Testing

extension Integration {
    @Suite("Result files, read by others")
    struct ResultFileTests {
        @Test(
            "run.json of every command keeps to its schema",
            .enabled("needs a Python with PyPI jsonschema: set CLAMOR_PYTHON to it") {
                try await OtherReader.has("jsonschema")
            },
            arguments: [
                "conn -h embedded -c 3 --duration 200ms",
                "pub -h embedded -c 3 -q 0,1,2 -L 30 --warmup 100ms --duration 200ms",
                "sub -h embedded -c 2 --duration 200ms",
                "pubsub -h embedded -c 3 -q 0,1,2 -s 64 -L 30 --threshold delivery_lost==0",
                "pubsub -h embedded -c 3 --topology shared -m hello -L 30",
                "conn -h 127.0.0.1 -p 1 -c 2 --duration 200ms",
                "decode --mix --duration 50ms --threshold decode_packets>1",
            ]
        )
        func schema(_ line: String) async throws {
            let run = try await ClamorRun.of(line)
            let text = try String(contentsOfFile: "\(run.directory)/run.json", encoding: .utf8)
            try await OtherReader.check(text, against: "run")
        }

        @Test(
            "another HdrHistogram finds the same percentiles in latency.hlog",
            .enabled("needs a Python with PyPI hdrhistogram: set CLAMOR_PYTHON to it") {
                try await OtherReader.has("hdrh.log")
            }
        )
        func histogramLog() async throws {
            let run = try await ClamorRun.of(
                "pubsub -h embedded -c 6 -q 0,1,2 -s 64 --rate 900/s --warmup 300ms --duration 1500ms"
            )
            #expect(run.status == 0)
            // Percentiles by rank, so that counts need not be round; where they are, its own answer has to agree.
            let program = """
                import sys
                from hdrh.histogram import HdrHistogram
                from hdrh.log import HistogramLogReader
                log = HistogramLogReader(sys.argv[1], HdrHistogram(1, 600000000000, 3))
                totals = {}
                while True:
                    interval = log.get_next_interval_histogram()
                    if interval is None: break
                    totals.setdefault(interval.get_tag(), HdrHistogram(1, 600000000000, 3)).add(interval)
                def percentile(h, p):
                    wanted, seen = h.get_total_count() * p, 0
                    for item in h.get_recorded_iterator():
                        seen += item.count_at_value_iterated_to
                        if seen * 10000 >= wanted: break
                    value = h.get_highest_equivalent_value(item.value_iterated_to)
                    assert wanted % 10000 or value == h.get_value_at_percentile(p / 100)
                    return value
                for tag, h in totals.items():
                    print(tag, h.get_total_count(), *(percentile(h, p) for p in (5000, 9000, 9500, 9900, 9990, 9999)))
                """
            let answer = try await OtherReader.run(program, "\(run.directory)/latency.hlog")
            #expect(answer.status == 0, "\(answer.errors)")
            var figures: [String: [Int]] = [:]
            for line in answer.outputLines {
                let parts = line.split(separator: " ")
                figures[String(parts[0])] = parts.dropFirst().compactMap { Int($0) }
            }
            let durations = run.record.metrics.filter { $0.duration != nil }
            #expect(durations.count > 10)
            let rows = try String(contentsOfFile: "\(run.directory)/metrics.csv", encoding: .utf8)
                .split(separator: "\n").compactMap { CSV.cells(of: $0) }
            for metric in durations {
                let reading = try #require(metric.duration)
                let tag = ([metric.name] + metric.labels.all.map { "\($0.key)=\($0.value)" }).joined(separator: ";")
                let wanted = [reading.p50, reading.p90, reading.p95, reading.p99, reading.p999, reading.p9999]
                    .map { Int(($0 * 1e9).rounded()) }
                // The exact maximum is known here, while a log has classes of values only.
                let maximum = Int((reading.max * 1e9).rounded())
                #expect(figures[tag]?.first == Int(reading.count), "\(tag)")
                #expect(figures[tag]?.dropFirst().map { min($0, maximum) } == wanted, "\(tag)")
                let row = rows.first { $0[0] == metric.name && $0[1] == metric.labels.description }
                let columns = try #require(row)
                #expect(columns[6] == "\(reading.count)")
                let written = columns[10...15].map { Int(((Double($0) ?? 0) * 1e9).rounded()) }
                #expect(written == wanted, "\(tag)")
            }
        }
    }
}

/// A Python with packages of its own: the one that `CLAMOR_PYTHON` names, or `python3`.
enum OtherReader {
    static func has(_ module: String) async throws -> Bool { try await self.run("import \(module)").status == 0 }

    static func run(_ program: String, _ arguments: String...) async throws -> RunningProgram.Ending {
        let command = ProcessInfo.processInfo.environment["CLAMOR_PYTHON"] ?? "python3"
        return try await RunningProgram("/usr/bin/env", [command, "-c", program] + arguments).ended()
    }

    /// Checks a JSON text with `results/schema/NAME.schema.json`.
    static func check(
        _ json: String,
        against schema: String,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let program = """
            import json, sys, jsonschema
            schema = json.load(open(sys.argv[1]))
            jsonschema.Draft202012Validator.check_schema(schema)
            for error in jsonschema.Draft202012Validator(schema).iter_errors(json.load(open(sys.argv[2]))):
                print(list(error.absolute_path), error.message[:200])
            """
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let folder = try ScratchFolder()
        let path = root.appending(path: "results/schema/\(schema).schema.json").path
        let answer = try await self.run(program, path, try folder.write(json, to: "text.json"))
        // Violations, a line each.
        #expect(answer.output + answer.errors == "", sourceLocation: sourceLocation)
    }
}
