import Foundation
import TestSupport
import Testing

extension Integration {
    @Suite("clamor compare, and files for build servers")
    struct CompareTests {
        private static func compare(_ arguments: String...) async throws -> RunningProgram.Ending {
            try await ClamorBinary.run(["compare"] + arguments)
        }

        @Test("the same runs do not differ, a slower broker is a regression, another plan is refused until allowed")
        func regression() async throws {
            let line = "pub -h embedded -c 4 -q 1 -s 64 --rate 400/s --duration 2s --seed 5"
            let base = try await ClamorRun.of(line)
            // Further above the others than any busy host makes them.
            let slow = try await ClamorRun.of(line, "--broker", "--delay 1ms --max-rate 100/s")
            #expect(base.status == 0)

            // A busy host may have limited the generator, which is not in question here.
            let same = try await Self.compare(base.directory, base.directory, "--allow-different", "verdict")
            #expect(same.status == 0, "\(same.errors)")
            #expect(same.output.hasPrefix("INDICATIVE  none of"))
            #expect(same.errors.isEmpty)

            let refused = try await Self.compare(base.directory, slow.directory, "--allow-different", "verdict")
            #expect(refused.status == 65)
            #expect(
                refused.errorLines == [
                    "clamor: the plans differ: broker absent and '--delay 1ms --max-rate 100/s' in \(base.directory) "
                        + "and \(slow.directory); --allow-different plan compares all the same"
                ]
            )
            #expect(refused.output.isEmpty)

            let indicative = try await Self.compare(
                base.directory,
                slow.directory,
                "--allow-different",
                "plan,verdict"
            )
            #expect(indicative.status == 0, "\(indicative.output)\(indicative.errors)")
            #expect(indicative.output.hasPrefix("INDICATIVE  "))
            #expect(indicative.output.contains("beyond limit"))
            #expect(indicative.errors.isEmpty)

            let files = try ScratchFolder()
            let found = try await Self.compare(
                base.directory,
                slow.directory,
                "--strict",
                "--allow-different",
                "plan,verdict",
                "--junit",
                files.path("j.xml"),
                "--summary-md",
                files.path("s.md")
            )
            #expect(found.status == 99, "\(found.output)\(found.errors)")
            #expect(found.output.hasPrefix("WORSE  "))
            #expect(found.errorLines.count == 1)
            // The limited broker answers hundreds of times later, and such a change is a factor.
            let regression = #/clamor: regression: publish_ack_duration\{leg=puback,qos=1\} p50 [\d,.]+ ×/#
            #expect(found.errors.prefixMatch(of: regression) != nil, "\(found.errors)")
            let junit = try String(contentsOfFile: files.path("j.xml"), encoding: .utf8)
            #expect(junit.contains("<failure message="))
            let markdown = try String(contentsOfFile: files.path("s.md"), encoding: .utf8)
            #expect(markdown.hasPrefix("### ❌ clamor compare: worse"))

            let better = try await Self.compare(slow.directory, base.directory, "--allow-different", "plan,verdict")
            #expect(better.status == 0, "\(better.output)")
            let unknown = try await Self.compare(
                base.directory,
                base.directory,
                "--allow-different",
                "verdict",
                "--max-regression",
                "iq_duration p50 5%"
            )
            #expect(unknown.status == 65)
            #expect(
                unknown.errorLines == [
                    "clamor: --max-regression 'iq_duration p50 5%': the runs have no such metric"
                ]
            )
        }

        @Test("--json is one document with every figure")
        func json() async throws {
            let run = try await ClamorRun.of("conn -h embedded -c 20 --duration 300ms")
            let answer = try await Self.compare(run.directory, run.directory, "--allow-different", "verdict", "--json")
            #expect(answer.status == 0)
            let document = try #require(
                try JSONSerialization.jsonObject(with: Data(answer.output.utf8)) as? [String: Any]
            )
            #expect(document["schema"] as? String == "clamor.compare/1")
            #expect(document["ok"] as? Bool == true)
            #expect(document["state"] as? String == "indicative")
            let figures = try #require(document["figures"] as? [[String: Any]])
            #expect(figures.contains { $0["name"] as? String == "connect_duration" && $0["judged"] != nil })
            #expect(figures.allSatisfy { $0["finding"] as? String == "same" })
        }

        @Test(
            "it has the shape of its schema",
            .enabled("needs a Python with PyPI jsonschema: set CLAMOR_PYTHON to it") {
                try await OtherReader.has("jsonschema")
            }
        )
        func schema() async throws {
            let run = try await ClamorRun.of("pubsub -h embedded -c 3 -q 0,1 --rate 200/s --duration 1s")
            let answer = try await Self.compare(run.directory, run.directory, "--allow-different", "verdict", "--json")
            try await OtherReader.check(answer.output, against: "compare")
        }

        @Test("CPU time stolen from otherwise equal runs is reported, and is no change")
        func stolen() async throws {
            let run = try await ClamorRun.of("pubsub -h embedded -c 3 -q 0,1 --rate 200/s --duration 1s")
            let text = try Data(contentsOf: URL(filePath: "\(run.directory)/run.json"))
            var record = try #require(try JSONSerialization.jsonObject(with: text) as? [String: Any])
            var generator = try #require(record["generator"] as? [String: Any])
            let folder = try ScratchFolder()
            for (side, shares) in [("a", [0, 0.01, 0.05]), ("b", [0.02, 0.03, 0.1])] {
                for (number, share) in shares.enumerated() {
                    generator["host_steal"] = share
                    record["generator"] = generator
                    let path = folder.path("\(side)/\(number)")
                    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
                    try JSONSerialization.data(withJSONObject: record).write(to: URL(filePath: "\(path)/run.json"))
                }
            }
            let sides = (folder.path("a"), folder.path("b"))
            let shown = try await Self.compare(sides.0, sides.1, "--allow-different", "verdict")
            #expect(shown.status == 0, "\(shown.errors)")
            // The lines of a note are as wide as the terminal.
            let words = shown.output.split(whereSeparator: \.isWhitespace).joined(separator: " ")
            #expect(words.contains("! the host took 2.00 % of the CPU for others in the runs of base and 5.00 % in"))
            let answer = try await Self.compare(sides.0, sides.1, "--allow-different", "verdict", "--json")
            #expect(answer.output.contains("\"measured_change\" : 0"))
            if try await OtherReader.has("jsonschema") {
                try await OtherReader.check(answer.output, against: "compare")
            }
        }

        @Test("every load leaves its thresholds as JUnit XML and Markdown", arguments: ["conn -h embedded", "decode"])
        func loads(_ command: String) async throws {
            let files = try ScratchFolder()
            let run = try await ClamorRun.of(
                "\(command) --duration 100ms --junit \(files.path("j.xml")) --summary-md \(files.path("s.md"))",
                "--threshold",
                command == "decode" ? "decode_packets count > 0" : "connect_duration p99 < 1ns"
            )
            #expect(run.status == (command == "decode" ? 0 : 99))
            let junit = try String(contentsOfFile: files.path("j.xml"), encoding: .utf8)
            #expect(junit.contains("tests=\"2\" failures=\"\(command == "decode" ? 0 : 1)\""))
            let markdown = try String(contentsOfFile: files.path("s.md"), encoding: .utf8)
            #expect(markdown.contains("| objective | measured |"))
        }

        @Test(
            "a file that turns out at the end to have no room is 73, whatever came of the run",
            arguments: ["--junit", "--summary-md"]
        )
        func full(_ flag: String) async throws {
            // It can be opened, so that nothing is refused before the run; every write fails with ENOSPC.
            let run = try await ClamorRun.of("pub -h embedded -c 1 -q 1 -L 5 \(flag) /dev/full")
            #expect(run.status == 73)
            #expect(run.ending.errorLines == ["clamor: /dev/full: cannot write to it: No space left on device"])
            #expect(run.record.count("publish_sent") == 5)
        }

        @Test("a file that cannot be written is refused before anything runs")
        func unwritable() async throws {
            let folder = try ScratchFolder()
            let path = folder.path("no/such/j.xml")
            let ending = try await ClamorBinary.run(
                ["conn", "-h", "embedded", "--junit", path, "--out", folder.path("out")]
            )
            #expect(ending.status == 73)
            #expect(ending.errorLines == ["clamor: --junit \(path): No such file or directory"])
            #expect(folder.entries().isEmpty)
        }
    }
}
