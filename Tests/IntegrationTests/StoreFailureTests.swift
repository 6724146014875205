import Foundation
import MQTT
import MQTTSQLiteStore
import Measurement
import TestSupport
import Testing

extension Integration {
    @Suite("A file that cannot serve as a store")
    struct StoreFailureTests {
        private func refusal(
            _ path: String,
            _ clients: String = "-c 2",
            in folder: ScratchFolder
        ) async throws -> String {
            let line = "pub -p 9 \(clients) -q 1 -L 1 --store sqlite:\(path)"
            let ending = try await ClamorBinary.run(ClamorRun.arguments(line, in: folder))
            #expect(ending.status == 64)
            #expect(!folder.entries().contains("out"))
            return ending.errors
        }

        @Test("its directory is not there, or it is one itself")
        func directory() async throws {
            let folder = try ScratchFolder()
            for path in [folder.path("nowhere/flows"), folder.path] {
                let errors = try await self.refusal(path, in: folder)
                #expect(
                    errors
                        == "clamor: --store: \(path) cannot be opened: unable to open database file; "
                        + "check that its directory is there and may be written\n"
                )
            }
            #expect(folder.entries().isEmpty)
        }

        @Test("it is something else, and stays as it is")
        func foreign() async throws {
            let folder = try ScratchFolder()
            let path = try folder.write(String(repeating: "not a database\n", count: 100), to: "notes.txt")
            let errors = try await self.refusal(path, in: folder)
            #expect(
                errors
                    == "clamor: --store: \(path) is no store of messages, and stays as it is; name another file\n"
            )
            #expect(try String(contentsOfFile: path, encoding: .utf8).count == 1_500)
        }

        @Test("another process has it")
        func locked() async throws {
            let folder = try ScratchFolder()
            let path = folder.path("flows")
            let store = try MQTTSQLiteStore(path: path)
            let errors = try await self.refusal(path, in: folder)
            #expect(
                errors
                    == "clamor: --store: \(path) is in use by another store: one process has it at a time; "
                    + "name another file\n"
            )
            try await store.close()
        }

        @Test("clients without names of their own")
        func names() async throws {
            let folder = try ScratchFolder()
            // One of client 2 or 24 or 246: with that seed there are two.
            let clients = "-c 400 --client-id x%i%rand_99 --seed 5"
            let errors = try await self.refusal(folder.path("flows"), clients, in: folder)
            #expect(
                errors
                    == "clamor: --store: flows are kept by client id, and two clients are called 'x2467'; "
                    + "set their numbers apart, as with %i alone\n"
            )
            #expect(folder.entries().isEmpty)
        }

        @Test("it cannot grow in mid-run: its clients end, each is counted, and the run is not valid")
        func full() async throws {
            let folder = try ScratchFolder()
            let file = try ScratchFolder()
            let line = """
                pub -h embedded -c 4 -q 0,1 -s 20000 --rate 400/s -L 4000 --store sqlite:\(file.path("flows"))
                """
            // No file may grow over 2 MiB; the signal that tells of it is ignored, so the write fails.
            let shell = try RunningProgram(
                "/bin/sh",
                ["-c", "trap '' XFSZ; ulimit -f 4096; exec \"$@\"", "sh", ClamorBinary.path]
                    + ClamorRun.arguments(line, in: folder)
            )
            defer { shell.send(SIGKILL) }
            let run = try ClamorRun(try await shell.ended(), folder)
            #expect(run.status == 0)
            let error = try #require(run.record.errors.first { $0.kind == "store" })
            #expect(error.count == 2)
            #expect(error.example.hasPrefix("the store failed: \(file.path("flows"))"))
            #expect(run.record.reasonCodes.contains("store-failed"))
            #expect(run.record.state == .generatorLimited)
            // The others went on.
            #expect(run.record.count("publish_confirmed", qos: 0) == 2_000)
            #expect(run.record.count("publish_sent", qos: 1) < 2_000)
            #expect(run.record.books.allSatisfy { $0.balances })
        }
    }
}
