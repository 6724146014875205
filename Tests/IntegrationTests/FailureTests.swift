import Foundation
import Measurement
import TestSupport
import Testing

extension Integration {
    @Suite("A run that cannot go on says why, and keeps what it has")
    struct FailureTests {
        @Test("no connection at all is 69, and names the cause", arguments: ["refused", "resolve"])
        func noConnection(_ kind: String) async throws {
            let reserved = try ReservedPort()
            // A label of 64 characters is no name, whatever the name service says.
            let target = kind == "refused" ? "-p \(reserved.port)" : "-h \(String(repeating: "x", count: 64)).invalid"
            let run = try await ClamorRun.of("pub \(target) -c 3 --duration 1s")
            #expect(run.status == 69)
            #expect(run.ending.errorLines.count == 1)
            #expect(run.ending.errors.contains(kind == "refused" ? "refused" : "resolve"))
            #expect(run.record.errors.map { $0.kind } == [kind])
            #expect(run.record.errors.first?.count == 3)
            #expect(run.record.state == .aborted)
        }

        @Test(
            "a broker that dies in mid-run is 69, at once without --reconnect",
            arguments: ["", "--reconnect 3"]
        )
        func brokerDies(_ flags: String) async throws {
            try await ClamorBinary.with(["broker", "-p", "0"]) { broker in
                let port = try await broker.line().split(separator: ":").last ?? ""
                let run = try await ClamorRun.of(
                    "pub -p \(port) -c 3 -q 0,1,2 --rate 300/s --duration 1h \(flags)"
                ) { program in
                    try await program.line { $0.contains(" measure ") && !$0.contains("sent 0/s") }
                    broker.send(SIGKILL)
                }
                #expect(run.status == 69)
                #expect(run.ending.errorLines.count == 1)
                #expect(run.record.state == .aborted)
                #expect(run.record.reasonCodes.contains("connections-lost"))
                #expect(run.record.perQoS("publish_sent").allSatisfy { $0 > 0 })
                #expect(run.record.books.allSatisfy { $0.balances })
                #expect(try timeline(run).contains { $0.contains(",measure,publish_sent,") })
            }
        }

        @Test(
            "a result that standard output does not take is no success; a closed pipe is no error",
            arguments: ["doctor --json", "init fleet --out -", "--help", "pub -h embedded -c 1 -L 1 --json"]
        )
        func fullOutput(_ words: String) async throws {
            let folder = try ScratchFolder()
            let flags = words.hasPrefix("pub") ? " --out \(folder.path("out"))" : ""
            func status(_ redirection: String) async throws -> RunningProgram.Ending {
                let line = "\"$0\" \(words)\(flags)\(redirection)"
                return try await RunningProgram("/bin/bash", ["-c", line, ClamorBinary.path]).ended()
            }
            let full = try await status(" > /dev/full")
            #expect(full.status == 73)
            #expect(full.errors.hasSuffix("clamor: standard output: No space left on device\n"))
            try? FileManager.default.removeItem(atPath: folder.path("out"))
            let closed = try await status(" | true; exit ${PIPESTATUS[0]}")
            #expect([0, 141].contains(closed.status), "\(closed.errors)")
        }

        /// 12 attempts, one second apart: longer than the 10 s that a run waits at least.
        @Test("a server that is away for as long as the reconnects last does not end the run")
        func serverAway() async throws {
            let port = try ReservedPort()
            let number = port.port
            port.release()
            func broker() throws -> RunningProgram { try ClamorBinary.start(["broker", "-p", "\(number)"]) }
            let first = try broker()
            defer { first.send(SIGKILL) }
            _ = try await first.line()
            var second: RunningProgram?
            defer { second?.send(SIGKILL) }
            let line = "pub -p \(number) -c 3 -q 1 --rate 30/s --duration 18s --reconnect 20"
            let run = try await ClamorRun.of(line) { program in
                try await program.line { $0.contains(" measure ") && !$0.contains("sent 0/s") }
                first.send(SIGKILL)
                try await program.lines { $0.count { $0.contains("0/3 clients") } >= 12 }
                second = try broker()
                _ = try await second?.line()
            }
            #expect(run.status == 0, "\(run.ending.errors)")
            #expect(!run.record.reasonCodes.contains("connections-lost"))
            #expect(run.record.count("reconnects") >= 3)
        }

        private func timeline(_ run: ClamorRun) throws -> [Substring] {
            try String(contentsOfFile: "\(run.directory)/timeline.csv", encoding: .utf8).split(separator: "\n")
        }

        @Test(
            "what cannot be run is refused with one line and 64, and leaves nothing",
            arguments: [
                ["-c", "100000000"],
                ["-c", "9000000"],
                ["-m", "template:///does/not/exist"],
                ["--rate", "10/s", "-I", "5"],
                ["--frob"],
                ["-q", "3"],
                ["-V", "6"],
                ["-p", "70000"],
                ["--duration", "ten"],
                ["--threshold", "publish_sent is fine"],
                ["--threshold", "delivery_lost == 0"],
                ["-t", "a/#"],
                ["--read-size", "0"],
                ["--cacertfile", "/nowhere/ca.pem", "-S"],
            ]
        )
        func refused(_ flags: [String]) async throws {
            let folder = try ScratchFolder()
            let ending = try await ClamorBinary.run(ClamorRun.arguments("pub -h 127.0.0.1", flags, in: folder))
            #expect(ending.status == 64)
            #expect(ending.errorLines.count == 1, "\(ending.errors)")
            #expect(ending.errors.hasPrefix("clamor"))
            #expect(ending.errors.contains(flags[0]))
            #expect(ending.output.isEmpty)
            #expect(folder.entries().isEmpty)
        }

        @Test("more clients than descriptors are refused, with the number and the remedy")
        func descriptors() async throws {
            let folder = try ScratchFolder()
            let arguments = ClamorRun.arguments("conn -h embedded -c 1000", in: folder)
            let program = try RunningProgram(
                "/bin/sh",
                ["-c", "ulimit -n 256; exec \"$0\" \"$@\"", ClamorBinary.path] + arguments
            )
            let ending = try await program.ended()
            #expect(ending.status == 64)
            #expect(ending.errorLines.count == 1)
            #expect(ending.errors.contains("-c 1000"))
            #expect(ending.errors.contains("256"))
            #expect(ending.errors.contains("ulimit"))
            #expect(folder.entries().isEmpty)
        }

        @Test("results that cannot be written are 73, before anything else")
        func unwritable() async throws {
            let folder = try ScratchFolder()
            try folder.write("here", to: "file")
            for out in ["file/out", "file"] {
                let path = folder.path(out)
                let ending = try await ClamorBinary.run(["pub", "-h", "embedded", "--out", path])
                #expect(ending.status == 73)
                #expect(ending.errorLines.count == 1)
                #expect(ending.errors.contains("--out"))
                #expect(ending.errors.contains(path))
                #expect(ending.output.isEmpty)
            }
            #expect(folder.entries() == ["file"])
        }

        @Test("results are never overwritten")
        func occupied() async throws {
            let first = try await ClamorRun.of("pub -h embedded -L 1")
            let before = try String(contentsOfFile: "\(first.directory)/run.json", encoding: .utf8)
            let second = try await ClamorBinary.run(["pub", "-h", "embedded", "-L", "1", "--out", first.directory])
            #expect(second.status == 73)
            #expect(second.errorLines.count == 1)
            #expect(second.errors.contains("not empty"))
            #expect(try String(contentsOfFile: "\(first.directory)/run.json", encoding: .utf8) == before)
            #expect(first.folder.entries() == ["out"])
        }

        @Test("a broker that cannot listen says so")
        func portTaken() async throws {
            try await ClamorBinary.with(["broker", "-p", "0"]) { broker in
                let port = try await broker.line().split(separator: ":").last ?? ""
                let second = try await ClamorBinary.run(["broker", "-p", String(port)])
                #expect(second.status == 64)
                #expect(second.errorLines.count == 1)
                #expect(second.errors.contains(port))
                #expect(second.output.isEmpty)
            }
        }
    }
}
