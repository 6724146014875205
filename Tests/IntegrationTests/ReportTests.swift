import Foundation
import Measurement
import Report
import TestSupport
import Testing

extension Integration {
    @Suite("Reports of finished and of killed runs")
    struct ReportTests {
        @Test("report shows the summary of the run again, and --json its record")
        func again() async throws {
            let run = try await ClamorRun.of("pubsub -h embedded -c 2 -q 1 -s 64 -L 40")
            let report = try await ClamorBinary.run(["report", run.directory])
            #expect(report.status == 0)
            #expect(report.errors.isEmpty)
            // A host that takes the CPU away for a moment is said to have done so.
            #expect(report.output.hasPrefix("VALID") || report.output.contains("[cpu-steal]"))
            // All but the last line, which has the directory as it was given.
            let lines = report.outputLines.dropLast()
            #expect(run.ending.outputLines.suffix(lines.count + 1).dropLast() == lines)

            let page = try String(contentsOfFile: "\(run.directory)/report.html", encoding: .utf8)
            #expect(page.contains("<svg"))
            let again = "\(run.directory)-again.html"
            let made = try await ClamorBinary.run(["report", run.directory, "--html", again])
            #expect(made.status == 0)
            #expect(try String(contentsOfFile: again, encoding: .utf8) == page)

            let json = try await ClamorBinary.run(["report", run.directory, "--json"])
            #expect(json.output == (try String(contentsOfFile: "\(run.directory)/run.json", encoding: .utf8)))
        }

        @Test("a trend is a page of several runs; a page that was asked for and cannot be written is status 73")
        func trend() async throws {
            let folder = try ScratchFolder()
            let runs = try await [
                ClamorRun.of("conn -h embedded -c 2 -d 1"), ClamorRun.of("conn -h embedded -c 2 -d 1 --no-page"),
            ]
            #expect(!FileManager.default.fileExists(atPath: "\(runs[1].directory)/report.html"))
            let file = folder.path("trend.html")
            let made = try await ClamorBinary.run(["trend"] + runs.map(\.directory) + ["--html", file])
            #expect(made.status == 0, "\(made.errors)")
            #expect(try String(contentsOfFile: file, encoding: .utf8).contains("2 runs"))
            let refused = try await ClamorBinary.run(["report", runs[0].directory, "--html", "\(file)/page.html"])
            #expect(refused.status == 73)
            // Their folders go with them.
            withExtendedLifetime(runs) {}
        }

        @Test("after SIGKILL all but the last second is there, and run.json and metrics.csv are made of it")
        func killed() async throws {
            let folder = try ScratchFolder()
            let (shown, broker) = try await BrokerProgram.with { broker in
                let arguments = ClamorRun.arguments(
                    "pub -p \(broker.port) -c 3 -q 0,1,2 -s 64 --rate 300/s --duration 1h",
                    in: folder
                )
                return try await ClamorBinary.with(arguments) { program in
                    try await program.lines { $0.count { $0.contains(" measure ") } >= 3 }
                    program.send(SIGKILL)
                    let ending = try await program.ended()
                    #expect(ending.status == -SIGKILL)
                    return ending.outputLines
                }
            }
            #expect(folder.entries() == ["out.partial"])
            let partial = folder.path("out.partial")
            let report = try await ClamorBinary.run(["report", partial])
            #expect(report.status == 0)
            #expect(report.errors.isEmpty)
            #expect(report.output.contains("\nSent "))

            let record = try RunJSON.read(directory: partial)
            let rows = try String(contentsOfFile: "\(partial)/timeline.csv", encoding: .utf8).split(separator: "\n")
                .compactMap { CSV.cells(of: $0) }
            let value = try #require(rows[0].firstIndex(of: "value"))
            let labels = try #require(rows[0].firstIndex(of: "labels"))
            for qos in 0...2 {
                let written = rows.filter { $0.contains("publish_sent") && $0[labels] == "qos=\(qos)" }
                let sum = written.reduce(0) { $0 + (Int($1[value]) ?? 0) }
                #expect(sum > 0)
                #expect(record.count("publish_sent", qos: qos) == sum)
                #expect(sum <= broker.received.all[qos])
            }
            // A second is written down before it is shown, so every second that was shown is there.
            // Two that were late stand at one second.
            let seconds = Set(shown.filter { $0.contains(" measure ") }.map { $0.split(separator: " measure ")[0] })
            #expect(Set(rows.filter { $0[1] == "measure" }.map { $0[0] }).count >= seconds.count)
            #expect(record.duration("publish_ack_duration", ["qos": "2", "leg": "pubcomp"])?.count ?? 0 > 0)
            let metrics = try String(contentsOfFile: "\(partial)/metrics.csv", encoding: .utf8)
            #expect(metrics.hasPrefix(MetricsCSV.columns.joined(separator: ",")))
            #expect(metrics.contains("publish_sent,qos=2,"))
        }

        @Test("a result file that is none is 65, and told with its place", arguments: ["{", "{}", "[1]", nil])
        func broken(_ text: String?) async throws {
            let folder = try ScratchFolder()
            if let text { try folder.write(text, to: "run.json") }
            let report = try await ClamorBinary.run(["report", folder.path])
            #expect(report.status == 65)
            #expect(report.errorLines.count == 1)
            #expect(report.errors.contains("\(folder.path)/run.json".replacing("//", with: "/")))
            #expect(report.output.isEmpty)
        }

        @Test("a directory that does not exist is wrong usage")
        func missing() async throws {
            let report = try await ClamorBinary.run(["report", "/does/not/exist"])
            #expect(report.status == 64)
            #expect(report.errorLines.count == 1)
        }
    }
}
