import Foundation
import Measurement
import TestSupport
import Testing

extension Integration {
    @Suite("The endpoint of a running run")
    struct LiveTests {
        /// The address that the run says, with a slash at its end.
        private func address(_ run: RunningProgram) async throws -> String {
            let line = try await run.line { $0.hasPrefix("metrics at ") }
            let words = line.split(separator: " ")
            return String(try #require(words.last))
        }

        private func get(_ address: String) async throws -> String {
            let script =
                "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode(), end='')"
            let ending = try await RunningProgram("/usr/bin/env", [Self.python, "-c", script, address]).ended()
            try #require(ending.status == 0, "\(ending.errors)")
            return ending.output
        }

        /// The final page waits for a reader that a busy host has made late.
        private static let linger = " --prometheus-linger 10m"

        /// The sum of a metric over its labels.
        private func sum(_ name: String, in text: String) -> Double {
            text.split(separator: "\n").filter { $0.hasPrefix("\(name){") || $0.hasPrefix("\(name) ") }
                .compactMap { $0.split(separator: " ").last.flatMap { Double($0) } }.reduce(0, +)
        }

        @Test(
            "the last scrape has the counts of run.json, for one process and for several",
            arguments: ["", " --processes 2"]
        )
        func scraped(_ more: String) async throws {
            var last = ""
            let line = "pubsub -h embedded -c 4 -q 0,1,2 -s 64 --rate 200/s --duration 0 --prometheus 0"
            let run = try await ClamorRun.of(line + Self.linger + more) { run in
                let address = try await self.address(run)
                #expect(try await self.get(address + "healthz") == "ok\n")
                while self.sum("clamor_publish_sent_total", in: last) == 0 {
                    last = try await self.get(address + "metrics")
                }
                run.send(SIGINT)
                // The final page is there until it was asked for once.
                while self.sum("clamor_run_finished", in: last) != 1 {
                    last = try await self.get(address + "metrics")
                }
            }
            #expect(run.status == 0)
            for name in ["publish_offered", "publish_sent", "publish_acked", "received", "delivery_expected"] {
                let known = run.record.metrics.filter { $0.name == name && $0.labels[Labels.stage] == nil }
                let count = known.compactMap(\.counter?.value).reduce(0, +)
                #expect(self.sum("clamor_\(name)_total", in: last) == count, "\(name)")
            }
            let acks = run.record.metrics.filter { $0.name == "publish_ack_duration" }.compactMap(\.duration?.count)
            #expect(
                self.sum("clamor_publish_ack_duration_seconds_count", in: last) == Double(acks.reduce(0, +))
            )
        }

        @Test("a run that is not scraped does not wait")
        func notScraped() async throws {
            let line = "pub -h embedded -c 1 --rate 10/s --duration 1s --prometheus 0 --prometheus-linger 1h"
            #expect(try await ClamorRun.of(line).status == 0)
        }

        @Test("a port in use is one line, and the run goes on")
        func portInUse() async throws {
            let (run, _) = try await BrokerProgram.with { broker in
                try await ClamorRun.of("pub -h embedded -c 1 --rate 10/s --duration 1s --prometheus \(broker.port)")
            }
            #expect(run.status == 0)
            let lines = run.ending.errorLines.filter { $0.contains("--prometheus") }
            #expect(lines.count == 1)
            #expect(lines.first?.contains("is in use") == true, "\(lines)")
        }

        @Test("a search serves its steps")
        func capacity() async throws {
            let folder = try ScratchFolder()
            let words =
                "capacity --slo|publish_ack_duration p99 < 10s|--hold|10m|--first|100/s|--max-rate|100/s|--prometheus|0|--out|"
                + folder.path("out") + "|pub|-h|embedded|-c|2|-q|1"
            try await ClamorBinary.with(
                words.split(separator: "|").flatMap { word in
                    word.hasPrefix("capacity") ? word.split(separator: " ").map(String.init) : [String(word)]
                }
            ) { run in
                let address = try await self.address(run)
                var text = ""
                while self.sum("clamor_publish_sent_total", in: text) == 0 {
                    text = try await self.get(address + "metrics")
                }
                run.send(SIGINT)
                #expect(try await run.ended().status == 105)
            }
        }

        @Test("a series serves each of its runs")
        func series() async throws {
            let folder = try ScratchFolder()
            let scenario = """
                name: short
                target: embedded
                duration: 1s
                groups:
                  senders: { clients: 2, publish: { qos: 1, rate: 100/s } }
                """
            let file = try folder.write(scenario, to: "short.yaml")
            let line = "run \(file) --repeat 2 --prometheus 0" + Self.linger
            try await ClamorBinary.with(ClamorRun.arguments(line, in: folder)) { run in
                let address = try await self.address(run)
                let start = "clamor_run_start_time_seconds"
                var text = ""
                while self.sum(start, in: text) == 0 { text = try await self.get(address + "metrics") }
                // The endpoint is there until the last run's result was asked for.
                let first = self.sum(start, in: text)
                while self.sum(start, in: text) == first { text = try await self.get(address + "metrics") }
                while self.sum("clamor_run_finished", in: text) != 1 { text = try await self.get(address + "metrics") }
                #expect(try await run.ended().status == 0)
            }
        }

        @Test("the live page follows the run, survives a reload, and ends as its report", .enabled(if: Self.hasBrowser))
        func page() async throws {
            struct Answer: Decodable {
                var states: Int
                var heap: [Int]
                var nodes: [Int]
                var reloaded: Bool
                var last: String
                var report: String
                var errors: [String]
            }
            let folder = try ScratchFolder()
            let line = "pubsub -h embedded -c 4 -q 1 -s 64 --rate 200/s --duration 0 --prometheus 0"
            let seen = try await ClamorBinary.with(ClamorRun.arguments(line, in: folder)) { run in
                let words = [
                    "\(Self.browser)/live.py", try await self.address(run), folder.path("out/report.html"), "6",
                ]
                let browser = try RunningProgram("/usr/bin/env", [Self.python, "-B"] + words)
                try await browser.line { $0 == "seen" }
                run.send(SIGINT)
                let ending = try await browser.ended()
                try #require(ending.status == 0, "\(ending.errors)")
                #expect(try await run.ended().status == 0)
                let answer = ending.output.split(separator: "\n").last ?? ""
                return try JSONDecoder().decode(Answer.self, from: Data(answer.utf8))
            }
            #expect(seen.errors.isEmpty)
            #expect(seen.states >= 6)
            #expect(seen.reloaded)
            #expect(seen.last == seen.report)
        }

        private static let python = ProcessInfo.processInfo.environment["CLAMOR_PYTHON"] ?? "python3"
        private static let browser = URL(filePath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().appending(path: "PagesTests/Browser").path
        static let hasBrowser: Bool = {
            let words = [Self.python, "-B", "-c", "import sys, chromium; sys.exit(chromium.path() is None)"]
            let program = try? RunningProgram.run("/usr/bin/env", ["PYTHONPATH=\(Self.browser)"] + words)
            return program?.status == 0
        }()
    }
}
