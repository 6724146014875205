import Foundation
import Measurement
import Report
import TestSupport
import Testing

extension Integration {
    @Suite("clamor capacity")
    struct CapacityTests {
        @Test("the search ends at the most that may be offered, or where the generator is the limit, and says which")
        func most() async throws {
            let folder = try ScratchFolder()
            let ending = try await ClamorBinary.run([
                "capacity", "--slo", "delivery_lost == 0", "--hold", "1s", "--first", "50/s", "--max-rate", "150/s",
                "--out", folder.path("out"), "--json", "pubsub", "-h", "embedded", "-c", "2", "-q", "1",
            ])
            #expect(ending.status == 0, "\(ending.errors)")
            #expect(folder.entries() == ["out"])
            #expect(folder.entries("out") == ["capacity.csv", "capacity.json", "report.html", "steps"])
            let record = try JSONDecoder().decode(CapacityRecord.self, from: Data(ending.output.utf8))
            #expect(record.schema == "clamor.capacity/1" && record.varies == "rate" && record.holdSeconds == 1)
            let answer = try #require(record.answer)
            // A busy host limits the generator at any load.
            #expect(["at-least", "generator-limited"].contains(answer.kind))
            if answer.kind == "at-least" {
                #expect(answer.load == 150)
                #expect(record.steps.count { $0.verdict == "held" } >= 4)
            }
            #expect(record.steps.map(\.load).prefix(1) == [50])
            let measured = record.steps.filter { ["held", "broken"].contains($0.verdict) }
            #expect(measured.allSatisfy { ($0.throughput ?? 0) > 0 && ($0.p99Seconds ?? 0) > 0 })
            #expect(folder.entries("out/steps").count == record.steps.count)
            let rows = try String(contentsOfFile: folder.path("out/capacity.csv"), encoding: .utf8).split(
                separator: "\n"
            )
            #expect(rows.count == record.steps.count + 1)
            if try await OtherReader.has("jsonschema") {
                try await OtherReader.check(ending.output, against: "capacity")
            }
        }

        @Test("a search of a watched server has its CPU in each step")
        func watched() async throws {
            let folder = try ScratchFolder()
            let ending = try await BrokerProgram.with { broker in
                try await ClamorBinary.run([
                    "capacity", "--slo", "publish_ack_duration p99 < 10s", "--hold", "1s", "--first", "50/s",
                    "--max-rate", "100/s", "--out", folder.path("out"), "--json", "pub", "-p", "\(broker.port)", "-c",
                    "2",
                    "-q", "1", "--watch-pid", "\(broker.program.pid)",
                ])
            }.0
            #expect(ending.status == 0, "\(ending.errors)")
            let record = try JSONDecoder().decode(CapacityRecord.self, from: Data(ending.output.utf8))
            #expect(record.answer != nil && !record.steps.isEmpty)
            for step in record.steps {
                let run = try RunJSON.read(directory: folder.path("out/\(step.directory)"))
                #expect(run.metrics.contains { $0.name == "server_cpu" && $0.gauge?.value != nil })
            }
        }

        @Test("a server that dies in the search ends it with 69, and the steps until then are written")
        func serverDies() async throws {
            let folder = try ScratchFolder()
            let ending = try await ClamorBinary.with(["broker", "-p", "0"]) { broker in
                let port = try await broker.line().split(separator: ":").last ?? ""
                return try await ClamorBinary.with([
                    "capacity", "--slo", "publish_ack_duration p99 < 10s", "--hold", "1s", "--first", "50/s", "--out",
                    folder.path("out"), "pub", "-p", String(port), "-c", "2", "-q", "1",
                ]) { search in
                    try await search.line { $0.hasPrefix("step 2 ") }
                    broker.send(SIGKILL)
                    return try await search.ended()
                }
            }
            #expect(ending.status == 69)
            #expect(folder.entries("out") == ["capacity.csv", "capacity.json", "report.html", "steps"])
            let text = try String(contentsOfFile: folder.path("out/capacity.json"), encoding: .utf8)
            let record = try JSONDecoder().decode(CapacityRecord.self, from: Data(text.utf8))
            #expect(record.answer?.kind == "interrupted")
            let reason = try #require(record.answer?.reason)
            #expect(reason.hasPrefix("step \(record.steps.count + 1): every connect attempt failed"))
            #expect(ending.errorLines == ["clamor: \(reason)"])
            #expect(ending.outputLines.contains { $0.hasPrefix("INTERRUPTED  ") && $0.hasSuffix(" · \(reason)") })
            #expect(record.steps.count >= 2)
        }

        @Test("a server that is not there is said to be none, 69")
        func nobody() async throws {
            let folder = try ScratchFolder()
            let ending = try await ClamorBinary.run([
                "capacity", "--slo", "connect_duration p99 < 1s", "--hold", "1s", "--out", folder.path("out"), "conn",
                "-h", "127.0.0.1", "-p", "1",
            ])
            #expect(ending.status == 69)
            #expect(ending.errorLines.count == 1)
            #expect(ending.errors.hasPrefix("clamor: step 1: every connect attempt failed"))
        }
    }
}
