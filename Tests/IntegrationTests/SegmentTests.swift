import Foundation
import Measurement
import Report
import TestSupport
import Testing

extension Integration {
    @Suite("One run over several processes")
    struct SegmentTests {
        @Test("--processes holds what its segments measured, all of it, and merge says the same again")
        func processes() async throws {
            let run = try await ClamorRun.of(
                "pubsub -h embedded -c 6 -q 1 --rate 300/s --duration 2s --processes 2 --per-client",
                "--threshold",
                "delivery_lost == 0",
                "--threshold",
                "publish_offered count == 600"
            )
            #expect(run.status == 0, "\(run.ending.errors)")
            #expect(run.record.hasReasonsOfBusyHost(or: ["segments-apart"]), "\(run.record.reasonCodes)")
            #expect(run.record.segment.merged == 2)
            #expect(run.record.thresholds.map(\.ok) == [true, true])
            let folders = ["1", "2"].map { run.folder.path("out/segments/\($0)") }
            let segments = try folders.map { try RunJSON.read(directory: $0) }
            #expect(segments.map(\.segment.index) == [1, 2] && segments.allSatisfy { $0.segment.count == 2 })
            #expect(Set(segments.map(\.segment.run)).count == 1 && Set(segments.map(\.segment.plan)).count == 1)
            #expect(segments.allSatisfy { $0.thresholds.isEmpty })
            // 300/s for 2 s, three of six clients each.
            for name in ["publish_offered", "delivery_expected", "received"] {
                #expect(segments.map { $0.count(name) } == [300, 300], "\(name)")
                #expect(run.record.count(name) == 600, "\(name)")
            }
            self.expectSums(run.record, segments)
            // Publishers k and subscribers k, whose ids say so.
            let rows = try String(contentsOfFile: run.folder.path("out/clients.csv"), encoding: .utf8)
            let ids = rows.split(separator: "\n").dropFirst().compactMap { $0.split(separator: ",").first }
            #expect(ids.count == 12 && Set(ids).count == 12)
            #expect(
                ids.compactMap { $0.split(separator: "-").last }.sorted() == (1...6).flatMap { ["\($0)", "\($0)"] }
            )

            let again = try await ClamorBinary.run(
                ["merge"] + folders + ["--out", run.folder.path("again"), "--quiet"]
            )
            #expect(again.status == 0, "\(again.errors)")
            var record = try RunJSON.read(directory: run.folder.path("again"))
            record.command = run.record.command
            #expect(record == run.record)
        }

        private func expectSums(_ record: RunRecord, _ segments: [RunRecord]) {
            for metric in record.metrics where metric.labels["loop"] == nil {
                let parts = segments.compactMap { segment in
                    segment.metrics.first { $0.name == metric.name && $0.labels == metric.labels }
                }
                if let counter = metric.counter {
                    let sum = parts.reduce(0) { $0 + ($1.counter?.value ?? 0) }
                    #expect(abs(counter.value - sum) <= 1e-9 * sum, "\(metric.name) \(metric.labels)")
                }
                if let duration = metric.duration {
                    #expect(duration.count == parts.reduce(0) { $0 + ($1.duration?.count ?? 0) })
                    #expect(duration.max == parts.compactMap(\.duration?.max).max())
                    #expect(duration.min == parts.compactMap(\.duration?.min).min())
                }
            }
            for books in record.books {
                let parts = segments.compactMap { $0.books.first { $0.name == books.name } }
                #expect(books.sent == parts.reduce(0) { $0 + ($1.sent ?? 0) })
                #expect(books.received == parts.reduce(0) { $0 + ($1.received ?? 0) })
            }
        }

        @Test("segments that are started by hand keep their subscribers for the drain, and miss nothing")
        func spanningByHand() async throws {
            let folder = try ScratchFolder()
            let start = Int(Date().timeIntervalSince1970) + 8
            _ = try await BrokerProgram.with { broker in
                func arguments(_ index: Int) -> [String] {
                    ("pubsub -p \(broker.port) --topology fan-in -c 4 --subscribers 2 -q 1 --rate 100/s --duration 3s"
                        + " --drain 2s --seed 7 --segment \(index)/2 --start-at \(start) --quiet")
                        .split(separator: " ").map(String.init) + ["--out", folder.path("\(index)")]
                }
                try await ClamorBinary.with(arguments(1)) { first in
                    let second = try await ClamorBinary.run(arguments(2))
                    let ending = try await first.ended()
                    #expect(ending.status == 0 && second.status == 0, "\(ending.errors)\(second.errors)")
                }
            }
            let merge = ["merge", folder.path("1"), folder.path("2"), "--out", folder.path("all"), "--quiet"]
            let ending = try await ClamorBinary.run(merge + ["--threshold", "delivery_lost == 0"])
            #expect(ending.status == 0, "\(ending.errors)")
            let record = try RunJSON.read(directory: folder.path("all"))
            #expect(record.count("publish_offered") == 300)
            // Messages sent before another segment had subscribed are expected only if they arrived; the own segment
            // had subscribed.
            #expect(record.count("received") == record.count("delivery_expected"))
            #expect((300...600).contains(record.count("delivery_expected")))
            #expect(record.state != .unreconciled, "\(record.verdict?.reasons ?? [])")
            let one = try await ClamorBinary.run(["merge", folder.path("1"), "--out", folder.path("no")])
            #expect(one.status == 65 && one.errors.contains("segment 2 of 2 is missing"), "\(one.errors)")
        }

        @Test("a segment on another host has its clock measured by echoes, and its deliveries are right")
        func clocks() async throws {
            let folder = try ScratchFolder()
            let start = Int(Date().timeIntervalSince1970) + 10
            _ = try await BrokerProgram.with { broker in
                func segment(_ index: Int, ahead: Int) throws -> RunningProgram {
                    let words =
                        "pubsub -p \(broker.port) --topology fan-in -c 4 --subscribers 2 -q 1 --rate 100/s --duration 3s"
                        + " --drain 2s --seed 8 --segment \(index)/2 --start-at \(start) --quiet"
                    let arguments = words.split(separator: " ").map(String.init) + ["--out", folder.path("\(index)")]
                    // A clock that is wrong by more than any delivery takes.
                    let environment = ["CLAMOR_CLOCK_AHEAD=\(ahead)", ClamorBinary.path]
                    return try RunningProgram("/usr/bin/env", environment + arguments)
                }
                let first = try segment(1, ahead: 0)
                let second = try segment(2, ahead: 100_000_000_000)
                let endings = (try await first.ended(), try await second.ended())
                #expect(endings.0.status == 0 && endings.1.status == 0, "\(endings.0.errors)\(endings.1.errors)")
            }
            let clocks = try (1...2).map { try RunJSON.read(directory: folder.path("\($0)")).segment.clock }
            #expect(clocks[0]?.correctionSeconds == nil && clocks[0]?.host != clocks[1]?.host)
            let correction = try #require(clocks[1]?.correctionSeconds)
            let error = try #require(clocks[1]?.errorSeconds)
            #expect(abs(correction + 100) <= error && error < 10 && clocks[1]?.exchanges ?? 0 > 0)
            let merge = ["merge", folder.path("1"), folder.path("2"), "--out", folder.path("all"), "--quiet"]
            let ending = try await ClamorBinary.run(merge)
            #expect(ending.status == 0, "\(ending.errors)")
            let record = try RunJSON.read(directory: folder.path("all"))
            let delivery = try #require(record.duration("delivery_duration"))
            #expect(delivery.clockError == error && delivery.max < 50)
            #expect(record.notes?.map(\.code).contains("clock-error") == true)
            #expect(record.count("received") == record.count("delivery_expected"))
            #expect(record.state != .unreconciled, "\(record.verdict?.reasons ?? [])")
        }

        @Test("a segment that is missing, doubled, foreign or cut is refused, in one line, 65")
        func refused() async throws {
            let line = "conn -h embedded -c 4 --duration 500ms --seed 5 --processes 2"
            let run = try await ClamorRun.of(line)
            let other = try await ClamorRun.of(line)
            #expect(run.status == 0 && other.status == 0, "\(run.ending.errors) \(other.ending.errors)")
            let one = run.folder.path("out/segments/1")
            let two = run.folder.path("out/segments/2")
            let foreign = other.folder.path("out/segments/2")
            for (directories, words) in [
                ([one], "segment 2 of 2 is missing; merge needs all of them"),
                ([one, two, one], "segment 1 of 2 is given 2 times"),
                ([one, foreign], "\(foreign): is of another run than \(one)"),
            ] {
                let ending = try await ClamorBinary.run(["merge"] + directories + ["--out", run.folder.path("no")])
                #expect(ending.status == 65)
                #expect(ending.errorLines.count == 1 && ending.errors.contains(words), "\(ending.errors)")
                #expect(ending.output.isEmpty && run.folder.entries() == ["out"])
            }
            let log = try String(contentsOfFile: "\(two)/latency.hlog", encoding: .utf8)
            try String(log.dropLast(200)).write(toFile: "\(two)/latency.hlog", atomically: false, encoding: .utf8)
            let cut = try await ClamorBinary.run(["merge", one, two, "--out", run.folder.path("no")])
            #expect(cut.status == 65 && cut.errorLines.count == 1 && cut.errors.contains("\(two)/"))
        }

        @Test("segments that are started by hand have the clients of their parts, and are merged")
        func byHand() async throws {
            let folder = try ScratchFolder()
            // Both have a broker of their own: what is alike is the plan, the seed and the moment.
            let start = Int(Date().timeIntervalSince1970) + 8
            func arguments(_ index: Int) -> [String] {
                "pub -h embedded -c 3 -q 1 --rate 60/s --duration 1s --seed 7 --segment \(index)/2 --start-at \(start) --quiet"
                    .split(separator: " ").map(String.init) + ["--out", folder.path("\(index)")]
            }
            try await ClamorBinary.with(arguments(1)) { first in
                let second = try await ClamorBinary.run(arguments(2))
                let ending = try await first.ended()
                #expect(ending.status == 0 && second.status == 0, "\(ending.errors)\(second.errors)")
            }
            let segments = try (1...2).map { try RunJSON.read(directory: folder.path("\($0)")) }
            // Clients 1 and 3, and client 2: 20 operations each.
            #expect(segments.map { $0.count("publish_offered") } == [40, 20])
            let merge = ["merge", folder.path("2"), folder.path("1"), "--out", folder.path("all"), "--quiet"]
            let ending = try await ClamorBinary.run(merge)
            #expect(ending.status == 0, "\(ending.errors)")
            #expect(try RunJSON.read(directory: folder.path("all")).count("publish_offered") == 60)
        }

        @Test("a segment that dies is reported in one line, and no measurement is lost")
        func dies() async throws {
            let folder = try ScratchFolder()
            let arguments = ClamorRun.arguments("conn -h embedded -c 4 --duration 0 --processes 2", in: folder)
            try await ClamorBinary.with(arguments) { program in
                // A line a second: all segments are at work.
                try await program.lines { $0.count >= 3 }
                let children = try self.segments(of: program.pid)
                #expect(children.count == 2)
                kill(try #require(children["2/2"]), SIGKILL)
                try await program.line(on: .errors) { $0.contains("segment 2 was ended by signal 9") }
                program.send(SIGINT)
                let ending = try await program.ended()
                #expect(ending.status == 65, "\(ending.errors)")
            }
            #expect(folder.entries() == ["out.partial"])
            #expect(folder.entries("out.partial/segments") == ["1", "2.partial"])
            #expect(folder.entries("out.partial/segments/2.partial").contains("timeline.csv"))
        }

        @Test("SIGINT reaches every segment, and ends a run that has no end of its own in good order")
        func signal() async throws {
            let run = try await ClamorRun.of("conn -h embedded -c 4 --duration 0 --processes 2") { program in
                try await program.lines { $0.count >= 2 }
                program.send(SIGINT)
            }
            #expect(run.status == 0, "\(run.ending.errors)")
            #expect(run.record.segment.merged == 2)
            #expect(run.record.clients["clients"]?.count == 4)
        }

        @Test("an error of all segments is reported once, and leaves no files")
        func refusal() async throws {
            let folder = try ScratchFolder()
            let arguments = ClamorRun.arguments("conn -h embedded -c 2000 --processes 2", in: folder)
            let limited = ["-c", "ulimit -n 500; exec \"$0\" \"$@\"", ClamorBinary.path] + arguments
            let ending = try await RunningProgram("/bin/bash", limited).ended()
            #expect(ending.status == 64)
            #expect(ending.errorLines.count == 1, "\(ending.errors)")
            #expect(ending.errors.contains(", of which 1000 in segment "), "\(ending.errors)")
            #expect(ending.errors.contains("needs 1,0") && ending.errors.contains("this process may have 500"))
            #expect(folder.entries() == [])
        }

        @Test(
            "as many processes as a refusal asks for are enough",
            arguments: ["conn -h embedded -c 500", "pubsub -h embedded -c 251 -q 1 --rate 100/s"]
        )
        func enough(_ line: String) async throws {
            let folder = try ScratchFolder()
            func ended(_ processes: Int) async throws -> RunningProgram.Ending {
                let words = "\(line) --duration 300ms --threads 1 --processes \(processes)"
                let arguments = ClamorRun.arguments(words, in: folder)
                let limited = ["-c", "ulimit -n 200; exec \"$0\" \"$@\"", ClamorBinary.path] + arguments
                return try await RunningProgram("/bin/bash", limited).ended()
            }
            let refused = try await ended(2)
            #expect(refused.status == 64)
            let asked = refused.errors.firstMatch(of: /\(--processes ([0-9]+)\)/).flatMap { Int($0.1) }
            let count = try #require(asked, "\(refused.errors)")
            #expect(count > 2)
            let ending = try await ended(count)
            #expect(ending.status == 0, "\(ending.errors)")
        }

        /// The segments that a process has started, by their place.
        private func segments(of parent: pid_t) throws -> [String: pid_t] {
            var found: [String: pid_t] = [:]
            // A child is listed with the thread that started it.
            let threads = try FileManager.default.contentsOfDirectory(atPath: "/proc/\(parent)/task")
            let lists = threads.compactMap {
                try? String(contentsOfFile: "/proc/\(parent)/task/\($0)/children", encoding: .utf8)
            }
            for pid in lists.joined(separator: " ").split(whereSeparator: \.isWhitespace).compactMap({ pid_t($0) }) {
                let data = try Data(contentsOf: URL(filePath: "/proc/\(pid)/cmdline"))
                let words = data.split(separator: 0).map { String(decoding: $0, as: UTF8.self) }
                guard let flag = words.firstIndex(of: "--segment") else { continue }
                found[words[flag + 1]] = pid
            }
            return found
        }
    }
}
